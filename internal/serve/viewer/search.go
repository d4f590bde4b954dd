package viewer

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/serve/viewer/library"

	"parley/internal/view/index"
	"parley/internal/view/transcript"
	"parley/journal"
)

// The limits of a search.
const (
	hitsPerPage = 50
	textsAtOnce = 2000 // entries that a request adds to the index
	maxExcerpt  = 300  // characters of a hit
)

// searchPage is the data of a search.
type searchPage struct {
	Words  string
	To     string // the address of the page without parameters
	Hits   []hit
	Next   string
	Behind int // entries that are not searched yet
}

// hit is a text that was found.
type hit struct {
	index.Hit
	To      string
	Excerpt [3]string // before the first word, the word, after it
}

func (v *Viewer) search(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Search")
	if err != nil {
		return nil, err
	}
	words := req.URL.Query().Get("q")
	d := searchPage{Words: words, To: runPath(r.Name, "search")}
	p.template, p.Title = "search", "Search in "+r.Name
	if strings.TrimSpace(words) == "" {
		p.Live, p.Data = "", d
		return p, nil
	}
	indexed, err := r.Index.UpdateTexts(req.Context(), textsAtOnce)
	if err != nil {
		return nil, err
	}
	entries, err := r.Store.Entries()
	if err != nil {
		return nil, err
	}
	d.Behind = max(0, entries-indexed)
	after, err := strconv.Atoi("0" + req.URL.Query().Get("after"))
	if err != nil {
		return nil, fmt.Errorf("viewer: after: %w: want a number", errBadRequest)
	}
	found, err := r.Index.Search(req.Context(), words, after, hitsPerPage)
	if err != nil {
		return nil, err
	}
	for _, h := range found {
		d.Hits = append(d.Hits, newHit(r, req, h, words))
	}
	if len(found) == hitsPerPage {
		d.Next = fmt.Sprintf("%s?q=%s&after=%d", d.To, url.QueryEscape(words), found[len(found)-1].ID)
	}
	p.Data = d
	return p, nil
}

// newHit reads the text of a hit.
func newHit(r *library.Run, req *http.Request, h index.Hit, words string) hit {
	out := hit{Hit: h, To: runPath(r.Name, "episodes", strconv.Itoa(h.Episode))}
	if strings.Contains(h.Call, ":") {
		out.To += "/" + h.Call
	}
	entries, err := journal.Episode(req.Context(), r.Store, h.Episode)
	if err != nil {
		return out // the page of the episode says why
	}
	var texts []string
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if h.What == "note" && transcript.TurnName(e.Strand, e.Turn.Turn) == h.Call {
				for _, n := range e.Notes {
					texts = append(texts, string(n.Data))
				}
			}
		case *journal.Replied:
			if transcript.TurnName(e.Strand, e.Turn.Turn)+":"+strconv.Itoa(e.Index) == h.Call {
				texts = append(texts, index.Texts(e, h.What)...)
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
