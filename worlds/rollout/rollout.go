// Package rollout is the kind of rollouts with all that belongs to it: the rules of an episode (package rules), the
// environments it is played in, and the server that hands training data to trainers.
package rollout

import (
	"parley/world"
	"parley/worlds/rollout/learner"
	"parley/worlds/rollout/rules"
)

// Kind is the family of rollouts.
func Kind() world.Kind {
	k := rules.Kind()
	k.StandIn = learner.Play
	return k
}
