package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"parley/internal/read/report"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/world"
)

// episodeList is the data of the page.
type episodeList struct {
	Filter  listingFilter
	Columns []listingColumn
	Rows    []results.Row
	Scores  []results.ScoreName // columns of scores
	Sorts   []choice            // everything to sort by
	Among   []choice            // every score to filter by
	Agents  []string
	Labels  *label.Set
	To      string // the address of the page without parameters
	First   string // the first page
	Next    string // the next page
	Total   int

	Indexing bool // the list comes from an index that does not have all episodes yet
}

// maxScores is how many scores have a column.
const maxScores = 8

func (v *Viewer) episodes(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	f := newListing(req.URL.Query())
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	d := episodeList{Filter: f, To: runPath(r.Name, "episodes"), Total: o.Episodes, Indexing: !f.Plain() && !r.Indexed()}
	for _, a := range o.Begun.Agents {
		d.Agents = append(d.Agents, a.Name)
	}
	if d.Labels, err = r.Labels(req.Context()); err != nil {
		return nil, err
	}
	if d.Rows, err = rows(r, req, f, d.Labels); err != nil {
		return nil, err
	}
	if d.Scores, err = r.Index.Scores(); err != nil {
		return nil, err
	}
	labelled := len(d.Labels.All) > 0
	d.Sorts, d.Among = f.Sorts(d.Scores, labelled), f.ScoreChoices(d.Scores)
	d.Scores = d.Scores[:min(len(d.Scores), maxScores)]
	d.Columns = f.Columns(d.To, d.Scores, labelled)
	if f.After != "" {
		d.First = f.First().Address(d.To)
	}
	if len(d.Rows) > listingPerPage {
		d.Rows = d.Rows[:listingPerPage]
		d.Next = f.Next(d.Rows[listingPerPage-1].Key).Address(d.To)
	}
	p.template, p.Title, p.Data = "episodes", "Episodes of "+r.Name, d
	return p, nil
}

// rows lists episodes from the run file if it can, and else from the index.
func rows(r *Run, req *http.Request, f listingFilter, labels *label.Set) (rows []results.Row, err error) {
	added, err := r.Added(req.Context()) // also to sort by them
	if err != nil {
		return nil, err
	}
	q, err := f.Query()
	if err != nil {
		return nil, err
	}
	if !f.Plain() {
		rows, err := r.Index.Page(req.Context(), q)
		if errors.Is(err, results.ErrQuery) {
			err = fmt.Errorf("viewer: %w: %w", errBadRequest, err)
		}
		return rows, err
	}
	want := runfile.Listing{Limit: listingPerPage + 1, Failed: f.State == runfile.Failed, Waiting: f.State == runfile.Waiting, Cell: f.Cell, Agent: f.Agent, Among: f.Among(labels)}
	if q.After != nil {
		want.From = max(0, q.After.Episode+1)
	}
	list, err := r.Store.List(req.Context(), want)
	if err != nil {
		return nil, err
	}
	for i := range list {
		l := &list[i]
		row := results.Row{Episode: l.Episode, State: l.State(), Cell: l.Spec.Cell, Lineup: results.LineupText(l.Spec.Lineup), Deal: l.Spec.Deal, Key: results.IndexKey{Value: strconv.Itoa(l.Episode), Episode: l.Episode}}
		if l.Ended != nil {
			row.Failed, row.Scores = l.Ended.Outcome.Failed, added.Of(l.Episode, l.Ended.Outcome)
		}
		rows = append(rows, row)
	}
	return rows, r.Index.Fill(rows)
}

// Of returns the score of a row, for a column.
func (episodeList) Of(row results.Row, name results.ScoreName) *world.Score {
	for i, s := range row.Scores {
		if s.Name == name.Name && s.Seat == name.Seat {
			return &row.Scores[i]
		}
	}
	return nil
}

// States are the states to filter by.
func (episodeList) States() []string {
	return []string{runfile.Waiting, runfile.Playing, runfile.Ended, runfile.Failed}
}

// Number formats a score.
func (episodeList) Number(x float64) string { return report.Real(x).Text }

// Page returns the address of an episode.
func (l episodeList) Page(episode int) string { return l.To + "/" + strconv.Itoa(episode) }

// Who returns the cell of a row, or its lineup.
func (l episodeList) Who(row results.Row) string {
	if l.Filter.Who() != "cell" {
		return row.Lineup
	}
	return cmp.Or(row.Cell, row.Lineup)
}
