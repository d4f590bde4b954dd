package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/internal/serve/viewer/library"

	"parley/internal/report/page"
	"parley/internal/store/sqlite"
	"parley/internal/view/index"
	"parley/world"
)

// perPage is how many episodes a page lists.
const perPage = 100

// filter is the part of an address that says which episodes to list. The address of a page holds
// all of it, so that it can be shared.
type filter struct {
	State, Cell, Agent, Text string
	Sort                     string // a column, or score:NAME:SEAT, both escaped as in an address
	Desc                     bool
	After                    string // VALUE~EPISODE
}

func newFilter(q url.Values) filter {
	return filter{
		State: q.Get("state"), Cell: q.Get("cell"), Agent: q.Get("agent"), Text: q.Get("failed"),
		Sort: q.Get("sort"), Desc: q.Get("desc") != "", After: q.Get("after"),
	}
}

// address returns the address of the list with this filter.
func (f filter) address(run string) string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "cell": f.Cell, "agent": f.Agent, "failed": f.Text, "sort": f.Sort, "after": f.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Desc {
		q.Set("desc", "1")
	}
	path := runPath(run, "episodes")
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

// query turns the filter into a query of the index.
func (f filter) query() (index.Query, error) {
	q := index.Query{State: f.State, Cell: f.Cell, Agent: f.Agent, Text: f.Text, Sort: f.Sort, Desc: f.Desc, Limit: perPage + 1}
	if rest, ok := strings.CutPrefix(f.Sort, "score:"); ok {
		name, seat, _ := strings.Cut(rest, ":")
		var wrong [2]error
		q.Sort = "score"
		q.Score, wrong[0] = url.QueryUnescape(name)
		q.Seat, wrong[1] = url.QueryUnescape(seat)
		if err := cmp.Or(wrong[:]...); err != nil {
			return q, fmt.Errorf("viewer: sort=%q: %w: %w", f.Sort, errBadRequest, err)
		}
	}
	if f.After == "" {
		return q, nil
	}
	i := strings.LastIndexByte(f.After, '~')
	n, err := strconv.Atoi(f.After[i+1:])
	if i < 0 || err != nil {
		return q, fmt.Errorf("viewer: after=%q: %w: want VALUE~EPISODE", f.After, errBadRequest)
	}
	q.After = &index.Key{Value: f.After[:i], Episode: n}
	return q, nil
}

// plain reports whether the run file itself can list the episodes, so that those that wait are there too.
func (f filter) plain() bool {
	return (f.Sort == "" || f.Sort == "episode") && !f.Desc && f.Agent == "" && f.Text == "" && (f.State == "" || f.State == sqlite.Failed)
}

// column is the head of a column.
type column struct {
	Name, To string
	Sorted   string // ascending or descending; empty: neither
	Number   bool
}

// episodeList is the data of the page.
type episodeList struct {
	Filter  filter
	Columns []column
	Rows    []index.Row
	Scores  []index.ScoreName // columns of scores
	Sorts   []link            // everything to sort by; Here is the current one
	Agents  []string
	To      string // the address of the page without parameters
	First   string // the first page
	Next    string // the next page
	Total   int
}

// maxScores is how many scores have a column.
const maxScores = 8

func (v *Viewer) episodes(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	f := newFilter(req.URL.Query())
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	d := episodeList{Filter: f, To: runPath(r.Name, "episodes"), Total: o.Episodes}
	for _, a := range o.Begun.Agents {
		d.Agents = append(d.Agents, a.Name)
	}
	if d.Rows, err = rows(r, req, f); err != nil {
		return nil, err
	}
	if d.Scores, err = r.Index.Scores(); err != nil {
		return nil, err
	}
	d.Sorts = f.sorts(d.Scores)
	d.Scores = d.Scores[:min(len(d.Scores), maxScores)]
	d.Columns = f.columns(r.Name, d.Scores)
	next := f
	if next.After = ""; f.After != "" {
		d.First = next.address(r.Name)
	}
	if len(d.Rows) > perPage {
		d.Rows = d.Rows[:perPage]
		last := d.Rows[perPage-1].Key
		next.After = last.Value + "~" + strconv.Itoa(last.Episode)
		d.Next = next.address(r.Name)
	}
	p.template, p.Title, p.Data = "episodes", "Episodes of "+r.Name, d
	return p, nil
}

// rows lists episodes from the run file if it can, and else from the index.
func rows(r *library.Run, req *http.Request, f filter) (rows []index.Row, err error) {
	q, err := f.query()
	if err != nil {
		return nil, err
	}
	if !f.plain() {
		rows, err := r.Index.Page(req.Context(), q)
		if errors.Is(err, index.ErrQuery) {
			err = fmt.Errorf("viewer: %w: %w", errBadRequest, err)
		}
		return rows, err
	}
	want := sqlite.Listing{Limit: perPage + 1, Failed: f.State == sqlite.Failed, Cell: f.Cell}
	if q.After != nil {
		want.From = max(0, q.After.Episode+1)
	}
	list, err := r.Store.List(req.Context(), want)
	if err != nil {
		return nil, err
	}
	for i := range list {
		l := &list[i]
		row := index.Row{Episode: l.Episode, State: l.State(), Cell: l.Spec.Cell, Lineup: lineupText(l.Spec.Lineup), Deal: l.Spec.Deal, Key: index.Key{Value: strconv.Itoa(l.Episode), Episode: l.Episode}}
		if l.Ended != nil {
			row.Failed, row.Scores = l.Ended.Outcome.Failed, l.Ended.Outcome.Scores
		}
		if err := r.Index.Fill(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// scoreSort is how an address names a score to sort by.
func scoreSort(s index.ScoreName) string {
	return "score:" + url.QueryEscape(s.Name) + ":" + url.QueryEscape(s.Seat)
}

// sorts returns everything to sort by: some scores may have no column.
func (f filter) sorts(scores []index.ScoreName) (out []link) {
	for _, name := range index.Sorts() {
		out = append(out, link{Text: name, To: name, Here: name == f.Sort})
	}
	for _, s := range scores {
		out = append(out, link{Text: strings.TrimSpace(s.Seat + " " + s.Name), To: scoreSort(s), Here: scoreSort(s) == f.Sort})
	}
	return out
}

// columns returns the heads of the table: each sorts by its column.
func (f filter) columns(run string, scores []index.ScoreName) (out []column) {
	add := func(name, sort string, number bool) {
		c := column{Name: name, Number: number}
		to := f
		to.Sort, to.After, to.Desc = sort, "", number && sort != "episode"
		if f.Sort == sort || f.Sort == "" && sort == "episode" {
			c.Sorted = "ascending"
			if f.Desc {
				c.Sorted = "descending"
			}
			to.Desc = !f.Desc
		}
		c.To = to.address(run)
		out = append(out, c)
	}
	add("episode", "episode", true)
	add("state", "state", false)
	add("cell", "cell", false)
	for _, name := range []string{"calls", "tokens", "cost", "took"} {
		add(name, name, true)
	}
	for _, s := range scores {
		add(strings.TrimSpace(s.Seat+" "+s.Name), scoreSort(s), true)
	}
	return out
}

// Of returns the score of a row, for a column.
func (episodeList) Of(row index.Row, name index.ScoreName) *world.Score {
	for i, s := range row.Scores {
		if s.Name == name.Name && s.Seat == name.Seat {
			return &row.Scores[i]
		}
	}
	return nil
}

// States are the states to filter by.
func (episodeList) States() []string { return []string{sqlite.Playing, sqlite.Ended, sqlite.Failed} }

// Number formats a score.
func (episodeList) Number(x float64) string { return page.Real(x).Text }

// Page returns the address of an episode.
func (l episodeList) Page(episode int) string { return l.To + "/" + strconv.Itoa(episode) }

// Who returns the cell of a row, or its lineup.
func (episodeList) Who(row index.Row) string { return cmp.Or(row.Cell, row.Lineup) }

func lineupText(lineup map[string]string) string {
	var parts []string
	for _, seat := range slices.Sorted(maps.Keys(lineup)) {
		parts = append(parts, seat+"="+lineup[seat])
	}
	return strings.Join(parts, " ")
}
