package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/serve/trainer"
	"parley/journal"
	"parley/world/program"
)

// trainerCmd serves the rows of a run to trainers.
type trainerCmd struct {
	program.PlayFlags
	MaxAhead int           `placeholder:"N" help:"Maximum number of groups that are begun and not yet read by a trainer; more begin when they are read. Default: no limit."`
	Addr     string        `default:"127.0.0.1:18889" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`
	Grace    time.Duration `default:"10s" placeholder:"DURATION" help:"How long requests may take after a signal to stop, once the run has stopped. Default: ${default}."`

	auth.Flags
	KeyEnv        string        `group:"clients" placeholder:"NAME" help:"Environment variable with the keys that clients may use, separated by commas. Default: clients need no key."`
	ClientTimeout time.Duration `group:"clients" name:"client-timeout" default:"1m" placeholder:"DURATION" help:"Maximum time for a client to send a request, or to read a row. Default: ${default}."`
}

// Run serves the run.
func (c *trainerCmd) Run(ctx context.Context, s *State) error {
	return runVerb(ctx, s, &ownVerb{c.serve})
}

// serve serves until the first signal, which drains the run, and ends at once at the second.
func (c *trainerCmd) serve(ctx context.Context, p *program.Program) error {
	opened, err := p.Runs.Open(p.Stop, c.PlayFlags) //nolint:contextcheck // Stop ends with ctx, or before
	if err != nil {
		return err
	}
	run, ok := opened.(*programRun)
	if !ok {
		return fmt.Errorf("%s: plans cannot be played here", c.Plan)
	}
	cfg, err := c.config(p, run)
	if err != nil {
		return err
	}
	server, err := trainer.New(cfg) //nolint:contextcheck // the position is a few bytes
	if err != nil {
		return program.UsageError{Err: err}
	}
	ln, err := c.Listen(ctx, c.Addr, "--key-env", len(cfg.Keys) > 0)
	if err != nil {
		return program.UsageError{Err: err}
	}
	if _, err := fmt.Fprintf(p.Stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = ln.Close() // the address is not known: Run ends at once
	}
	return server.Run(ctx, p.Stop, ln)
}

// config returns how to serve the run.
func (c *trainerCmd) config(p *program.Program, run *programRun) (cfg trainer.Config, err error) {
	switch {
	case c.MaxAhead < 0:
		return cfg, program.UsageError{Err: errors.New("--max-ahead must not be negative")}
	case c.ClientTimeout <= 0:
		return cfg, program.UsageError{Err: fmt.Errorf("--client-timeout %s: want a time above 0, such as 1m", c.ClientTimeout)}
	case c.Grace < 0:
		return cfg, program.UsageError{Err: errors.New("--grace must not be negative")}
	}
	plan := run.plan
	cfg = trainer.Config{
		Kind: plan.Kind, Memory: run.File() + "-trainer", ClientTimeout: c.ClientTimeout, Grace: c.Grace, Group: plan.Train.Group, Ahead: c.MaxAhead,
		Plan: func(o trainer.Override) (trainer.Prepared, error) { return prepare(p.Stop, run, o) },
		Open: func() (journal.Parts, func() error, error) {
			file, err := openFile(p, run.File())
			if err != nil {
				return nil, nil, err
			}
			return journal.InParts(file), file.Close, nil
		},
	}
	if n := plan.Train.MaxStaleness; n != nil && *n >= 0 {
		cfg.Staleness = plan.Train.MaxStaleness
	}
	if cfg.Keys, err = auth.KeysFrom(p.Env, "--key-env", c.KeyEnv); err != nil {
		return cfg, program.UsageError{Err: err}
	}
	if cfg.Access, err = c.Access(c.Addr, "--key-env", len(cfg.Keys) > 0); err != nil {
		return cfg, program.UsageError{Err: err}
	}
	return cfg, setRecorded(p.Stop, run, &cfg)
}

// setRecorded sets the state of a run that is in the file already.
func setRecorded(ctx context.Context, run *programRun, cfg *trainer.Config) error {
	was, err := run.Recorded(ctx)
	switch {
	case err != nil || was.Kind == "":
		return err
	case was.Kind != cfg.Kind.Name:
		return program.UsageError{Err: fmt.Errorf("--out: %s is a run of %s, not of %s: name another file", run.File(), was.Kind, cfg.Kind.Name)}
	}
	cfg.Begun, cfg.Resume = true, !was.Complete
	if was.Complete {
		cfg.State = trainer.Complete
	}
	return nil
}

// prepare returns what to play when a client starts the run. A run that has begun continues as recorded;
// overrides must not differ from it.
func prepare(ctx context.Context, run program.Run, o trainer.Override) (trainer.Prepared, error) {
	p, err := run.Prepare(ctx, overrides(o)...)
	if err != nil {
		return trainer.Prepared{}, err
	}
	return trainer.Prepared{What: fmt.Sprintf("%d %d %s", p.Seed, p.Episodes, p.Params), Play: p.Play}, nil
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
