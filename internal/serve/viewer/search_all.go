package viewer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/files"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
)

// The limits of a search in all runs.
const (
	runsPerSearch = 8 // on a page: fewer than can be open at once
	hitsPerRun    = 5
	textsPerRun   = 200     // entries that a request adds to the index of a run
	maxUnindexed  = 200_000 // calls of a run without an index that is searched
)

// searchAllPage is the data of a search in all runs.
type searchAllPage struct {
	Words       string
	Found       []foundIn // runs with hits, or of which something must be said
	Without     []foundIn // runs in which nothing was found
	First, Last int       // the runs of this page, counted from 1
	All, Unread int       // runs, and those whose files were not read yet
	Next        string
}

// foundIn is what was found in a run.
type foundIn struct {
	Name, Page string
	Hits       []hit
	More       string // the page with all hits; empty: there are no more
	Problem    string // why it cannot be searched
	Large      bool   // it is not searched here: that would begin to index it
	Unread     bool   // its file was not read yet, so that nobody knows whether it is large
	Search     string // the page that searches it alone
	// How many entries can be searched, and how many there are.
	Indexed, Entries int
}

// Behind reports whether texts of a run are still being added to its index.
func (p searchAllPage) Behind() bool {
	return slices.ContainsFunc(p.Found, func(f foundIn) bool { return f.Indexed < f.Entries })
}

// searchAll is the page that searches all runs, some at a time, the latest first.
func (v *Viewer) searchAll(req *http.Request) (*screen, error) {
	q := req.URL.Query()
	words := q.Get("q")
	if name, ok := v.runs.Single(); ok {
		return &screen{to: searchAt(name, words)}, nil
	}
	d := searchAllPage{Words: words}
	p := &screen{template: "searchall", Title: "Search in all runs", Above: []link{{Text: "Runs", To: "/"}, {Text: "Search", To: "/search"}}}
	if strings.TrimSpace(words) == "" {
		p.Data = d
		return p, nil
	}
	all, _ := v.catalog.List(req.Context()) // scores that are being computed change nothing here
	from := 1 + slices.IndexFunc(all, func(e *Entry) bool { return e.Name == q.Get("after") })
	last := min(len(all), from+runsPerSearch)
	d.First, d.Last, d.All = from+1, last, len(all)
	for _, e := range all {
		if !e.Known {
			d.Unread++
		}
	}
	for _, e := range all[from:last] {
		f := v.searchOne(req.Context(), e, words)
		if err := context.Cause(req.Context()); err != nil {
			return nil, err
		}
		if len(f.Hits) == 0 && f.Problem == "" && !f.Large && !f.Unread && f.Indexed >= f.Entries {
			d.Without = append(d.Without, f)
		} else {
			d.Found = append(d.Found, f)
		}
	}
	if last < len(all) {
		d.Next = "/search?" + url.Values{"q": {words}, "after": {all[last-1].Name}}.Encode()
	}
	p.Data, p.Live = d, "/events"
	return p, nil
}

// searchAt returns the address of a search in one run.
func searchAt(run, words string) string {
	return runPath(run, "search") + "?" + url.Values{"q": {words}}.Encode()
}

// searchOne searches a run of the list.
func (v *Viewer) searchOne(ctx context.Context, e *Entry, words string) foundIn {
	f := foundIn{Name: e.Name, Page: runPath(e.Name), Search: searchAt(e.Name, words), Problem: e.Problem}
	f.Unread = !e.Known
	f.Large = e.Outline.Replies > maxUnindexed && !v.indexed(e.Name)
	if f.Problem != "" || f.Large || f.Unread {
		return f
	}
	r, err := v.get(ctx, e.Name)
	if err == nil {
		err = f.search(ctx, r, words)
	}
	if errors.Is(err, runfile.ErrDamaged) && r != nil && r.Store.Lost() == nil && r.Store.Salvage(ctx) == nil {
		err = f.search(ctx, r, words)
	}
	if err != nil {
		f.Problem = err.Error()
	}
	return f
}

// indexed reports whether there is an index beside a run file.
func (v *Viewer) indexed(name string) bool {
	path, ok := v.runs.File(name)
	if !ok {
		return false
	}
	_, err := os.Stat(files.Beside(path, results.Suffix))
	return err == nil
}

// search finds the first texts of a run that have the words.
func (f *foundIn) search(ctx context.Context, r *Run, words string) (err error) {
	if f.Indexed, f.Entries, err = r.Search(ctx, textsPerRun); err != nil {
		return err
	}
	found, err := r.Index.Search(ctx, words, 0, hitsPerRun+1)
	if len(found) > hitsPerRun {
		found, f.More = found[:hitsPerRun], f.Search
	}
	f.Hits = nil
	texts := transcriptTexts{Store: r.Store}
	for _, h := range found {
		f.Hits = append(f.Hits, texts.NewHit(ctx, runPath(r.Name, "episodes", strconv.Itoa(h.Episode)), h, words))
	}
	return err
}
