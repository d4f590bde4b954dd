// Part listing says which episodes a page lists and in which order, as the address of the page holds it, so that
// the address can be shared.

package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/llm"
)

// listingPerPage is how many episodes a page lists.
const listingPerPage = 100

// errAddress means that a parameter of the address is wrong.
var errAddress = errors.New("the address is wrong")

// listingFilter is the parameters of an address.
type listingFilter struct {
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
func (f *listingFilter) limits() map[string]*string {
	return map[string]*string{"low": &f.Low, "high": &f.High, "cost_low": &f.CostLow, "cost_high": &f.CostHigh, "took_low": &f.TookLow, "took_high": &f.TookHigh}
}

// newListing reads the parameters of an address.
func newListing(q url.Values) listingFilter {
	f := listingFilter{
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
func (f listingFilter) Address(path string) string {
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
func (f listingFilter) Query() (results.Query, error) {
	q := results.Query{State: f.State, Cell: f.Cell, Agent: f.Agent, Text: f.Text, Label: f.Label, Sort: f.Sort, Desc: f.Desc, Limit: listingPerPage + 1}
	if strings.HasPrefix(f.Sort, "score:") {
		s, err := scoreOf("sort", f.Sort)
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
		return q, fmt.Errorf("viewer: after=%q: %w: want VALUE~EPISODE", f.After, errAddress)
	}
	q.After = &results.IndexKey{Value: f.After[:i], Episode: n}
	return q, nil
}

// scores adds the score that episodes must have.
func (f listingFilter) scores(q *results.Query) error {
	if f.Score == "" {
		return nil
	}
	s, err := scoreOf("score", f.Score)
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
			return fmt.Errorf("viewer: %s=%q: %w: want a number", limit.name, limit.text, errAddress)
		}
		*limit.to = &x
	}
	return nil
}

// bounds adds the limits of cost and time.
func (f listingFilter) bounds(q *results.Query) error {
	for _, column := range []struct {
		name      string
		low, high string
		read      func(string) (int64, error)
		want      string
	}{{results.Cost, f.CostLow, f.CostHigh, readCost, "want dollars, as 0.05"}, {results.Took, f.TookLow, f.TookHigh, readTime, "want a time, as 90s or 2m, or seconds"}} {
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
				return fmt.Errorf("viewer: %s_%s=%q: %w: %s", column.name, side.name, side.text, errAddress, column.want)
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

// scoreOf reads a score as scoreSort writes it.
func scoreOf(param, text string) (s results.ScoreName, err error) {
	name, seat, _ := strings.Cut(strings.TrimPrefix(text, "score:"), ":")
	var wrong [2]error
	s.Name, wrong[0] = url.QueryUnescape(name)
	s.Seat, wrong[1] = url.QueryUnescape(seat)
	if err := cmp.Or(wrong[:]...); err != nil {
		return s, fmt.Errorf("viewer: %s=%q: %w: %w", param, text, errAddress, err)
	}
	return s, nil
}

// ScoreChoices returns the scores to filter by.
func (f listingFilter) ScoreChoices(scores []results.ScoreName) []choice {
	out := []choice{{Text: "any"}}
	for _, s := range scores {
		out = append(out, choice{Text: strings.TrimSpace(s.Seat + " " + s.Name), Value: scoreSort(s), Here: scoreSort(s) == f.Score})
	}
	return out
}

// Plain reports whether the run file itself can list the episodes, so that those that wait are there too. Those that wait are only
// there. They have nothing to sort by, and neither cost nor time: no bound of these lists them.
func (f listingFilter) Plain() bool {
	if f.Text != "" || f.Score != "" || f.CostLow+f.CostHigh+f.TookLow+f.TookHigh != "" {
		return false
	}
	if f.State == runfile.Waiting {
		return true
	}
	return (f.Sort == "" || f.Sort == "episode") && !f.Desc && f.Agent == "" && (f.State == "" || f.State == runfile.Failed)
}

// Next returns the filter of the page after a row.
func (f listingFilter) Next(last results.IndexKey) listingFilter {
	f.After = last.Value + "~" + strconv.Itoa(last.Episode)
	return f
}

// First returns the filter of the first page.
func (f listingFilter) First() listingFilter {
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
	anyLabel = "any"
	verdict  = "verdict"
)

// listingLabels returns the labels of a run for its index.
func listingLabels(s *label.Set) map[int]map[string]float64 {
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
			of[verdict] = v
		}
	}
	return out
}

// Among returns the episodes that have the label to filter by, in order; nil if all are listed.
func (f listingFilter) Among(s *label.Set) []int {
	if f.Label == "" {
		return nil
	}
	out := []int{}
	for episode, of := range listingLabels(s) {
		if _, ok := of[f.Label]; ok {
			out = append(out, episode)
		}
	}
	slices.Sort(out)
	return out
}

// LabelChoices returns the labels to filter by.
func (f listingFilter) LabelChoices(s *label.Set) (out []choice) {
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
func (f listingFilter) Sorts(scores []results.ScoreName, labels bool) (out []choice) {
	add := func(text, value string) {
		out = append(out, choice{Text: text, Value: value, Here: value == f.Sort})
	}
	for _, name := range results.Sorts() {
		add(name, name)
	}
	for _, s := range scores {
		add(strings.TrimSpace(s.Seat+" "+s.Name), scoreSort(s))
	}
	if labels {
		add("labels", "label:"+anyLabel)
		add("verdict", "label:"+verdict)
	}
	return out
}

// Who is the column that says who plays: cell, or lineup if that is sorted by.
func (f listingFilter) Who() string {
	if f.Sort == "lineup" {
		return f.Sort
	}
	return "cell"
}

// listingColumn is the head of a column. Its address sorts by it.
type listingColumn struct {
	Name, To string
	Sorted   string // ascending or descending; empty: neither
	Number   bool
}

// Columns returns the heads of the table at a path: each sorts by its column.
func (f listingFilter) Columns(path string, scores []results.ScoreName, labels bool) (out []listingColumn) {
	add := func(name, sort string, number bool) {
		c := listingColumn{Name: name, Number: number}
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
