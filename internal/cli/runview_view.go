// Part runview shows a run while it is played, and prints its summary at the end.
//
// A View is safe for use by several goroutines.
//
// It does not play runs: package app does.

package cli

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/cli/app"
	"parley/internal/cli/terminal"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/growth"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// runView shows a run while it is played.
type runView struct {
	Out *terminal.Stream
	// Verbose prints a line for each episode that ends.
	Verbose bool

	mu       sync.Mutex
	Stats    func() dispatch.Snapshot
	waiting  func() string                       // what external thing the run waits for
	Calls    func(now time.Time) []dispatch.Wait // what calls wait for; hostile
	batches  func() batch.Progress               // nil if the run is not in waves
	steering *control.Steering                   // nil if nothing is left to play
	budget   llm.Money                           // of a run without steering
	spent    llm.Money                           // before this process
	episodes int                                 // planned so far
	ended    int
	failed   map[llm.Kind]int
	lost     int             // episodes that ended as failures
	playing  map[int]*moment // episodes, by number
	left     terminal.TimeLeft
	began    time.Time
	last     time.Time
	before   dispatch.ModelStats
	limits   func() []dispatch.Limit
	past     []sample     // of the last States, the oldest first
	ends     costs        // of episodes that this process played from their beginning
	resumed  map[int]bool // episodes that began before this process

	// The kind's own status line; nil if it has none.
	status world.Status
	staged *journal.Staged // the current stage
	stages int             // begun by this process
	files  bool            // the kind can export files

	// Values for the commands that PrintSummary prints.
	Trust []string // values of --trust
	Again string   // the command that plays the plan into another file
}

// Begin initializes the view with the state of the opened run.
func (v *runView) Begin(o app.Opened) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Stats, v.steering, v.budget, v.waiting, v.Calls, v.limits = o.App.Stats, o.Steering, o.Plan.Budget, o.Waiting, o.App.Waits, o.App.Limits
	if o.Plan.Pace == "wave" {
		v.batches = o.App.Batches
	}
	v.spent = o.Head.Spent.Plus(o.Head.Risked)
	v.ended, v.lost = o.Head.Ended.Len(), o.Head.Ended.Failed()
	v.playing, v.resumed = map[int]*moment{}, map[int]bool{}
	for n := range o.Head.Playing {
		v.resumed[n] = true
	}
	v.failed = map[llm.Kind]int{}
	v.began = time.Now()
	v.last = v.began
	_, v.files = world.As[world.FileMaker](o.Plan.Kind)
	if v.status = o.Plan.Kind.Status(o.Plan.Params); v.status == nil {
		return
	}
	if err := o.Past(v.status.Add); err != nil {
		v.status = nil // the run will not get far either, and says why
	}
}

// Greet prints the state from which a run is resumed.
func (v *runView) Greet(o app.Opened) {
	if o.Seats != nil {
		fmt.Fprintf(v.Out, "parley: people take part in this run: `parley sit %s` lists their seats\n", terminal.ShellWord(o.File))
	}
	if o.Complete {
		fmt.Fprintf(v.Out, "parley: %s is complete: nothing is left to play\n", o.File)
		return
	}
	if o.Grown != nil {
		fmt.Fprintln(v.Out, "parley: "+grownText(o.Grown))
		return
	}
	if b := o.Head.Begun; b != nil && b.Fork != nil && o.Head.Ended.Len() == 0 && !o.Head.Cut {
		fmt.Fprintf(v.Out, "parley: continuing from turn %d of episode %d of %s\n", b.Fork.Turn, b.Fork.Episode, b.Fork.File)
		return
	}
	if o.Head.Begun != nil && (o.Head.Calls > 0 || o.Head.Ended.Len() > 0) {
		fmt.Fprintf(v.Out, "parley: resuming %s: %s ended before\n", o.File, terminal.Several(v.ended, "episode", "episodes"))
		if o.Head.Cut && o.Head.Lost > 0 {
			fmt.Fprintf(v.Out, "parley: it was cut off: %s without a recorded reply, whether sent or not, will be asked\n", terminal.Several(o.Head.Lost, "call", "calls"))
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

// See processes an event of the engine.
func (v *runView) See(e engine.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case e.Staged != nil:
		v.stages++
		v.staged, v.episodes = e.Staged, e.Staged.First+e.Staged.Specs.Len()
	case e.Noted != nil:
		if m := v.moment(e.Noted.Episode); len(v.playing) <= maxInside { // otherwise nobody sees it
			m.noted(e.Noted)
		}
	case e.Ended != nil:
		v.ended++
		if e.Ended.Outcome.Failed != "" {
			v.lost++
		}
		v.done(e.Ended)
		v.left.End(e.Ended.Episode)
		v.tell(e.Ended)
	case e.Replied != nil:
		v.left.Replied(e.Replied.Episode, time.Since(v.began))
		v.moment(e.Replied.Episode).replied(e.Replied)
		if e.Replied.Error != nil {
			v.failed[e.Replied.Error.Kind]++
		}
	case e.Closing > 0:
		fmt.Fprintf(v.Out, "parley: %s to the end, since its external state would be lost; no other episode begins\n",
			terminal.Several(e.Closing, "episode is played", "episodes are played"))
	}
}

// Rests prints that one of a model's servers failed or is back.
func (v *runView) Rests(r replica.Rest) {
	if r.Why == nil {
		fmt.Fprintf(v.Out, "parley: the server %s is back\n", r.Name)
		return
	}
	others := ""
	if r.Others > 0 {
		others = ", and others take its calls"
	}
	fmt.Fprintf(v.Out, "parley: the server %s rests%s: %s\n", r.Name, others, terminal.Cut(terminal.OneLine(r.Why.Error()), 300))
}

// tell passes an episode that ended to the kind's status.
func (v *runView) tell(e *journal.Ended) {
	if v.status == nil || v.staged == nil {
		return
	}
	if i := e.Episode - v.staged.First; i >= 0 && i < v.staged.Specs.Len() {
		v.status.Add(world.Played{Episode: e.Episode, Spec: v.staged.Specs.At(i), Outcome: e.Outcome})
	}
}

// Says returns the kind's current status.
func (v *runView) Says() []string {
	if v.status == nil {
		return nil
	}
	return v.status.Line()
}

// Show shows the progress of the run until end is called.
func (v *runView) Show() (end func()) { return terminal.ShowProgress(v.Out, v.Line) }

// Line describes the current state of the run.
func (v *runView) Line(now time.Time) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.Stats()
	steered, budget := v.steered()
	trouble, money := terminal.Reasons(v.Calls, now)
	parts := append(trouble, v.Says()...)
	parts = append(parts, v.inside()...)
	if steered != "" {
		parts = append([]string{steered}, parts...)
	}
	if why := v.waits(); why != "" {
		parts = append(parts, "waiting for "+why)
	}
	parts = append(parts, fmt.Sprintf("%s of %s episodes", terminal.Number(v.ended), terminal.Number(v.episodes)))
	if left := v.timeLeft(now); left != "" {
		parts = append(parts, left)
	}
	if v.batches != nil {
		parts = append(parts, batched(v.batches(), now)...)
	}
	parts = append(append(parts, terminal.CostText(v.spent.Plus(st.Cost).Plus(st.Uncertain), budget, st)), money...)
	if s := kinds(v.failed); s != "" {
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

// steered says whether the run is paused or draining, and returns its budget.
func (v *runView) steered() (text string, budget llm.Money) {
	if v.steering == nil {
		return "", v.budget
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
	return terminal.Safe(terminal.OneLine(strings.Join(all, "; "))), s.Budget
}

// waits returns what external thing the run waits for.
func (v *runView) waits() string {
	if v.waiting == nil {
		return ""
	}
	return terminal.Quoted(v.waiting())
}

// batched describes the calls in batch APIs: "wave 3, 2 batches out: 120 of 800 answered, the oldest for 5m".
// Anthropic reports the number of answers only at the end.
func batched(p batch.Progress, now time.Time) []string {
	if p.Wave == 0 {
		return nil
	}
	parts := []string{"wave " + terminal.Number(p.Wave)}
	if len(p.Open) == 0 {
		return parts
	}
	lines, answered, oldest, trouble := 0, 0, now, ""
	for _, b := range p.Open {
		lines += b.Lines
		answered += b.Answered + b.Failed
		if b.Began.Before(oldest) {
			oldest = b.Began
		}
		if b.Trouble != "" {
			trouble = b.Provider + ": " + b.Trouble
		}
	}
	out := "1 batch out"
	if len(p.Open) > 1 {
		out = terminal.Number(len(p.Open)) + " batches out"
	}
	parts = append(parts, fmt.Sprintf("%s: %s of %s answered, for %s", out, terminal.Number(answered), terminal.Number(lines), now.Sub(oldest).Round(time.Second)))
	if trouble != "" {
		parts = append(parts, trouble)
	}
	return parts
}

// timeLeft returns the estimated time for the known episodes, such as "2m to 5m left", if there is an estimate.
// A kind that adds episodes during the run may add more.
func (v *runView) timeLeft(now time.Time) string {
	low, high, ok := v.left.Interval(v.episodes-v.ended, now.Sub(v.began))
	if !ok {
		return ""
	}
	text := terminal.Roughly(low) + " to " + terminal.Roughly(high) + " left"
	if v.stages > 1 {
		text += " in this stage"
	}
	return text
}

// kinds formats failures as "3 timeout, 1 server".
func kinds(n map[llm.Kind]int) string {
	parts := make([]string, 0, len(n))
	for k, c := range n {
		parts = append(parts, terminal.Number(c)+" "+strings.ReplaceAll(string(k), "_", " "))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}
