package planner

import (
	"slices"

	"parley/world"
)

// Train says how a run is used to train the agents that are marked trainable.
type Train struct {
	Reward       string `json:"reward,omitempty" doc:"The score that is the reward of a seat." default:"the kind's own: see docs/how-to/train.md" filled:"true"`
	Group        int    `json:"group,omitempty" doc:"How many episodes to play of each deal, with other samples: the group that advantages compare." default:"1" range:"1..10000"`
	MaxStaleness *int   `json:"max_staleness,omitempty" doc:"The most versions between the first and the last weights that answer for trained seats in an episode, if the server reports versions. An episode beyond it is not trained on. -1: any number." default:"-1" range:"-1..1000000"`
}

// DefaultReward returns the score that is the reward if a plan names none: reward, or else the first that seats compete for, the first
// of seats, or the first.
func DefaultReward(all []world.Measure) string {
	for _, fits := range []func(world.Measure) bool{
		func(m world.Measure) bool { return m.Name == "reward" },
		func(m world.Measure) bool { return m.Rivals },
		func(m world.Measure) bool { return len(m.Seats) > 0 },
		func(world.Measure) bool { return true },
	} {
		if i := slices.IndexFunc(all, fits); i >= 0 {
			return all[i].Name
		}
	}
	return "reward" // a kind that declares no scores may have it
}

// Grouped returns specs with each of them played n times.
func Grouped(specs world.Specs, n int) (world.Specs, error) {
	var blocks []world.Block
	for b := range specs.Blocks() {
		b.Groups = slices.Clone(b.Groups)
		for i := range b.Groups {
			b.Groups[i].Size *= n
		}
		blocks = append(blocks, b)
	}
	return world.Blocks(blocks...)
}
