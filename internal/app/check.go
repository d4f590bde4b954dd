package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/engine"
	"parley/internal/config"
	"parley/internal/estimate"
	"parley/internal/growth"
	"parley/internal/trust"
	"parley/world"
)

// Check is a plan to be looked at before it is played. Nothing is asked of a provider.
type Check struct {
	Plan *config.Plan
	// Episodes and Latency are those of estimate.Config.
	Episodes int
	Latency  time.Duration
	// Act also acts on the outside: the sample is played in the environments on the servers.
	// Default: they are only asked whether they are there.
	Act bool
	// Env looks up whether keys are set. Their values go nowhere. Default: none is.
	Env func(name string) (string, bool)
	// Trust says which keys may go where. Default: as Config's.
	Trust *trust.Gate
}

// Estimate is what a plan will take, and what it needs from outside to be played.
type Estimate struct {
	estimate.Estimate
	Keys []Key `json:"keys"`
	// Servers are those that the plan's environments are on.
	Servers []world.Presence `json:"servers"`
	// Outside are the files outside the plan's folder that the user allows it to name.
	Outside []string `json:"outside_files"`
	// Recorded is how the plan stands to its run file. Nil: there is none, or it has the same plan.
	Recorded *Recorded `json:"recorded,omitempty"`
}

// Recorded is a run file that a plan would be played into.
type Recorded struct {
	File    string         `json:"file"`
	Grown   *growth.Growth `json:"grown,omitempty"`   // the plan asks for more
	Refused string         `json:"refused,omitempty"` // why the plan cannot be played into the file
}

// Key is an environment variable that a provider needs.
type Key struct {
	Provider string `json:"provider"`
	Env      string `json:"env"`
	Set      bool   `json:"set"`
	// Sent is where it goes.
	Sent []Destination `json:"sent_to"`
}

// Destination is a host that a key goes to.
type Destination struct {
	Host string `json:"host"`
	// Allowed is why it may: preset, loopback, remembered or given. Empty: the user has to be
	// asked.
	Allowed string `json:"allowed"`
	// Plain means that it travels unencrypted.
	Plain bool `json:"unencrypted"`
}

// Run estimates the plan and looks up its keys and servers.
func (c Check) Run(ctx context.Context) (*Estimate, error) {
	prices, err := Prices(c.Plan.Providers, c.Plan.Prices)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	there, all := servers(ctx, c.Plan)
	actors := func(e *engine.Config) (func(context.Context), error) {
		if !c.Act || !all {
			return inside(e, c.Plan)
		}
		e.Begun.Run = "check-" + newID() // sessions on servers are named after it
		return outside(e, c.Plan)
	}
	e, err := estimate.Config{Plan: c.Plan, Prices: prices, Episodes: c.Episodes, Latency: c.Latency, Actors: actors}.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &Estimate{Estimate: *e, Keys: c.keys(e.Accounts), Servers: there, Outside: append([]string{}, c.Plan.Outside...)}, nil
}

// keys lists the environment variables that accounts need.
func (c Check) keys(accounts []string) []Key {
	keys := []Key{}
	for _, p := range c.Plan.Providers {
		if !slices.Contains(accounts, p.Name) || p.KeyEnv == "" || p.InProcess() {
			continue
		}
		set := false
		if c.Env != nil {
			v, ok := c.Env(p.KeyEnv)
			set = ok && v != ""
		}
		keys = append(keys, Key{Provider: p.Name, Env: p.KeyEnv, Set: set, Sent: destinations(c.Trust, p)})
	}
	return keys
}

// Bench runs b. It plays environments of this process, and no others.
func Bench(ctx context.Context, b estimate.Bench) (*estimate.BenchResult, error) {
	b.Actors = func(e *engine.Config) (func(context.Context), error) { return inside(e, b.Plan) }
	return b.Run(ctx)
}
