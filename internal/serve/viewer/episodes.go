package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// episodeList is the data of the page.
type episodeList struct {
	Filter   episodeFilter
	Problem  string // what of the query cannot be used
	Columns  []listColumn
	Rows     []results.Row
	Measures []string            // with a column each
	Scores   []results.ScoreName // all of them
	Agents   []string
	Labels   *label.Set
	Counts   []link // states with the queries that list them
	To       string // the address of the page without parameters
	First    string // the first page
	Next     string // the next page
	Total    int
	State    results.State // of the run

	Answered bool // only episodes with a reply are listed
	Indexing bool // the list comes from an index that does not have all episodes yet
	Texts    bool // the index does not have all texts yet, and they are searched

	colours *report.Palette
	same    map[string]bool // parts of names that all rows have
}

// maxMeasures is how many measures have a column.
const maxMeasures = 3

// measuresOf returns the measures with a column: the main one, and others that tell rows from each other.
func measuresOf(scores []results.ScoreName, rows []results.Row) (out []string) {
	first, differ := map[results.ScoreName]float64{}, map[string]bool{}
	for _, row := range rows {
		for _, s := range row.Scores {
			key := results.ScoreName{Name: s.Name, Seat: s.Seat}
			if value, ok := first[key]; ok && value != s.Value {
				differ[s.Name] = true
			}
			first[key] = s.Value
		}
	}
	for _, s := range scores {
		if !slices.Contains(out, s.Name) && len(out) < maxMeasures && (len(out) == 0 || differ[s.Name] || len(rows) < 2) {
			out = append(out, s.Name)
		}
	}
	return out
}

func (v *Viewer) episodes(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Episodes")
	if err != nil {
		return nil, err
	}
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	f := episodeFilter{newListFilter(req.URL.Query())}
	d := episodeList{Filter: f, To: runPath(r.Name, "episodes"), Total: o.Episodes.Total, State: results.StatusOf(o, runfile.Played(r.Path)).State, colours: report.NewPalette(&results.Run{Head: &journal.Head{Begun: o.Begun}}, r.Kind)}
	for _, a := range o.Begun.Agents {
		d.Agents = append(d.Agents, a.Name)
	}
	for _, c := range []struct {
		n    int
		name string
	}{{o.Episodes.Failed, runfile.Failed}, {o.Episodes.Playing, d.State.OfEpisode(runfile.Playing)}, {o.Episodes.Waiting, runfile.Waiting}, {o.Episodes.Ended, runfile.Ended}} {
		if c.n > 0 && c.n < o.Episodes.Total {
			d.Counts = append(d.Counts, link{Text: fmt.Sprintf("%s %s", text.GroupDigits(c.n), c.name), To: listFilter{Words: c.name}.Address(d.To), Here: f.Words == c.name})
		}
	}
	d.Counts = append(d.Counts, link{Text: "with failed calls", To: listFilter{Words: failedCalls}.Address(d.To), Here: f.Words == failedCalls})
	if d.Labels, err = r.Labels(req.Context()); err != nil {
		return nil, err
	}
	if d.Scores, err = r.Index.Scores(); err != nil {
		return nil, err
	}
	want, err := f.parse(d.Scores)
	if errors.Is(err, errQuery) {
		d.Problem, err = strings.TrimPrefix(err.Error(), errQuery.Error()+": "), nil
	} else if err == nil {
		d.Indexing = !want.plain() && !r.Indexed()
		d.Answered = !want.plain() && o.Episodes.Playing+o.Episodes.Waiting > 0
		if len(want.Said) > 0 {
			indexed, entries, err := r.Search(req.Context(), textsAtOnce)
			if err != nil {
				return nil, err
			}
			d.Texts = indexed < entries
		}
		d.Rows, err = listRows(r, req, want, d.Labels)
	}
	if err != nil {
		return nil, err
	}
	d.Measures = measuresOf(d.Scores, d.Rows)
	d.Columns = d.columns()
	if f.After != "" {
		d.First = f.From(d.To, "")
	}
	if len(d.Rows) > episodesPerPage {
		d.Rows = d.Rows[:episodesPerPage]
		last := d.Rows[episodesPerPage-1].Key
		d.Next = f.From(d.To, last.Value+"~"+strconv.Itoa(last.Episode))
	}
	d.same = sameParts(d.Rows)
	p.Style = d.colours.Style()
	p.template, p.Title, p.Data = "episodes", "Episodes of "+r.Name, d
	return p, nil
}

// failedCalls is the query of episodes with failed calls.
const failedCalls = "errors>0"

// listRows lists episodes from the run file if it can, and else from the index.
func listRows(r *Run, req *http.Request, q episodeQuery, labels *label.Set) (rows []results.Row, err error) {
	added, err := r.Added(req.Context()) // also to sort by them
	if err != nil {
		return nil, err
	}
	if !q.plain() {
		rows, err := r.Index.Page(req.Context(), q.Query)
		if errors.Is(err, results.ErrQuery) {
			err = fmt.Errorf("%w: %w", errBadRequest, err)
		}
		return rows, err
	}
	want := runfile.Listing{Limit: episodesPerPage + 1, State: q.State, Cell: q.Cell, Agent: q.Agent, Among: labelled(labels, q.Label)}
	if q.After != nil {
		want.From = max(0, q.After.Episode+1)
	}
	list, err := r.Store.List(req.Context(), want)
	if err != nil {
		return nil, err
	}
	for i := range list {
		l := &list[i]
		row := results.Row{Episode: results.NewEpisode(l), Lineup: results.LineupText(l.Spec.Lineup), Key: results.IndexKey{Value: strconv.Itoa(l.Episode), Episode: l.Episode}}
		if l.Ended != nil {
			row.Scores = added.Of(l.Episode, l.Ended.Outcome)
		}
		rows = append(rows, row)
	}
	return rows, r.Index.Fill(rows)
}

// Page returns the address of an episode.
func (l episodeList) Page(episode int) string { return l.To + "/" + strconv.Itoa(episode) }

// nameParts splits the name of a cell, or a lineup, into NAME=VALUE.
func nameParts(row results.Row) []string {
	if row.Cell != "" {
		return strings.Split(row.Cell, ", ")
	}
	return strings.Fields(row.Lineup)
}

// sameParts returns the parts of names that all of several rows have.
func sameParts(rows []results.Row) map[string]bool {
	seen := map[string]int{}
	for _, row := range rows {
		for _, part := range nameParts(row) {
			seen[part]++
		}
	}
	same := map[string]bool{}
	for part, n := range seen {
		same[part] = n == len(rows) && n > 1
	}
	return same
}

// Who returns what of the cell or the lineup of a row tells it from others. Names of seats that begin differently are shortened
// if there are many.
func (l episodeList) Who(row results.Row) string {
	const many = 4
	var parts []string
	short, names := map[byte]bool{}, nameParts(row)
	for _, part := range names {
		if part != "" && part[0] < utf8.RuneSelf {
			short[part[0]] = true
		}
		if !l.same[part] {
			parts = append(parts, part)
		}
	}
	if len(names) >= many && len(short) == len(names) {
		for i, part := range parts {
			if name, value, ok := strings.Cut(part, "="); ok {
				parts[i] = name[:1] + " " + value
			}
		}
	}
	return strings.Join(parts, " · ")
}

// Whole returns the whole name of a row.
func (episodeList) Whole(row results.Row) string { return cmp.Or(row.Cell, row.Lineup) }

// measured is the values that an episode has of a measure.
type measured struct {
	Text  string // a number, or the highest of many
	All   string // all of them, in words
	Bars  string // the path of their bars; empty: there are few
	Width int
}

// shortNumber formats a number with about three digits.
func shortNumber(x float64) string {
	if x == math.Trunc(x) {
		return report.Real(x).Text
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// maxShown is how many values are numbers beside each other. More are bars.
const maxShown = 2

// Of returns what a row has of a measure.
func (episodeList) Of(row results.Row, name string) *measured {
	var m measured
	var values, all []string
	var bars strings.Builder
	high, best, ties := 0.0, -1, 0
	for i, s := range row.Scores {
		if s.Name != name || math.IsNaN(s.Value) {
			continue
		}
		values, all = append(values, shortNumber(s.Value)), append(all, strings.TrimSpace(s.Seat+" "+shortNumber(s.Value)))
		switch {
		case best < 0 || s.Value > row.Scores[best].Value:
			best, ties = i, 1
		case s.Value == row.Scores[best].Value:
			ties++
		}
		high = max(high, math.Abs(s.Value))
	}
	if best < 0 {
		return nil
	}
	m.Text, m.All = strings.Join(values, " · "), strings.Join(all, ", ")
	if len(values) <= maxShown {
		return &m
	}
	if m.Text = shortNumber(row.Scores[best].Value); ties == len(values) {
		return &m
	}
	if ties == 1 {
		m.Text = row.Scores[best].Seat + " " + m.Text
	}
	for _, s := range row.Scores {
		if s.Name == name && !math.IsNaN(s.Value) {
			fmt.Fprintf(&bars, "M%d 16v-%.1f", 6*m.Width+3, 1+14*math.Abs(s.Value)/cmp.Or(high, 1))
			m.Width++
		}
	}
	m.Width, m.Bars = 6*m.Width, bars.String()
	return &m
}

// stripPart is the replies of one seat in the strip of an episode.
type stripPart struct {
	Class string
	Path  string
}

// Strip draws who answered when: a lane for each seat, and a mark for each reply.
func (l episodeList) Strip(row results.Row) (parts []stripPart) {
	const width, height = 160.0, 16.0
	seats, lineup := strings.Fields(row.Lineup), map[string]string{}
	for i, seat := range seats {
		name, agent, _ := strings.Cut(seat, "=")
		seats[i], lineup[name] = name, agent
	}
	step, lane := min(6, width/float64(max(1, len(row.Strip)))), height/float64(max(1, len(seats)))
	paths := map[rune]*strings.Builder{}
	for i, c := range row.Strip {
		if paths[c] == nil {
			paths[c] = &strings.Builder{}
		}
		top, tall := lane*float64(c-'a'), lane
		if at := int(c - 'a'); at < 0 || at >= len(seats) {
			top, tall = 0, height
		}
		fmt.Fprintf(paths[c], "M%.1f %.1fh%.1fv%.1fh-%.1fz", float64(i)*step, top, step, tall, step)
	}
	for _, c := range slices.Sorted(maps.Keys(paths)) {
		class := "s7"
		switch at := int(c - 'a'); {
		case c == '!':
			class = "lost"
		case at >= 0 && at < len(seats):
			class = l.colours.Seat(seats[at], at, lineup)
		}
		parts = append(parts, stripPart{class, paths[c].String()})
	}
	return parts
}

// Suggestions are words that a query can have.
func (l episodeList) Suggestions() (out []string) {
	out = append(out, l.States()...)
	add := func(name, value string) { out = append(out, name+":"+quoted(value)) }
	for _, a := range l.Agents {
		add("agent", a)
	}
	for _, s := range l.Scores {
		if name := quoted(s.Name); !slices.Contains(out, name+"<") {
			out = append(out, name+"<", name+">")
		}
	}
	for _, column := range results.TestColumns() {
		out = append(out, column+">")
	}
	out = append(out, "reason:", "cell:")
	if len(l.Labels.All) > 0 {
		out = append(out, "label:"+anyLabel)
		for _, v := range label.Verdicts() {
			add("verdict", string(v))
		}
		tags, _ := l.Labels.Tags()
		for _, tag := range tags {
			add("tag", tag)
		}
	}
	return out
}

// quoted returns a word of a query, in quotes if it needs them.
func quoted(text string) string {
	if strings.ContainsAny(text, " \t\"<>=:@") {
		return `"` + strings.ReplaceAll(text, `"`, "") + `"`
	}
	return text
}

// States are the states to filter by.
func (l episodeList) States() []string {
	return []string{runfile.Failed, runfile.Ended, l.State.OfEpisode(runfile.Playing), runfile.Waiting}
}

// episodesPerPage is how many episodes a page lists.
const episodesPerPage = 100

// episodeFilter says which episodes a page lists. Sort is a column, or score:NAME:SEAT, both escaped as in an address, or label:NAME.
// A page ends with VALUE~EPISODE.
type episodeFilter struct{ listFilter }

// maxWords is how many words a query may have: each is a condition of its own.
const maxWords = 50

// errQuery means that a query has a word that cannot be used.
var errQuery = errors.New("the query cannot be used")

// episodeQuery is a parsed episodeFilter, for one row more than a page has.
type episodeQuery struct{ results.Query }

// wordsRE splits a query into words, and a word into what it tests and the value. What is in quotes is one word.
var (
	wordsRE = regexp.MustCompile(`(?:"[^"]*"?|[^\s"])+`)
	testRE  = regexp.MustCompile(`^("[^"]*"|[^"<>=:@]+)(?:@("[^"]*"|[^"<>=:]+))?(<=|>=|<|>|=|:)(.*)$`)
)

// parse turns the filter into a query of the index. A query is words, all of which must be met: a state; agent:, cell:, reason:,
// label:, verdict: or tag: with a value; a score, cost, took or another number compared with a value; and anything else is looked
// for in what was said.
func (f episodeFilter) parse(scores []results.ScoreName) (q episodeQuery, err error) {
	q.Query = results.Query{Sort: f.Sort, Desc: f.Desc, Limit: episodesPerPage + 1}
	if strings.HasPrefix(f.Sort, "score:") {
		s, err := parseScore("sort", f.Sort)
		if err != nil {
			return q, err
		}
		q.Sort, q.Score, q.Seat = "score", s.Name, s.Seat
	}
	if name, ok := strings.CutPrefix(f.Sort, "label:"); ok {
		q.Sort, q.Score = "label", name
	}
	if f.After != "" {
		i := strings.LastIndexByte(f.After, '~')
		n, err := strconv.Atoi(f.After[i+1:])
		if i < 0 || err != nil {
			return q, fmt.Errorf("after=%q: %w: want VALUE~EPISODE", f.After, errBadRequest)
		}
		q.After = &results.IndexKey{Value: f.After[:i], Episode: n}
	}
	words := wordsRE.FindAllString(f.Words, maxWords+1)
	if len(words) > maxWords {
		return q, fmt.Errorf("%w: it has more than %d words", errQuery, maxWords)
	}
	for _, word := range words {
		if err := q.add(word, scores); err != nil {
			return q, fmt.Errorf("%w: %q: %w", errQuery, text.Excerpt(word, 100), err)
		}
	}
	return q, nil
}

// add adds a word.
func (q *episodeQuery) add(word string, scores []results.ScoreName) error {
	bare := func(s string) string { return strings.Trim(s, `"`) }
	m := testRE.FindStringSubmatch(word)
	switch {
	case word == results.Unfinished:
		return set(&q.State, runfile.Playing)
	case word == runfile.Failed || word == runfile.Ended || word == runfile.Playing || word == runfile.Waiting:
		return set(&q.State, word)
	case m == nil && strings.TrimSpace(bare(word)) == "":
		return nil
	case m == nil:
		q.Said = append(q.Said, bare(word))
		return nil
	case bare(m[4]) == "":
		return errors.New("a value is missing")
	case m[3] != ":":
		return q.compare(bare(m[1]), bare(m[2]), m[3], bare(m[4]), scores)
	}
	switch value := bare(m[4]); m[1] {
	case "agent":
		return set(&q.Agent, value)
	case "cell":
		return set(&q.Cell, value)
	case "reason":
		return set(&q.Text, value)
	case "label":
		return set(&q.Label, value)
	case "verdict", "tag":
		return set(&q.Label, m[1]+"/"+value)
	default:
		return errors.New("unknown; want agent:, cell:, reason:, label:, verdict: or tag:, and quotes around what was said")
	}
}

// set sets a condition of which there can be one.
func set(to *string, value string) error {
	if *to != "" {
		return fmt.Errorf("there is %q already, and only one is possible", *to)
	}
	*to = value
	return nil
}

// compare adds a comparison.
func (q *episodeQuery) compare(name, seat, op, value string, scores []results.ScoreName) error {
	t := results.Test{Op: op, Column: name}
	var err error
	switch {
	case name == results.CostColumn:
		t.Value, err = readCost(value)
	case name == results.TookColumn:
		t.Value, err = readTime(value)
	case slices.Contains(results.TestColumns(), name):
		t.Value, err = strconv.ParseInt(strings.ReplaceAll(value, ",", ""), 10, 64)
		if err != nil {
			err = errors.New("want a whole number")
		}
	default:
		if !slices.ContainsFunc(scores, func(s results.ScoreName) bool { return s.Name == name && (seat == "" || s.Seat == seat) }) {
			known := slices.Clone(results.TestColumns())
			for _, s := range scores {
				if !slices.Contains(known, s.Name) {
					known = append(known, s.Name)
				}
			}
			return fmt.Errorf("there is no such number; want one of %s", strings.Join(known, ", "))
		}
		t.Column, t.Score = "", results.ScoreName{Name: name, Seat: seat}
		x, bad := strconv.ParseFloat(value, 64)
		if t.Value = x; bad != nil || math.IsNaN(x) {
			err = errors.New("want a number")
		}
	}
	q.Tests = append(q.Tests, t)
	return err
}

// readCost reads dollars.
func readCost(text string) (int64, error) {
	x, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || math.IsNaN(x) {
		return 0, errors.New("want dollars, as 0.05")
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
		return 0, errors.New("want a time, as 90s or 2m, or seconds")
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

// plain reports whether the run file itself can list the episodes, so that those without a reply are there too. Those that wait
// have nothing to sort by, and neither cost nor time: no comparison of these lists them.
func (q episodeQuery) plain() bool {
	if q.Text != "" || len(q.Tests) > 0 || len(q.Said) > 0 {
		return false
	}
	if q.State == runfile.Waiting {
		return true
	}
	return (q.Sort == "" || q.Sort == "episode") && !q.Desc && (q.State == runfile.Playing || q.Agent == "" && (q.State == "" || q.State == runfile.Failed))
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

// labelled returns the episodes that have a label, in order; nil if all are listed.
func labelled(s *label.Set, name string) []int {
	if name == "" {
		return nil
	}
	out := []int{}
	for episode, of := range labelsByEpisode(s) {
		if _, ok := of[name]; ok {
			out = append(out, episode)
		}
	}
	slices.Sort(out)
	return out
}

// columns returns the heads of the table: each sorts by its column.
func (l *episodeList) columns() (out []listColumn) {
	f := l.Filter
	f.Sort = cmp.Or(f.Sort, "episode")
	add := func(name, sort, about string, number bool) {
		c := f.column(l.To, name, sort, number && sort != "episode")
		c.About, c.Number = about, number
		out = append(out, c)
	}
	add("episode", "episode", "", true)
	add("state", "state", "", false)
	add("cell", "cell", "What varies between the episodes of the plan, without what all rows have in common. A deal is what chance gave: episodes with the same deal can be compared.", false)
	add("replies", "errors", "Who answered when, a line for each of the first 160 replies. Sorts by failed calls.", false)
	for _, name := range l.Measures {
		i := slices.IndexFunc(l.Scores, func(s results.ScoreName) bool { return s.Name == name })
		about := ""
		if s := l.Scores[i]; s.Seat != "" {
			about = "By seat; of many seats as bars, with the highest. Sorts by that of " + s.Seat + "."
		}
		for _, s := range l.Scores { // a seat that is sorted by already
			if s.Name == name && scoreSort(s) == f.Sort {
				i = slices.Index(l.Scores, s)
			}
		}
		add(name, scoreSort(l.Scores[i]), about, true)
	}
	for _, name := range []string{"tokens", results.CostColumn, results.TookColumn} {
		add(name, name, "", true)
	}
	if len(l.Labels.All) > 0 {
		add("labels", "label:"+anyLabel, "", false)
	}
	return out
}
