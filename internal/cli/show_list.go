package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/store/sqlite"
	"parley/internal/view/failure"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// shownRun is a run and some of its episodes.
type shownRun struct {
	File        string          `json:"file"`
	Run         string          `json:"run"`
	Tool        string          `json:"tool"`
	Kind        string          `json:"kind"`
	KindVersion int             `json:"kind_version"`
	Seed        uint64          `json:"seed"`
	Begun       time.Time       `json:"begun"`
	Closed      time.Time       `json:"closed,omitzero"` // the last sitting, if it was
	Fork        *journal.Origin `json:"fork,omitempty"`
	// Grown is each time that the run was given a larger plan.
	Grown    []journal.Growth `json:"grown,omitempty"`
	State    string           `json:"state"`
	Reason   string           `json:"reason,omitempty"`
	Agents   []world.Agent    `json:"agents"`
	Episodes struct {
		Total   int `json:"total"`
		Ended   int `json:"ended"`
		Failed  int `json:"failed"`
		Playing int `json:"playing"`
		Waiting int `json:"waiting"`
	} `json:"episodes"`
	Calls int `json:"calls"`
	// Failures are the calls that failed, by model and kind.
	Failures []failure.Failure `json:"failures"`
	Cost     llm.Money         `json:"cost_usd"`
	Batches  int               `json:"batches_open"` // are with their providers
	From     int               `json:"from"`
	List     []shownEpisode    `json:"list"`

	some bool // only some episodes are wanted
	more bool // and there are more after them
}

// What the state of a run is besides a journal.State.
const (
	stateNew  = "new"  // nobody has played it
	stateOpen = "open" // somebody plays it, or was cut off
)

func (v *shower) run(ctx context.Context, want sqlite.Listing) (*shownRun, error) {
	o, b := v.about, v.about.Begun
	r := &shownRun{
		File: v.file, Run: b.Run, Tool: b.Tool, Kind: b.Kind, KindVersion: b.KindVersion, Seed: b.Seed, Begun: b.At.UTC(),
		Closed: o.Last.At, Fork: b.Fork, Grown: b.Grown, State: string(o.Last.State), Reason: o.Last.Reason.String(), Agents: b.Agents,
		Calls: o.Calls, Cost: o.Spent, Batches: o.Batches, From: want.From, List: []shownEpisode{}, some: want.Failed || want.Cell != "",
	}
	switch {
	case o.Open:
		r.State = stateOpen
	case r.State == "":
		r.State = stateNew
	}
	r.Episodes.Total, r.Episodes.Ended, r.Episodes.Failed, r.Episodes.Playing = o.Episodes, o.Ended, o.Failed, o.Playing
	r.Episodes.Waiting = o.Episodes - o.Ended - o.Failed - o.Playing
	var err error
	if r.Failures, err = failure.List(ctx, v.store); err != nil {
		return nil, err
	}
	if want.Limit > 0 {
		want.Limit++ // to know whether there are more
	}
	list, err := v.store.List(ctx, want)
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

// shownEpisode is a line of the list.
type shownEpisode struct {
	Episode int               `json:"episode"`
	Attempt int               `json:"attempt,omitempty"`
	Cell    string            `json:"cell,omitempty"`
	Lineup  map[string]string `json:"lineup"`
	Deal    int               `json:"deal"`
	State   string            `json:"state"` // waiting, playing, ended, failed
	Failed  string            `json:"failed,omitempty"`
	Scores  []shownScore      `json:"scores,omitempty"`
	Calls   int               `json:"calls"`
	// FailedCalls are those of Calls that failed.
	FailedCalls int       `json:"failed_calls"`
	Cost        llm.Money `json:"cost_usd"`
}

// shownScore is a score whose value may be one that JSON has no number for.
type shownScore struct {
	Seat  string `json:"seat,omitempty"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func (v *shower) episode(ctx context.Context, l *sqlite.Listed) (shownEpisode, error) {
	e := shownEpisode{Episode: l.Episode, Cell: l.Spec.Cell, Lineup: l.Spec.Lineup, Deal: l.Spec.Deal, State: l.State(), Attempt: l.Attempt}
	if l.Ended != nil {
		e.Failed, e.Scores = l.Ended.Outcome.Failed, shownScores(l.Ended.Outcome.Scores)
	}
	spent, err := v.store.Spent(ctx, l)
	e.Calls, e.FailedCalls, e.Cost = spent.Calls, spent.Failed, spent.Cost
	return e, err
}

func shownScores(scores []world.Score) []shownScore {
	var out []shownScore
	for _, s := range scores {
		v := shownScore{Seat: s.Seat, Name: s.Name, Value: s.Value}
		if s.Value-s.Value != 0 { // NaN, and what is infinite
			v.Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
		out = append(out, v)
	}
	return out
}

func (r *shownRun) print(p *page) {
	p.put(inkHead, "run "+r.Run)
	p.line(fmt.Sprintf(": %s version %d, seed %d", r.Kind, r.KindVersion, r.Seed))
	p.fact("file", r.File)
	p.fact("begun", stamp(r.Begun)+" by "+r.Tool)
	if f := r.Fork; f != nil {
		p.fact("forked", fmt.Sprintf("from %s, episode %d, turn %d", f.File, f.Episode, f.Turn))
	}
	for _, g := range r.Grown {
		p.fact("grown", fmt.Sprintf("%s, from %s", stamp(g.At.UTC()), several(g.Episodes, "episode", "episodes")))
	}
	p.fact("state", r.state())
	for _, a := range r.Agents {
		p.fact("agent", agentLine(a))
	}
	e := r.Episodes
	p.fact("episodes", fmt.Sprintf("%s: %s ended, %s failed, %s playing, %s waiting", number(e.Total), number(e.Ended), number(e.Failed), number(e.Playing), number(e.Waiting)))
	p.fact("calls", number(r.Calls)+", "+r.cost())
	for i, line := range failureLines(r.Failures, r.Calls) {
		p.fact([]string{"failed", "", ""}[i], line)
	}
	if r.Batches > 0 {
		p.fact("batches", several(r.Batches, "is", "are")+" with the providers: they are collected when the run is resumed")
	}
	switch {
	case len(r.List) > 0:
		p.line()
		p.table(r.rows())
		r.rest(p)
	case r.some:
		p.line()
		p.put(inkFaint, fmt.Sprintf("of the episodes from %s on none is like that", number(r.From)))
		p.line()
	}
}

// cost is what was recorded. A model without a known price leaves nothing to record.
func (r *shownRun) cost() string {
	if r.Cost == 0 && r.Calls > 0 {
		return "no cost recorded"
	}
	return r.Cost.String()
}

// rest says how to see what is not listed.
func (r *shownRun) rest(p *page) {
	next := r.List[len(r.List)-1].Episode + 1
	what := fmt.Sprintf("\n%s to %s of %s episodes", number(r.From), number(next-1), number(r.Episodes.Total))
	switch {
	case r.some:
		what = fmt.Sprintf("\n%s of %s episodes", number(len(r.List)), number(r.Episodes.Total))
	case r.From == 0 && !r.more:
		return
	}
	p.put(inkFaint, what)
	if r.more {
		p.put(inkFaint, fmt.Sprintf("; --from %d shows more", next))
	}
	p.line()
}

func (r *shownRun) state() string {
	switch text := r.State; {
	case text == stateNew:
		return "new: nobody has played it yet"
	case text == stateOpen:
		return "open: it is being played, or was cut off"
	case r.Reason != "":
		return text + " " + stamp(r.Closed) + ": " + r.Reason
	default:
		return text + " " + stamp(r.Closed)
	}
}

// rows are the table of episodes. Cells that only repeat the lineup are left out, and
// failed calls where there are none.
func (r *shownRun) rows() [][]cell {
	cells := slices.ContainsFunc(r.List, func(e shownEpisode) bool { return e.Cell != "" && e.Cell != lineupText(e.Lineup) })
	failures := slices.ContainsFunc(r.List, func(e shownEpisode) bool { return e.FailedCalls > 0 })
	head := []cell{{text: "EPISODE", number: true}, {text: "STATE"}, {text: "CALLS", number: true}}
	if failures {
		head = append(head, cell{text: "FAILED", number: true})
	}
	head = append(head, cell{text: "COST", number: true})
	if cells {
		head = append(head, cell{text: "CELL"})
	}
	rows := [][]cell{append(head, cell{text: "LINEUP"}, cell{text: "SCORES"})}
	for _, e := range r.List {
		rows = append(rows, e.row(failures, cells))
	}
	return rows
}

// row is the episode as a row of the table.
func (e *shownEpisode) row(failures, cells bool) []cell {
	row := []cell{
		{text: strconv.Itoa(e.Episode), number: true}, {ink: stateInk(e.State), text: e.State}, {text: number(e.Calls), number: true},
	}
	if failures {
		row = append(row, cell{ink: inkBad, text: orDash(number(e.FailedCalls), e.FailedCalls == 0), number: true})
	}
	row = append(row, cell{text: orDash(e.Cost.String(), e.Cost == 0), number: true})
	if cells {
		row = append(row, cell{text: orDash(e.Cell, e.Cell == "")})
	}
	row = append(row, cell{ink: inkName, text: lineupText(e.Lineup)})
	if e.Failed != "" {
		return append(row, cell{ink: inkBad, text: oneLine(e.Failed)})
	}
	return append(row, cell{text: orDash(scoresText(e.Scores), len(e.Scores) == 0)})
}

func stateInk(state string) ink {
	switch state {
	case "failed":
		return inkBad
	case "ended":
		return inkGood
	default:
		return inkFaint
	}
}

func lineupText(lineup map[string]string) string {
	parts := make([]string, 0, len(lineup))
	for _, seat := range slices.Sorted(maps.Keys(lineup)) {
		parts = append(parts, seat+"="+lineup[seat])
	}
	return strings.Join(parts, " ")
}

// scoresText is "first: points 3, revealed 0; second: …".
func scoresText(scores []shownScore) string {
	var b strings.Builder
	for i, s := range scores {
		switch {
		case i > 0 && scores[i-1].Seat == s.Seat:
			b.WriteString(", ")
		case i > 0:
			b.WriteString("; ")
		}
		if s.Seat != "" && (i == 0 || scores[i-1].Seat != s.Seat) {
			b.WriteString(s.Seat + ": ")
		}
		format := "%s %v"
		if x, ok := s.Value.(float64); ok && x != math.Trunc(x) {
			format = "%s %.6g" // sums of tenths have a long tail that says nothing
		}
		fmt.Fprintf(&b, format, s.Name, s.Value)
	}
	return oneLine(b.String())
}

// agentLine is an agent in a few words: its system prompt is left to --json.
func agentLine(a world.Agent) string {
	text := a.Name
	switch {
	case a.Bot != "":
		text += ": the bot " + a.Bot
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
