package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/read/report"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/llm"
	"parley/world"
)

// episodeList is the data of the page.
type episodeList struct {
	Filter  episodeFilter
	Columns []episodeColumn
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
	f := newEpisodeFilter(req.URL.Query())
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
	if d.Rows, err = listRows(r, req, f, d.Labels); err != nil {
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
	if len(d.Rows) > episodesPerPage {
		d.Rows = d.Rows[:episodesPerPage]
		d.Next = f.Next(d.Rows[episodesPerPage-1].Key).Address(d.To)
	}
	p.template, p.Title, p.Data = "episodes", "Episodes of "+r.Name, d
	return p, nil
}

// listRows lists episodes from the run file if it can, and else from the index.
func listRows(r *Run, req *http.Request, f episodeFilter, labels *label.Set) (rows []results.Row, err error) {
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
			err = fmt.Errorf("%w: %w", errBadRequest, err)
		}
		return rows, err
	}
	want := runfile.Listing{Limit: episodesPerPage + 1, Failed: f.State == runfile.Failed, Waiting: f.State == runfile.Waiting, Cell: f.Cell, Agent: f.Agent, Among: f.Among(labels)}
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

// episodesPerPage is how many episodes a page lists.
const episodesPerPage = 100

// episodeFilter says which episodes a page lists and in which order. The address of the page holds it, so that it can be
// shared.
type episodeFilter struct {
	State, Cell, Agent, Text string
	Label                    string // anyLabel, or verdict/NAME or tag/NAME
	Sort                     string // a column, or score:NAME:SEAT, both escaped as in an address, or label:NAME
	Desc                     bool
	After                    string // VALUE~EPISODE
	// Score is a score that episodes must have, as in Sort. Low and High limit its value: numbers, or empty.
	Score, Low, High string
	// Limits of what an episode cost, in dollars, and how long it took: with a unit, or in seconds.
	CostLow, CostHigh, TookLow, TookHigh string
}

// limits are the parameters that are trimmed and copied as they are.
func (f *episodeFilter) limits() map[string]*string {
	return map[string]*string{"low": &f.Low, "high": &f.High, "cost_low": &f.CostLow, "cost_high": &f.CostHigh, "took_low": &f.TookLow, "took_high": &f.TookHigh}
}

// newEpisodeFilter reads the parameters of an address.
func newEpisodeFilter(q url.Values) episodeFilter {
	f := episodeFilter{
		State: q.Get("state"), Cell: q.Get("cell"), Agent: q.Get("agent"), Text: q.Get("failed"), Label: q.Get("label"),
		Sort: q.Get("sort"), Desc: q.Get("desc") != "", After: q.Get("after"),
		Score: q.Get("score"),
	}
	for name, to := range f.limits() {
		*to = strings.TrimSpace(q.Get(name))
	}
	return f
}

// Address returns the address of the list at a path with this filter.
func (f episodeFilter) Address(path string) string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "cell": f.Cell, "agent": f.Agent, "failed": f.Text, "label": f.Label, "sort": f.Sort, "after": f.After, "score": f.Score} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, value := range f.limits() {
		if *value != "" {
			q.Set(name, *value)
		}
	}
	if f.Desc {
		q.Set("desc", "1")
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

// Query turns the filter into a query of the index, for one row more than a page has.
func (f episodeFilter) Query() (results.Query, error) {
	q := results.Query{State: f.State, Cell: f.Cell, Agent: f.Agent, Text: f.Text, Label: f.Label, Sort: f.Sort, Desc: f.Desc, Limit: episodesPerPage + 1}
	if strings.HasPrefix(f.Sort, "score:") {
		s, err := parseScore("sort", f.Sort)
		if err != nil {
			return q, err
		}
		q.Sort, q.Score, q.Seat = "score", s.Name, s.Seat
	}
	if err := cmp.Or(f.scores(&q), f.bounds(&q)); err != nil {
		return q, err
	}
	if name, ok := strings.CutPrefix(f.Sort, "label:"); ok {
		q.Sort, q.Score = "label", name
	}
	if f.After == "" {
		return q, nil
	}
	i := strings.LastIndexByte(f.After, '~')
	n, err := strconv.Atoi(f.After[i+1:])
	if i < 0 || err != nil {
		return q, fmt.Errorf("after=%q: %w: want VALUE~EPISODE", f.After, errBadRequest)
	}
	q.After = &results.IndexKey{Value: f.After[:i], Episode: n}
	return q, nil
}

// scores adds the score that episodes must have.
func (f episodeFilter) scores(q *results.Query) error {
	if f.Score == "" {
		return nil
	}
	s, err := parseScore("score", f.Score)
	if err != nil {
		return err
	}
	q.Has = &s
	for _, limit := range []struct {
		name, text string
		to         **float64
	}{{"low", f.Low, &q.Low}, {"high", f.High, &q.High}} {
		if limit.text == "" {
			continue
		}
		x, err := strconv.ParseFloat(limit.text, 64)
		if err != nil || math.IsNaN(x) {
			return fmt.Errorf("%s=%q: %w: want a number", limit.name, limit.text, errBadRequest)
		}
		*limit.to = &x
	}
	return nil
}

// bounds adds the limits of cost and time.
func (f episodeFilter) bounds(q *results.Query) error {
	for _, column := range []struct {
		name      string
		low, high string
		read      func(string) (int64, error)
		want      string
	}{{results.CostColumn, f.CostLow, f.CostHigh, readCost, "want dollars, as 0.05"}, {results.TookColumn, f.TookLow, f.TookHigh, readTime, "want a time, as 90s or 2m, or seconds"}} {
		b := results.Bound{Column: column.name}
		for _, side := range []struct {
			name, text string
			to         **int64
		}{{"low", column.low, &b.Low}, {"high", column.high, &b.High}} {
			if side.text == "" {
				continue
			}
			x, err := column.read(side.text)
			if err != nil {
				return fmt.Errorf("%s_%s=%q: %w: %s", column.name, side.name, side.text, errBadRequest, column.want)
			}
			*side.to = &x
		}
		if b.Low != nil || b.High != nil {
			q.Bounds = append(q.Bounds, b)
		}
	}
	return nil
}

// errNumber means that a text is not a number that can be compared.
var errNumber = errors.New("it is not a number")

// readCost reads dollars.
func readCost(text string) (int64, error) {
	x, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || math.IsNaN(x) {
		return 0, errNumber
	}
	return int64(llm.Dollars(x)), nil
}

// readTime reads a time with a unit, or seconds.
func readTime(text string) (int64, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d), nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.Abs(x) > math.MaxInt64/float64(2*time.Second) {
		return 0, errNumber
	}
	return int64(x * float64(time.Second)), nil
}

// parseScore reads a score as scoreSort writes it.
func parseScore(param, text string) (s results.ScoreName, err error) {
	name, seat, _ := strings.Cut(strings.TrimPrefix(text, "score:"), ":")
	var wrong [2]error
	s.Name, wrong[0] = url.QueryUnescape(name)
	s.Seat, wrong[1] = url.QueryUnescape(seat)
	if err := cmp.Or(wrong[:]...); err != nil {
		return s, fmt.Errorf("%s=%q: %w: %w", param, text, errBadRequest, err)
	}
	return s, nil
}

// ScoreChoices returns the scores to filter by.
func (f episodeFilter) ScoreChoices(scores []results.ScoreName) []choice {
	out := []choice{{Text: "any"}}
	for _, s := range scores {
		out = append(out, choice{Text: strings.TrimSpace(s.Seat + " " + s.Name), Value: scoreSort(s), Here: scoreSort(s) == f.Score})
	}
	return out
}

// Plain reports whether the run file itself can list the episodes, so that those that wait are there too. Those that wait are only
// there. They have nothing to sort by, and neither cost nor time: no bound of these lists them.
func (f episodeFilter) Plain() bool {
	if f.Text != "" || f.Score != "" || f.CostLow+f.CostHigh+f.TookLow+f.TookHigh != "" {
		return false
	}
	if f.State == runfile.Waiting {
		return true
	}
	return (f.Sort == "" || f.Sort == "episode") && !f.Desc && f.Agent == "" && (f.State == "" || f.State == runfile.Failed)
}

// Next returns the filter of the page after a row.
func (f episodeFilter) Next(last results.IndexKey) episodeFilter {
	f.After = last.Value + "~" + strconv.Itoa(last.Episode)
	return f
}

// First returns the filter of the first page.
func (f episodeFilter) First() episodeFilter {
	f.After = ""
	return f
}

// choice is something to choose in a form. Here means that it is chosen.
type choice struct {
	Text, Value string
	Here        bool
}

// scoreSort is how an address names a score to sort by.
func scoreSort(s results.ScoreName) string {
	return "score:" + url.QueryEscape(s.Name) + ":" + url.QueryEscape(s.Seat)
}

// The names of labels in the index: how many an episode has, and its verdict.
const (
	anyLabel     = "any"
	verdictLabel = "verdict"
)

// labelsByEpisode returns the labels of a run for its index.
func labelsByEpisode(s *label.Set) map[int]map[string]float64 {
	out := map[int]map[string]float64{}
	at := func(episode int) map[string]float64 {
		if out[episode] == nil {
			out[episode] = map[string]float64{}
		}
		return out[episode]
	}
	for _, l := range s.All {
		of := at(l.Episode)
		of[anyLabel]++
		if l.Tag != "" {
			of["tag/"+l.Tag] = 1
		}
		if l.Verdict != "" {
			of["verdict/"+string(l.Verdict)] = 1
		}
	}
	for episode, of := range out {
		if v, ok := s.Verdict(episode); ok {
			of[verdictLabel] = v
		}
	}
	return out
}

// Among returns the episodes that have the label to filter by, in order; nil if all are listed.
func (f episodeFilter) Among(s *label.Set) []int {
	if f.Label == "" {
		return nil
	}
	out := []int{}
	for episode, of := range labelsByEpisode(s) {
		if _, ok := of[f.Label]; ok {
			out = append(out, episode)
		}
	}
	slices.Sort(out)
	return out
}

// LabelChoices returns the labels to filter by.
func (f episodeFilter) LabelChoices(s *label.Set) (out []choice) {
	add := func(text, value string) {
		out = append(out, choice{Text: text, Value: value, Here: value == f.Label})
	}
	add("any or none", "")
	add("any", anyLabel)
	for _, v := range label.Verdicts() {
		add(string(v), "verdict/"+string(v))
	}
	tags, _ := s.Tags()
	if own, ok := strings.CutPrefix(f.Label, "tag/"); ok && !slices.Contains(tags, own) {
		tags = append(tags, own)
	}
	for _, tag := range tags {
		add("tag "+tag, "tag/"+tag)
	}
	return out
}

// Sorts returns everything to sort by: some scores may have no column.
func (f episodeFilter) Sorts(scores []results.ScoreName, labels bool) (out []choice) {
	add := func(text, value string) {
		out = append(out, choice{Text: text, Value: value, Here: value == f.Sort})
	}
	for _, name := range results.SortColumns() {
		add(name, name)
	}
	for _, s := range scores {
		add(strings.TrimSpace(s.Seat+" "+s.Name), scoreSort(s))
	}
	if labels {
		add("labels", "label:"+anyLabel)
		add("verdict", "label:"+verdictLabel)
	}
	return out
}

// Who is the column that says who plays: cell, or lineup if that is sorted by.
func (f episodeFilter) Who() string {
	if f.Sort == "lineup" {
		return f.Sort
	}
	return "cell"
}

// episodeColumn is the head of a column. Its address sorts by it.
type episodeColumn struct {
	Name, To string
	Sorted   string // ascending or descending; empty: neither
	Number   bool
}

// Columns returns the heads of the table at a path: each sorts by its column.
func (f episodeFilter) Columns(path string, scores []results.ScoreName, labels bool) (out []episodeColumn) {
	add := func(name, sort string, number bool) {
		c := episodeColumn{Name: name, Number: number}
		to := f.First()
		to.Sort, to.Desc = sort, number && sort != "episode"
		if f.Sort == sort || f.Sort == "" && sort == "episode" {
			c.Sorted = "ascending"
			if f.Desc {
				c.Sorted = "descending"
			}
			to.Desc = !f.Desc
		}
		c.To = to.Address(path)
		out = append(out, c)
	}
	add("episode", "episode", true)
	add("state", "state", false)
	add(f.Who(), f.Who(), false)
	for _, name := range []string{"calls", "tokens", "cost", "took"} {
		add(name, name, true)
	}
	for _, s := range scores {
		add(strings.TrimSpace(s.Seat+" "+s.Name), scoreSort(s), true)
	}
	if labels {
		add("labels", "label:"+anyLabel, true)
		out[len(out)-1].Number = false
	}
	return out
}
