package sim

import (
	"iter"
	"slices"

	"parley/llm"
)

// A token is a word of at most eight letters with the space before it, at most three digits, a run of
// white space, a punctuation mark, or a character that is not ASCII. Prompts and answers have the
// same tokens, so that the IDs of a conversation begin with those of its earlier turns.

// IDs of tokens that are not text. Those of text begin at firstTextID.
const (
	idSystem = iota + 1
	idUser
	idAssistant
	idTool
	idEnd
	idOther // part of a schema, a tool or an image

	firstTextID = 256
	textIDs     = 100_000
)

// endToken is the text of the token after an answer.
const endToken = "<|end|>"

type class uint8

const (
	punct class = iota
	letter
	digit
	space
	more // continuation byte of UTF-8
	high // first byte of a UTF-8 sequence
)

func classOf(c byte) class {
	switch {
	case 'a' <= c|0x20 && c|0x20 <= 'z' && c < 0x80:
		return letter
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		return space
	case '0' <= c && c <= '9':
		return digit
	case c >= 0xc0:
		return high
	case c >= 0x80:
		return more
	default:
		return punct
	}
}

// tokenEnd returns the end of the token of s at i.
func tokenEnd(s string, i int) int {
	if s[i] == ' ' && i+1 < len(s) && classOf(s[i+1]) == letter {
		i++
	}
	switch k := classOf(s[i]); k {
	case letter:
		return run(s, i, letter, 8)
	case digit:
		return run(s, i, digit, 3)
	case space:
		end := run(s, i, space, 16)
		if end-i > 1 && s[end-1] == ' ' && end < len(s) && classOf(s[end]) == letter {
			end-- // the last space belongs to the word
		}
		return end
	case high, more:
		return run(s, i+1, more, 3)
	default:
		return i + 1
	}
}

func run(s string, i int, k class, limit int) int {
	end := min(len(s), i+limit)
	for i < end && classOf(s[i]) == k {
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

// Pieces splits s into its tokens.
func Pieces(s string) []string {
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

// TokenID returns the id of a token.
func TokenID(piece string) int { return firstTextID + int(hash(0).str(piece).end()%textIDs) }

func roleID(r llm.Role) int {
	switch r {
	case llm.RoleSystem:
		return idSystem
	case llm.RoleAssistant:
		return idAssistant
	case llm.RoleTool:
		return idTool
	default:
		return idUser
	}
}

func appendIDs(dst []int, s string) []int {
	for i := 0; i < len(s); {
		end := tokenEnd(s, i)
		dst = append(dst, TokenID(s[i:end]))
		i = end
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
			if p.Image != nil {
				for range imageTokens {
					ids = append(ids, idOther)
				}
			}
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
	pieces := Pieces(a.Text)
	if c.Request.TokenIDs {
		for _, t := range a.ToolCalls {
			pieces = slices.Concat(pieces, Pieces(t.Name), Pieces(t.Arguments))
		}
		if a.Finish != llm.FinishLength {
			pieces = append(pieces, endToken)
		}
	}
	out := make([]llm.Logprob, len(pieces))
	for i, p := range pieces {
		u := float64(hash(c.Digest).num(i).end()>>11) / (1 << 53)
		l := -u * u * 3
		out[i] = llm.Logprob{Token: p, ID: TokenID(p), Logprob: l}
		if p == endToken {
			out[i].ID = idEnd
		}
		for k := range top {
			alt := p
			if k > 0 {
				alt = pieces[(i+k*7)%len(pieces)]
			}
			out[i].Top = append(out[i].Top, llm.Logprob{Token: alt, ID: TokenID(alt), Logprob: l - float64(k)*(0.5+u)})
		}
	}
	return out
}
