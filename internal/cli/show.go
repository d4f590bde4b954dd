package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/read/report"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/internal/serve/gateway"
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
	From    *int   `placeholder:"N" help:"The first episode to list. Default: 0."`
	Limit   *int   `placeholder:"N" help:"Maximum number of episodes to list; 0 lists all. Default: 50."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run prints the part of the run that the flags ask for.
func (c *showCmd) Run(ctx context.Context, s *State) (err error) {
	if err := c.check(); err != nil {
		return err
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
	want := runfile.Listing{Limit: 50, Cell: c.Cell}
	if c.Failed {
		want.State = runfile.Failed
	}
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
	Agents   []world.Agent         `json:"agents"`
	Episodes journal.EpisodeCounts `json:"episodes"`
	journal.Spending
	// Failures are the failed calls and acts, by model and kind.
	Failures []results.Failure `json:"failures"`
	AtRisk   llm.Money         `json:"at_risk_usd"`
	Aside    llm.Money         `json:"set_aside_usd"` // for open batches
	Budget   llm.Money         `json:"budget_usd,omitempty"`
	Batches  int               `json:"batches_open"` // still with their providers
	From     int               `json:"from"`
	List     []results.Episode `json:"list"`

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
		Episodes: o.Episodes, AtRisk: o.AtRisk, Budget: results.BudgetIn(b.Plan), Batches: o.Batches, From: want.From, List: []results.Episode{}, some: want.State != "" || want.Cell != "",
	}
	for _, s := range o.Steered {
		r.Steered = append(r.Steered, steeredRow{s.At.UTC(), s.Verb, s.By, s.Detail})
	}
	var err error
	if r.Spending, err = v.store.Count(ctx); err == nil {
		r.Failures, err = results.Failures(ctx, v.store)
	}
	if err != nil {
		return nil, err
	}
	if o.Intended > 0 {
		if r.Aside, err = v.setAside(ctx); err != nil {
			return nil, err
		}
	}
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

// setAside returns what open batches may still cost.
func (v *showReader) setAside(ctx context.Context) (aside llm.Money, err error) {
	head, err := v.store.Head(ctx)
	if err != nil {
		return 0, err
	}
	open, err := batch.ReadOpen(ctx, v.store, head, head.Begun.Kind == gateway.KindName)
	for i := range open {
		aside = aside.Plus(open[i].AtRisk())
	}
	return aside, err
}

// episode returns an episode with what was spent on it.
func (v *showReader) episode(ctx context.Context, l *runfile.Listed) (e results.Episode, err error) {
	e = results.NewEpisode(l)
	e.Spending, err = v.store.Spent(ctx, l)
	return e, err
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
	p.Fact("episodes", fmt.Sprintf("%s: %s ended, %s failed, %s %s, %s waiting", terminal.Number(e.Total), terminal.Number(e.Ended), terminal.Number(e.Failed), terminal.Number(e.Playing), r.State.OfEpisode(runfile.Playing), terminal.Number(e.Waiting)))
	p.Fact("calls", terminal.Number(r.Calls)+", "+costText(r.Calls, budget.Sums{Spent: r.Cost, AtRisk: r.AtRisk, Aside: r.Aside, Limit: r.Budget}))
	printBesideCalls(p, r.Spending)
	for i, line := range failureLines(r.Failures, r.Spending) {
		p.Fact([]string{"failed", "", ""}[i], line)
	}
	if r.Batches > 0 {
		p.Fact("batches", terminal.Several(r.Batches, "is", "are")+" with the providers: they are collected when the run is resumed, or by the client that sent them")
	}
	switch {
	case len(r.List) > 0:
		p.Line()
		p.Table(r.rows())
		r.printRest(p)
	case r.some:
		p.Line()
		p.InkedLine(terminal.InkFaint, fmt.Sprintf("no episode from number %s on matches the filter", terminal.Number(r.From)))
	}
}

// costText formats the recorded cost of calls. A model without a known price records none.
func costText(calls int, money budget.Sums) string {
	if money.Spent == 0 && money.AtRisk == 0 && money.Aside == 0 && calls > 0 {
		return "no cost recorded"
	}
	return money.Text()
}

// printRest says how to see the episodes that are not listed.
func (r *shownRun) printRest(p *terminal.Page) {
	next := r.List[len(r.List)-1].Number + 1
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
	cells := slices.ContainsFunc(r.List, func(e results.Episode) bool {
		return e.Cell != "" && strings.ReplaceAll(e.Cell, ", ", " ") != results.LineupText(e.Lineup)
	})
	failures := slices.ContainsFunc(r.List, func(e results.Episode) bool { return e.Failures() > 0 })
	head := []terminal.Cell{{Text: "EPISODE", Number: true}, {Text: "STATE", Drop: 1}, {Text: "CALLS", Number: true, Drop: 3}}
	if r.Acts > 0 {
		head = append(head, terminal.Cell{Text: "ACTS", Number: true, Drop: 4})
	}
	if failures {
		head = append(head, terminal.Cell{Text: "FAILED", Number: true, Drop: 2})
	}
	head = append(head, terminal.Cell{Text: "COST", Number: true, Drop: 5})
	if cells {
		head = append(head, terminal.Cell{Text: "CELL", Drop: 6})
	}
	rows := [][]terminal.Cell{append(head, terminal.Cell{Text: "LINEUP"}, terminal.Cell{Text: "SCORES"})}
	for _, e := range r.List {
		rows = append(rows, r.episodeRow(&e, failures, cells))
	}
	return rows
}

// episodeRow returns an episode as a row of the table.
func (r *shownRun) episodeRow(e *results.Episode, failures, cells bool) []terminal.Cell {
	row := []terminal.Cell{
		{Text: strconv.Itoa(e.Number), Number: true}, {Ink: stateInk(e.State), Text: r.State.OfEpisode(e.State)}, {Text: terminal.Number(e.Calls), Number: true},
	}
	if r.Acts > 0 {
		row = append(row, terminal.Cell{Text: terminal.Number(e.Acts), Number: true})
	}
	if failures {
		row = append(row, terminal.Cell{Ink: terminal.InkBad, Text: terminal.OrDash(terminal.Number(e.Failures()), e.Failures() == 0), Number: true})
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
func scoresText(scores []world.Score) string {
	return terminal.OneLine(report.ScoresText(len(scores), func(i int) (seat, text string) {
		s, format := scores[i], "%s %v"
		if s.Value != math.Trunc(s.Value) {
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

// countedTexts returns what is counted: "8 calls", "40 acts", "12 answers of bots", "3 answers of programs".
func countedTexts(of journal.Spending) []string {
	all := []string{terminal.Several(of.Calls, "call", "calls")}
	if of.Acts > 0 {
		all = append(all, terminal.Several(of.Acts, "act", "acts"))
	}
	if of.Bots > 0 {
		all = append(all, terminal.Several(of.Bots, "answer of a bot", "answers of bots"))
	}
	if of.Programs > 0 {
		all = append(all, terminal.Several(of.Programs, "answer of a program", "answers of programs"))
	}
	return all
}

// printBesideCalls prints what is counted beside calls.
func printBesideCalls(p *terminal.Page, of journal.Spending) {
	if of.Acts > 0 {
		p.Fact("acts", terminal.Number(of.Acts))
	}
	if of.Bots > 0 {
		p.Fact("bots", "answered "+terminal.Several(of.Bots, "time", "times"))
	}
	if of.Programs > 0 {
		p.Fact("programs", "answered "+terminal.Several(of.Programs, "time", "times"))
	}
}

// failureLines describe how replies failed or were refused, the text of the most frequent failure, and what to do about it.
func failureLines(failures []results.Failure, all journal.Spending) []string {
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
	what := "failed"
	if failed > all.Failures() {
		what += " or refused"
	}
	if all.FailedBots == 0 {
		all.Bots = 0 // they never do
	}
	n, of := terminal.Number(failed), strings.Join(countedTexts(all), " and ")
	how := n + " of " + of + " " + what
	if strings.Contains(of, " and ") {
		how = n + " " + what + " of " + of // the other words would say that the act failed
	}
	first, lines := failures[0], []string{how + ": " + strings.Join(parts, ", ")}
	if first.Example != "" {
		lines = append(lines, "most often: "+terminal.Quoted(first.Example))
	}
	return append(lines, "what to do: "+terminal.Quoted(first.Remedy))
}
