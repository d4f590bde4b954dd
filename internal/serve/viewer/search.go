package viewer

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// The limits of a search.
const (
	hitsPerPage = 50
	textsAtOnce = 2000 // entries that a request adds to the index: a small run is searched at once
)

// searchPage is the data of a search.
type searchPage struct {
	Words string
	To    string // the address of the page without parameters
	Hits  []hit
	Next  string
	// How many entries can be searched, and how many there are.
	Indexed, Entries int
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
	if d.Indexed, d.Entries, err = r.Search(req.Context(), textsAtOnce); err != nil {
		return nil, err
	}
	after, err := strconv.Atoi("0" + req.URL.Query().Get("after"))
	if err != nil {
		return nil, fmt.Errorf("viewer: after: %w: want a number", errBadRequest)
	}
	found, err := r.Index.Search(req.Context(), words, after, hitsPerPage)
	if err != nil {
		return nil, err
	}
	texts := transcriptTexts{Store: r.Store}
	for _, h := range found {
		d.Hits = append(d.Hits, texts.NewHit(req.Context(), runPath(r.Name, "episodes", strconv.Itoa(h.Episode)), h, words))
	}
	if len(found) == hitsPerPage {
		d.Next = fmt.Sprintf("%s?q=%s&after=%d", d.To, url.QueryEscape(words), found[len(found)-1].ID)
	}
	p.Data = d
	return p, nil
}
