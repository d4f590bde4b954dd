// Part token splits text into the tokens of the simulated provider.
//
// A token is a word of at most eight letters with the space before it, at most three digits, a run of
// white space, a punctuation mark, or a character that is not ASCII. Prompts and answers have the
// same tokens, so that the IDs of a conversation begin with those of its earlier turns.
//
// It promises that the tokens of a text are the same everywhere, and together are the text.

package sim

import "iter"

// The classes of bytes.
const (
	punct  = '.'
	letter = 'a'
	digit  = '0'
	space  = ' '
	more   = 'm' // continuation byte of UTF-8
	high   = 'h' // first byte of a UTF-8 sequence
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
		return run(s, i, letter, 8)
	case digit:
		return run(s, i, digit, 3)
	case space:
		end := run(s, i, space, 16)
		if end-i > 1 && s[end-1] == ' ' && end < len(s) && classes[s[end]] == letter {
			end-- // the last space belongs to the word
		}
		return end
	case high, more:
		return run(s, i+1, more, 3)
	default:
		return i + 1
	}
}

func run(s string, i int, k byte, limit int) int {
	end := min(len(s), i+limit)
	for i < end && classes[s[i]] == k {
		i++
	}
	return i
}

// Count returns the number of tokens of s.
func Count(s string) int {
	n := 0
	for i := 0; i < len(s); n++ {
		i = tokenEnd(s, i)
	}
	return n
}

// tokenPieces splits s into its tokens.
func tokenPieces(s string) []string {
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
