// Package rollout is the kind of rollouts: the rules of an episode (package rules), its environments, the
// server for trainers, and the commands.
package rollout

import (
	"context"

	"parley/llm"
	"parley/world"
	"parley/world/program"
	"parley/worlds/rollout/command"
	"parley/worlds/rollout/envhttp"
	"parley/worlds/rollout/exhibit"
	"parley/worlds/rollout/experience"
	"parley/worlds/rollout/learner"
	"parley/worlds/rollout/rules"
)

// Kind is the family of rollouts.
func Kind() world.Kind { return world.Define(definition{}) }

// definition adds everything outside the rules.
type definition struct{ rules.Definition }

// Load also reads lessons from run files.
func (d definition) Load(p *rules.Params, files world.Files) (advice []string, err error) {
	return d.Definition.Load(p, experience.Files(files))
}

// Actor connects to the environments.
func (definition) Actor(p *rules.Params, run string) (world.Actor, error) {
	actor, err := envhttp.New(p, run)
	if err != nil {
		return nil, err
	}
	return actor, nil
}

// Outside returns the params that say where environments are and how they are held.
func (definition) Outside() []string { return []string{"servers", "pool"} }

// Local reports whether the environments run in this process.
func (definition) Local(p *rules.Params) bool { return len(p.Servers) == 0 }

// Probe asks the servers whether they are there.
func (definition) Probe(ctx context.Context, p *rules.Params) []world.Presence {
	if len(p.Servers) == 0 {
		return nil
	}
	return envhttp.Probe(ctx, p)
}

// Exhibitor returns the part of a report that is special to rollouts.
func (definition) Exhibitor() world.Exhibitor { return exhibit.New() }

// StandIn plays for the simulated provider.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	return learner.Play(model, req, seed)
}

// Commands serve environments and training data.
func (definition) Commands() []program.Command { return command.All() }
