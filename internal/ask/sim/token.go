package sim

import (
	"slices"

	"parley/llm"
)

// IDs of tokens that are not text. Those of text begin at firstTextID.
const (
	idSystem = iota + 1
	idUser
	idAssistant
	idTool
	idEnd
	idOther // part of a schema, a tool, an image or a file

	firstTextID = 256
	textIDs     = 100_000
)

// endToken is the text of the token after an answer.
const endToken = "<|end|>"

// tokenID returns the id of a token.
func tokenID(piece string) int { return firstTextID + int(hash(0).str(piece).end()%textIDs) }

func roleID(r llm.Role) int {
	if i := slices.Index([]llm.Role{llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool}, r); i >= 0 {
		return idSystem + i
	}
	return idUser
}

func appendIDs(dst []int, s string) []int {
	for _, piece := range tokenPieces(s) {
		dst = append(dst, tokenID(piece))
	}
	return dst
}

// PromptIDs returns the token IDs of a case's prompt. Their number is Input.
func (c *Case) PromptIDs() []int {
	ids := make([]int, 0, c.Input)
	for range c.preamble {
		ids = append(ids, idOther)
	}
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		ids = append(ids, roleID(m.Role))
		for _, p := range m.Parts {
			_, n := media(0, &p)
			ids = append(ids, slices.Repeat([]int{idOther}, n)...)
			ids = appendIDs(ids, p.Text)
		}
		for _, t := range m.ToolCalls {
			ids = appendIDs(appendIDs(ids, t.Name), t.Arguments)
		}
		ids = append(ids, idEnd)
	}
	return append(ids, idAssistant)
}

// IDs returns the token IDs of an answer, without its thoughts.
func (a *Answer) IDs() []int {
	ids := appendIDs(make([]int, 0, a.Output), a.Text)
	for _, t := range a.ToolCalls {
		ids = appendIDs(appendIDs(ids, t.Name), t.Arguments)
	}
	if a.Finish != llm.FinishLength {
		ids = append(ids, idEnd)
	}
	return ids
}

// Logprobs returns the tokens of an answer's text with made-up log probabilities, each with top
// alternatives. If the request wants token IDs it returns all tokens of IDs, as inference engines do.
func (c *Case) Logprobs(a *Answer, top int) []llm.Logprob {
	pieces := tokenPieces(a.Text)
	if c.Request.TokenIDs {
		for _, t := range a.ToolCalls {
			pieces = slices.Concat(pieces, tokenPieces(t.Name), tokenPieces(t.Arguments))
		}
		if a.Finish != llm.FinishLength {
			pieces = append(pieces, endToken)
		}
	}
	out := make([]llm.Logprob, len(pieces))
	for i, p := range pieces {
		u := float64(hash(c.Digest).num(i).end()>>11) / (1 << 53)
		l := -u * u * 3
		out[i] = llm.Logprob{Token: p, ID: tokenID(p), Logprob: l}
		if p == endToken {
			out[i].ID = idEnd
		}
		for k := range top {
			alt := p
			if k > 0 {
				alt = pieces[(i+k*7)%len(pieces)]
			}
			out[i].Top = append(out[i].Top, llm.Logprob{Token: alt, ID: tokenID(alt), Logprob: l - float64(k)*(0.5+u)})
		}
	}
	return out
}
