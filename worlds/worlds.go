// Package worlds lists the kinds of worlds that come with Parley.
//
// It is only a list: importing it has no other effect.
package worlds

import (
	"parley/world"
	"parley/worlds/diplomacy"
	"parley/worlds/evolve"
	"parley/worlds/rollout"
	"parley/worlds/scenario"
	"parley/worlds/secrets"
	"parley/worlds/task"
)

// Standard returns every kind, by name.
func Standard() []world.Kind {
	return []world.Kind{
		diplomacy.Kind(),
		evolve.Kind(),
		rollout.Kind(),
		scenario.Kind(),
		secrets.Kind(),
		task.Kind(),
	}
}
