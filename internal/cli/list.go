package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"parley/internal/cli/terminal"
	"parley/internal/read/report"
	"parley/internal/run/control"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Run is a run and some of its episodes.
type Run struct {
	File        string          `json:"file"`
	Run         string          `json:"run"`
	Tool        string          `json:"tool"`
	Kind        string          `json:"kind"`
	KindVersion int             `json:"kind_version"`
	Seed        uint64          `json:"seed"`
	Begun       time.Time       `json:"begun"`
	Closed      time.Time       `json:"closed,omitzero"` // when the last process closed the run, if it did
	Fork        *journal.Origin `json:"fork,omitempty"`
	// Grown has an entry for each time the plan grew.
	Grown []journal.Growth `json:"grown,omitempty"`
	// Code is the code that is not part of the program, and Edited has an entry for each time it changed.
	Code   []journal.Code   `json:"code,omitempty"`
	Edited []journal.Growth `json:"edited,omitempty"`
	// Steered has what people changed while the run was played.
	Steered  []steeredRow   `json:"steered,omitempty"`
	State    string         `json:"state"`
	Reason   string         `json:"reason,omitempty"`
	Agents   []world.Agent  `json:"agents"`
	Episodes results.Counts `json:"episodes"`
	Calls    int            `json:"calls"`          // of models and people
	Acts     int            `json:"acts,omitempty"` // on environments, and on other things outside of the world
	Bots     int            `json:"bots,omitempty"` // answers of bots
	// Failures are the failed calls and acts, by model and kind.
	Failures []results.Failure `json:"failures"`
	Cost     llm.Money         `json:"cost_usd"`
	Batches  int               `json:"batches_open"` // still with their providers
	From     int               `json:"from"`
	List     []EpisodeRow      `json:"list"`

	some bool // only some episodes are listed
	more bool // and more follow
}

// steeredRow is a change that somebody made while the run was played.
type steeredRow struct {
	At     time.Time         `json:"at"`
	Verb   journal.SteerVerb `json:"verb"`
	By     string            `json:"by"`
	Detail string            `json:"detail,omitempty"`
}

// maxSteered is how many changes are shown.
const maxSteered = 10

// Run reads the run and the episodes that want asks for.
func (v *showReader) Run(ctx context.Context, want runfile.Listing) (*Run, error) {
	o, b := v.About, v.About.Begun
	r := &Run{
		File: v.File, Run: b.Run, Tool: b.Tool, Kind: b.Kind, KindVersion: b.KindVersion, Seed: b.Seed, Begun: b.At.UTC(),
		Closed: o.Last.At, Fork: b.Fork, Grown: b.Grown, Code: b.Code, Edited: b.Edited, State: string(o.Last.State), Reason: o.Last.Reason.String(), Agents: b.Agents,
		Cost: o.Spent, Batches: o.Batches, From: want.From, List: []EpisodeRow{}, some: want.Failed || want.Cell != "",
	}
	for _, s := range o.Steered {
		r.Steered = append(r.Steered, steeredRow{s.At.UTC(), s.Verb, s.By, s.Detail})
	}
	switch {
	case o.Open && runfile.Played(v.File):
		r.State = control.Playing
	case o.Open:
		r.State = control.CutOff
	case r.State == "":
		r.State = results.StateNew
	}
	r.Episodes = results.Counts{Total: o.Episodes, Ended: o.Ended, Failed: o.Failed, Playing: o.Playing, Waiting: o.Episodes - o.Ended - o.Failed - o.Playing}
	recorded, err := v.Store.Count(ctx)
	if err == nil {
		r.Failures, err = results.List(ctx, v.Store)
	}
	if err != nil {
		return nil, err
	}
	r.Calls, r.Acts, r.Bots = recorded.Asks, recorded.Acts, recorded.Bots
	if want.Limit > 0 {
		want.Limit++ // to know whether more follow
	}
	list, err := v.Store.List(ctx, want)
	if err != nil {
		return nil, err
	}
	if r.more = want.Limit > 0 && len(list) == want.Limit; r.more {
		list = list[:want.Limit-1]
	}
	for i := range list {
		e, err := v.episode(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		r.List = append(r.List, e)
	}
	return r, nil
}

// EpisodeRow is a row of the list.
type EpisodeRow struct {
	Episode int               `json:"episode"`
	Attempt int               `json:"attempt,omitempty"`
	Cell    string            `json:"cell,omitempty"`
	Lineup  map[string]string `json:"lineup"`
	Deal    int               `json:"deal"`
	State   string            `json:"state"` // waiting, playing, ended, failed
	Failed  string            `json:"failed,omitempty"`
	Scores  []Score           `json:"scores,omitempty"`
	Calls   int               `json:"calls"` // of models and people
	Acts    int               `json:"acts,omitempty"`
	Bots    int               `json:"bots,omitempty"`
	// FailedCalls, FailedActs and FailedBots count those of Calls, Acts and Bots that failed.
	FailedCalls int       `json:"failed_calls"`
	FailedActs  int       `json:"failed_acts,omitempty"`
	FailedBots  int       `json:"failed_bots,omitempty"`
	Cost        llm.Money `json:"cost_usd"`
}

// Score is a score whose value may have no number in JSON.
type Score struct {
	Seat  string `json:"seat,omitempty"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func (v *showReader) episode(ctx context.Context, l *runfile.Listed) (EpisodeRow, error) {
	e := EpisodeRow{Episode: l.Episode, Cell: l.Spec.Cell, Lineup: l.Spec.Lineup, Deal: l.Spec.Deal, State: l.State(), Attempt: l.Attempt}
	if l.Ended != nil {
		e.Failed, e.Scores = l.Ended.Outcome.Failed, scoresOf(l.Ended.Outcome.Scores)
	}
	spent, err := v.Store.Spent(ctx, l)
	e.Calls, e.Acts, e.Bots, e.Cost = spent.Asks, spent.Acts, spent.Bots, spent.Cost
	e.FailedCalls, e.FailedActs, e.FailedBots = spent.Failed.Asks, spent.Failed.Acts, spent.Failed.Bots
	return e, err
}

// failures counts everything that failed.
func (e *EpisodeRow) failures() int { return e.FailedCalls + e.FailedActs + e.FailedBots }

// scoresOf returns scores as they are printed in JSON.
func scoresOf(scores []world.Score) []Score {
	var out []Score
	for _, s := range scores {
		v := Score{Seat: s.Seat, Name: s.Name, Value: s.Value}
		if s.Value-s.Value != 0 { // NaN or infinite
			v.Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
		out = append(out, v)
	}
	return out
}

// Print prints the run and its table of episodes.
func (r *Run) Print(p *terminal.Page) {
	p.Put(terminal.InkHead, "run "+r.Run)
	p.Line(fmt.Sprintf(": %s version %d, seed %d", r.Kind, r.KindVersion, r.Seed))
	p.Fact("file", r.File)
	p.Fact("begun", stamp(r.Begun)+" by "+r.Tool)
	if f := r.Fork; f != nil {
		p.Fact("forked", fmt.Sprintf("from %s, episode %d, turn %d", f.File, f.Episode, f.Turn))
	}
	for _, g := range r.Grown {
		p.Fact("grown", fmt.Sprintf("%s, from %s", stamp(g.At.UTC()), terminal.Several(g.Episodes, "episode", "episodes")))
	}
	for _, c := range r.Code {
		p.Fact("code", fmt.Sprintf("%s, %s, %s", c.Name, c.Language, terminal.Several(len(c.Files), "file", "files")))
	}
	for _, g := range r.Edited {
		p.Fact("edited", fmt.Sprintf("%s, when %s had begun", stamp(g.At.UTC()), terminal.Several(g.Episodes, "episode", "episodes")))
	}
	for _, s := range r.Steered[max(0, len(r.Steered)-maxSteered):] {
		p.Fact("steered", stamp(s.At)+": "+journal.Steered{Verb: s.Verb, By: s.By, Detail: s.Detail}.String())
	}
	p.Fact("state", r.state())
	for _, a := range r.Agents {
		p.Fact("agent", agentLine(a))
	}
	e := r.Episodes
	p.Fact("episodes", fmt.Sprintf("%s: %s ended, %s failed, %s playing, %s waiting", terminal.Number(e.Total), terminal.Number(e.Ended), terminal.Number(e.Failed), terminal.Number(e.Playing), terminal.Number(e.Waiting)))
	p.Fact("calls", terminal.Number(r.Calls)+", "+costText(r.Calls, r.Cost))
	printBeside(p, r.Acts, r.Bots)
	for i, line := range failureLines(r.Failures, r.Calls, r.Acts) {
		p.Fact([]string{"failed", "", ""}[i], line)
	}
	if r.Batches > 0 {
		p.Fact("batches", terminal.Several(r.Batches, "is", "are")+" with the providers: they are collected when the run is resumed")
	}
	switch {
	case len(r.List) > 0:
		p.Line()
		p.Table(r.rows())
		r.rest(p)
	case r.some:
		p.Line()
		p.Put(terminal.InkFaint, fmt.Sprintf("no episode from number %s on matches the filter", terminal.Number(r.From)))
		p.Line()
	}
}

// costText formats the recorded cost of calls. A model without a known price records none.
func costText(calls int, cost llm.Money) string {
	if cost == 0 && calls > 0 {
		return "no cost recorded"
	}
	return cost.String()
}

// rest says how to see the episodes that are not listed.
func (r *Run) rest(p *terminal.Page) {
	next := r.List[len(r.List)-1].Episode + 1
	what := fmt.Sprintf("\n%s to %s of %s episodes", terminal.Number(r.From), terminal.Number(next-1), terminal.Number(r.Episodes.Total))
	switch {
	case r.some:
		what = fmt.Sprintf("\n%s of %s episodes", terminal.Number(len(r.List)), terminal.Number(r.Episodes.Total))
	case r.From == 0 && !r.more:
		return
	}
	p.Put(terminal.InkFaint, what)
	if r.more {
		p.Put(terminal.InkFaint, fmt.Sprintf("; --from %d shows more", next))
	}
	p.Line()
}

func (r *Run) state() string {
	switch text := r.State; {
	case text == results.StateNew:
		return "new: not played yet"
	case text == control.Playing:
		return "playing: a process plays it"
	case text == control.CutOff:
		return "cut off: the process that played it was killed; parley resume continues it"
	case r.Reason != "":
		return text + " " + stamp(r.Closed) + ": " + r.Reason
	default:
		return text + " " + stamp(r.Closed)
	}
}

// rows returns the table of episodes. It leaves out cells that only repeat the lineup, and failures if
// there are none, and acts if there are none.
func (r *Run) rows() [][]terminal.Cell {
	cells := slices.ContainsFunc(r.List, func(e EpisodeRow) bool { return e.Cell != "" && e.Cell != results.LineupText(e.Lineup) })
	failures := slices.ContainsFunc(r.List, func(e EpisodeRow) bool { return e.failures() > 0 })
	head := []terminal.Cell{{Text: "EPISODE", Number: true}, {Text: "STATE"}, {Text: "CALLS", Number: true}}
	if r.Acts > 0 {
		head = append(head, terminal.Cell{Text: "ACTS", Number: true})
	}
	if failures {
		head = append(head, terminal.Cell{Text: "FAILED", Number: true})
	}
	head = append(head, terminal.Cell{Text: "COST", Number: true})
	if cells {
		head = append(head, terminal.Cell{Text: "CELL"})
	}
	rows := [][]terminal.Cell{append(head, terminal.Cell{Text: "LINEUP"}, terminal.Cell{Text: "SCORES"})}
	for _, e := range r.List {
		rows = append(rows, e.row(r.Acts > 0, failures, cells))
	}
	return rows
}

// row returns the episode as a row of the table.
func (e *EpisodeRow) row(acts, failures, cells bool) []terminal.Cell {
	row := []terminal.Cell{
		{Text: strconv.Itoa(e.Episode), Number: true}, {Ink: stateInk(e.State), Text: e.State}, {Text: terminal.Number(e.Calls), Number: true},
	}
	if acts {
		row = append(row, terminal.Cell{Text: terminal.Number(e.Acts), Number: true})
	}
	if failures {
		row = append(row, terminal.Cell{Ink: terminal.InkBad, Text: terminal.OrDash(terminal.Number(e.failures()), e.failures() == 0), Number: true})
	}
	row = append(row, terminal.Cell{Text: terminal.OrDash(e.Cost.String(), e.Cost == 0), Number: true})
	if cells {
		row = append(row, terminal.Cell{Text: terminal.OrDash(e.Cell, e.Cell == "")})
	}
	row = append(row, terminal.Cell{Ink: terminal.InkName, Text: results.LineupText(e.Lineup)})
	if e.Failed != "" {
		return append(row, terminal.Cell{Ink: terminal.InkBad, Text: terminal.OneLine(e.Failed)})
	}
	return append(row, terminal.Cell{Text: terminal.OrDash(scoresText(e.Scores), len(e.Scores) == 0)})
}

func stateInk(state string) terminal.Ink {
	switch state {
	case "failed":
		return terminal.InkBad
	case "ended":
		return terminal.InkGood
	default:
		return terminal.InkFaint
	}
}

// scoresText formats scores as "first: points 3, revealed 0; second: …".
func scoresText(scores []Score) string {
	return terminal.OneLine(report.ScoresText(len(scores), func(i int) (seat, text string) {
		s := scores[i]
		format := "%s %v"
		if x, ok := s.Value.(float64); ok && x != math.Trunc(x) {
			format = "%s %.6g" // sums of tenths have meaningless trailing digits
		}
		return s.Seat, fmt.Sprintf(format, s.Name, s.Value)
	}))
}

// agentLine summarizes an agent. Only --json shows its system prompt.
func agentLine(a world.Agent) string {
	text := a.Name
	switch {
	case a.Bot != "":
		text += ": the bot " + a.Bot
	case a.Human():
		text += ": a person"
		if a.Deadline > 0 {
			text += ", deadline " + a.Deadline.String()
		}
		if a.Fallback != "" {
			text += ", fallback " + a.Fallback
		}
	case a.Model != "":
		text += ": " + a.Model
	}
	if a.Temperature != nil {
		text += fmt.Sprintf(", temperature %v", *a.Temperature)
	}
	if a.Effort != "" {
		text += ", effort " + string(a.Effort)
	}
	if a.System != "" {
		text += ", with a system prompt"
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
