package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"parley/internal/kit/auth"
	"parley/journal"
	"parley/world/program"
	"parley/worlds/rollout/rules"
	"parley/worlds/rollout/training"
)

// trainerCommand serves rollouts to trainers.
type trainerCommand struct {
	program.PlayFlags
	MaxAhead int           `placeholder:"N" help:"Maximum number of groups that are begun and not yet read by a trainer; more begin when they are read. Default: no limit."`
	Addr     string        `default:"127.0.0.1:18889" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port. Default: ${default}."`
	Grace    time.Duration `default:"10s" placeholder:"DURATION" help:"How long requests may take after a signal to stop, once the run has stopped. Default: ${default}."`

	auth.Flags
	KeyEnv        string        `group:"clients" placeholder:"NAME" help:"Environment variable with the keys that clients may use, separated by commas. Default: clients need no key."`
	ClientTimeout time.Duration `group:"clients" name:"client-timeout" default:"1m" placeholder:"DURATION" help:"Maximum time for a client to send a request, or to read a row. Default: ${default}."`
}

// Run serves until the first signal, which drains the run, and ends at once at the second.
func (c *trainerCommand) Run(ctx context.Context, p *program.Program) error {
	run, err := p.Runs.Open(p.Stop, c.PlayFlags) //nolint:contextcheck // Stop ends with ctx, or before
	if err != nil {
		return err
	}
	cfg, err := c.config(p, run)
	if err != nil {
		return err
	}
	server, err := training.New(cfg) //nolint:contextcheck // the position is a few bytes
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
func (c *trainerCommand) config(p *program.Program, run program.Run) (cfg training.Config, err error) {
	params := *rules.Definition{}.Defaults()
	switch plan := run.Plan(); {
	case c.MaxAhead < 0:
		return cfg, program.UsageError{Err: errors.New("--max-ahead must not be negative")}
	case c.ClientTimeout <= 0:
		return cfg, program.UsageError{Err: fmt.Errorf("--client-timeout %s: want a time above 0, such as 1m", c.ClientTimeout)}
	case c.Grace < 0:
		return cfg, program.UsageError{Err: errors.New("--grace must not be negative")}
	case plan.Kind != kindName:
		return cfg, program.UsageError{Err: fmt.Errorf("%s: kind: %s: parley trainer can play only %s", c.Plan, plan.Kind, kindName)}
	default:
		if err := json.Unmarshal(plan.Params, &params); err != nil {
			return cfg, fmt.Errorf("%s: params: %w", c.Plan, err)
		}
	}
	cfg = training.Config{
		Memory: run.File() + "-trainer", ClientTimeout: c.ClientTimeout, Grace: c.Grace, Group: params.Group, Ahead: c.MaxAhead,
		Plan: func(o training.Override) (training.Prepared, error) { return prepare(p.Stop, run, o) },
		Open: func() (journal.Parts, func() error, error) {
			file, err := openRun(p, run.File())
			if err != nil {
				return nil, nil, err
			}
			return journal.InParts(file), file.Close, nil
		},
	}
	if params.MaxStaleness >= 0 {
		cfg.Staleness = &params.MaxStaleness
	}
	if cfg.Keys, err = auth.KeysFrom(p.Env, "--key-env", c.KeyEnv); err != nil {
		return cfg, program.UsageError{Err: err}
	}
	allowed, err := c.Access(c.Addr, "--key-env", len(cfg.Keys) > 0)
	if err != nil {
		return cfg, program.UsageError{Err: err}
	}
	cfg.Hosts, cfg.Origins = allowed.Hosts, allowed.Origins
	return cfg, setRecorded(p.Stop, run, &cfg)
}

// setRecorded sets the state of a run that is in the file already.
func setRecorded(ctx context.Context, run program.Run, cfg *training.Config) error {
	was, err := run.Recorded(ctx)
	switch {
	case err != nil || was.Kind == "":
		return err
	case was.Kind != kindName:
		return program.UsageError{Err: fmt.Errorf("--out: %s is a run of %s, not of rollout: name another file", run.File(), was.Kind)}
	}
	cfg.Begun, cfg.Resume = true, !was.Complete
	if was.Complete {
		cfg.State = training.Complete
	}
	return nil
}

// prepare returns what to play when a client starts the run. A run that has begun continues as recorded;
// overrides must not differ from it.
func prepare(ctx context.Context, run program.Run, o training.Override) (training.Prepared, error) {
	p, err := run.Prepare(ctx, overrides(o)...)
	if err != nil {
		return training.Prepared{}, err
	}
	return training.Prepared{What: fmt.Sprintf("%d %d %s", p.Seed, p.Episodes, p.Params), Play: p.Play}, nil
}

// overrides returns a client's changes as overrides of the plan's keys.
func overrides(o training.Override) (sets []string) {
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
