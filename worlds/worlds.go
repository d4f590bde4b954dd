// Package worlds lists the kinds of worlds that come with Parley.
//
// It promises that a kind is here because it is in the list below, and that importing the
// package has no other effect. It is not for finding or running kinds: a list is all it is.
package worlds

import (
	"parley/world"
	"parley/worlds/diplomacy"
	"parley/worlds/evolve"
	"parley/worlds/rollout"
	"parley/worlds/scenario"
	"parley/worlds/secrets"
)

// Standard returns every kind, by name.
func Standard() []world.Kind {
	return []world.Kind{
		diplomacy.Kind(),
		evolve.Kind(),
		rollout.Kind(),
		scenario.Kind(),
		secrets.Kind(),
	}
}
