package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"parley/internal/app"
	"parley/internal/config"
	"parley/internal/export"
	"parley/internal/store/sqlite"
	"parley/internal/trust"
	"parley/journal"
	"parley/worlds/rollout/rules"
	"parley/worlds/rollout/trainer"
	"parley/worlds/rollout/trajectory"
)

// trainerCmd serves rollouts to trainers.
type trainerCmd struct {
	Plan  string        `arg:"" placeholder:"PLAN" help:"The plan file, of rollouts."`
	Out   string        `placeholder:"FILE" help:"The run file; it is played on if it exists. Default: beside the plan, named after it."`
	Addr  string        `default:"127.0.0.1:18889" placeholder:"HOST:PORT" help:"Where to listen; port 0 picks a free one. Default: ${default}."`
	Grace time.Duration `default:"10s" placeholder:"DURATION" help:"Most time for requests when it is stopped and the run has come to rest. Default: ${default}."`

	Unreachable *time.Duration `placeholder:"DURATION" help:"How long to wait for a provider that cannot be reached, as one that restarts; 0 does not wait. Default: the plan's, or 10m."`

	accessFlags
	KeyEnv   string        `group:"clients" placeholder:"NAME" help:"Environment variable with the keys, separated by commas, of which clients must send one. Default: no key is needed."`
	Patience time.Duration `group:"clients" default:"1m" placeholder:"DURATION" help:"Most time for a client to send a request, or to take a row. Default: ${default}."`
	trustFlags
	reachFlags
}

// Run serves until the first signal, which drains the run, and ends at once at the second.
func (c *trainerCmd) Run(ctx context.Context, s *State) error {
	plan, err := loadPlan(ctx, s, c.Plan, nil, c.reach())
	if err == nil {
		err = c.rollouts(plan)
	}
	if err != nil {
		return asUsage(err)
	}
	file, err := c.runFile(plan, c.Plan, c.Out)
	if err != nil {
		return err
	}
	keys, err := c.keys(ctx, s, plan, file)
	if err != nil {
		return playError(file, err)
	}
	cfg, err := c.config(ctx, s, keys, plan, file)
	if err != nil {
		return err
	}
	server, err := trainer.New(cfg) //nolint:contextcheck // the position is a few bytes
	if err != nil {
		return asUsage(err)
	}
	g := newGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	drain, stop := context.WithCancelCause(ctx)
	defer stop(context.Canceled)
	g.onClose(func() { stop(errors.New("stopped by a signal")) })
	ln, err := c.bind(ctx, c.Addr, "--key-env", len(cfg.Keys) > 0)
	if err != nil {
		return asUsage(err)
	}
	if _, err := fmt.Fprintf(s.Stdout, "listening on http://%s\n", ln.Addr()); err != nil {
		_ = ln.Close() // nobody could learn the address: Run ends at once
	}
	return server.Run(ctx, drain, ln)
}

// keys asks for the keys of the plan and of the run that is in the file already, before
// anything is served: whoever starts the run later cannot answer.
func (c *trainerCmd) keys(ctx context.Context, s *State, plan *config.Plan, file string) (*trust.Gate, error) {
	gate, err := c.gate(s)
	if err != nil {
		return nil, err
	}
	needs := app.Needs(plan, c.Plan, false)
	if about, err := outlineOf(ctx, file); err == nil && about.Begun != nil && about.Begun.Kind == plan.Kind.Name {
		was, err := config.FromJSON(about.Begun.Plan, s.Kinds, nil)
		if err != nil {
			return nil, err
		}
		needs = append(needs, app.Needs(was, file, true)...)
	}
	if err := gate.Check(needs...); err != nil {
		return nil, asUsage(err)
	}
	gate.Silence()
	return gate.Gate, nil
}

// sets returns the flags as overrides of the plan's keys.
func (c *trainerCmd) sets() []string {
	if c.Unreachable == nil {
		return nil
	}
	return []string{unreachableSet(*c.Unreachable)}
}

// load reads the plan, with what a client changes of it.
func (c *trainerCmd) load(ctx context.Context, s *State, sets []string) (*config.Plan, error) {
	sets = append(c.sets(), sets...)
	reach := c.reach()
	reach.Foreign = true
	plan, err := config.Load(ctx, c.Plan, s.Kinds, sets, reach)
	if err != nil {
		return nil, err
	}
	return plan, c.rollouts(plan)
}

// rollouts makes sure that a plan is of these.
func (c *trainerCmd) rollouts(plan *config.Plan) error {
	if _, ok := plan.Params.Pointer().(*rules.Params); !ok {
		return fmt.Errorf("%s: kind: %s: a trainer is served rollouts: want rollout", c.Plan, plan.Kind.Name)
	}
	return nil
}

// config is how the run in file is served.
func (c *trainerCmd) config(ctx context.Context, s *State, keys *trust.Gate, plan *config.Plan, file string) (trainer.Config, error) {
	cfg := trainer.Config{
		Position: file + "-position", Patience: c.Patience, Grace: c.Grace,
		Plan: func(o trainer.Override) (trainer.Sitting, error) { return c.sitting(ctx, s, keys, file, o) },
		Open: func() (trajectory.Source, func() error, error) {
			r, err := export.OpenRollouts(file)
			if err != nil {
				return nil, nil, err
			}
			return r, r.Close, nil
		},
	}
	if p, ok := plan.Params.Pointer().(*rules.Params); ok {
		cfg.Group = p.Group
	}
	if c.Patience < 0 || c.Grace < 0 {
		return cfg, usage("--patience and --grace must not be negative")
	}
	var err error
	if cfg.Keys, err = keysOf(s, "--key-env", c.KeyEnv); err == nil {
		cfg.Access, err = c.access(c.Addr, "--key-env", len(cfg.Keys) > 0)
	}
	if err != nil {
		return cfg, asUsage(err)
	}
	return cfg, c.found(ctx, file, &cfg)
}

// found says how a run stands that is in the file already.
func (c *trainerCmd) found(ctx context.Context, file string, cfg *trainer.Config) error {
	about, err := outlineOf(ctx, file)
	switch {
	case err != nil:
		return asUsage(playError(file, err))
	case about.Begun == nil:
		return nil
	case about.Begun.Kind != "rollout":
		return usage("--out: %s is a run of %s, and a trainer is served rollouts: name another file", file, about.Begun.Kind)
	}
	cfg.Begun = true
	if cfg.Resume = about.Open || about.Last.State != journal.Complete; !cfg.Resume {
		cfg.State = trainer.Complete
	}
	return nil
}

// outlineOf says what is in a run file; nothing, where there is none.
func outlineOf(ctx context.Context, file string) (about sqlite.Outline, err error) {
	store, err := sqlite.OpenRead(file)
	if errors.Is(err, fs.ErrNotExist) {
		return about, nil
	}
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Outline(ctx)
}
