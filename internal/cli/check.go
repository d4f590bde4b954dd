package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/estimate"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// checkCmd validates a plan and estimates its calls, cost and time, or verifies a run file.
type checkCmd struct {
	Plan     string        `arg:"" help:"The plan file; or a run file, to check it for damage." placeholder:"FILE"`
	Set      []string      `sep:"none" placeholder:"KEY=VALUE" help:"Set a key of the plan, such as agents.bold.temperature=0.2. Repeatable."`
	Episodes int           `default:"32" placeholder:"N" help:"About how many episodes to play on the simulated provider, with at least two for each cell that is tried. Default: ${default}."`
	Latency  time.Duration `default:"5s" placeholder:"DURATION" help:"How long a call is assumed to take. Default: ${default}."`
	Timeout  time.Duration `placeholder:"DURATION" help:"How long it may take, such as 1m. Then it ends with an error. Default: as long as it needs."`
	Act      bool          `help:"Play in the environments on the servers that the plan names. Without it, these servers are only asked whether they are up."`
	JSON     bool          `name:"json" help:"Print JSON."`
	trustFlags
	reachFlags
}

// Run checks the plan, plays a part of it on the simulated provider, and prints the estimate. It calls no other
// provider and costs nothing.
func (c *checkCmd) Run(ctx context.Context, s *State) error {
	if isRunFile(c.Plan) {
		return c.verify(ctx, s)
	}
	switch {
	case c.Episodes < 2:
		return exit.Usagef("--episodes must be 2 or more: one episode does not show how much episodes differ")
	case c.Latency <= 0:
		return exit.Usagef("--latency must be above 0, such as 5s")
	case c.Timeout < 0:
		return exit.Usagef("--timeout must be above 0, such as 1m")
	}
	if c.Timeout == 0 {
		return c.checkPlan(ctx, s)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := c.checkPlan(ctx, s)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("%s: the check did not end within %v: raise --timeout, or lower --episodes", c.Plan, c.Timeout)}
	}
	return err
}

// checkPlan checks a plan and prints the estimate.
func (c *checkCmd) checkPlan(ctx context.Context, s *State) error {
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	plan, err := loadPlan(ctx, s, c.Plan, c.Set, c.reach())
	if err != nil {
		return err
	}
	file, err := c.runFile(plan, c.Plan, "")
	if err != nil {
		return err
	}
	command := []string{"parley run", terminal.ShellWord(c.Plan)}
	for _, set := range c.Set {
		command = append(command, "--set", terminal.ShellWord(set))
	}
	return c.estimate(ctx, s, keys, estimateTarget{plan, file, strings.Join(command, " ")})
}

// estimateTarget is what an estimate is about: a plan, the run file that it would have, and the command that plays it.
type estimateTarget struct {
	plan          *planfile.Plan
	file, command string
}

// estimate plays a part of a plan and prints what all of it would take.
func (c *checkCmd) estimate(ctx context.Context, s *State, keys *keyGate, of estimateTarget) error {
	plan := of.plan
	for _, a := range plan.Advice {
		fmt.Fprintln(s.Stderr, "advice: "+a)
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	var done sampleProgress
	endProgress := done.show(s)
	e, err := app.Check{Plan: plan, File: c.Plan, Episodes: c.Episodes, Latency: c.Latency, Watch: done.set, Act: c.Act, Env: s.Env, Trust: keys.Gate}.Run(ctx)
	endProgress()
	switch {
	case ctx.Err() != nil:
		return exit.Silent(exit.Interrupted)
	case err != nil && strings.HasPrefix(err.Error(), c.Plan+":"): // it names its line
		return exit.AsUsage(err)
	case err != nil:
		return exit.Usagef("%s: %w", c.Plan, err)
	}
	if e.StoryFailed != nil {
		s.tell(e.StoryFailed.Error())
	}
	e.Recorded = compareWithFile(ctx, s, of)
	if c.JSON {
		return terminal.PrintJSON(s.Stdout, e)
	}
	p := terminal.NewPage(s.Stdout)
	c.print(p, e, of.command)
	return p.Flush()
}

// sampleProgress is how far the sample of an estimate is played.
type sampleProgress struct{ played, of atomic.Int64 }

func (p *sampleProgress) set(played, of int) {
	p.played.Store(int64(played))
	p.of.Store(int64(of))
}

// line says how far it is.
func (p *sampleProgress) line(time.Time) []string {
	played, of := int(p.played.Load()), int(p.of.Load())
	switch {
	case of == 0:
		return []string{"checking the plan"}
	case played < of:
		return []string{fmt.Sprintf("playing on the simulated provider: %s of %s", terminal.Number(played), terminal.Several(of, "episode", "episodes"))}
	default:
		return []string{"estimating from " + terminal.Several(of, "episode", "episodes")}
	}
}

// show shows it on a terminal until end is called. Elsewhere nobody waits for it.
func (p *sampleProgress) show(s *State) (end func()) {
	if !s.err.Escapes {
		return func() {}
	}
	return terminal.ShowProgress(s.err, p.line)
}

// compareWithFile compares a plan with its run file.
func compareWithFile(ctx context.Context, s *State, of estimateTarget) *app.Recorded {
	grown, err := app.Play{Plan: of.plan, File: of.file, Code: s.code()}.Growth(ctx)
	switch {
	case err != nil:
		changed, ok := errors.AsType[*growth.ChangedError](err)
		return &app.Recorded{File: of.file, Refused: playError(of.file, err).Error(), Empty: ok && changed.Empty}
	case grown != nil:
		return &app.Recorded{File: of.file, Grown: grown}
	default:
		return nil
	}
}

// print adds the tables, the story, the facts and the next command to a page.
func (c *checkCmd) print(p *terminal.Page, e *app.Estimate, command string) {
	n := e.Episodes
	cells := ""
	if n.Cells > 1 {
		cells = " in " + terminal.Number(n.Cells) + " cells"
	}
	p.Line(c.Plan, " is a valid plan: ", e.Kind, ", ", countText(statmath.Interval{Low: float64(n.Low), High: float64(n.High)}), " episodes", cells, ".")
	switch {
	case len(e.Models) == 0 && len(e.Estimate.Programs) > 0:
		p.Line("No program was started, nothing was asked and nothing spent.")
	case n.Played > 0:
		printUse(p, e)
	default:
		p.Line("Nothing was played, asked or spent.")
	}
	p.Line()
	var story strings.Builder
	printStory(&story, e.Story)
	p.Put(terminal.InkPlain, story.String())
	for _, f := range facts(e) {
		p.Fact(f[0], f[1])
	}
	p.Line()
	p.Line("next:  ", c.next(e, command))
}

// printUse adds the calls, tokens and costs by model, and by part of a plan whose kind creates episodes during the run.
func printUse(p *terminal.Page, e *app.Estimate) {
	p.Line(terminal.Number(e.Episodes.Played), " were played on the simulated provider; nothing was asked and nothing spent.")
	p.Line()
	models := &report.Table{Track: -1, Columns: append([]report.Column{report.KeyColumn("model")}, useColumns()...)}
	for _, m := range e.Models {
		models.Rows = append(models.Rows, append([]report.Cell{report.Word(m.Model)}, useCells(m.Use)...))
	}
	if len(e.Models) != 1 {
		models.Rows = append(models.Rows, append([]report.Cell{report.Word("all")}, useCells(e.Use)...))
	}
	printTable(p, models)
	if len(e.Parts) > 0 {
		p.Line()
		printTable(p, partsTable(e))
	}
	p.Line()
	p.Text("Of 100 runs on the simulated provider, 95 fall within the ranges. A real model writes longer or shorter answers, and later prompts may repeat them.")
	if slices.ContainsFunc(models.Trimmed().Columns, func(c report.Column) bool { return strings.HasSuffix(c.Name, " at most") }) {
		p.Text("AT MOST is what max_tokens allows; it needs one for every agent.")
	}
	p.Text("Prices as of " + e.PricesOf + ", without discounts for cached prompts.")
}

// partsTable has a row for each part of a plan that asks a model.
func partsTable(e *app.Estimate) *report.Table {
	t := &report.Table{Track: -1, Columns: append([]report.Column{report.KeyColumn("part"), report.NumberColumn("episodes")}, useColumns()...)}
	add := func(name string, low, high int, u estimate.Use) {
		episodes := report.Word(countText(statmath.Interval{Low: float64(low), High: float64(high)}))
		t.Rows = append(t.Rows, append([]report.Cell{report.Word(name), episodes}, useCells(u)...))
	}
	for _, part := range e.Parts {
		if part.Calls.Total.High > 0 {
			add(part.Name, part.Episodes.Low, part.Episodes.High, part.Use)
		}
	}
	add("all", e.Episodes.Low, e.Episodes.High, e.Use)
	return t
}

// useColumns are the columns of useCells.
func useColumns() (all []report.Column) {
	for _, name := range []string{"calls", "input tokens", "output tokens", "output at most", "cost", "in batches", "cost at most"} {
		all = append(all, report.NumberColumn(name))
	}
	return all
}

func useCells(u estimate.Use) []report.Cell {
	money := func(a *estimate.Amount) string {
		if a == nil {
			return "–"
		}
		return rangeText(a.Total, dollars)
	}
	cost, outputMax := money(u.Cost), "–"
	if u.Cost == nil {
		cost = "unpriced"
	}
	if u.OutputMax != nil {
		outputMax = countText(u.OutputMax.Total)
	}
	var cells []report.Cell
	for _, text := range []string{countText(u.Calls.Total), countText(u.Input.Total), countText(u.Output.Total), outputMax, cost, money(u.Batch), money(u.CostMax)} {
		cells = append(cells, report.Word(text))
	}
	return cells
}

// facts returns the lines below the table, each with its name.
func facts(e *app.Estimate) [][2]string {
	t := e.Time
	all := [][2]string{{"time", fmt.Sprintf("%s at %v a call (--latency); most of it for %s", rangeText(t.Seconds, durationText), time.Duration(t.Latency*float64(time.Second)), t.Bound)}}
	switch {
	case len(e.Estimate.Programs) > 0:
		all = [][2]string{{"time", "not known: programs work as long as they need, each at most its timeout"}}
	case e.Episodes.Played == 0:
		all = nil
	case len(e.Models) == 0:
		all = [][2]string{{"time", "negligible: no model is asked"}}
	default:
		all = append(all, [2]string{"", fmt.Sprintf("an episode has %s turns in a row, at most %d; through a batch API each is a batch to wait for", terminal.Speed(t.Turns), t.TurnsMax)})
	}
	for _, a := range t.Assumes {
		all = append(all, [2]string{"", a})
	}
	for _, k := range e.Keys {
		all = append(all, [2]string{"key", keyText(k)})
	}
	if len(e.Keys) == 0 {
		all = append(all, [2]string{"key", "none is needed"})
	}
	for _, p := range e.Programs {
		is := p.Command + " is found"
		if p.Missing != "" {
			is = p.Missing
		}
		if p.Agent != "" {
			is = p.Agent + ": " + is
		}
		all = append(all, [2]string{"program", is})
	}
	for _, p := range e.Allow {
		why := p.Allowed
		if why == "" {
			why = "run asks you first, or refuses without a terminal"
		}
		all = append(all, [2]string{"trust", "--trust " + terminal.ShellWord(terminal.OneLine(p.Flag)) + " (" + why + ")"})
	}
	for _, p := range e.Servers {
		says := "answers"
		if !p.Answers {
			says = "does not answer: " + p.Why
		}
		all = append(all, [2]string{"server", p.Server + " " + says})
	}
	if r := e.Recorded; r != nil && r.Grown != nil {
		all = append(all, [2]string{"file", r.File + " has " + grownText(r.Grown) + "; the figures are for all of them"})
	} else if r != nil {
		all = append(all, [2]string{"file", "run would refuse the plan: " + r.Refused})
	}
	for _, file := range e.Outside {
		all = append(all, [2]string{"file", file + " is outside the plan's folder, and allowed"})
	}
	all = append(all, [2]string{"budget", budgetFact(e)})
	if len(e.Unbounded) > 0 {
		all = append(all, [2]string{"answers", "are not bounded for " + strings.Join(e.Unbounded, ", ") + ": set agents.NAME.max_tokens"})
	}
	if e.Balance != nil {
		all = append(all, balanceFacts(e.Balance)...)
	}
	for _, w := range e.Warnings {
		all = append(all, [2]string{"warning", w})
	}
	return all
}

// balanceFacts says in which ways the lineups are balanced, and which agents have most and least where they are
// not.
func balanceFacts(b *planfile.Balance) [][2]string {
	var out [][2]string
	one, two, seats := "every agent", "every two agents", "every seat"
	for _, seat := range slices.Sorted(maps.Keys(b.Fixed)) {
		one, two, seats = "every agent that moves", "every two agents that move", "every other seat"
		out = append(out, [2]string{"balance", fmt.Sprintf("%s always sits in %s", terminal.OneLine(b.Fixed[seat]), terminal.OneLine(seat))})
	}
	var even []string
	for _, part := range []struct {
		is   bool
		what string
	}{
		{b.Seats, one + " sits in " + seats}, {b.Meetings, two + " meet"}, {b.Neighbours, one + " follows every other one"},
	} {
		if part.is {
			even = append(even, part.what)
		}
	}
	if len(even) > 0 {
		out = append(out, [2]string{"balance", fmt.Sprintf("of %s lineups: %s equally often", terminal.Number(b.Lineups), strings.Join(even, ", and "))})
	}
	for _, u := range b.Uneven {
		out = append(out, [2]string{"balance", fmt.Sprintf("not equal in %s lineups: %s", terminal.Number(b.Lineups), u)})
	}
	return out
}

// next returns the command or step that comes next.
func (c *checkCmd) next(e *app.Estimate, command string) string {
	if e.Recorded != nil && e.Recorded.Empty {
		return "delete " + terminal.ShellWord(e.Recorded.File) + ", then " + command
	}
	if e.Recorded != nil && e.Recorded.Refused != "" {
		return "use another run file with --out FILE, or the plan and the code as they were recorded"
	}
	if len(e.NoPrice) > 0 {
		return "give a price of " + strings.Join(e.NoPrice, ", ") + ", or no budget, then " + command
	}
	allow := slices.Clone(c.Trust)
	for _, p := range e.Allow {
		if p.Allowed == "" {
			allow = append(allow, p.Flag)
		}
	}
	for _, t := range allow {
		command += " --trust " + terminal.ShellWord(t)
	}
	command += budgetFlag(e)
	var missing []string
	for _, k := range e.Keys {
		switch {
		case !k.Set && k.Command != "":
			return "install the program that prints the key of " + k.Provider + ", then " + command
		case !k.Set:
			missing = append(missing, k.Env)
		}
	}
	for _, p := range e.Programs {
		if p.Missing != "" {
			return "install what is missing, or correct its command, then " + command
		}
	}
	if len(missing) > 0 {
		return "set " + strings.Join(missing, " and ") + ", then " + command
	}
	if i := slices.IndexFunc(e.Servers, func(p world.Presence) bool { return !p.Answers }); i >= 0 {
		return "start " + e.Servers[i].Server + ", then " + command
	}
	return command
}

// keyText says where a key comes from, and where it goes.
func keyText(k app.Key) string {
	comes := fmt.Sprintf("%s, which %s needs, is set", k.Env, k.Provider)
	switch {
	case k.Credentials != "":
		comes = fmt.Sprintf("Google's credentials give tokens of %s", k.Provider)
	case k.Command != "" && k.Set:
		comes = fmt.Sprintf("%s prints the one of %s", k.Command, k.Provider)
	case k.Command != "":
		comes = fmt.Sprintf("%s, which prints the one of %s, is not found", k.Command, k.Provider)
	case !k.Set:
		comes = fmt.Sprintf("%s, which %s needs, is not set", k.Env, k.Provider)
	}
	return comes + "; it goes to " + destinationsOf(k)
}

// rangeText writes an interval as "low to high", or one number where both read the same.
func rangeText(i statmath.Interval, write func(float64) string) string {
	low, high := write(i.Low), write(i.High)
	if low == high {
		return low
	}
	return low + " to " + high
}

// countText formats a number of things. An estimate is rounded to three significant digits.
func countText(i statmath.Interval) string {
	if i.High-i.Low < 0.5 {
		return terminal.Number(int(math.Round(i.High)))
	}
	return rangeText(i, func(f float64) string { return terminal.Number(int(threeDigits(f))) })
}

func dollars(f float64) string { return llm.Dollars(threeDigits(f)).String() }

// threeDigits rounds to three significant digits.
func threeDigits(f float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 3, 64), 64)
	if err != nil {
		return f
	}
	return short
}

// durationText formats seconds as a duration: whole seconds, or whole minutes from one hour.
func durationText(seconds float64) string {
	d := time.Duration(min(seconds, 1e9) * float64(time.Second))
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

// budgetFact says whether the budget is enough.
func budgetFact(e *app.Estimate) string {
	b := e.Budget
	if b == nil {
		return "none is set"
	}
	switch b.Covers {
	case "yes":
		return b.Limit.String() + coversText(e)
	case "no":
		return b.Limit.String() + " does not cover it: the run will stop, and can be resumed with more"
	case "maybe":
		return b.Limit.String() + " may not cover it: the run then stops, and can be resumed with more"
	default:
		return b.Limit.String() + " cannot be kept: a price is missing"
	}
}

// budgetFlag is the flag that bounds what a plan without a budget spends at real prices: a tenth above its estimate.
func budgetFlag(e *app.Estimate) string {
	if e.Budget != nil || len(e.Keys) == 0 || e.Cost == nil || e.Cost.Total.High <= 0 {
		return ""
	}
	limit := strconv.FormatFloat(1.1*e.Cost.Total.High, 'g', 2, 64)
	if f, err := strconv.ParseFloat(limit, 64); err == nil {
		limit = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return " --budget " + limit
}

// coversText says what a budget that is larger than the estimate covers.
func coversText(e *app.Estimate) string {
	switch {
	case e.CostMax == nil:
		return " covers the estimate; more could be needed, since answers are not bounded"
	case e.CostMax.Total.High > e.Budget.Limit.Dollars():
		return " covers the estimate; if every answer is as long as max_tokens, the run needs about " + dollars(e.CostMax.Total.High)
	default:
		return " covers it"
	}
}

// storyLines is how many lines of an episode are shown.
const storyLines = 40

// printStory writes the beginning of an episode that was played, a line for each thing that happened.
func printStory(w io.Writer, story []exhibit.Frame) {
	if len(story) == 0 {
		return
	}
	fmt.Fprint(w, "One of the episodes:\n")
	n := 0
	for _, m := range story {
		if n >= storyLines {
			fmt.Fprint(w, "  …\n")
			break
		}
		fmt.Fprintf(w, "  %s\n", terminal.Quoted(m.Title))
		for _, l := range m.Lines {
			who := l.Who
			if l.To != "" {
				who += " to " + l.To
			}
			if who != "" {
				who += ": "
			}
			fmt.Fprintf(w, "    %s\n", terminal.Quoted(who+l.Text))
			n++
		}
	}
	fmt.Fprintln(w)
}

// isRunFile reports whether a file is a run file and not a plan, by its name or its first bytes.
func isRunFile(path string) bool {
	if filepath.Ext(path) == ".parley" {
		return true
	}
	f, err := files.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	const magic = "SQLite format 3\x00"
	var head [len(magic)]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == magic
}

// verifyResult is the result of checking a run file.
type verifyResult struct {
	File  string `json:"file"`
	Whole bool   `json:"whole"`
	// Unreadable is why nothing of the file can be read. Empty: the other episodes can be read.
	Unreadable string `json:"unreadable,omitempty"`
	runfile.Losses
}

// verify reads a whole run file and reports its damage.
func (c *checkCmd) verify(ctx context.Context, s *State) (err error) {
	ctx, end := untilSignal(ctx, s)
	defer end()
	v := verifyResult{File: c.Plan}
	found, err := verifyFile(ctx, c.Plan)
	switch {
	case errors.Is(err, runfile.ErrDamaged):
		v.Unreadable = err.Error()
		v.Damaged, v.Damage = []int{}, []runfile.Damage{{What: v.Unreadable}}
	case err != nil:
		return exit.AsUsage(playError(c.Plan, err))
	default:
		v.Losses, v.Whole = *found, len(found.Damage) == 0
		if fatal := found.Fatal(); fatal != nil {
			v.Whole, v.Unreadable = false, fatal.Error()
		}
	}
	if c.JSON {
		err = terminal.PrintJSON(s.Stdout, v)
	} else {
		_, err = fmt.Fprint(s.Stdout, terminal.Safe(v.text()))
	}
	if err == nil && !v.Whole {
		err = exit.Silent(exit.Failed)
	}
	return err
}

func verifyFile(ctx context.Context, path string) (found *runfile.Losses, err error) {
	store, err := runfile.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Verify(ctx)
}

func (v *verifyResult) text() string {
	var b strings.Builder
	if v.Whole {
		fmt.Fprintf(&b, "%s is whole: %s entries, %s episodes, %s texts match their checksums.\n", v.File, terminal.Number(v.Entries), terminal.Number(v.Episodes), terminal.Number(v.Texts))
		fmt.Fprintf(&b, "\nnext:  parley report %s   what came out\n       parley run %s      resume it, if it is not complete\n", terminal.ShellWord(v.File), terminal.ShellWord(v.File))
		return b.String()
	}
	fmt.Fprintf(&b, "%s is damaged", v.File)
	if n := len(v.Damaged); n > 0 {
		fmt.Fprintf(&b, ": %s of %s episodes cannot be read whole: %s", terminal.Number(n), terminal.Number(v.Episodes), text.Ranges(v.Damaged, 0))
	}
	b.WriteString(".\n\n")
	byEpisode := slices.SortedStableFunc(slices.Values(v.Damage), func(a, b runfile.Damage) int { return damageRank(a) - damageRank(b) })
	const maxShown = 50
	for i, d := range byEpisode {
		if i == maxShown {
			fmt.Fprintf(&b, "and %s more: --json lists them all\n", terminal.Number(len(byEpisode)-maxShown))
			break
		}
		if d.Episode != nil {
			fmt.Fprintf(&b, "episode %d: ", *d.Episode)
		}
		fmt.Fprintln(&b, d.What)
	}
	if v.Unreadable != "" {
		b.WriteString("\nNothing of the file can be read, and parley refuses it. Keep it, and put back a copy if you have one.\n")
		return b.String()
	}
	b.WriteString("\nKeep the file, and put back a copy if you have one. parley show, report, compare and export leave out the damaged\n" +
		"episodes and read the others; parley run refuses the file.\n")
	return b.String()
}

// damageRank sorts the damage of the run before that of episodes, and episodes by number.
func damageRank(d runfile.Damage) int {
	if d.Episode == nil {
		return -1
	}
	return *d.Episode
}
