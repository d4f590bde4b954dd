package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/alecthomas/kong"

	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/run/command"
	"parley/internal/run/control"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/part"
	"parley/world/program"
)

// kindCommands returns the commands of the kinds. If one command of a kind is invalid, all commands of that kind are
// left out and standard error says why.
func kindCommands(s *State) []kong.Option {
	by := command.Own()
	var all []kong.Option
	s.verbs = map[program.Verb]world.Kind{}
	for _, k := range s.Kinds {
		list, err := checkedCommands(k, by)
		if err != nil {
			s.tell(err.Error() + ": its commands are left out")
			continue
		}
		for _, c := range list {
			by[c.Name] = "the kind " + k.Name
			s.verbs[c.Verb] = k
			all = append(all, kong.DynamicCommand(c.Name, c.Doc, "kinds", c.Verb))
		}
	}
	return all
}

// checkedCommands returns the checked commands of a kind. by maps each name in use to its owner.
func checkedCommands(k world.Kind, by map[string]string) (list []program.Command, err error) {
	failed := results.CallKind(k, "Commands", func() error { list, err = command.Of(k, by); return nil })
	return list, cmp.Or(failed, err)
}

// checkKinds refuses kinds that a plan file cannot name, and kinds with methods that nothing calls.
func checkKinds(kinds []world.Kind) error {
	seen := map[string]bool{}
	for i, k := range kinds {
		if err := part.Check(k); err != nil {
			return fmt.Errorf("kind %d of %d: %w", i+1, len(kinds), err)
		}
		if seen[k.Name] {
			return fmt.Errorf("two kinds are called %s: give one of them another name", k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}

// ownVerb is a command of parley itself that runs as one of a kind does.
type ownVerb struct {
	run func(context.Context, *program.Program) error
}

// Run implements program.Verb.
func (v *ownVerb) Run(ctx context.Context, p *program.Program) error { return v.run(ctx, p) }

// runVerb runs a command of a kind.
func runVerb(ctx context.Context, s *State, v program.Verb) error {
	g := exit.NewGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	g.OnClose(func() { cancel(exit.ErrStopped) })
	runs := &programRuns{s: s, stop: g.Shut}
	p := &program.Program{
		Env: s.Env, Stdin: &stoppableInput{r: s.Stdin, stop: stop.Done()}, Stdout: s.Stdout, Stderr: s.Stderr,
		Width: func() int { return widthOf(s.Stdout) }, Stop: stop, Write: writeOutput, Runs: runs,
	}
	var err error
	if failed := results.CallKind(s.verbs[v], "the command", func() error { err = v.Run(ctx, p); return nil }); failed != nil {
		err = failed
	}
	err = pipeEnd(err)
	switch {
	case errors.Is(err, exit.ErrStopped), errors.Is(err, exit.ErrAborted):
		return exit.Silent(exit.Interrupted)
	case err == nil, errors.Is(err, program.ErrReported):
		if lost := reportLosses(s, runs.opened()...); lost != nil || err == nil {
			return lost
		}
		return exit.Silent(exit.Failed)
	}
	if _, ok := errors.AsType[program.UsageError](err); ok || app.IsUsage(err) {
		return exit.AsUsage(err)
	}
	return err
}

// widthOf returns the width of the terminal behind a standard stream.
func widthOf(w io.Writer) int {
	if s, ok := w.(*terminal.Stream); ok {
		return s.Width()
	}
	return 0
}

// writeOutput writes an output file of a command.
func writeOutput(o program.Output, write func(io.Writer) error) error {
	out := output.File{Flag: o.Flag, Path: o.Path, Force: o.Force, Inputs: o.Inputs}
	if _, err := out.Check(); err != nil {
		return err
	}
	return out.Write(write)
}

// stoppableInput is a standard input that ends when the user asks the command to finish. It reads nothing before
// the first Read.
type stoppableInput struct {
	r    io.Reader
	stop <-chan struct{}
	once sync.Once
	in   *exit.Reader
}

// Read implements io.Reader.
func (i *stoppableInput) Read(b []byte) (int, error) {
	i.once.Do(func() { i.in = exit.NewReader(i.r, i.stop) })
	n, err := i.in.Read(b)
	if errors.Is(err, exit.ErrStopped) {
		err = io.EOF
	}
	return n, err
}

// programRuns plays plans and reads run files for the commands of kinds.
type programRuns struct {
	s    *State
	stop <-chan struct{} // closed when nothing new may begin

	mu    sync.Mutex
	files []*runfile.Store // opened for reading
}

var _ journal.Opener = (*programRuns)(nil)

// OpenRun opens a run file for reading.
func (r *programRuns) OpenRun(name string) (journal.File, error) {
	store, err := runfile.OpenRead(name)
	if err != nil {
		return nil, exit.AsUsage(playError(name, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = append(r.files, store)
	return store, nil
}

// opened returns the files that were opened.
func (r *programRuns) opened() []*runfile.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.files)
}

// Open reads a plan and asks for the keys of the plan and of the run that the file already holds.
func (r *programRuns) Open(ctx context.Context, flags program.PlayFlags) (program.Run, error) {
	run := &programRun{s: r.s, flags: flags, reachFlags: reachFlags{flags.ReachFlags}}
	gate, err := (&trustFlags{flags.TrustFlags}).gate(r.s)
	if err != nil {
		return nil, err
	}
	gate.stop, run.keys = r.stop, gate.Gate
	if run.plan, err = r.s.loadPlanFile(ctx, flags.Plan, run.sets(), run.reach()); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, exit.AsUsage(err)
	}
	if run.file, err = run.runFile(run.plan, flags.Plan, flags.Out); err != nil {
		return nil, err
	}
	needs, err := run.needs(ctx)
	if err != nil {
		return nil, exit.AsUsage(playError(run.file, err))
	}
	if err := gate.Check(needs...); err != nil {
		return nil, exit.AsUsage(err)
	}
	gate.Silence()
	return run, nil
}

// programRun is a plan and its run file.
type programRun struct {
	s     *State
	flags program.PlayFlags
	reachFlags
	plan *planfile.Plan
	file string
	keys *trust.Gate
}

// File returns the path of the run file.
func (r *programRun) File() string { return r.file }

// Plan summarizes the plan file.
func (r *programRun) Plan() program.PlanSummary { return planSummary(r.plan) }

func planSummary(plan *planfile.Plan) program.PlanSummary {
	return program.PlanSummary{Kind: plan.Kind.Name, Seed: plan.Seed, Episodes: plan.Episodes, Params: plan.ParamsJSON}
}

// needs returns the keys of the plan, and those of the run in the file if it has the same kind.
func (r *programRun) needs(ctx context.Context) ([]trust.Need, error) {
	needs, err := app.Needs(r.plan, r.flags.Plan, false)
	if err != nil {
		return nil, err
	}
	about, err := outlineOf(ctx, r.file)
	if err != nil || about.Begun == nil || about.Begun.Kind != r.plan.Kind.Name {
		return needs, err
	}
	was, err := planfile.FromJSON(about.Begun.Plan, r.s.Kinds, nil)
	if err != nil {
		return nil, err
	}
	recorded, err := app.Needs(was, r.file, true)
	return append(needs, recorded...), err
}

// sets returns the flags as overrides of the plan's keys.
func (r *programRun) sets() []string {
	if r.flags.Unreachable == nil {
		return nil
	}
	return []string{unreachableSet(*r.flags.Unreachable)}
}

// Recorded summarizes the run file.
func (r *programRun) Recorded(ctx context.Context) (out program.RecordedRun, err error) {
	about, err := outlineOf(ctx, r.file)
	if err != nil {
		return out, exit.AsUsage(playError(r.file, err))
	}
	if about.Begun != nil {
		out.Kind, out.Complete = about.Begun.Kind, !about.Open && about.Last.State == journal.Complete
	}
	return out, nil
}

// Prepare prepares the plan, or the run that the file recorded.
func (r *programRun) Prepare(ctx context.Context, overrides ...string) (program.Prepared, error) {
	about, err := outlineOf(ctx, r.file)
	if err != nil {
		return program.Prepared{}, err
	}
	if len(overrides) == 0 && about.Begun != nil {
		plan, err := planfile.FromJSON(about.Begun.Plan, r.s.Kinds, nil)
		if err != nil {
			return program.Prepared{}, err
		}
		return r.prepared(plan, app.Play{MustExist: true, Sets: r.sets(), Reach: r.recorded(filepath.Dir(r.flags.Plan))}), nil
	}
	reach := r.reach()
	reach.Foreign = true
	plan, err := planfile.Load(ctx, r.flags.Plan, r.s.Kinds, append(r.sets(), overrides...), reach)
	if err != nil {
		return program.Prepared{}, err
	}
	return r.prepared(plan, app.Play{Plan: plan, PlanFile: r.flags.Plan}), nil
}

// prepared returns a plan that is ready to be played with the settings of p.
func (r *programRun) prepared(plan *planfile.Plan, p app.Play) program.Prepared {
	p.File, p.Trust, p.Kinds, p.Tool = r.file, r.keys, r.s.Kinds, Version()
	return program.Prepared{PlanSummary: planSummary(plan), Play: func(ctx, drain context.Context, begun func(program.Control), ended func()) (program.Ending, error) {
		p.Opened = func(o app.Opened) {
			if o.Steering == nil {
				begun(nil)
				return
			}
			begun(runControl{o.Steering, o.App})
		}
		tell := r.s.onEvent(true)
		p.Events = func(e app.Event) {
			if e.Ended != nil {
				ended()
			}
			tell(e.Ask)
		}
		sum, err := p.Run(ctx, drain)
		if sum == nil {
			return program.Ending{}, playError(p.File, err)
		}
		fmt.Fprintf(r.s.Stderr, "parley: %s: %s%s: %s of %s episodes played, %s failed\n", p.File, sum.State, inParentheses(sum.Reason.String()),
			terminal.Number(sum.Episodes.Complete), terminal.Number(sum.Episodes.Total), terminal.Number(sum.Episodes.Failed))
		return program.Ending{State: string(sum.State), Reason: sum.Reason.String()}, err
	}}
}

// runControl lets a command of a kind change a run.
type runControl struct {
	*control.Steering
	app *app.App
}

// Past says which versions of the weights there are.
func (c runControl) Past(versions []int) { c.app.SetPast(versions) }

func (c runControl) Pause(ctx context.Context, by string, calls program.InFlight) (err error) {
	if calls == program.CutCalls {
		err = c.Cut(by)
	} else {
		_, err = c.Do(journal.SteerPause, by, nil)
	}
	if err != nil || calls == program.HoldCalls {
		return err
	}
	return c.Quiet(ctx)
}

func (c runControl) Resume(by string) error {
	_, err := c.Do(journal.SteerResume, by, nil)
	return err
}

// inParentheses puts a reason, if there is one, in parentheses after a space.
func inParentheses(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}
