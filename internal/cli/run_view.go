package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/terminal"
	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/growth"
	"parley/internal/serve/telemetry"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// runView shows a run while it is played, and prints its summary at the end. It is safe for use by several goroutines.
type runView struct {
	out *terminal.Stream
	// verbose prints a line for each episode that ends, each wave, each decision, and each step with a reward.
	verbose bool

	mu       sync.Mutex
	stats    func() dispatch.Snapshot
	waiting  func() string                       // what external thing the run waits for
	calls    func(now time.Time) []dispatch.Wait // what calls wait for; hostile
	batches  func() batch.Progress               // nil if the run is not in waves
	steering *control.Steering                   // nil if nothing is left to play
	money    func() budget.Sums
	episodes int // planned so far
	ended    int
	failed   map[llm.Kind]int
	asked    map[string]*journal.Spending // by model, of this process
	lost     int                          // episodes that ended as failures
	playing  map[int]*episodeProgress     // episodes, by number
	left     terminal.TimeLeft
	began    time.Time
	last     time.Time
	before   dispatch.ModelStats
	limits   func() []dispatch.Limit
	past     []sample     // of the last States, the oldest first
	resumed  map[int]bool // episodes that began before this process
	whole    int          // episodes that ended and were not resumed
	cost     llm.Money    // of them

	// The kind's own status line; nil if it has none.
	status world.Status
	staged *journal.Staged // the current stage
	stages int             // begun by this process
	wave   wave            // the last one
	files  bool            // the kind can export files

	// Values for the commands that printSummary prints.
	trusted []string // values of --trust
	again   string   // the command that plays the plan into another file
	retry   string   // the command that plays failed episodes again
}

// begin sets the view to the state of the opened run.
func (v *runView) begin(o *app.Opened) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stats, v.steering, v.waiting, v.calls, v.limits = o.App.Stats, o.Steering, o.Waiting, o.App.Waits, o.App.Limits
	v.money = func() budget.Sums { return o.App.Budget().Sums() }
	if o.Plan.Pace == "wave" {
		v.batches = o.App.Batches
	}
	v.ended, v.lost = o.Head.Ended.Len(), o.Head.Ended.Failed()
	v.playing, v.resumed = map[int]*episodeProgress{}, map[int]bool{}
	for n := range o.Head.Playing {
		v.resumed[n] = true
	}
	v.failed, v.asked = map[llm.Kind]int{}, map[string]*journal.Spending{}
	v.began = time.Now()
	v.last = v.began
	_, v.files = world.As[part.FileMaker](o.Plan.Kind)
	if v.status = o.Plan.Kind.Status(o.Plan.Params); v.status == nil {
		return
	}
	if err := o.Past(v.status.Add); err != nil {
		v.status = nil // the run will not get far either, and says why
	}
}

// printStart prints the state from which a run is resumed.
func (v *runView) printStart(o *app.Opened) {
	if o.Seats != nil {
		fmt.Fprintf(v.out, "parley: people take part in this run: `parley sit %s` lists their seats\n", terminal.ShellWord(o.File))
	}
	if o.Complete {
		fmt.Fprintf(v.out, "parley: %s is complete: nothing is left to play\n", o.File)
		return
	}
	if o.Grown != nil {
		fmt.Fprintln(v.out, "parley: "+grownText(o.Grown))
		return
	}
	if b := o.Head.Begun; b != nil && b.Fork != nil && o.Head.Ended.Len() == 0 && !o.Head.Cut {
		fmt.Fprintf(v.out, "parley: continuing from turn %d of episode %d of %s\n", b.Fork.Turn, b.Fork.Episode, b.Fork.File)
		return
	}
	if o.Head.Begun != nil && (o.Head.Calls > 0 || o.Head.Ended.Len() > 0) {
		fmt.Fprintf(v.out, "parley: resuming %s: %s ended before\n", o.File, terminal.Several(v.ended, "episode", "episodes"))
		if o.Head.Cut && o.Head.Lost > 0 {
			fmt.Fprintf(v.out, "parley: it was cut off: %s without a recorded reply, whether sent or not, will be asked\n", terminal.Several(o.Head.Lost, "call", "calls"))
		}
	}
}

// grownText says how many episodes of a plan are new.
func grownText(g *growth.Growth) string {
	text := fmt.Sprintf("grown: %s recorded, ", terminal.Several(g.Recorded, "episode", "episodes"))
	if g.New == nil {
		return text + "and more as their scores require"
	}
	return text + terminal.Number(*g.New) + " new"
}

// onEvent processes an event of the engine.
func (v *runView) onEvent(e engine.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case e.Staged != nil:
		v.stages++
		v.staged, v.episodes = e.Staged, e.Staged.First+e.Staged.Specs.Len()
	case e.Noted != nil:
		m := v.progressOf(e.Noted.Episode)
		if len(v.playing) <= maxInside { // otherwise nobody sees it
			m.noted(e.Noted)
		}
		if v.verbose {
			v.printSteps(m, e.Noted)
		}
	case e.Ended != nil:
		v.ended++
		if e.Ended.Outcome.Failed != "" {
			v.lost++
		}
		v.endEpisode(e.Ended)
		v.left.End(e.Ended.Episode)
		v.addToStatus(e.Ended)
	case e.Replied != nil:
		v.left.Replied(e.Replied.Episode, time.Since(v.began))
		m := v.progressOf(e.Replied.Episode)
		m.replied(e.Replied)
		if v.verbose {
			v.printDecision(m, e.Replied)
		}
		v.addToWave(e.Replied)
		v.addToModel(e.Replied)
		if e.Replied.Error != nil {
			v.failed[e.Replied.Error.Kind]++
		}
	case e.Wave > 0:
		v.beginWave(e.Wave)
	case e.Closing > 0:
		fmt.Fprintf(v.out, "parley: %s to the end, since its external state would be lost; no other episode begins\n",
			terminal.Several(e.Closing, "episode is played", "episodes are played"))
	}
}

// addToStatus passes an episode that ended to the kind's status.
func (v *runView) addToStatus(e *journal.Ended) {
	if v.status == nil || v.staged == nil {
		return
	}
	if i := e.Episode - v.staged.First; i >= 0 && i < v.staged.Specs.Len() {
		v.status.Add(world.Played{Episode: e.Episode, Spec: v.staged.Specs.At(i), Outcome: e.Outcome})
	}
}

// statusLines returns the kind's current status.
func (v *runView) statusLines() []string {
	if v.status == nil {
		return nil
	}
	return v.status.Line()
}

// showProgress shows the progress of the run until end is called.
func (v *runView) showProgress() (end func()) { return terminal.ShowProgress(v.out, v.progressLine) }

// progressLine describes the current state of the run.
func (v *runView) progressLine(now time.Time) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.stats()
	steered := v.steered()
	trouble, money := terminal.Reasons(v.calls, now)
	parts := append(trouble, v.statusLines()...)
	parts = append(parts, v.insideTexts()...)
	if steered != "" {
		parts = append([]string{steered}, parts...)
	}
	if why := v.waitText(); why != "" {
		parts = append(parts, "waiting for "+why)
	}
	parts = append(parts, fmt.Sprintf("%s of %s episodes", terminal.Number(v.ended), terminal.Number(v.episodes)))
	if left := v.timeLeft(now); left != "" {
		parts = append(parts, left)
	}
	if v.batches != nil {
		parts = append(parts, batchTexts(v.batches(), now)...)
	}
	parts = append(append(parts, terminal.MoneyText(v.money(), st)), money...)
	if s := failureKinds(v.failed); s != "" {
		parts = append(parts, s)
	}
	parts = append(parts, terminal.Number(int(st.InFlight))+" in flight")
	if d := now.Sub(v.last).Seconds(); d > 0 {
		parts = append(parts,
			terminal.Speed(float64(st.Attempts-v.before.Attempts)/d)+" calls/s",
			terminal.Speed(float64(st.Usage.Total()-v.before.Usage.Total())/d)+" tokens/s")
	}
	if now.Sub(v.last) >= time.Second {
		v.last, v.before = now, st.ModelStats
	}
	return append(parts, terminal.Queue(st)...)
}

// steered says whether the run is paused or draining.
func (v *runView) steered() string {
	if v.steering == nil {
		return ""
	}
	s := v.steering.State()
	var all []string
	add := func(what string, by *journal.Steered) {
		if by != nil {
			all = append(all, fmt.Sprintf("%s by %s at %s", what, by.By, by.At.Local().Format("15:04")))
		}
	}
	add("paused", s.Paused)
	add("draining", s.Draining)
	return terminal.Safe(terminal.OneLine(strings.Join(all, "; ")))
}

// waitText returns what external thing the run waits for.
func (v *runView) waitText() string {
	if v.waiting == nil {
		return ""
	}
	return terminal.Quoted(v.waiting())
}

// batchTexts describes the calls in batch APIs: "wave 3, 2 batches out: 120 of 800 answered, the oldest for 5m".
// Anthropic reports the number of answers only at the end. A batch is out once its provider has accepted it.
func batchTexts(p batch.Progress, now time.Time) []string {
	if p.Wave == 0 {
		return nil
	}
	parts := []string{"wave " + terminal.Number(p.Wave)}
	lines, answered, oldest, trouble, out := 0, 0, now, "", 0
	for _, b := range p.Open {
		if b.Trouble != "" {
			trouble = b.Provider + ": " + b.Trouble
		}
		if b.ID == "" {
			continue
		}
		out++
		lines += b.Lines
		answered += b.Answered + b.Failed
		if b.Began.Before(oldest) {
			oldest = b.Began
		}
	}
	if sending := len(p.Open) - out; sending > 0 {
		parts = append(parts, terminal.Several(sending, "batch", "batches")+" being sent")
	}
	if out > 0 {
		parts = append(parts, fmt.Sprintf("%s out: %s of %s answered, for %s", terminal.Several(out, "batch", "batches"), terminal.Number(answered), terminal.Number(lines), now.Sub(oldest).Round(time.Second)))
	}
	if trouble != "" {
		parts = append(parts, trouble)
	}
	return parts
}

// timeLeft returns the estimated time for the known episodes, such as "about 5m left", if there is an estimate.
// A kind that adds episodes during the run may add more.
func (v *runView) timeLeft(now time.Time) string {
	about, ok := v.left.About(v.episodes-v.ended, now.Sub(v.began))
	if !ok {
		return ""
	}
	text := "about " + terminal.Roughly(about) + " left"
	if v.stages > 1 {
		text += " in this stage"
	}
	return text
}

// failureKinds formats failures as "3 timeout, 1 server".
func failureKinds(n map[llm.Kind]int) string {
	parts := make([]string, 0, len(n))
	for k, c := range n {
		parts = append(parts, terminal.Number(c)+" "+strings.ReplaceAll(string(k), "_", " "))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

// episodeProgress is how far an episode has come.
type episodeProgress struct {
	since time.Time
	turn  int
	label string // of its last call
	cost  llm.Money
	where string // what its world noted last, such as "phase S1902M"; hostile
	said  string // the beginning of the last answer, with verbose; hostile
}

// maxInside is how many episodes may play so that the progress shows what is inside them.
const maxInside = 3

// progressOf returns how far an episode that is played has come.
func (v *runView) progressOf(episode int) *episodeProgress {
	m := v.playing[episode]
	if m == nil {
		m = &episodeProgress{since: time.Now()}
		v.playing[episode] = m
	}
	return m
}

func (m *episodeProgress) replied(r *journal.Replied) {
	m.turn, m.label, m.cost = max(m.turn, r.Turn.Turn), r.Label, m.cost.Plus(r.Cost())
}

// placeNames are what worlds call the places in an episode, in their notes.
func placeNames() []string { return []string{"phase", "turn", "round", "year", "step"} }

// noted keeps where a world says that it is.
func (m *episodeProgress) noted(t *journal.Turned) {
	for _, note := range slices.Backward(t.Notes) {
		if name := note.Phase(); name != "" {
			m.where = name
			return
		}
		var data map[string]json.RawMessage
		if json.Unmarshal(note.Data, &data) != nil {
			continue
		}
		for _, name := range placeNames() {
			if value := strings.Trim(string(data[name]), `"`); value != "" && len(value) <= 40 && !strings.ContainsAny(value, "{[") {
				m.where = name + " " + value
				return
			}
		}
	}
}

// insideTexts says how far the episodes are that play, if these are few.
func (v *runView) insideTexts() (parts []string) {
	if len(v.playing) > maxInside {
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(v.playing)) {
		m := v.playing[n]
		text := fmt.Sprintf("episode %d: %s", n, cmp.Or(m.where, fmt.Sprintf("turn %d", m.turn+1)))
		if m.label != "" {
			text += ", " + m.label
		}
		parts = append(parts, terminal.Cut(terminal.Safe(terminal.OneLine(text)), 80))
	}
	return parts
}

// maxLineScores is how many scores the line of an episode has.
const maxLineScores = 6

// endEpisode forgets an episode that ended, and prints its line.
func (v *runView) endEpisode(e *journal.Ended) {
	m := v.progressOf(e.Episode)
	delete(v.playing, e.Episode)
	if !v.resumed[e.Episode] { // what one cost that began in an earlier process is not known here
		v.whole++
		v.cost = v.cost.Plus(m.cost)
	}
	if !v.verbose {
		return
	}
	mark, parts := "✓ done", []string{}
	for i, s := range e.Outcome.Scores {
		if i == maxLineScores {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %.4g", strings.TrimSpace(s.Seat+" "+s.Name), s.Value))
	}
	if e.Outcome.Failed != "" {
		mark, parts = "✗ failed", []string{e.Outcome.Failed}
	}
	v.printLine("%s: episode %d: %s; %v, %v", mark, e.Episode, strings.Join(parts, ", "), m.cost, tenths(time.Since(m.since)))
}

// printLine prints one line. What is in it may be hostile.
func (v *runView) printLine(format string, args ...any) {
	fmt.Fprintln(v.out, terminal.Cut(terminal.Safe(terminal.OneLine(fmt.Sprintf(format, args...))), 400))
}

// tenths shortens a duration for a reader.
func tenths(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// The labels and keys that worlds use for a decision and for a step.
const (
	decisionLabel = "decision"
	actionKey     = "action"
	maxSaid       = 120
)

// printDecision prints what a seat decided when its answer arrives, and keeps its beginning for the line of a step.
func (v *runView) printDecision(m *episodeProgress, r *journal.Replied) {
	if r.Act != nil {
		return
	}
	m.said = ""
	if r.Response != nil {
		m.said = r.Response.Text
		var fields map[string]any
		if json.Unmarshal(r.Response.JSON, &fields) == nil || json.Unmarshal([]byte(m.said), &fields) == nil {
			if action, ok := fields[actionKey].(string); ok {
				m.said = action
			}
		}
		m.said = terminal.Cut(terminal.OneLine(m.said), maxSaid)
	}
	switch {
	case r.Label != decisionLabel:
	case r.Error != nil:
		v.printLine("episode %d: %s did not decide: %s", r.Episode, r.Seat, r.Error.Kind)
	default:
		meta := r.Response.Metadata
		v.printLine("episode %d: %s decided: %s; %v, %v", r.Episode, r.Seat, m.said, r.Cost(), tenths(meta.Waited+meta.Latency))
	}
}

// printSteps prints the steps that a world noted with a reward.
func (v *runView) printSteps(m *episodeProgress, t *journal.Turned) {
	for _, note := range t.Notes {
		var step struct {
			Step   *int               `json:"step"`
			Reward map[string]float64 `json:"reward"`
		}
		if json.Unmarshal(note.Data, &step) != nil || step.Step == nil || step.Reward == nil {
			continue
		}
		var rewards []string
		for _, seat := range slices.Sorted(maps.Keys(step.Reward)) {
			one := fmt.Sprintf("reward %.4g", step.Reward[seat])
			if len(step.Reward) > 1 {
				one = seat + " " + one
			}
			rewards = append(rewards, one)
		}
		v.printLine("episode %d: step %d: %s; %s", t.Episode, *step.Step, m.said, strings.Join(rewards, ", "))
	}
}

// wave is the calls that a run in waves has sent together.
type wave struct {
	number, calls int
	spent         journal.Spending
	began         time.Time
}

// beginWave prints that a wave is sent.
func (v *runView) beginWave(calls int) {
	v.wave = wave{number: v.wave.number + 1, calls: calls, began: time.Now()}
	if v.verbose {
		v.printLine("wave %d: %s sent", v.wave.number, terminal.Several(calls, "call", "calls"))
	}
}

// addToWave counts a reply, and prints how the wave was answered after the last one.
func (v *runView) addToWave(r *journal.Replied) {
	w := &v.wave
	if w.calls == 0 || r.Kind() != journal.Ask {
		return
	}
	w.spent.Add(r)
	failed := ""
	if n := w.spent.FailedCalls; n > 0 {
		failed = ", " + terminal.Number(n) + " failed"
	}
	if v.verbose && w.spent.Calls == w.calls {
		v.printLine("wave %d: %s answered%s; %v, %v", w.number, terminal.Several(w.calls, "call", "calls"), failed, w.spent.Cost, tenths(time.Since(w.began)))
	}
}

// monitor returns the state of the run for Prometheus.
func (v *runView) monitor() telemetry.RunState {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := telemetry.RunState{Episodes: journal.NewEpisodeCounts(v.episodes, v.ended-v.lost, v.lost, len(v.playing))}
	if v.steering != nil {
		s := v.steering.State()
		r.Paused, r.Draining = s.Paused != nil, s.Draining != nil
	}
	return r
}

// printSummary prints the result of a run: scores, figures, failures, and the next commands. resumable reports
// whether parley run can continue it.
func (v *runView) printSummary(p *terminal.Page, sum *app.Summary, resumable bool) {
	printAgents(p, sum)
	printFigures(p, sum)
	printTrouble(p, sum)
	if says := v.statusLines(); len(says) > 0 {
		p.Line()
		p.Text(strings.Join(says, ", "))
	}
	v.printCommands(p, sum, resumable)
}

// printAgents prints the scores by agent.
func printAgents(p *terminal.Page, sum *app.Summary) {
	if len(sum.Agents) == 0 {
		return
	}
	number := func(text string) terminal.Cell { return terminal.Cell{Text: text, Number: true} }
	rows := [][]terminal.Cell{{{Text: "AGENT"}, {Text: "SCORE"}, number("EPISODES"), number("INDEPENDENT"), number("MEAN"), {Text: "95% INTERVAL"}}}
	for _, sc := range sum.Agents {
		interval := report.UnknownInterval(sc.Quantity())
		if !math.IsInf(sc.Interval.Half(), 0) {
			interval = text.Decimals(sc.Interval.Low, 3) + " to " + text.Decimals(sc.Interval.High, 3)
		}
		rows = append(rows, []terminal.Cell{{Ink: terminal.InkName, Text: sc.Agent}, {Text: sc.Score}, number(terminal.Number(sc.Episodes)), number(terminal.Number(sc.N)), number(text.Decimals(sc.Mean, 3)), {Text: interval}})
	}
	p.Table(rows)
	p.Line()
}

// printFigures prints how far the run got, its calls, cost and time.
func printFigures(p *terminal.Page, sum *app.Summary) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s", sum.State, terminal.Number(sum.Episodes.Complete), terminal.Several(sum.Episodes.Total, "episode", "episodes"))
	if sum.Episodes.Failed > 0 {
		fmt.Fprintf(&b, ", %s failed", terminal.Number(sum.Episodes.Failed))
	}
	counted := countedTexts(sum.Recorded)
	if sum.Calls.Earlier > 0 {
		counted[0] += fmt.Sprintf(", %s of them new", terminal.Number(sum.Calls.Total-sum.Calls.Earlier))
	}
	b.WriteString("; " + strings.Join(counted, ", "))
	if n := sum.Calls.Programs; n > 0 {
		fmt.Fprintf(&b, "; %s of programs answered from the run file", terminal.Several(n, "call", "calls"))
	}
	spent := "unpriced"
	if sum.Cost != nil {
		spent = sum.Sums().Text()
	}
	if sum.Saved > 0 {
		spent += ", prompt caches saved " + sum.Saved.String()
	}
	fmt.Fprintf(&b, "; %s; %v", spent, (time.Duration(sum.Wall*1e9) * time.Nanosecond).Round(10*time.Millisecond))
	p.Text(b.String())
	if note := terminal.UnpricedNote(sum.Unpriced); note != "" {
		p.Text(note)
	}
}

// printTrouble prints what failed, what is open, why the run ended, and what to do.
func printTrouble(p *terminal.Page, sum *app.Summary) {
	const maxShown = 5
	for i, text := range sum.Unreached {
		if i == maxShown {
			p.Text(fmt.Sprintf("not reached: %d more cells", len(sum.Unreached)-maxShown))
			break
		}
		p.Text("not reached: " + text)
	}
	for _, note := range []string{sum.MeasuresNote, sum.CountedNote, sum.CopiesNote} {
		if note != "" {
			p.Text(note)
		}
	}
	if f := sum.Fault; f != nil {
		p.Text(fmt.Sprintf("failed most often (%s): %s", terminal.Number(f.Episodes), f.String()))
	}
	for _, line := range failureLines(sum.Failures, sum.Recorded) {
		p.Text(line)
	}
	if sum.Batches > 0 {
		p.Text(terminal.Several(sum.Batches, "batch is", "batches are") + " with the providers: they continue, and are collected when the run is resumed")
	}
	if sum.AtRisk > 0 {
		p.Text(fmt.Sprintf("at risk: calls that were cut off in flight may have cost up to %v; the budget counts it", sum.AtRisk))
	}
	if why := sum.Reason.String(); why != "" {
		p.Text("why: " + why)
	}
	if f := sum.Cause; f != nil {
		p.Text("what to do: " + terminal.Quoted(f.Remedy))
	}
	if f := sum.AttemptFailure; f != nil {
		p.Text(fmt.Sprintf("attempts that failed: %s: %s", f.String(), terminal.Quoted(f.Example)))
		p.Text("what to do: " + terminal.Quoted(f.Remedy))
	}
}

// printCommands prints the commands that continue or show the run. They are not broken: people copy them.
func (v *runView) printCommands(p *terminal.Page, sum *app.Summary, resumable bool) {
	command := func(what, line string) { p.Line(what, ":\n    ", line) }
	p.Line("\nrun file: ", sum.File)
	switch {
	case !resumable:
		command("to run the plan in a new run file", v.again)
	case sum.State != journal.Complete:
		more := ""
		if sum.Reason.Kind == journal.ByBudget {
			more = " --budget USD"
		}
		for _, t := range v.trustedAgain(sum.File) {
			more += " --trust " + terminal.ShellWord(t)
		}
		command("to resume it", "parley run "+terminal.ShellWord(sum.File)+more)
	case sum.Episodes.Failed > 0:
		command("to play the failed episodes again, without asking again what is answered", v.retry)
	}
	if sum.Calls.Total > 0 || sum.Episodes.Complete+sum.Episodes.Failed > 0 {
		command("to read what was said", "parley show "+terminal.ShellWord(sum.File))
	}
	if v.files {
		folder := strings.TrimSuffix(sum.File, filepath.Ext(sum.File))
		command("to write the results as files", "parley export "+terminal.ShellWord(sum.File)+" --format folder --out "+terminal.ShellWord(folder))
	}
}

// trustedAgain returns what --trust has to allow when a run file is resumed: it is valid for one command, and what was read from a file is recorded, so that
// it comes from the run file then.
func (v *runView) trustedAgain(file string) []string {
	all := slices.Clone(v.trusted)
	path, err := filepath.Abs(file)
	recorded := trust.Grant{What: trust.Code, Name: path}.Flag()
	isCode := func(flag string) bool {
		g, wrong := trust.ParseFlag(flag)
		return wrong == nil && g.What == trust.Code
	}
	if err == nil && slices.ContainsFunc(all, isCode) && !slices.Contains(all, recorded) {
		all = append(all, recorded)
	}
	return all
}

// sample is what was counted at some time. Rates are differences between two.
type sample struct {
	at       time.Time
	attempts int64
	tokens   int
	errors   int64
	spent    llm.Money
	charged  map[limitKey]limiter.Units
}

// limitKey identifies a dispatch.Limit.
type limitKey struct{ provider, address, models string }

func limitKeyOf(l *dispatch.Limit) limitKey { return limitKey{l.Provider, l.Server, l.Models} }

// The times over which rates are measured, of calls and of money, and the time between two measurements. Answers of a model that
// is slow arrive together: over a second, a steady rate would look like 0 and 2 in turn.
const (
	rateTime = 10 * time.Second
	burnTime = time.Minute
	rateStep = time.Second
)

// signalled is why a run stops that is stopped by a signal. It says what the calls waited for: nothing else in the run file does if
// nothing was answered.
func (v *runView) signalled(now time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	why := "stopped by a signal"
	if waits := terminal.Waits(v.calls, now); len(waits) > 0 {
		why += " while calls waited: " + strings.Join(waits, "; ")
	}
	return errors.New(why)
}

// liveState returns the current state of the run for those who watch it from outside. It is called once a second.
func (v *runView) liveState(now time.Time) control.LiveState {
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.stats()
	s := control.LiveState{
		At: now, InFlight: st.InFlight, Waiting: st.Waiting, RateLimited: st.RateLimited,
		Sums: v.money(), Left: v.timeLeft(now),
		Status: append(v.statusLines(), v.insideTexts()...), Waits: terminal.Waits(v.calls, now), Models: v.modelStates(st),
	}
	s.Projected = v.projected(s.Spent)
	if why := v.waitText(); why != "" {
		s.Waits = append(s.Waits, why)
	}
	if v.batches != nil {
		for _, b := range v.batches().Open {
			if b.ID == "" { // no provider has it yet
				if b.Trouble != "" {
					s.Waits = append(s.Waits, "a batch is being sent to "+b.Provider+": "+terminal.Cut(b.Trouble, 300))
				}
				continue
			}
			s.Batches = append(s.Batches, control.Batch{Provider: b.Provider, Model: b.Model, Began: b.Began, Requests: b.Lines, Answered: b.Answered + b.Failed, Trouble: terminal.Cut(b.Trouble, 300)})
		}
	}
	v.rates(&s, st)
	return s
}

// addToModel counts a reply of a model.
func (v *runView) addToModel(r *journal.Replied) {
	if r.Kind() != journal.Ask {
		return
	}
	name := r.Request.Model
	if v.asked[name] == nil {
		v.asked[name] = &journal.Spending{}
	}
	v.asked[name].Add(r)
}

// modelStates returns what each model did: what is recorded of its calls, and what dispatch knows of its attempts.
func (v *runView) modelStates(st dispatch.Snapshot) (out []control.Model) {
	names := slices.AppendSeq(st.Names(), maps.Keys(v.asked))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		var of journal.Spending
		if v.asked[name] != nil {
			of = *v.asked[name]
		}
		m := st.Models[name]
		one := control.Model{
			Name: name, Calls: int64(of.Calls), Failed: int64(of.FailedCalls), RateLimited: m.RateLimited, Input: of.Usage.Input, Output: of.Usage.Output, Cost: of.Cost,
			Median: m.Latency.Quantile(0.5), P95: m.Latency.Quantile(0.95), Errors: map[llm.Kind]control.LiveError{},
		}
		for kind, n := range m.Errors {
			one.Errors[kind] = control.LiveError{Attempts: n, Example: terminal.Cut(m.LastError[kind], 300)}
		}
		out = append(out, one)
	}
	return out
}

// projected returns what all known episodes will cost if the others cost as much as those that ended; 0: unknown.
func (v *runView) projected(spent llm.Money) llm.Money {
	if v.whole == 0 || v.cost == 0 {
		return 0
	}
	each, left := v.cost.Dollars()/float64(v.whole), 0.0
	for n, m := range v.playing {
		if !v.resumed[n] {
			left -= m.cost.Dollars() // it is spent
		}
	}
	left += each * float64(v.episodes-v.ended)
	return spent.Plus(llm.Dollars(max(0, left)))
}

// rates fills in what the run does in a second or a minute, and keeps what it did for the next time.
func (v *runView) rates(s *control.LiveState, st dispatch.Snapshot) {
	now := sample{at: s.At, attempts: st.Attempts, tokens: st.Usage.Total(), spent: s.Spent, charged: map[limitKey]limiter.Units{}}
	for _, n := range st.Errors {
		now.errors += n
	}
	limits := v.limits()
	for i := range limits {
		now.charged[limitKeyOf(&limits[i])] = limits[i].Charged
	}
	v.past = slices.DeleteFunc(v.past, func(p sample) bool { return s.At.Sub(p.at) > burnTime+rateStep/2 })
	if before, d, ok := v.since(s.At, rateTime, nil); ok {
		s.CallsPerSecond = float64(now.attempts-before.attempts) / d
		s.TokensPerSecond = float64(now.tokens-before.tokens) / d
		s.ErrorsPerSecond = float64(now.errors-before.errors) / d
	}
	if before, d, ok := v.since(s.At, burnTime, nil); ok {
		s.Burn = llm.Dollars(max(0, now.spent.Minus(before.spent).Dollars()) * 60 / d)
	}
	for i := range limits {
		l := &limits[i]
		at := limitKeyOf(l)
		before, d, ok := v.since(s.At, rateTime, &at)
		was := before.charged[at]
		rate := func(limit, charged, was float64) control.Rate {
			if !ok {
				return control.Rate{Limit: limit, Unknown: true}
			}
			return control.Rate{Now: max(0, charged-was) * 60 / d, Limit: limit}
		}
		s.Servers = append(s.Servers, control.Server{
			Provider: l.Provider, Address: l.Server, Models: l.Models, InFlight: l.InFlight, Concurrency: l.Concurrency,
			Requests: rate(l.Requests, l.Charged.Requests, was.Requests), Tokens: rate(l.Tokens, l.Charged.Tokens, was.Tokens),
			Input: rate(l.Input, l.Charged.Input, was.Input), Output: rate(l.Output, l.Charged.Output, was.Output),
		})
	}
	v.past = append(v.past, now)
}

// since returns the oldest sample of a span of time before now, and its age in seconds. If of is not nil, the sample has that
// server: one that was just opened is not in all.
func (v *runView) since(now time.Time, span time.Duration, of *limitKey) (s sample, seconds float64, ok bool) {
	for _, p := range v.past {
		if of != nil {
			if _, known := p.charged[*of]; !known {
				continue
			}
		}
		if age := now.Sub(p.at); age > 0 && age <= span+rateStep/2 {
			return p, age.Seconds(), true
		}
	}
	return sample{}, 0, false
}
