package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/read/chart"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/run/seat"
	"parley/journal"
	"parley/llm"
	"parley/stats"
	"parley/world"
	"parley/world/part"
)

// maxLost is how many losses a page names.
const maxLost = 10

// Lost says what is damaged in the run file. It is asked when the page has been made: the damage may be found meanwhile.
func (p *screen) Lost() (out []string) {
	if p.of == nil {
		return nil
	}
	l := p.of.Store.Lost()
	if l == nil {
		return nil
	}
	for _, d := range l.Damage {
		if len(out) == maxLost {
			return []string{strings.TrimPrefix(l.Text(), "The run file is damaged. "), "parley check lists everything that is wrong"}
		}
		if d.Episode != nil {
			out = append(out, fmt.Sprintf("episode %d: %s", *d.Episode, d.What))
		} else {
			out = append(out, d.What)
		}
	}
	return out
}

// tabs are the pages of a run.
func tabs(r *Run, here string) []link {
	all := []link{{Text: "Overview", To: runPath(r.Name)}, {Text: "Episodes", To: runPath(r.Name, "episodes")}, {Text: "Search", To: runPath(r.Name, "search")}, {Text: "Compare", To: "/compare?a=" + url.QueryEscape(r.Name)}, {Text: "Report", To: runPath(r.Name, "report")}}
	if hasPeople(r) {
		all = append(all, link{Text: "Seats", To: runPath(r.Name, "seats")})
	}
	for i := range all {
		all[i].Here = all[i].Text == here
	}
	return all
}

// open returns the run of a request, and a page to fill in.
func (v *Viewer) open(req *http.Request, here string) (*Run, *screen, error) {
	r, err := v.get(req.Context(), req.PathValue("run"))
	if err != nil {
		return nil, nil, err
	}
	p := &screen{Title: r.Name, Tabs: tabs(r, here), Live: runPath(r.Name, "events"), Above: []link{{Text: r.Name, To: runPath(r.Name)}}}
	p.of = r
	if v.static {
		p.Tabs = slices.DeleteFunc(p.Tabs, func(l link) bool { return l.Text == "Search" || l.Text == "Compare" || l.Text == "Seats" })
	}
	if _, ok := v.runs.Single(); !ok {
		p.Above = append([]link{{Text: "Runs", To: "/"}}, p.Above...)
	}
	return r, p, nil
}

// overviewPage is the data of the page of a run: what is known without its calls, and its statistics.
type overviewPage struct {
	runfile.Outline
	results.Status
	runStatistics
	Behind  int // how many entries the statistics lack
	Agents  []world.Agent
	Needs   []need           // what somebody should do
	Budget  llm.Money        // 0: none
	Reasons []results.Reason // why episodes failed
	Live    *dashboard       // what its process is doing; nil: nothing plays it
	Steer   *steering        // how the run can be steered; nil: it cannot
	Report  string
	List    string // the page of the episodes
}

// overview is the page of a run.
func (v *Viewer) overview(req *http.Request) (*screen, error) {
	r, p, err := v.open(req, "Overview")
	if err != nil {
		return nil, err
	}
	o, err := r.Store.Outline(req.Context())
	if err != nil {
		return nil, err
	}
	n := overviewPage{Outline: o, Status: results.StatusOf(o, runfile.Played(r.Path)), Agents: o.Begun.Agents, Report: runPath(r.Name, "report"), List: runPath(r.Name, "episodes")}
	n.Budget = results.BudgetIn(o.Begun.Plan)
	if playing, ok := control.ReadLive(req.Context(), r.Path); ok && n.State.Played() {
		n.Budget = playing.Limit
		n.Live = newDashboard(&playing)
		if !v.static && control.Played(req.Context(), r.Path) {
			n.Steer = newSteering(runPath(r.Name, "steer"), o)
		}
	}
	if n.Needs, err = v.needs(req.Context(), r, &n); err != nil {
		return nil, err
	}
	if n.Episodes.Failed > 0 {
		if n.Reasons, err = r.Index.Reasons(req.Context(), maxReasons); err != nil {
			return nil, err
		}
	}
	entries, err := r.Store.Entries()
	if err != nil {
		return nil, err
	}
	p.Style = report.NewPalette(&results.Run{Head: &journal.Head{Begun: o.Begun}}, r.Kind).Style() // statistics may come later
	if req.URL.Query().Has("statistics") {
		v.stats.Ask(r)
	}
	s := v.stats.Latest(req.Context(), r, entries)
	if !o.Open && (s.Document != nil || s.Large) && !s.Busy {
		p.Live = "" // nothing is added to it
	}
	s.Large = s.Large && s.Document == nil && !s.Busy
	s.Busy = s.Busy || s.Document == nil && s.Err == nil && !s.Large
	if s.Document != nil {
		s.Sections = v.linked(r, s.Sections)
		p.Style = s.Document.Style
		for _, x := range s.Sections {
			p.Style = stylesOf(p.Style, x.Blocks)
		}
	}
	n.runStatistics, n.Behind = s, max(0, entries-s.Entries)
	p.template, p.Data = "overview", n
	return p, nil
}

// need is something that somebody should do, with the page for it.
type need struct{ Text, To string }

// maxReasons is how many reasons of failures the page of a run has.
const maxReasons = 5

// needs says what somebody should do about a run.
func (v *Viewer) needs(ctx context.Context, r *Run, n *overviewPage) (all []need, err error) {
	_, isRecord := world.As[part.Recorded](r.Kind)
	switch file := filepath.Base(r.Path); n.State {
	case results.StateStopped, results.StateFailed:
		if isRecord {
			all = append(all, need{Text: "parley gateway --out " + file + " continues it."})
			break
		}
		text := "parley run " + file + " continues it."
		switch {
		case n.Last.Reason.Kind == journal.ByBudget:
			text = "parley run " + file + " --budget USD continues it with more money."
		case n.Budget > 0:
			text += " With --budget USD it may cost more than " + report.Dollars(n.Budget) + "."
		}
		all = append(all, need{Text: text})
	case results.StateSome, results.StateAll:
		if !isRecord {
			all = append(all, need{Text: "parley run " + file + " --failed plays the failed episodes again."})
		}
	case results.StatePaused:
		all = append(all, need{"Resume it, or nothing more is asked.", runPath(r.Name, "steer") + "?verb=resume"})
	}
	if n.Live != nil && n.Live.Short {
		all = append(all, need{Text: fmt.Sprintf("The budget does not suffice: all episodes cost about %s.", report.Dollars(n.Live.Projected))})
	}
	if v.static || !n.State.Played() || !hasPeople(r) {
		return all, nil
	}
	open, err := seat.Read(ctx, r.Path)
	if len(open) > 0 {
		wait := fmt.Sprintf("%d questions wait for people.", len(open))
		if len(open) == 1 {
			wait = "1 question waits for a person."
		}
		all = append(all, need{wait, runPath(r.Name, "seats")})
	}
	return all, err
}

// Says says in a few words how far the run is.
func (n overviewPage) Says() string {
	e := n.Episodes
	if e.Total == 1 {
		return fmt.Sprintf("%d of 1 episode", e.Done())
	}
	return fmt.Sprintf("%s of %s episodes", text.GroupDigits(e.Done()), text.GroupDigits(e.Total))
}

// Counts says how many episodes ended, failed, are played and wait.
func (n overviewPage) Counts() string {
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{n.Episodes.Ended, "ended"}, {n.Episodes.Failed, "failed"}, {n.Episodes.Playing, n.State.OfEpisode(runfile.Playing)}, {n.Episodes.Waiting, "waiting"}} {
		if part.n > 0 || part.word == "ended" {
			parts = append(parts, text.GroupDigits(part.n)+" "+part.word)
		}
	}
	return strings.Join(parts, ", ")
}

// Took is how long the run took from its beginning to its end, or to now; 0: unknown.
func (n overviewPage) Took() time.Duration {
	end := n.Last.At
	if n.State.Played() {
		end = time.Now()
	}
	if end.IsZero() || n.Begun.At.IsZero() {
		return 0
	}
	took := max(0, end.Sub(n.Begun.At))
	if took < time.Second {
		return took.Round(time.Millisecond)
	}
	return took.Round(time.Second)
}

// Failed returns the address of the failed episodes.
func (n overviewPage) Failed() string { return listFilter{Words: "failed"}.Address(n.List) }

// Links returns the links to the parts of the page.
func (n overviewPage) Links() (out []link) {
	for _, s := range n.Sections {
		if s.Title != "" {
			out = append(out, link{Text: s.Title, To: "#" + s.ID})
		}
	}
	return out
}

// result is what came out of a run: the main measure by agent, or by cell if there is one agent, and the means of the others.
type result struct {
	Name    string
	Head    *report.Fact // the main measure: of the agent or the cell with the highest, or of all
	Found   []string     // what the tests between agents say, and the kind
	Trouble string       // how many failures there are, and the most frequent
	Costs   string       // which agent cost most, and its share
	Drawn   *report.Table
	Course  *report.Block // how the main measure became what it is; nil: too few episodes ended
	Others  []report.Fact
}

// names returns the measures, the main one first.
func (r *result) names() []string {
	all := []string{r.Name}
	for _, o := range r.Others {
		all = append(all, o.Name)
	}
	return all
}

// The limits of a result.
const (
	maxResultRows = 12
	maxOthers     = 6
	maxFound      = 1000 // bytes of a finding
	maxCourses    = 8    // agents with a line each
	maxBands      = 3    // lines with their intervals: more hide each other
	coursePoints  = 24   // moments at which it is computed
	fewestPoints  = 4    // of a line that says something
	widestCourse  = 4    // how many times as wide as the last interval others are at most
)

// courseOf draws how the mean of a score became what it is: of each agent, or of all if there are many.
func courseOf(r *results.Run, kind world.Kind, score string) *report.Block {
	if score == "" {
		return nil
	}
	agents := len(r.Head.Begun.Agents)
	b, colours := &report.Block{Title: score + ", as episodes ended"}, report.NewPalette(r, kind)
	var lines []chart.Line
	for _, c := range r.Courses(score, func(g results.Group) results.Group {
		if g.Agent == "" || agents > maxCourses {
			return results.Group{Score: g.Score}
		}
		return results.Group{Score: g.Score, Agent: g.Agent}
	}, coursePoints) {
		look := chart.Series(0)
		if c.Agent != "" {
			look = colours.Look(c.Agent)
			b.Legend = append(b.Legend, report.Series{Name: c.Agent, Look: look})
		}
		line := chart.Line{Name: c.Agent, Look: look, Bare: true}
		last := c.Estimates[max(0, len(c.Estimates)-1):]
		for i, n := range c.Episodes {
			if q := c.Estimates[i]; !(q.Half() > widestCourse*last[0].Half()) { // it would make the others flat
				line.Points = append(line.Points, chart.Point{X: float64(n), Y: q})
			}
		}
		if len(line.Points) >= fewestPoints {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	for _, line := range lines {
		for i := range line.Points {
			if len(lines) > maxBands {
				line.Points[i].Y.Interval = stats.Everything()
			}
		}
	}
	b.Drawing = chart.Plot{Label: "The mean of " + score + " with its interval, over the episodes that ended", X: "episodes", Y: score, Height: courseHeight, Ticks: 4}.Lines(lines)
	return b
}

// courseHeight is the height of the drawing in pixels.
const courseHeight = 200

// resultOf returns the result of a run, whose report has it in tables too.
func resultOf(d *report.Document, r *results.Run) (out result) {
	tables := map[string]*report.Table{}
	for _, t := range d.Tables() {
		tables[t.Name] = t
	}
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if b.Finding {
				out.Found = append(out.Found, text.Excerpt(b.Text, maxFound))
			}
		}
	}
	_, means := report.MainResult(r)
	if len(means) == 0 {
		return out
	}
	out.Name = means[0].Score
	out.Drawn = drawn(tables["scores"], out.Name, "agent")
	if by := tables["scores-by-cell"]; by != nil && len(out.Drawn.Rows) < 2 {
		out.Drawn = drawn(by, out.Name, "cell")
	}
	mean := func(row []report.Cell) (q statmath.Quantity) {
		q, _ = row[1].Value.(statmath.Quantity)
		return q
	}
	rows := out.Drawn.Rows
	slices.SortStableFunc(rows, func(a, b []report.Cell) int { return cmp.Compare(mean(b).Value, mean(a).Value) })
	if len(rows) == 1 && math.IsInf(mean(rows[0]).Half(), 0) {
		out.Drawn = nil // a dot says no more than the number
	}
	for i, m := range means {
		value, interval := report.ValueAndInterval(m.Quantity)
		if math.IsInf(m.Half(), 0) && (m.Method != stats.Constant || m.N < 2) {
			interval = "" // nothing is known of it
		}
		fact := report.Fact{Name: m.Score, Value: value, More: interval}
		switch {
		case i == 0 && len(rows) > 1:
			top, interval := report.ValueAndInterval(mean(rows[0]))
			out.Head = &report.Fact{Name: m.Score, Value: top, More: interval + ", the highest: " + rows[0][0].Text + ". All together: " + value}
		case i == 0:
			out.Head = &fact
		case len(out.Others) < maxOthers:
			out.Others = append(out.Others, fact)
		}
	}
	return out
}

// trouble says how many failures a run has, refusals among them, and what the most frequent is.
func trouble(r *results.Run) string {
	if len(r.Failures) == 0 {
		return ""
	}
	n := 0
	for _, f := range r.Failures {
		n += f.Calls
	}
	first, what := r.Failures[0], "1 failure"
	if n > 1 {
		what = text.GroupDigits(n) + " failures"
	}
	return fmt.Sprintf("%s: %s: %s", what, first, text.Excerpt(first.Example, maxTrouble))
}

// maxTrouble is how many bytes of a message the headline has.
const maxTrouble = 200

// costs says which agent of a run cost most, and its share; empty: there is only one, or nothing has a cost.
func costs(r *results.Run) string {
	agents := r.Rollup(func(k results.AccountKey) results.AccountKey { return results.AccountKey{Agent: k.Agent} })
	if len(agents) < 2 {
		return ""
	}
	top := slices.MaxFunc(agents, func(a, b results.KeyedAccount) int { return cmp.Compare(a.Cost, b.Cost) })
	if all := r.Total().Cost; all > 0 {
		return fmt.Sprintf("%.0f%% by %s", 100*top.Cost.Dollars()/all.Dollars(), top.Agent)
	}
	return ""
}

// drawn returns the rows of a table of scores that have one score: who has it, and how much.
func drawn(t *report.Table, score, by string) *report.Table {
	out := &report.Table{Name: "result", Title: score + " by " + by, Track: 1, Columns: []report.Column{report.KeyColumn(by), report.NumberColumn(score)}}
	tells := make([]bool, t.Track) // whether a column tells rows apart
	for i, c := range t.Columns[1:t.Track] {
		first := ""
		for _, row := range t.Rows {
			if name := row[i+1].Text; row[0].Text == score && c.Name != "model" {
				tells[i+1] = tells[i+1] || c.Name == by || first != "" && name != first
				first = name
			}
		}
	}
	for _, row := range t.Rows {
		var names []string
		for i := range t.Columns[1:t.Track] {
			if name := row[i+1].Text; tells[i+1] && name != "" && name != "(all)" {
				names = append(names, name)
			}
		}
		if row[0].Text == score && len(names) > 0 {
			out.Rows = append(out.Rows, []report.Cell{report.Word(strings.Join(names, " · ")), row[t.Track]})
		}
	}
	if n := len(out.Rows); n > maxResultRows {
		out.MaxRows, out.Rest = maxResultRows, fmt.Sprintf("%s more are below.", text.GroupDigits(n-maxResultRows))
	}
	return out
}

// linked links the episodes that sections name to their pages: in the run, or in the one that it scores if that is here too.
func (v *Viewer) linked(r *Run, sections []report.Section) []report.Section {
	run := r.Name
	if of, err := results.ScoredOf(r.Begun); err == nil && of.Run != "" {
		run = filepath.ToSlash(score.Origin(r.Name))
		if _, ok := v.runs.File(run); !ok {
			return sections
		}
	}
	return report.Linked(sections, func(episode int) string { return runPath(run, "episodes", strconv.Itoa(episode)) })
}

// Model returns what answers for an agent.
func (n overviewPage) Model(a world.Agent) string {
	return cmp.Or(world.ModelName(a.Model), "bot "+a.Bot)
}

// dashboard is what the process that plays a run is doing: speed beside the limits, money beside the budget, and how
// both were before.
type dashboard struct {
	*control.LiveState
	Share  float64 // of the budget that is spent or at risk
	Errors []modelErrors
	// Exhausted is the time until the budget is spent, at the current rate; 0: unknown.
	Exhausted time.Duration
	Short     bool // the budget does not suffice for the known episodes
	Trends    []trend
}

// modelErrors are the failed attempts of a model of one kind.
type modelErrors struct {
	Model, Kind string
	control.LiveError
}

// trend is how a number was over time.
type trend struct {
	Name, Now string
	Drawing   template.HTML
}

// newDashboard returns the dashboard of a state.
func newDashboard(s *control.LiveState) *dashboard {
	d := &dashboard{LiveState: s, Trends: trends(&s.History)}
	if s.Limit > 0 {
		d.Share = s.Spent.Plus(s.AtRisk).Dollars() / s.Limit.Dollars()
		d.Short = s.Projected > s.Limit
		if minutes := s.Limit.Minus(s.Spent).Minus(s.AtRisk).Dollars() / s.Burn.Dollars(); s.Burn > 0 && minutes > 0 && minutes < maxMinutes {
			d.Exhausted = time.Duration(minutes * float64(time.Minute)).Round(time.Second)
		}
	}
	for _, m := range s.Models {
		for _, kind := range slices.Sorted(maps.Keys(m.Errors)) {
			d.Errors = append(d.Errors, modelErrors{m.Name, string(kind), m.Errors[kind]})
		}
	}
	return d
}

// maxMinutes is the longest time that is worth naming: a year.
const maxMinutes = 365 * 24 * 60

// maxTableRows is how many rows a table has.
const maxTableRows = 20

// TopServers returns the servers that are listed, those with the most calls in flight first.
func (d *dashboard) TopServers() []control.Server {
	all := slices.Clone(d.Servers)
	slices.SortStableFunc(all, func(a, b control.Server) int { return b.InFlight - a.InFlight })
	return all[:min(len(all), maxTableRows)]
}

// TopModels returns the models that are listed.
func (d *dashboard) TopModels() []control.Model {
	return d.Models[:min(len(d.Models), maxTableRows)]
}

// TopErrors returns the failed attempts that are listed.
func (d *dashboard) TopErrors() []modelErrors { return d.Errors[:min(len(d.Errors), maxTableRows)] }

// TopBatches returns the batches that are listed.
func (d *dashboard) TopBatches() []control.Batch {
	return d.Batches[:min(len(d.Batches), maxTableRows)]
}

// Unlisted says how many rows of a table are left out.
func (*dashboard) Unlisted(n int) string {
	if n <= maxTableRows {
		return ""
	}
	return fmt.Sprintf("%s more are not listed.", text.GroupDigits(n-maxTableRows))
}

// Together reports whether a server limits input and output tokens together.
func (d *dashboard) Together() bool {
	return slices.ContainsFunc(d.Servers, func(s control.Server) bool { return s.Tokens.Limit > 0 })
}

// Age returns how long ago a batch was sent.
func (d *dashboard) Age(b control.Batch) string {
	return report.Duration(max(0, d.At.Sub(b.Began)).Round(time.Second))
}

// Used returns the share of a limit that is used.
func (*dashboard) Used(now, limit float64) float64 { return min(1, now/limit) }

// Rate formats a number of units.
func (*dashboard) Rate(x float64) string {
	if x < 10 && x != math.Trunc(x) {
		return fmt.Sprintf("%.1f", x)
	}
	return text.GroupDigits(int(math.Round(x)))
}

// trends draws a history.
func trends(h *control.History) (out []trend) {
	const fewest = 3 // points: a line needs some
	if len(h.Points) < fewest {
		return nil
	}
	dollars := func(x float64) string { return "$" + chart.Tick(x) }
	for i, t := range []struct {
		name string
		of   int
		tick func(float64) string
	}{
		{"calls in flight", control.PointInFlight, chart.Tick}, {"calls a second", control.PointCalls, chart.Tick}, {"tokens a second", control.PointTokens, chart.Tick},
		{"failed attempts a second", control.PointErrors, chart.Tick}, {"dollars spent", control.PointSpent, dollars},
	} {
		line, highest := chart.Line{Name: t.name, Look: chart.Series(i), Bare: true}, 0.0
		for j, p := range h.Points {
			highest = max(highest, p[t.of])
			at := time.Duration(j) * h.Every
			line.Points = append(line.Points, chart.Point{X: at.Seconds(), Y: stats.Quantity{Value: p[t.of], Interval: stats.Everything()}})
		}
		if highest == 0 && t.of != control.PointInFlight && t.of != control.PointCalls {
			continue // nothing fails, or nothing costs anything
		}
		last := h.Points[len(h.Points)-1][t.of]
		p := chart.Plot{Label: fmt.Sprintf("%s over the time of this process: now %s, at most %s", t.name, t.tick(roundDigits(last)), t.tick(roundDigits(highest))), X: "time", Y: t.name, Height: trendHeight, Ticks: trendTicks, XTick: report.SecondsTick, YTick: t.tick}
		out = append(out, trend{Name: t.name, Now: t.tick(roundDigits(last)), Drawing: p.Lines([]chart.Line{line})})
	}
	return out
}

// trendHeight is the height of a drawing in pixels, and trendTicks about how many numbers its x axis has.
const (
	trendHeight = 150
	trendTicks  = 3
)

// roundDigits rounds a number to three digits.
func roundDigits(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-2)
	return math.Round(x/unit) * unit
}

// steering is the buttons that steer a run.
type steering struct {
	To      string // where they lead
	Buttons []steerButton
	Set     string // why the limits cannot be changed; empty: they can
}

// steerButton is a button that steers a run. Why is why it cannot act now; empty: it can.
type steerButton struct {
	Verb journal.SteerVerb
	Why  string
}

// Name returns the text of the button.
func (b steerButton) Name() string { return strings.ToUpper(string(b.Verb[:1])) + string(b.Verb[1:]) }

func newSteering(to string, o runfile.Outline) *steering {
	s := &steering{To: to, Set: steerProblem(journal.SteerSet, o)}
	for _, verb := range []journal.SteerVerb{journal.SteerPause, journal.SteerResume, journal.SteerDrain, journal.SteerStop} {
		s.Buttons = append(s.Buttons, steerButton{verb, steerProblem(verb, o)})
	}
	return s
}

// steerProblem says why a verb would change nothing in a run that is played; empty: it would.
func steerProblem(verb journal.SteerVerb, o runfile.Outline) string {
	switch {
	case o.Stopping != nil:
		return "the run is stopping"
	case verb == journal.SteerPause && o.Paused != nil:
		return "the run is paused"
	case verb == journal.SteerResume && o.Paused == nil:
		return "the run is not paused"
	case verb == journal.SteerDrain && o.Draining != nil:
		return "the run is draining"
	default:
		return ""
	}
}

// steer asks a person to confirm that a run is steered. A POST request is the confirmation.
func (v *Viewer) steer(req *http.Request) (*screen, error) {
	req.Body = http.MaxBytesReader(nil, req.Body, maxForm)
	r, p, err := v.open(req, "")
	if err != nil {
		return nil, err
	}
	f, err := readSteerForm(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	f.To, f.Back = runPath(r.Name, "steer"), runPath(r.Name)
	p.template, p.Title, p.Live, p.Data = "steer", "Steer "+r.Name, "", &f
	if req.Method == http.MethodPost {
		done := false
		v.slots.without(func() { done = f.Send(req.Context(), r.Path) }) //nolint:contextcheck // it is that of the request
		if done {
			return &screen{to: f.Back}, nil
		}
	} else if f.Refused, err = f.refusal(req.Context(), r); err != nil {
		return nil, err
	}
	if f.Problem != "" {
		p.status = http.StatusConflict
	}
	return p, nil
}

// steerForm is a request to steer a run, which a person must confirm.
type steerForm struct {
	To, Back string // where it is sent to, and the page of the run
	Verb     journal.SteerVerb
	Effect   string
	Sets     []string
	Problem  string // why the run was not steered
	Refused  string // why it cannot be steered so; empty: it can
}

// refusal says why the run cannot be steered as the form asks; empty: it can.
func (f *steerForm) refusal(ctx context.Context, r *Run) (string, error) {
	if f.Verb == journal.SteerSet && len(f.Sets) == 0 {
		return "nothing is filled in: go back, and fill in a budget, the calls in flight, or both", nil
	}
	if !control.Played(ctx, r.Path) {
		return control.ErrNotPlayed.Error(), nil
	}
	o, err := r.Store.Outline(ctx)
	return steerProblem(f.Verb, o), err
}

// steerEffect says what a verb does; empty: there is no such verb.
func steerEffect(verb journal.SteerVerb) string {
	switch verb {
	case journal.SteerPause:
		return "No calls are sent until the run is resumed. Calls in flight are finished and recorded."
	case journal.SteerResume:
		return "The run sends calls again."
	case journal.SteerDrain:
		return "Episodes that have begun are played to their end, and no more begin. Then the run stops; parley run continues it."
	case journal.SteerStop:
		return "No more calls are sent. Calls in flight are finished and recorded, and the run stops; parley run continues it."
	case journal.SteerSet:
		return "The run continues with these settings. They are recorded in its file."
	default:
		return ""
	}
}

// readSteerForm reads the form of a request. It fails if there is no such verb.
func readSteerForm(req *http.Request) (f steerForm, err error) {
	f.Verb = journal.SteerVerb(req.FormValue("verb"))
	for _, name := range []string{"budget", "concurrency"} {
		if value := strings.TrimSpace(req.FormValue(name)); value != "" {
			f.Sets = append(f.Sets, name+"="+value)
		}
	}
	f.Sets = append(f.Sets, req.Form["set"]...)
	if f.Effect = steerEffect(f.Verb); f.Effect == "" {
		err = fmt.Errorf("unknown verb %q", f.Verb)
	}
	return f, err
}

// steerTimeout is how long a run has to answer.
const steerTimeout = 10 * time.Second

// Send steers the run file at path. It returns false and sets Problem if the run was not steered.
func (f *steerForm) Send(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, steerTimeout, errors.New("the process that plays the run does not answer"))
	defer cancel()
	if _, err := control.Steer(ctx, path, control.SteerRequest{Verb: f.Verb, By: "view", Sets: f.Sets}); err != nil {
		f.Problem = err.Error()
		return false
	}
	return true
}
