package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/run/control"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world/program"
)

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
func (r *programRun) Plan() program.PlanSummary { return summaryOf(r.plan) }

func summaryOf(plan *planfile.Plan) program.PlanSummary {
	return program.PlanSummary{Kind: plan.Kind.Name, Seed: plan.Seed, Episodes: plan.Episodes, Params: plan.ParamsJSON}
}

// needs returns the keys of the plan, and those of the run in the file if it has the same kind.
func (r *programRun) needs(ctx context.Context) ([]trust.Need, error) {
	needs := app.Needs(r.plan, r.flags.Plan, false)
	about, err := outlineOf(ctx, r.file)
	if err != nil || about.Begun == nil || about.Begun.Kind != r.plan.Kind.Name {
		return needs, err
	}
	was, err := planfile.FromJSON(about.Begun.Plan, r.s.Kinds, nil)
	if err != nil {
		return nil, err
	}
	return append(needs, app.Needs(was, r.file, true)...), nil
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
	p.File, p.Trust, p.Kinds, p.Tool, p.Notices, p.Outages, p.Levels = r.file, r.keys, r.s.Kinds, Version(), r.s.notice, r.s.outage, r.s.levels()
	return program.Prepared{PlanSummary: summaryOf(plan), Play: func(ctx, drain context.Context, begun func(program.Control), ended func()) (program.Ending, error) {
		p.Opened = func(o app.Opened) {
			if o.Steering == nil {
				begun(nil)
				return
			}
			begun(controlled{o.Steering})
		}
		p.Watch = func(e engine.Event) {
			if e.Ended != nil {
				ended()
			}
		}
		sum, err := p.Run(ctx, drain)
		if sum == nil {
			return program.Ending{}, playError(p.File, err)
		}
		fmt.Fprintf(r.s.Stderr, "parley: %s: %s%s: %s of %s episodes played, %s failed\n", p.File, sum.State, dash(sum.Reason.String()),
			terminal.Number(sum.Episodes.Complete), terminal.Number(sum.Episodes.Total), terminal.Number(sum.Episodes.Failed))
		return program.Ending{State: string(sum.State), Reason: sum.Reason.String()}, err
	}}
}

// controlled lets a command of a kind change a run.
type controlled struct{ *control.Steering }

func (c controlled) Pause(ctx context.Context, by string, calls program.InFlight) (err error) {
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

func (c controlled) Resume(by string) error {
	_, err := c.Do(journal.SteerResume, by, nil)
	return err
}

// dash puts a colon before a reason, if there is one.
func dash(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// outlineOf returns the outline of a run file, and the zero Outline if the file does not exist.
func outlineOf(ctx context.Context, file string) (about runfile.Outline, err error) {
	store, err := runfile.OpenRead(file)
	if errors.Is(err, fs.ErrNotExist) {
		return about, nil
	}
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Outline(ctx)
}
