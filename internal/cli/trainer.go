package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"parley/internal/ask/trust"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/auth"
	"parley/internal/run/control"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/internal/serve/trainer"
	"parley/journal"
)

// trainerCmd serves the rows of a run to trainers.
type trainerCmd struct {
	Plan string `arg:"" placeholder:"PLAN" help:"The plan file."`
	Out  string `placeholder:"FILE" help:"The run file. If it exists, the run is resumed. Default: next to the plan, with the same name and the ending .parley."`
	unreachableFlag
	eventFlags
	trustFlags
	reachFlags
	MaxAhead int           `placeholder:"N" help:"Maximum number of groups that are begun and not yet read by a trainer; more begin when they are read. Default: no limit."`
	Addr     string        `default:"127.0.0.1:18889" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`
	Grace    time.Duration `default:"10s" placeholder:"DURATION" help:"How long requests may take after a signal to stop, once the run has stopped. Default: ${default}."`

	auth.Flags
	KeyEnv        string        `group:"clients" placeholder:"NAME" help:"Environment variable with the keys that clients may use, separated by commas. Default: clients need no key."`
	ClientTimeout time.Duration `group:"clients" name:"client-timeout" default:"1m" placeholder:"DURATION" help:"Maximum time for a client to send a request, or to read a row. Default: ${default}."`
}

// Run serves the run until the first signal, which drains it, and ends at once at the second.
func (c *trainerCmd) Run(ctx context.Context, s *State) error {
	keys, err := c.gate(s)
	if err != nil {
		return err
	}
	ctx, g, end := keys.listen(ctx)
	defer end()
	stop, cancel := untilClosed(ctx, g)
	defer cancel()
	return stopError(c.serve(ctx, stop, s, keys))
}

// serve serves until stop is done, and ends at once when ctx is.
func (c *trainerCmd) serve(ctx, stop context.Context, s *State, keys *keyGate) error {
	run, err := c.open(stop, s, keys)
	if err != nil {
		return err
	}
	end, err := c.eventFlags.open(s)
	if err != nil {
		return err
	}
	defer end()
	cfg, err := c.config(stop, s, run)
	if err != nil {
		return exit.AsUsage(err)
	}
	server, err := trainer.New(cfg) //nolint:contextcheck // the position is a few bytes
	if err != nil {
		return exit.AsUsage(err)
	}
	ln, err := c.Listen(ctx, c.Addr, "--key-env", len(cfg.Keys) > 0)
	if err != nil {
		return exit.AsUsage(err)
	}
	if _, err := fmt.Fprintf(s.Stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = ln.Close() // the address is not known: Run ends at once
	}
	return server.Run(ctx, stop, ln)
}

// config returns how to serve the run.
func (c *trainerCmd) config(ctx context.Context, s *State, run *trainedRun) (cfg trainer.Config, err error) {
	switch {
	case c.MaxAhead < 0:
		return cfg, errors.New("--max-ahead must not be negative")
	case c.ClientTimeout <= 0:
		return cfg, fmt.Errorf("--client-timeout %s: want a time above 0, such as 1m", c.ClientTimeout)
	case c.Grace < 0:
		return cfg, errors.New("--grace must not be negative")
	}
	plan := run.plan
	cfg = trainer.Config{
		Kind: plan.Kind, Memory: run.file + "-trainer", ClientTimeout: c.ClientTimeout, Grace: c.Grace, Group: plan.Train.Group, Ahead: c.MaxAhead,
		Plan: func(o trainer.Override) (trainer.Prepared, error) { return run.prepare(ctx, overrides(o)) },
		Open: func() (*runfile.Store, error) {
			store, err := runfile.OpenRead(run.file)
			if err != nil {
				return nil, exit.AsUsage(playError(run.file, err))
			}
			return store, nil
		},
	}
	if n := plan.Train.MaxStaleness; n != nil && *n >= 0 {
		cfg.Staleness = plan.Train.MaxStaleness
	}
	if cfg.Keys, err = auth.KeysFrom(s.Env, "--key-env", c.KeyEnv); err != nil {
		return cfg, err
	}
	if cfg.Access, err = c.Access(c.Addr, "--key-env", len(cfg.Keys) > 0); err != nil {
		return cfg, err
	}
	return cfg, run.setRecorded(ctx, &cfg)
}

// overrides returns a client's changes as overrides of the plan's keys.
func overrides(o trainer.Override) (sets []string) {
	if o.Episodes != nil {
		sets = append(sets, "episodes="+strconv.Itoa(*o.Episodes))
	}
	if o.Seed != nil {
		sets = append(sets, "seed="+strconv.FormatUint(*o.Seed, 10))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		sets = append(sets, "params."+name+"="+string(o.Params[name]))
	}
	return sets
}

// trainedRun is a plan and its run file, which clients start.
type trainedRun struct {
	*trainerCmd
	s    *State
	plan *planfile.Plan
	file string
	keys *trust.Gate
}

// open reads the plan and asks for the keys of the plan and of the run that the file already holds: now and never later, since somebody
// else may start the run.
func (c *trainerCmd) open(ctx context.Context, s *State, keys *keyGate) (*trainedRun, error) {
	run := &trainedRun{trainerCmd: c, s: s, keys: keys.Gate}
	var err error
	if run.plan, err = s.loadPlanFile(ctx, c.Plan, c.sets(), c.reach()); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, exit.AsUsage(err)
	}
	if run.file, err = c.runFile(run.plan, c.Plan, c.Out); err != nil {
		return nil, err
	}
	needs, err := run.needs(ctx)
	if err != nil {
		return nil, exit.AsUsage(playError(run.file, err))
	}
	if err := keys.Check(needs...); err != nil {
		return nil, exit.AsUsage(err)
	}
	keys.Silence()
	return run, nil
}

// needs returns the keys of the plan, and those of the run in the file if it has the same kind.
func (r *trainedRun) needs(ctx context.Context) ([]trust.Need, error) {
	needs, err := app.Needs(r.plan, r.Plan, false)
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

// setRecorded sets the state of a run that is in the file already.
func (r *trainedRun) setRecorded(ctx context.Context, cfg *trainer.Config) error {
	about, err := outlineOf(ctx, r.file)
	switch {
	case err != nil:
		return playError(r.file, err)
	case about.Begun == nil:
		return nil
	case about.Begun.Kind != cfg.Kind.Name:
		return fmt.Errorf("--out: %s is a run of %s, not of %s: name another file", r.file, about.Begun.Kind, cfg.Kind.Name)
	}
	cfg.Begun, cfg.Resume = true, about.Open || about.Last.State != journal.Complete
	if !cfg.Resume {
		cfg.State = trainer.Complete
	}
	return nil
}

// prepare returns what to play when a client starts the run. A run that has begun continues as recorded; overrides must not differ
// from it. They are a client's, so they cannot name files that the plan file does not name.
func (r *trainedRun) prepare(ctx context.Context, overrides []string) (trainer.Prepared, error) {
	about, err := outlineOf(ctx, r.file)
	if err != nil {
		return trainer.Prepared{}, err
	}
	var plan *planfile.Plan
	var p app.Play
	if len(overrides) == 0 && about.Begun != nil {
		plan, err = planfile.FromJSON(about.Begun.Plan, r.s.Kinds, nil)
		p = app.Play{MustExist: true, Sets: r.sets(), Reach: r.recorded(filepath.Dir(r.Plan))}
	} else {
		reach := r.reach()
		reach.Foreign = true
		plan, err = planfile.Load(ctx, r.Plan, r.s.Kinds, append(r.sets(), overrides...), reach)
		p = app.Play{Plan: plan, PlanFile: r.Plan}
	}
	if err != nil {
		return trainer.Prepared{}, err
	}
	p.File, p.Trust, p.Kinds, p.Tool = r.file, r.keys, r.s.Kinds, Version()
	return trainer.Prepared{
		What: fmt.Sprintf("%d %d %s", plan.Seed, plan.Episodes, plan.ParamsJSON),
		Play: func(ctx, drain context.Context, begun func(trainer.Control), ended func()) (trainer.Ending, error) {
			return r.s.playTrained(ctx, drain, p, begun, ended)
		},
	}, nil
}

// playTrained plays p, as trainer.PlayFunc says.
func (s *State) playTrained(ctx, drain context.Context, p app.Play, begun func(trainer.Control), ended func()) (trainer.Ending, error) {
	tell, log := s.onEvent(true), app.LogTo(ctx, s.log)
	p.Events = func(e app.Event) {
		log(e)
		switch o := e.Opened; {
		case o != nil && o.Steering == nil:
			begun(nil)
		case o != nil:
			begun(runControl{o.Steering, o.App})
		case e.Ended != nil:
			ended()
		}
		tell(e.Ask)
	}
	sum, err := p.Run(ctx, drain)
	if sum == nil {
		return trainer.Ending{}, playError(p.File, err)
	}
	why := sum.Reason.String()
	state := string(sum.State)
	if why != "" {
		state += " (" + why + ")"
	}
	fmt.Fprintf(s.Stderr, "parley: %s: %s: %s of %s episodes played, %s failed\n", p.File, state,
		terminal.Number(sum.Episodes.Complete), terminal.Number(sum.Episodes.Total), terminal.Number(sum.Episodes.Failed))
	return trainer.Ending{State: string(sum.State), Reason: why}, err
}

// runControl lets a trainer change a run.
type runControl struct {
	*control.Steering
	app *app.App
}

// Past says which versions of the weights there are.
func (c runControl) Past(versions []int) { c.app.SetPast(versions) }

func (c runControl) Pause(ctx context.Context, by string, calls trainer.InFlight) (err error) {
	if calls == trainer.CutCalls {
		err = c.Cut(by)
	} else {
		_, err = c.Do(journal.SteerPause, by, nil)
	}
	if err != nil || calls == trainer.HoldCalls {
		return err
	}
	return c.Quiet(ctx)
}

func (c runControl) Resume(by string) error {
	_, err := c.Do(journal.SteerResume, by, nil)
	return err
}
