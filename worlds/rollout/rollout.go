// Package rollout is the kind of rollouts with all that belongs to it: the rules of an episode (package rules), the
// environments it is played in, and the server that hands training data to trainers.
package rollout

import (
	"parley/world"
	"parley/worlds/rollout/envhttp"
	"parley/worlds/rollout/rules"
)

// Kind is the family of rollouts.
func Kind() world.Kind { return world.Define(definition{}) }

// definition is the rules, with environments that carry out the acts.
type definition struct{ rules.Definition }

// Actor connects to the environments.
func (definition) Actor(p *rules.Params, run string) (world.Actor, error) {
	actor, err := envhttp.New(p, run)
	if err != nil {
		return nil, err
	}
	return actor, nil
}

// Outside are the params that say where environments are and how they are held.
func (definition) Outside() []string { return []string{"servers", "pool"} }
