package format

import (
	"unicode"

	"parley/llm"
)

// Words is the set of words of a request, with counts.
type Words struct {
	count map[uint64]int32
	all   int
}

// maxWords is how many words of a request are counted, starting with its last message.
const maxWords = 1 << 14

// Words counts the words of a request's messages that the rules leave.
func (r *Rules) Words(q *llm.Request) *Words {
	w := &Words{count: map[uint64]int32{}}
	if size(q) > maxText {
		return w
	}
	for i := len(q.Messages) - 1; i >= 0 && w.all < maxWords; i-- {
		m := &q.Messages[i]
		for _, p := range m.Parts {
			w.add(r, p.Text)
		}
		for _, t := range m.ToolCalls {
			w.add(r, t.Name)
			w.add(r, t.Arguments)
		}
	}
	return w
}

// add counts the words of a text: runs of letters and digits. In scripts without spaces between words, each
// character is a word.
func (w *Words) add(r *Rules, s string) {
	if r != nil {
		s = r.text(s)
	}
	const seed, prime = 14695981039346656037, 1099511628211 // of FNV-1a
	hash, inside := uint64(seed), false
	end := func() {
		if inside {
			w.count[hash]++
			w.all++
		}
		hash, inside = seed, false
	}
	for _, c := range s {
		if w.all >= maxWords {
			return
		}
		word := unicode.IsLetter(c) || unicode.IsDigit(c)
		if !word || c >= 0x2e80 {
			end()
		}
		if word {
			hash, inside = (hash^uint64(c))*prime, true
		}
		if c >= 0x2e80 {
			end()
		}
	}
	end()
}

// Share returns the share of words that both have in common, from 0 to 1.
func (w *Words) Share(other *Words) float64 {
	if w.all+other.all == 0 {
		return 1
	}
	same := 0
	for hash, n := range w.count {
		same += int(min(n, other.count[hash]))
	}
	return 2 * float64(same) / float64(w.all+other.all)
}
