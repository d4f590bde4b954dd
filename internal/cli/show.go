package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// showCmd shows a run file: its episodes, a transcript, or a call.
type showCmd struct {
	File    string `arg:"" placeholder:"FILE" help:"The run file. The run may still be in progress."`
	Episode *int   `placeholder:"N" help:"Show the transcript of this episode."`
	Call    string `placeholder:"TURN:INDEX" help:"Show one call of the episode in full, by its name in the transcript: 3:0, or 4.2/0:1 in a strand."`
	Failed  bool   `help:"Only failed episodes; with --episode, only failed calls."`
	Cell    string `placeholder:"TEXT" help:"Only episodes whose cell contains this text."`
	Seat    string `placeholder:"SEAT" help:"With --episode: only this seat."`
	Story   bool   `help:"With --episode: show the episode as its kind describes it, instead of calls and notes."`
	Board   string `placeholder:"PHASE" help:"With --episode: print the picture of a phase as SVG, if the kind draws pictures: F1902M, or last."`
	From    *int   `placeholder:"N" help:"The first episode to list. Default: 0."`
	Limit   *int   `placeholder:"N" help:"Maximum number of episodes to list; 0 lists all. Default: 50."`
	JSON    bool   `name:"json" help:"Print JSON."`
	summaryFlags
}

// Run prints the part of the run that the flags ask for.
func (c *showCmd) Run(ctx context.Context, s *State) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	if c.Summary != "" {
		if err := c.writeSummary(ctx, s, c.File, *c.Episode); err != nil {
			return err
		}
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	store, about, err := openRun(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	v := &showReader{store: store, about: about, file: c.File, kind: s.kindOf(about.Begun), tell: s.tell}
	err = c.printPart(ctx, s, v)
	if errors.Is(err, runfile.ErrDamaged) && store.Lost() == nil {
		switch salvaging := store.Salvage(ctx); {
		case salvaging != nil:
			err = salvaging
		case c.Episode == nil || !store.Lost().Has(*c.Episode):
			err = c.printPart(ctx, s, v)
		}
	}
	if err == nil {
		err = reportLosses(s, store)
	}
	return pipeEnd(playError(c.File, err))
}

// printPart prints the part that the flags ask for.
func (c *showCmd) printPart(ctx context.Context, s *State, v *showReader) error {
	switch {
	case c.Call != "":
		r, err := v.call(ctx, *c.Episode, c.Call)
		if err != nil {
			return err
		}
		return c.print(s, r, r.printWhole)
	case c.Story:
		story, err := v.story(ctx, *c.Episode)
		if err != nil {
			return err
		}
		return c.print(s, story, story.print)
	case c.Board != "":
		svg, err := v.board(ctx, *c.Episode, c.Board)
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.Stdout, svg)
		return err
	case c.Episode != nil:
		t, err := v.transcript(ctx, *c.Episode, c.Seat, c.Failed)
		if err != nil {
			return err
		}
		return c.print(s, t, t.print)
	default:
		return c.list(ctx, s, v)
	}
}

// check refuses flags that do not work together.
func (c *showCmd) check() error {
	switch {
	case c.Call != "" && c.Episode == nil:
		return exit.Usagef("--call needs --episode")
	case c.Seat != "" && c.Episode == nil:
		return exit.Usagef("--seat needs --episode")
	case c.Story && (c.Episode == nil || c.Call != "" || c.Failed || c.Seat != ""):
		return exit.Usagef("--story shows a whole episode: it needs --episode and does not go with --call, --failed or --seat")
	case c.Summary != "" && !c.Story:
		return exit.Usagef("--summary adds to a story: it needs --episode and --story")
	case c.Summary == "" && (c.Budget != nil || len(c.Trust) > 0):
		return exit.Usagef("--budget and --trust are for --summary, which asks a model")
	case c.Board != "" && (c.Episode == nil || c.Call != "" || c.Failed || c.Seat != "" || c.Story):
		return exit.Usagef("--board needs --episode and does not go with other flags")
	case c.Call != "" && (c.Failed || c.Seat != ""):
		return exit.Usagef("--call shows one call; leave out --failed and --seat")
	case c.Episode != nil && (c.Cell != "" || c.From != nil || c.Limit != nil):
		return exit.Usagef("--cell, --from and --limit choose among episodes; leave them out with --episode")
	case c.From != nil && *c.From < 0 || c.Limit != nil && *c.Limit < 0:
		return exit.Usagef("--from and --limit must not be negative")
	default:
		return nil
	}
}

// print prints v as JSON, or as text with print. Both are safe for a terminal: JSON keeps its meaning with control
// characters written as \u001b.
func (c *showCmd) print(s *State, v any, print func(*terminal.Page)) error {
	if c.JSON {
		b, err := terminal.Marshal(v)
		if err != nil {
			return fmt.Errorf("show: %w", err)
		}
		_, err = fmt.Fprintln(s.Stdout, terminal.Safe(string(b)))
		return err
	}
	p := terminal.NewPage(s.Stdout)
	print(p)
	return p.Flush()
}

func (c *showCmd) list(ctx context.Context, s *State, v *showReader) error {
	want := runfile.Listing{Limit: 50, Failed: c.Failed, Cell: c.Cell}
	if c.From != nil {
		want.From = *c.From
	}
	if c.Limit != nil {
		want.Limit = *c.Limit
	}
	run, err := v.run(ctx, want)
	if err != nil {
		return err
	}
	if n := run.Episodes.Total; want.From > 0 && want.From >= n {
		return exit.Usagef("--from %d: %s has %s episodes, from 0 on", want.From, c.File, terminal.Number(n))
	}
	return c.print(s, run, run.print)
}

// showReader reads the parts of a run that are shown. What it returns has a method print, which quotes the text of models
// line by line, so that it cannot look like a line of the page.
type showReader struct {
	store *runfile.Store
	about runfile.Outline
	file  string
	kind  world.Kind // zero if this program does not have it
	tell  func(text string)
}

// shownRun is a run and some of its episodes.
type shownRun struct {
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
	// Again has an entry for each time that failed episodes were played again.
	Again []journal.Again `json:"again,omitempty"`
	// Steered has what people changed while the run was played.
	Steered []steeredRow `json:"steered,omitempty"`
	results.Status
	Agents   []world.Agent  `json:"agents"`
	Episodes results.Counts `json:"episodes"`
	Calls    int            `json:"calls"`          // of models and people
	Acts     int            `json:"acts,omitempty"` // on environments, and on other things outside of the world
	Bots     int            `json:"bots,omitempty"` // answers of bots
	// Failures are the failed calls and acts, by model and kind.
	Failures []results.Failure `json:"failures"`
	Cost     llm.Money         `json:"cost_usd"`
	AtRisk   llm.Money         `json:"at_risk_usd"`
	Budget   llm.Money         `json:"budget_usd,omitempty"`
	Batches  int               `json:"batches_open"` // still with their providers
	From     int               `json:"from"`
	List     []episodeRow      `json:"list"`

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

// run reads the run and the episodes that want asks for.
func (v *showReader) run(ctx context.Context, want runfile.Listing) (*shownRun, error) {
	o, b := v.about, v.about.Begun
	r := &shownRun{
		File: v.file, Run: b.Run, Tool: b.Tool, Kind: b.Kind, KindVersion: b.KindVersion, Seed: b.Seed, Begun: b.At.UTC(),
		Closed: o.Last.At, Fork: b.Fork, Grown: b.Grown, Code: b.Code, Edited: b.Edited, Again: b.Again, Status: results.StatusOf(o, runfile.Played(v.file)), Agents: b.Agents,
		Cost: o.Spent, AtRisk: o.AtRisk, Budget: budgetIn(b.Plan), Batches: o.Batches, From: want.From, List: []episodeRow{}, some: want.Failed || want.Cell != "",
	}
	for _, s := range o.Steered {
		r.Steered = append(r.Steered, steeredRow{s.At.UTC(), s.Verb, s.By, s.Detail})
	}
	r.Episodes = results.Counts{Total: o.Episodes, Ended: o.Ended, Failed: o.Failed, Playing: o.Playing, Waiting: o.Episodes - o.Ended - o.Failed - o.Playing}
	recorded, err := v.store.Count(ctx)
	if err == nil {
		r.Failures, err = results.Failures(ctx, v.store)
	}
	if err != nil {
		return nil, err
	}
	r.Calls, r.Acts, r.Bots = recorded.Asks, recorded.Acts, recorded.Bots
	if want.Limit > 0 {
		want.Limit++ // to know whether more follow
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

// episodeRow is a row of the list.
type episodeRow struct {
	Episode int               `json:"episode"`
	Attempt int               `json:"attempt,omitempty"`
	Cell    string            `json:"cell,omitempty"`
	Lineup  map[string]string `json:"lineup"`
	Deal    int               `json:"deal"`
	State   string            `json:"state"` // waiting, playing, ended, failed
	Failed  string            `json:"failed,omitempty"`
	Scores  []shownScore      `json:"scores,omitempty"`
	Calls   int               `json:"calls"` // of models and people
	Acts    int               `json:"acts,omitempty"`
	Bots    int               `json:"bots,omitempty"`
	// FailedCalls, FailedActs and FailedBots count those of Calls, Acts and Bots that failed.
	FailedCalls int       `json:"failed_calls"`
	FailedActs  int       `json:"failed_acts,omitempty"`
	FailedBots  int       `json:"failed_bots,omitempty"`
	Cost        llm.Money `json:"cost_usd"`
}

// shownScore is a score whose value may have no number in JSON.
type shownScore struct {
	Seat  string `json:"seat,omitempty"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func (v *showReader) episode(ctx context.Context, l *runfile.Listed) (episodeRow, error) {
	e := episodeRow{Episode: l.Episode, Cell: l.Spec.Cell, Lineup: l.Spec.Lineup, Deal: l.Spec.Deal, State: l.State(), Attempt: l.Attempt}
	if l.Ended != nil {
		e.Failed, e.Scores = l.Ended.Outcome.Failed, jsonScores(l.Ended.Outcome.Scores)
	}
	spent, err := v.store.Spent(ctx, l)
	e.Calls, e.Acts, e.Bots, e.Cost = spent.Asks, spent.Acts, spent.Bots, spent.Cost
	e.FailedCalls, e.FailedActs, e.FailedBots = spent.Failed.Asks, spent.Failed.Acts, spent.Failed.Bots
	return e, err
}

// failures counts everything that failed.
func (e *episodeRow) failures() int { return e.FailedCalls + e.FailedActs + e.FailedBots }

// jsonScores returns scores as they are printed in JSON.
func jsonScores(scores []world.Score) []shownScore {
	var out []shownScore
	for _, s := range scores {
		v := shownScore{Seat: s.Seat, Name: s.Name, Value: s.Value}
		if s.Value-s.Value != 0 { // NaN or infinite
			v.Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
		}
		out = append(out, v)
	}
	return out
}

// print prints the run and its table of episodes.
func (r *shownRun) print(p *terminal.Page) {
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
	for _, g := range r.Again {
		p.Fact("again", "played "+stamp(g.At.UTC())+", "+g.String())
	}
	for _, s := range r.Steered[max(0, len(r.Steered)-maxSteered):] {
		p.Fact("steered", stamp(s.At)+": "+journal.Steered{Verb: s.Verb, By: s.By, Detail: s.Detail}.String())
	}
	p.InkedFact(classInk(r.State.Class()), "state", r.stateText())
	for _, a := range r.Agents {
		p.Fact("agent", agentLine(a))
	}
	e := r.Episodes
	p.Fact("episodes", fmt.Sprintf("%s: %s ended, %s failed, %s playing, %s waiting", terminal.Number(e.Total), terminal.Number(e.Ended), terminal.Number(e.Failed), terminal.Number(e.Playing), terminal.Number(e.Waiting)))
	p.Fact("calls", terminal.Number(r.Calls)+", "+costText(r.Calls, budget.Sums{Spent: r.Cost, AtRisk: r.AtRisk, Limit: r.Budget}))
	printActsAndBots(p, r.Acts, r.Bots)
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
		r.printRest(p)
	case r.some:
		p.Line()
		p.Put(terminal.InkFaint, fmt.Sprintf("no episode from number %s on matches the filter", terminal.Number(r.From)))
		p.Line()
	}
}

// costText formats the recorded cost of calls. A model without a known price records none.
func costText(calls int, money budget.Sums) string {
	if money.Spent == 0 && money.AtRisk == 0 && calls > 0 {
		return "no cost recorded"
	}
	return money.Text()
}

// budgetIn returns the budget of a recorded plan, or 0.
func budgetIn(plan json.RawMessage) llm.Money {
	var p struct{ Budget llm.Money }
	if json.Unmarshal(plan, &p) != nil {
		return 0
	}
	return p.Budget
}

// printRest says how to see the episodes that are not listed.
func (r *shownRun) printRest(p *terminal.Page) {
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

func (r *shownRun) stateText() string {
	text := string(r.State)
	if !r.Closed.IsZero() {
		text += " " + stamp(r.Closed)
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// rows returns the table of episodes. It leaves out cells that only repeat the lineup, and failures if
// there are none, and acts if there are none.
func (r *shownRun) rows() [][]terminal.Cell {
	cells := slices.ContainsFunc(r.List, func(e episodeRow) bool { return e.Cell != "" && e.Cell != results.LineupText(e.Lineup) })
	failures := slices.ContainsFunc(r.List, func(e episodeRow) bool { return e.failures() > 0 })
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
func (e *episodeRow) row(acts, failures, cells bool) []terminal.Cell {
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

// classInk returns the colour of the state of a run.
func classInk(class results.Class) terminal.Ink {
	switch class {
	case results.ClassGood:
		return terminal.InkGood
	case results.ClassBad:
		return terminal.InkBad
	case results.ClassWarning:
		return terminal.InkWarn
	case results.ClassBusy:
		return terminal.InkName
	default:
		return terminal.InkPlain
	}
}

// stateInk returns the colour of the state of an episode.
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
func scoresText(scores []shownScore) string {
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

// maxFailureKinds is how many kinds of failures a line lists.
const maxFailureKinds = 6

// actsAndBotsText returns what is counted beside calls: ", 40 acts, 12 answers of bots". It is empty if there are none.
func actsAndBotsText(acts, bots int) (text string) {
	if acts > 0 {
		text += ", " + terminal.Several(acts, "act", "acts")
	}
	if bots > 0 {
		text += ", " + terminal.Several(bots, "answer of a bot", "answers of bots")
	}
	return text
}

// printActsAndBots prints what is counted beside calls.
func printActsAndBots(p *terminal.Page, acts, bots int) {
	if acts > 0 {
		p.Fact("acts", terminal.Number(acts))
	}
	if bots > 0 {
		p.Fact("bots", "answered "+terminal.Several(bots, "time", "times"))
	}
}

// failureLines describe how calls and acts failed, the text of the most frequent failure, and what to do about it.
func failureLines(failures []results.Failure, calls, acts int) []string {
	if len(failures) == 0 {
		return nil
	}
	failed := 0
	var parts []string
	for i, f := range failures {
		failed += f.Calls
		if i < maxFailureKinds {
			parts = append(parts, terminal.Safe(f.String()))
		}
	}
	if more := len(failures) - maxFailureKinds; more > 0 {
		parts = append(parts, terminal.Several(more, "other sort", "other sorts"))
	}
	of := terminal.Several(calls, "call", "calls")
	if acts > 0 {
		of += " and " + terminal.Several(acts, "act", "acts")
	}
	first := failures[0]
	lines := []string{fmt.Sprintf("%s of %s failed: %s", terminal.Number(failed), of, strings.Join(parts, ", "))}
	if first.Example != "" {
		lines = append(lines, "most often: "+terminal.Quoted(first.Example))
	}
	return append(lines, "what to do: "+terminal.Quoted(first.Remedy))
}

// summaryFlags ask a model for a summary of an episode.
type summaryFlags struct {
	Summary string   `placeholder:"MODEL" help:"With --story: a model writes a summary of the episode, such as openai/gpt-5-mini. It is recorded beside the run file, and asked for once."`
	Budget  *float64 `placeholder:"USD" help:"With --summary: maximum cost of the summary."`
	trustFlags
}

// summaryAgent is the seat, the agent and the question of a summary.
const summaryAgent = "summary"

const (
	summaryAsk    = "What happened in this episode, from the beginning to the end? Write a summary of at most 200 words for somebody who did not read it: who wanted what, the turning points, and how it ended."
	summaryTokens = 2000
)

// writeSummary asks for the summary of an episode, unless there is one already. It is a run of a scorer with one episode and one
// question: recorded, priced and resumed as every run is.
func (f *summaryFlags) writeSummary(ctx context.Context, s *State, file string, episode int) error {
	of, err := s.openRubric(ctx, file)
	if err != nil {
		return err
	}
	if of.head.Begun == nil || !slices.Contains(score.Ended(of.head), episode) {
		return exit.Usagef("--summary: episode %d of %s has not ended, or it failed: there is nothing to summarize", episode, file)
	}
	name := f.scorerName(episode)
	if done, err := f.isRecorded(ctx, file, of.head, name, episode); done || err != nil {
		return err
	}
	plan, flags, err := f.plan(ctx, s, of.head, episode)
	if err != nil {
		return err
	}
	keys, err := flags.gate(s)
	if err != nil {
		return err
	}
	out := score.File(file, name)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil { //nolint:gosec // scores are for others to read too
		return exit.Usagef("%w", err)
	}
	err = flags.play(ctx, s, keys, app.Play{Plan: plan, PlanFile: file, File: out})
	about, broken := outlineOf(context.WithoutCancel(ctx), out)
	if err != nil && err.Error() == "" { // it played quietly
		return &exit.Error{Code: exit.CodeOf(err), Err: f.failure(context.WithoutCancel(ctx), about, out)}
	}
	if err := cmp.Or(err, broken); err != nil {
		return playError(out, err)
	}
	done, err := f.isRecorded(ctx, file, of.head, name, episode)
	if err == nil && !done {
		err = f.failure(ctx, about, out)
	}
	if err == nil && about.Replies > 0 {
		s.tell("the summary: " + costText(about.Replies, budget.Sums{Spent: about.Spent}) + ", recorded in " + out)
	}
	return err
}

// failure says why there is no summary, and what to do.
func (f *summaryFlags) failure(ctx context.Context, about runfile.Outline, out string) error {
	why, next := about.Last.Reason.String(), "The same command continues it"
	switch {
	case about.Last.Reason.Kind == journal.ByBudget:
		next = "Give a larger --budget"
	case why == "":
		failed, err := failedCall(ctx, out)
		if err != nil {
			return playError(out, err)
		}
		why, next = failed, "To ask again, delete "+out
		if about.Spent > 0 {
			next = "It cost " + about.Spent.String() + ". " + next
		}
	}
	why = strings.TrimPrefix(terminal.OneLine(why), f.Summary+": ")
	return fmt.Errorf("show: %s wrote no summary: %s. %s", f.Summary, terminal.Safe(terminal.Cut(strings.TrimSuffix(why, "."), 600)), terminal.Safe(next))
}

// failedCall returns why the last call of a run with one episode failed, or what is wrong with its answer.
func failedCall(ctx context.Context, file string) (why string, err error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	entries, err := journal.Episode(ctx, store, 0)
	why = "its answer cannot be used: parley show " + terminal.ShellWord(file) + " --episode 0 shows it"
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Error != nil {
			why = r.Error.Error()
		}
	}
	return why, err
}

// scorerName returns the name of the scorer: the episode and the model, which may have letters that a name cannot have.
func (f *summaryFlags) scorerName(episode int) string {
	digest := sha256.Sum256([]byte(f.Summary + "\n" + summaryAsk))
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, f.Summary)
	return fmt.Sprintf("summary-e%d-%.40s-%x", episode, plain, digest[:3])
}

// isRecorded reports whether the summary is recorded.
func (f *summaryFlags) isRecorded(ctx context.Context, file string, head *journal.Head, name string, episode int) (bool, error) {
	texts, err := score.Texts(ctx, file, head.Begun.Run, episode)
	return slices.ContainsFunc(texts, func(t score.Text) bool { return t.Scorer == name }), playError(file, err)
}

// plan returns the plan of the run that writes the summary, and how it is played.
func (f *summaryFlags) plan(ctx context.Context, s *State, head *journal.Head, episode int) (*planfile.Plan, *playFlags, error) {
	flags := &playFlags{Quiet: true, Budget: f.Budget, trustFlags: f.trustFlags}
	doc := map[string]any{
		"kind": score.RubricName, "episodes": 1,
		"agents": map[string]any{summaryAgent: map[string]any{"model": f.Summary, "max_tokens": summaryTokens}},
		"params": map[string]any{
			"judges":            []string{summaryAgent},
			"questions":         map[string]any{summaryAgent: score.Question{Ask: summaryAsk, Per: "episode", Text: true}},
			results.ScoredParam: results.NewScored(head.Begun.Run, []int{episode}, nil),
		},
	}
	var recorded struct {
		Providers json.RawMessage `json:"providers"`
	}
	if json.Unmarshal(head.Begun.Plan, &recorded) == nil && len(recorded.Providers) > 0 {
		doc["providers"] = recorded.Providers
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, err
	}
	plan, err := planfile.Written(ctx, raw, s.Kinds, flags.sets(), flags.reach())
	if err != nil {
		return nil, nil, exit.Usagef("--summary %s: %w", f.Summary, err)
	}
	return plan, flags, nil
}
