package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/read/report"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
)

// turnsPerPage is how many turns of two episodes a page has beside each other, and before is how many of them are
// before the first difference.
const (
	turnsPerPage = 40
	turnsBefore  = 5
)

// comparePage is the data of a comparison.
type comparePage struct {
	Runs     []string  // to choose from
	Pairs    []runPair // comparisons that a site without a server has
	More     int       // comparisons that it does not have
	Sides    [2]comparedSide
	Problem  string // why nothing can be compared
	Sections []report.Section

	Rows           []turnRow // of two episodes
	From, Turns    int
	First          string // the page with the first difference; empty: there is none
	Earlier, Later string
}

// comparedSide is one of the two that are compared.
type comparedSide struct {
	Name    string // of the run
	Episode string // its number; empty: the whole run
	At      string // its page
	Lineup  string
	Deal    int

	run    *Run
	listed *runfile.Listed
	lines  []results.Line
}

// compareAt returns the address of a comparison of two episodes.
func compareAt(a string, episode int, b string, other int) string {
	return "/compare?" + url.Values{"a": {a}, "ea": {strconv.Itoa(episode)}, "b": {b}, "eb": {strconv.Itoa(other)}}.Encode()
}

// compare is the page of two runs, of the agents of one, or of two episodes.
func (v *Viewer) compare(req *http.Request) (*screen, error) {
	q := req.URL.Query()
	d := comparePage{Sides: [2]comparedSide{{Name: q.Get("a"), Episode: q.Get("ea")}, {Name: q.Get("b"), Episode: q.Get("eb")}}}
	if ticked := q["run"]; len(ticked) > 0 { // in the list of runs
		if len(ticked) != 2 {
			d.Problem = "Tick two runs."
		}
		for i, name := range ticked[:min(2, len(ticked))] {
			d.Sides[i].Name = name
		}
	}
	d.Runs, _ = v.runs.Names()
	p := &screen{template: "compare", Title: "Compare", Above: []link{{Text: "Runs", To: "/"}, {Text: "Compare", To: "/compare"}}}
	if a, b := d.Sides[0], d.Sides[1]; d.Problem == "" && !v.static && a.Name != "" && (b.Name == "" || b.Name == a.Name) && a.Episode == "" && b.Episode == "" {
		d.Sides[1] = comparedSide{}
		if err := v.openSide(req.Context(), &d.Sides[0]); err != nil {
			return nil, err
		}
		p.Tabs, p.Above = tabs(d.Sides[0].run, "Compare"), append(p.Above[:1], link{Text: a.Name, To: runPath(a.Name)})
		err := d.runs(req.Context(), v.cfg.Tool, p, d.Sides[0].run)
		p.Data = d
		return p, err
	}
	if a, b := d.Sides[0], d.Sides[1]; b.Name == "" && (a.Episode != "" || b.Episode != "") {
		d.Problem = "Choose the run of the second episode too."
	}
	if d.Sides[0].Name == "" || d.Sides[1].Name == "" || d.Problem != "" {
		if v.static {
			all, _ := v.catalog.List(req.Context())
			d.offer(pairs(all))
		}
		p.Data = d
		return p, nil
	}
	for i := range d.Sides {
		if err := v.openSide(req.Context(), &d.Sides[i]); err != nil {
			return nil, err
		}
	}
	var err error
	switch a, b := d.Sides[0].listed, d.Sides[1].listed; {
	case a != nil && b != nil:
		err = d.episodes(q)
	case a == nil && b == nil:
		err = d.runs(req.Context(), v.cfg.Tool, p, d.Sides[0].run, d.Sides[1].run)
	default:
		d.Problem = "Give a number for both episodes, or for none to compare the runs."
	}
	p.Data = d
	return p, err
}

// runPair is two runs that can be compared.
type runPair struct{ A, B, To string }

// maxPairs is how many comparisons of runs a site without a server has: those of ten runs.
const maxPairs = 45

// pairs returns all pairs of runs of the same kind that have episodes that ended, in the order of their names.
func pairs(all []*runEntry) (out []runPair) {
	all = slices.DeleteFunc(slices.Clone(all), func(e *runEntry) bool { return e.Problem != "" || e.Outline.Episodes.Ended == 0 })
	slices.SortFunc(all, func(a, b *runEntry) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.Kind == b.Kind {
				out = append(out, runPair{a.Name, b.Name, "/compare?" + url.Values{"a": {a.Name}, "b": {b.Name}}.Encode()})
			}
		}
	}
	return out
}

// offer adds the first of the pairs, and says how many others there are, or that there are none.
func (d *comparePage) offer(all []runPair) {
	if len(all) == 0 { // only the page of two episodes leads here
		d.Problem = "No two runs have scores to compare: they need to be of the same kind, and both need an episode that ended."
	}
	d.Pairs = all[:min(len(all), maxPairs)]
	d.More = len(all) - len(d.Pairs)
}

// openSide opens the run of a side and reads its episode.
func (v *Viewer) openSide(ctx context.Context, s *comparedSide) (err error) {
	if s.run, err = v.get(ctx, s.Name); err != nil {
		return err
	}
	if s.At = runPath(s.Name); s.Episode == "" {
		return nil
	}
	if s.listed, err = findEpisode(ctx, s.run, s.Episode); err != nil {
		return err
	}
	s.At, s.Lineup, s.Deal = runPath(s.Name, "episodes", s.Episode), results.LineupText(s.listed.Spec.Lineup), s.listed.Spec.Deal
	entries, _, err := s.run.Store.Sparing(ctx, s.listed.Episode)
	if err == nil {
		s.lines = results.NewTranscript(s.run.Begun, entries, s.listed.Attempt, s.run.Kind.Of(s.listed.Spec)).Lines
	}
	return err
}

// episodes puts two episodes beside each other.
func (d *comparePage) episodes(q url.Values) error {
	rows, first := align(d.Sides[0].lines, d.Sides[1].lines)
	at := func(from int) string {
		to := url.Values{"from": {strconv.Itoa(max(0, from))}}
		for _, name := range []string{"a", "ea", "b", "eb"} {
			to.Set(name, q.Get(name))
		}
		return "/compare?" + to.Encode()
	}
	d.Turns, d.From = len(rows), max(0, first-turnsBefore)
	if text := q.Get("from"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("from=%q: %w: want the number of a turn", text, errBadRequest)
		}
		d.From = min(n, max(0, len(rows)-1))
	}
	last := min(len(rows), d.From+turnsPerPage)
	d.Rows = rows[d.From:last]
	if first >= 0 {
		d.First = at(first-turnsBefore) + "#first"
	}
	if d.From > 0 {
		d.Earlier = at(d.From - turnsPerPage)
	}
	if last < len(rows) {
		d.Later = at(last)
	}
	return nil
}

// runs compares two runs, or the agents of one, with the statistics of parley compare.
func (d *comparePage) runs(ctx context.Context, tool string, p *screen, runs ...*Run) error {
	document, err := compareRuns(ctx, tool, runs)
	switch {
	case !errors.Is(err, report.ErrNothingToCompare):
	case len(runs) == 1:
		d.Problem = "There are no two agents with a common score in this run yet. Choose another run to compare it with, or two episodes."
		return nil
	default:
		d.Problem = "There is nothing to compare yet: both runs need an episode that ended, with a score that the other has too."
		return nil
	}
	if err != nil {
		return err
	}
	d.Sections, p.Style = document.Sections, document.Style
	for _, x := range d.Sections {
		p.Style = stylesOf(p.Style, x.Blocks)
	}
	return nil
}

// Chosen reports whether a side is of a run.
func (d comparePage) Chosen(side int, name string) bool { return d.Sides[side].Name == name }

// Last is the number of the last turn of the window.
func (d comparePage) Last() int { return d.From + len(d.Rows) }

// relatives returns links to comparisons of an episode: with its origin, and with episodes of the same deal.
func (v *Viewer) relatives(ctx context.Context, r *Run, l *runfile.Listed) (out []link, err error) {
	if fork := r.Begun.Fork; fork != nil {
		if name := v.catalog.Origin(ctx, fork); name != "" && name != r.Name {
			out = append(out, link{Text: fmt.Sprintf("episode %d of %s, from which it was forked", fork.Episode, name), To: compareAt(name, fork.Episode, r.Name, l.Episode)})
		}
	}
	if v.static { // a site with a page for every pair would be large
		return out, nil
	}
	same, err := r.Index.SameDeal(ctx, l.Spec.Deal, l.Episode, maxRelatives)
	for _, row := range same {
		out = append(out, link{Text: fmt.Sprintf("episode %d (%s)", row.Number, row.Lineup), To: compareAt(r.Name, l.Episode, r.Name, row.Number)})
	}
	return out, err
}

// maxRelatives is how many episodes of the same deal the page of an episode names.
const maxRelatives = 5

// turnRow is a turn in both episodes. A side without lines did not have it.
type turnRow struct {
	Turn  string
	A, B  []sideLine
	Same  bool
	First bool // it is the first turn that differs
}

// sideLine is a line of one of them. Text is what both sides of the first difference begin with, and Rest is what differs there;
// in other lines Rest is empty.
type sideLine struct {
	results.Line
	Rest string
}

// align puts the lines of two episodes beside each other. Both are in the order of a transcript. first is the first row
// that differs, or -1.
func align(a, b []results.Line) (rows []turnRow, first int) {
	for len(a) > 0 || len(b) > 0 {
		var order int
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = results.CompareTurns(a[0].Turn, b[0].Turn)
		}
		var r turnRow
		if order <= 0 {
			r.A, a = takeTurn(a)
			r.Turn = r.A[0].Turn
		}
		if order >= 0 {
			r.B, b = takeTurn(b)
			r.Turn = r.B[0].Turn
		}
		rows = append(rows, r)
	}
	first = -1
	for i := range rows {
		at := difference(rows[i].A, rows[i].B)
		if rows[i].Same = at < 0; at >= 0 && first < 0 {
			first, rows[i].First = i, true
			rows[i].mark(at)
		}
	}
	return rows, first
}

// takeTurn returns the lines of the first turn, and the others.
func takeTurn(lines []results.Line) (own []sideLine, rest []results.Line) {
	n := 0
	for n < len(lines) && lines[n].Turn == lines[0].Turn {
		own = append(own, sideLine{Line: lines[n]})
		n++
	}
	return own, lines[n:]
}

// difference returns the first line that differs, or -1. Who the agent is does not matter.
func difference(a, b []sideLine) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].Seat != b[i].Seat || a[i].Said != b[i].Said || a[i].Text != b[i].Text {
			return i
		}
	}
	return -1
}

// mark splits the line that differs where it does.
func (r *turnRow) mark(at int) {
	if at >= len(r.A) || at >= len(r.B) {
		return
	}
	a, b := &r.A[at], &r.B[at]
	n := 0
	for n < min(len(a.Text), len(b.Text)) && a.Text[n] == b.Text[n] {
		n++
	}
	for n > 0 && n < len(a.Text) && !utf8.RuneStart(a.Text[n]) {
		n--
	}
	if space := strings.LastIndexByte(a.Text[:n], ' '); space >= 0 {
		n = space + 1 // at the beginning of a word
	}
	a.Text, a.Rest = a.Text[:n], a.Text[n:]
	b.Text, b.Rest = b.Text[:n], b.Text[n:]
}
