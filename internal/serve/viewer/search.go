package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/kit/files"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
)

// The limits of a search.
const (
	hitsPerPage = 50
	textsAtOnce = 2000 // entries that a request adds to the index: a small run is searched at once
)

// searchPage is the data of a search.
type searchPage struct {
	runHits
	Words string
	To    string // the address of the page without parameters
	Next  string
}

// runHits is what a search finds in a run.
type runHits struct {
	Hits []hit
	// How many entries can be searched, and how many there are.
	Indexed, Entries int
	Full             bool // texts are left out
}

// searchRun finds the first texts of a run that have the words, after the hit with an id, and adds some more entries to its index before.
func searchRun(ctx context.Context, r *Run, words string, after, limit, more int) (out runHits, err error) {
	if out.Indexed, out.Entries, err = r.Search(ctx, more); err != nil {
		return out, err
	}
	out.Full = r.Index.Full()
	found, err := r.Index.Search(ctx, words, after, limit)
	texts := episodeTexts{Store: r.Store}
	for _, h := range found {
		out.Hits = append(out.Hits, texts.NewHit(ctx, runPath(r.Name, "episodes", strconv.Itoa(h.Episode)), h, words))
	}
	return out, err
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
	after, err := strconv.Atoi("0" + req.URL.Query().Get("after"))
	if err != nil {
		return nil, fmt.Errorf("after: %w: want a number", errBadRequest)
	}
	if d.runHits, err = searchRun(req.Context(), r, words, after, hitsPerPage, textsAtOnce); err != nil {
		return nil, err
	}
	if len(d.Hits) == hitsPerPage {
		d.Next = fmt.Sprintf("%s?q=%s&after=%d", d.To, url.QueryEscape(words), d.Hits[hitsPerPage-1].ID)
	}
	p.Data = d
	return p, nil
}

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
	runHits
	Name, Page string
	More       string // the page with all hits; empty: there are no more
	Problem    string // why it cannot be searched
	Large      bool   // it is not searched here: that would begin to index it
	Unread     bool   // its file was not read yet, so that nobody knows whether it is large
	Search     string // the page that searches it alone
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
	rest, err := runsAfter(all, q.Get("after"))
	if err != nil {
		return nil, err
	}
	from := len(all) - len(rest)
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
func (v *Viewer) searchOne(ctx context.Context, e *runEntry, words string) foundIn {
	f := foundIn{Name: e.Name, Page: runPath(e.Name), Search: searchAt(e.Name, words), Problem: e.Problem}
	f.Unread = !e.Known
	f.Large = e.Outline.Replies > maxUnindexed && !v.indexed(e.Name)
	if f.Problem != "" || f.Large || f.Unread {
		return f
	}
	r, err := v.get(ctx, e.Name)
	if err == nil {
		f.runHits, err = searchRun(ctx, r, words, 0, hitsPerRun+1, textsPerRun)
	}
	if errors.Is(err, runfile.ErrDamaged) && r != nil && r.Store.Lost() == nil && r.Store.Salvage(ctx) == nil {
		f.runHits, err = searchRun(ctx, r, words, 0, hitsPerRun+1, textsPerRun)
	}
	if err != nil {
		f.Problem = err.Error()
	}
	if len(f.Hits) > hitsPerRun {
		f.Hits, f.More = f.Hits[:hitsPerRun], f.Search
	}
	return f
}

// indexed reports whether there is an index beside a run file.
func (v *Viewer) indexed(name string) bool {
	path, ok := v.runs.File(name)
	if !ok {
		return false
	}
	_, err := os.Stat(files.Beside(path, results.IndexSuffix))
	return err == nil
}

// maxExcerpt is how many characters of a hit are shown.
const maxExcerpt = 300

// hit is a text that was found.
type hit struct {
	results.Hit
	To      string
	Excerpt [3]string // before the first word, the word, after it
}

// episodeTexts reads texts of episodes, each episode once, and of its requests only those that are wanted.
type episodeTexts struct {
	Store *runfile.Store

	last    int // the episode that was read
	entries []journal.Entry
	fill    func(...*journal.Replied) error
}

// episode reads the entries of an episode.
func (t *episodeTexts) episode(ctx context.Context, n int) (err error) {
	if t.fill == nil || t.last != n {
		t.last = n
		t.entries, t.fill, err = t.Store.Sparing(ctx, n)
	}
	return err
}

// NewHit reads the text of a hit in the episode whose page is at an address.
func (t *episodeTexts) NewHit(ctx context.Context, at string, h results.Hit, words string) hit {
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
				texts = append(texts, results.ReplyTexts(e, h.What)...)
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
		before, after := text[max(0, at-maxExcerpt/2):at], text[end:min(len(text), end+maxExcerpt/2)]
		if at > maxExcerpt/2 { // it begins and ends with whole words
			before = "… " + before[strings.IndexByte(before, ' ')+1:]
		}
		if i := strings.LastIndexByte(after, ' '); len(text)-end > maxExcerpt/2 && i >= 0 {
			after = after[:i] + " …"
		}
		return [3]string{strings.ToValidUTF8(before, ""), strings.ToValidUTF8(text[at:end], ""), strings.ToValidUTF8(after, "")}, true
	}
	return out, false
}
