package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/cluster"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
)

// runCmd runs a plan.
type runCmd struct {
	Plan    string  `arg:"" help:"The plan file, or the run file of a run to resume." placeholder:"PLAN"`
	Out     string  `placeholder:"FILE" help:"The run file. If it exists, the run is resumed. Default: next to the plan, with the same name and the ending .parley."`
	Seed    *uint64 `placeholder:"N" help:"Use this seed instead of the plan's."`
	Rebuild string  `group:"cluster" placeholder:"RUN" help:"Rebuild a lost run file from what --retain kept in the hub, then resume it. parley cluster shows the names of runs."`
	playFlags
}

// playFlags are the flags of run and score: how to play, not what.
type playFlags struct {
	Set         []string `sep:"none" placeholder:"KEY=VALUE" help:"Set a key of the plan, such as agents.bold.temperature=0.2. Repeatable."`
	Concurrency *int     `placeholder:"N" help:"${limits_concurrency}"`
	unreachableFlag
	Pace        string   `placeholder:"PACE" help:"${pace}"`
	Budget      *float64 `placeholder:"USD" help:"Maximum cost of the run, including earlier processes of the same run."`
	ChangedCode bool     `help:"Resume a run although its code, such as a world in Python, has changed since. Episodes that ended stay as they are; those that began must still ask the same."`
	Failed      bool     `help:"Play failed episodes again too, with the code as it is now. What they ask as before is answered from the run file, at no cost; failed calls, and whatever is asked for the first time, are asked."`
	View        bool     `help:"Show the run as web pages while it is played; the address is printed."`
	Detach      bool     `help:"Play in the background: print a JSON line with the file, the id of the process and its log, when it plays."`
	Quiet       bool     `help:"Print no progress and no summary."`
	JSON        bool     `help:"Print the summary as one JSON object."`
	Verbose     bool     `help:"Print a line for each episode that ends, each wave, and each decision or step that a world reports."`
	eventFlags
	metricsFlags
	clusterFlags
	trustFlags
	reachFlags
}

// check refuses flags that exclude each other.
func (f *playFlags) check() error {
	if f.Detach && f.View {
		return exit.Usagef("--detach and --view exclude each other: the address of the pages has a key, and would be written to the log. Use --detach, then parley view FILE")
	}
	return f.clusterFlags.check()
}

// sets returns the flags as overrides of the plan's keys.
func (f *playFlags) sets() []string {
	sets := append(f.Set, f.unreachableFlag.sets()...)
	if f.Concurrency != nil {
		sets = append(sets, "limits.concurrency="+strconv.Itoa(*f.Concurrency))
	}
	if f.Pace != "" {
		sets = append(sets, "pace="+f.Pace)
	}
	if f.Budget != nil {
		sets = append(sets, "budget="+strconv.FormatFloat(*f.Budget, 'f', -1, 64))
	}
	return sets
}

// unreachableFlag is a flag of commands that play a plan.
type unreachableFlag struct {
	Unreachable *time.Duration `placeholder:"DURATION" help:"${retry_unreachable} Default: the plan's, or ${retry_unreachable_default}."`
}

// sets returns the flag as an override of the plan's key.
func (f *unreachableFlag) sets() []string {
	if f.Unreachable == nil {
		return nil
	}
	return []string{"retry.unreachable=" + f.Unreachable.String()}
}

// Run runs the plan, or resumes the run.
func (c *runCmd) Run(ctx context.Context, s *State) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Rebuild != "" || isRunFile(c.Plan) {
		return c.resume(ctx, s)
	}
	sets := c.sets()
	if c.Seed != nil {
		sets = append(sets, "seed="+strconv.FormatUint(*c.Seed, 10))
	}
	if err := s.useBrought(ctx); err != nil {
		return err
	}
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	ctx, g, end := keys.listen(ctx)
	defer end()
	plan, err := c.load(ctx, s, g, sets)
	if err != nil {
		return err
	}
	file, err := c.runFile(plan, c.Plan, c.Out)
	if err != nil {
		return err
	}
	if c.Detach && !isDetached(s) {
		return detach(s, g, file)
	}
	return c.playUntil(ctx, s, keys, g, app.Play{Plan: plan, PlanFile: c.Plan, File: file})
}

// load reads the plan and its files until the gate closes. After that, it plays what it has read and stops at
// once, so no signal is lost.
func (c *runCmd) load(ctx context.Context, s *State, g *exit.Gate, sets []string) (*planfile.Plan, error) {
	ctx, end := untilClosed(ctx, g)
	defer end()
	plan, err := s.loadPlanFile(ctx, c.Plan, sets, c.reach())
	switch {
	case err == nil:
		return plan, nil
	case g.Closed():
		return nil, exit.Silent(exit.Interrupted)
	default:
		return nil, exit.AsUsage(err)
	}
}

// resume resumes the run.
func (c *runCmd) resume(ctx context.Context, s *State) error {
	if c.Out != "" || c.Seed != nil {
		return exit.Usagef("%s is a run file: --out and --seed are for plans", c.Plan)
	}
	if c.Rebuild != "" {
		if err := c.rebuild(ctx, s, c.Rebuild, c.Plan); err != nil {
			return err
		}
	}
	if c.Detach && !isDetached(s) {
		g := exit.NewGate()
		_, end := listen(ctx, s, g)
		defer end()
		return detach(s, g, c.Plan)
	}
	if err := s.useBrought(ctx); err != nil {
		return err
	}
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	return c.play(ctx, s, keys, app.Play{File: c.Plan, MustExist: true, Sets: c.sets(), Reach: c.recorded()})
}

// play plays p until a signal.
func (f *playFlags) play(ctx context.Context, s *State, keys *keyGate, p app.Play) error {
	ctx, g, end := keys.listen(ctx)
	defer end()
	return f.playUntil(ctx, s, keys, g, p)
}

// playUntil plays p until the gate closes, here or with workers.
func (f *playFlags) playUntil(ctx context.Context, s *State, keys *keyGate, g *exit.Gate, p app.Play) error {
	if err := refuseGateway(ctx, p.File); err != nil {
		return err
	}
	if err := s.recordedCode(ctx, p); err != nil {
		return err
	}
	end, err := f.eventFlags.open(s)
	if err != nil {
		return err
	}
	defer end()
	p.Supervisor = s.Supervisor
	p.Kinds, p.Trust, p.Code, p.ChangedCode, p.Failed = s.Kinds, keys.Gate, s.code(), f.ChangedCode, f.Failed
	joint, err := f.openCluster(ctx, s, g, &p)
	if err != nil {
		return err
	}
	defer joint.close()
	return f.playAndShow(ctx, s, g, p)
}

// playAndShow plays p, shows the progress, and prints the summary.
func (f *playFlags) playAndShow(ctx context.Context, s *State, g *exit.Gate, p app.Play) error {
	drain, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(context.Canceled)
	view := &runView{out: s.err, verbose: f.Verbose, trusted: f.Trust, again: playAgain(s.Args, p.PlanFile, p.File), retry: playFailed(s.Args, p.File)}
	g.OnClose(func() { stop(view.signalled(time.Now())) })

	w, err := f.openMonitor(ctx, s)
	if err != nil {
		return err
	}
	defer w.close(ctx, s)
	w.workers, _ = p.Remote.(*cluster.Coordinator)
	spans := w.exporter.StartTrace("run", filepath.Base(p.File))
	done, hide, unsteer := func() {}, func() {}, func() {}
	p.Tool = Version()
	opened := func(o *app.Opened) {
		view.begin(o)
		hide = control.ShowLive(p.File, view.liveState)
		unsteer = serveControl(ctx, s, o, g, stop)
		w.begin(ctx, s, o.App, view.monitor)
		if f.View {
			hide = inTurn(hide, serveView(ctx, s, p.File))
		}
		if !f.Quiet {
			view.printStart(o)
			done = view.showProgress()
		}
		announceDetached(s, p.File)
	}
	tell, log := s.onEvent(!f.Quiet), app.LogTo(ctx, s.log)
	p.Events = func(e app.Event) {
		log(e)
		switch {
		case e.Opened != nil:
			opened(e.Opened)
		case e.Idle != nil:
			f.tellIdle(s, e.Idle)
		}
		view.onEvent(e.Event)
		traceEvent(spans, e.Event)
		tell(e.Ask)
	}
	defer func() { unsteer() }() // last: who waits for the run finds its summary
	sum, err := p.Run(ctx, drain)
	done()
	hide()
	if sum == nil {
		return playError(p.File, err)
	}
	spans.End(string(sum.State))
	return f.conclude(s, view, p.File, sum, err)
}

// conclude prints the summary of a run that ended with err, and returns the error of the command.
func (f *playFlags) conclude(s *State, view *runView, file string, sum *app.Summary, err error) error {
	if f.JSON {
		b, merr := terminal.Marshal(sum)
		if merr != nil {
			return fmt.Errorf("run: %w", merr)
		}
		fmt.Fprintln(s.Stdout, string(b))
	} else if !f.Quiet {
		p := terminal.NewPage(s.Stdout)
		view.printSummary(p, sum, !errors.Is(err, engine.ErrDiverged) && !errors.Is(err, runfile.ErrGone))
		_ = p.Flush() // as fmt.Fprintln: the exit code says how the run ended, even if nobody reads this
	}
	if err != nil {
		printed := !f.JSON && !f.Quiet && err.Error() == sum.Reason.String()
		err = playError(file, err)
		if printed {
			return exit.Silent(exit.CodeOf(err)) // the summary already shows it
		}
		return err
	}
	return exit.Silent(playCode(sum.State, sum.Reason, sum.Episodes.Failed))
}

// inTurn returns a function that calls all of ends.
func inTurn(ends ...func()) func() {
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// playCode returns the exit code of a run that ended so, with failed episodes.
func playCode(state journal.State, why journal.Reason, failed int) int {
	switch {
	case why.Kind == journal.ByBudget:
		return exit.Budget
	case why.Kind == journal.ByUser:
		return exit.Interrupted
	case state != journal.Complete, failed > 0:
		return exit.Failed
	default:
		return exit.OK
	}
}

// playFailed returns the command that plays the failed episodes of a run again.
func playFailed(args []string, file string) string {
	const flag = "--failed"
	if len(args) == 0 || !slices.Contains([]string{"run", "score"}, args[0]) {
		args = []string{"run", file}
	}
	words := slices.DeleteFunc(slices.Clone(args), func(word string) bool { return word == flag })
	return commandOf(append(words, flag))
}

// playAgain returns the command line args, changed to play the plan into a file other than file. If args do not
// name the plan, as those of resume, the word PLAN stands for it. Scoring names a file by --name.
func playAgain(args []string, plan, file string) string {
	ext := filepath.Ext(file)
	flag, value := "--out", strings.TrimSuffix(file, ext)+"-again"+ext
	if len(args) > 0 && args[0] == "score" {
		flag, value = "--name", strings.TrimSuffix(filepath.Base(file), ext)+"-again"
	}
	words := []string{"run", "PLAN"}
	if plan != "" || flag == "--name" {
		words = nil
		for i := 0; i < len(args); i++ {
			switch {
			case args[i] == flag:
				i++
			case !strings.HasPrefix(args[i], flag+"="):
				words = append(words, args[i])
			}
		}
	}
	return commandOf(append(words, flag, value))
}
