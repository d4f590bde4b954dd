package viewer

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
)

// maxExcerpt is how many characters of a hit are shown.
const maxExcerpt = 300

// hit is a text that was found.
type hit struct {
	results.Hit
	To      string
	Excerpt [3]string // before the first word, the word, after it
}

// transcriptTexts reads texts of episodes, each episode once, and of its requests only those that are wanted.
type transcriptTexts struct {
	Store *runfile.Store

	last    int // the episode that was read
	entries []journal.Entry
	fill    func(...*journal.Replied) error
}

// episode reads the entries of an episode.
func (t *transcriptTexts) episode(ctx context.Context, n int) (err error) {
	if t.fill == nil || t.last != n {
		t.last = n
		t.entries, t.fill, err = t.Store.Sparing(ctx, n)
	}
	return err
}

// NewHit reads the text of a hit in the episode whose page is at an address.
func (t *transcriptTexts) NewHit(ctx context.Context, at string, h results.Hit, words string) hit {
	out := hit{Hit: h, To: at}
	if strings.Contains(h.Call, ":") {
		out.To += "/" + h.Call
	}
	if t.episode(ctx, h.Episode) != nil {
		return out // the page of the episode says why
	}
	var texts []string
	for _, e := range t.entries {
		switch e := e.(type) {
		case *journal.Turned:
			if h.What == "note" && results.TurnName(e.Strand, e.Turn.Turn) == h.Call {
				for _, n := range e.Notes {
					texts = append(texts, string(n.Data))
				}
			}
		case *journal.Replied:
			if results.TurnName(e.Strand, e.Turn.Turn)+":"+strconv.Itoa(e.Index) == h.Call && (h.What != results.Asked || t.fill(e) == nil) {
				texts = append(texts, results.Texts(e, h.What)...)
			}
		}
	}
	for _, text := range texts {
		if excerpt, ok := excerptOf(text, words); ok {
			out.Excerpt = excerpt
			break
		}
	}
	return out
}

// excerptOf returns the surroundings of the first of the words in a text.
func excerptOf(text, words string) (out [3]string, ok bool) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) {
		lower = text // a letter whose lower case has another length: positions would be wrong
	}
	for word := range strings.FieldsFuncSeq(words, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		at := strings.Index(lower, strings.ToLower(word))
		if at < 0 {
			continue
		}
		end := at + len(word)
		if end > len(text) {
			continue
		}
		from, to := max(0, at-maxExcerpt/2), min(len(text), end+maxExcerpt/2)
		return [3]string{strings.ToValidUTF8(text[from:at], ""), strings.ToValidUTF8(text[at:end], ""), strings.ToValidUTF8(text[end:to], "")}, true
	}
	return out, false
}
