package sim

import (
	"iter"
	"slices"

	"parley/llm"
)

// A token is a word of at most eight letters with the space before it, at most three digits, a run of
// white space, a punctuation mark, or a character that is not ASCII. The tokens of a text together are
// the text. Prompts and answers have the same tokens, so that the IDs of a conversation begin with those
// of its earlier turns.

// The classes of bytes.
const (
	punct        = '.'
	letter       = 'a'
	digit        = '0'
	space        = ' '
	continuation = 'm' // continuation byte of UTF-8
	leading      = 'h' // first byte of a UTF-8 sequence
)

// classes has the class of every byte, in the order of bytes. It is a table since each call counts
// the tokens of its whole prompt.
const classes = ".........  .. .................. ...............0000000000......" +
	".aaaaaaaaaaaaaaaaaaaaaaaaaa......aaaaaaaaaaaaaaaaaaaaaaaaaa....." +
	"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm" +
	"hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"

// tokenEnd returns the end of the token of s at i.
func tokenEnd(s string, i int) int {
	if s[i] == ' ' && i+1 < len(s) && classes[s[i+1]] == letter {
		i++
	}
	switch k := classes[s[i]]; k {
	case letter:
		return classEnd(s, i, letter, 8)
	case digit:
		return classEnd(s, i, digit, 3)
	case space:
		end := classEnd(s, i, space, 16)
		if end-i > 1 && s[end-1] == ' ' && end < len(s) && classes[s[end]] == letter {
			end-- // the last space belongs to the word
		}
		return end
	case leading, continuation:
		return classEnd(s, i+1, continuation, 3)
	default:
		return i + 1
	}
}

func classEnd(s string, i int, k byte, limit int) int {
	end := min(len(s), i+limit)
	for i < end && classes[s[i]] == k {
		i++
	}
	return i
}

// CountTokens returns the number of tokens of s.
func CountTokens(s string) int {
	n := 0
	for i := 0; i < len(s); n++ {
		i = tokenEnd(s, i)
	}
	return n
}

// splitTokens splits s into its tokens.
func splitTokens(s string) []string {
	out := make([]string, 0, len(s)/4+1)
	for i := 0; i < len(s); {
		end := tokenEnd(s, i)
		out = append(out, s[i:end])
		i = end
	}
	return out
}

// Chunks splits s into pieces of n tokens.
func Chunks(s string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			piece, _ := cutTokens(s, max(1, n))
			if !yield(piece) {
				return
			}
			s = s[len(piece):]
		}
	}
}

// cutTokens returns the first n tokens of s, and how many there were.
func cutTokens(s string, n int) (string, int) {
	i, k := 0, 0
	for i < len(s) && k < n {
		i = tokenEnd(s, i)
		k++
	}
	return s[:i], k
}

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
	for _, piece := range splitTokens(s) {
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
			_, n := addMedia(0, &p)
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
	pieces := splitTokens(a.Text)
	if c.Request.TokenIDs {
		for _, t := range a.ToolCalls {
			pieces = slices.Concat(pieces, splitTokens(t.Name), splitTokens(t.Arguments))
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
