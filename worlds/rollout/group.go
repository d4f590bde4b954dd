package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/world"
)

// The states of groups.
const (
	groupComplete = "complete"
	groupShort    = "short"
	groupOpen     = "open"
)

// state returns the state of a group.
func (k *group) state() string {
	switch {
	case len(k.members) < k.planned:
		return groupOpen
	case k.failures > 0:
		return groupShort
	default:
		return groupComplete
	}
}

// standing returns the state with its reason.
func (k *group) standing() string {
	switch state := k.state(); state {
	case groupOpen:
		return fmt.Sprintf("%s: %d have not ended", state, k.planned-len(k.members))
	case groupShort:
		return fmt.Sprintf("%s: %d failed", state, k.failures)
	default:
		return state
	}
}

// spread returns the difference between the best and the worst reward of a group, by the first player.
func (k *group) spread() (x float64, ok bool) {
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, e := range k.members {
		if len(e.got) > 0 {
			low, high = min(low, e.got[0].reward), max(high, e.got[0].reward)
			n++
		}
	}
	return high - low, n > 1
}

func (g *exhibits) grouped() bool {
	return slices.ContainsFunc(g.groups, func(k *group) bool { return k.planned > 1 })
}

func (g *exhibits) showGroups() world.Show {
	if !g.grouped() {
		return nil
	}
	t := world.Grid{Columns: []string{"environment", "groups", "complete", "short", "open", "equal", "spread"}}
	for _, env := range g.envs {
		states, equal := map[string]int{}, 0
		spread := &world.Sample{Bounds: world.AtLeast0()}
		for _, k := range g.groups {
			if k.env != env {
				continue
			}
			states[k.state()]++
			if x, ok := k.spread(); ok {
				spread.Add(world.Unit{}, x)
				if x == 0 {
					equal++
				}
			}
		}
		all := states[groupComplete] + states[groupShort] + states[groupOpen]
		t.Rows = append(t.Rows, []any{env, all, states[groupComplete], states[groupShort], states[groupOpen], equal, spread})
	}
	return t
}

// showGroupMeans shows how many groups have which mean reward.
func (g *exhibits) showGroupMeans() world.Show {
	if !g.grouped() {
		return nil
	}
	values := make([][]float64, len(g.players))
	names := make([]string, len(g.players))
	for i, who := range g.players {
		names[i] = g.label(who)
		for _, k := range g.groups {
			if s := sample(k.members, reward(who)); s.Episodes() > 0 {
				values[i] = append(values[i], s.Estimate(0.95).Value)
			}
		}
	}
	return histogram("mean reward of a group", "groups", names, values)
}

// maxGroups is how many groups are listed.
const maxGroups = 20

// showGroupRewards lists groups, starting with those that differ most from the others.
func (g *exhibits) showGroupRewards() world.Show {
	if !g.grouped() || len(g.players) == 0 {
		return nil
	}
	overall := map[player]float64{}
	for _, who := range g.players {
		overall[who] = sample(g.episodes, reward(who)).Estimate(0.95).Value
	}
	type row struct {
		cells []any
		apart float64
	}
	var rows []row
	for _, k := range g.groups {
		for _, who := range g.players {
			s := &world.Sample{} // episodes of one task, each for itself
			var stops []string
			for _, e := range k.members {
				if x, ok := reward(who)(e); ok {
					s.Add(world.Unit{Play: e.unit.Play}, x)
					stops = append(stops, string(e.stop))
				}
			}
			if s.Episodes() == 0 {
				continue
			}
			cells := []any{k.name, who.seat, fmt.Sprintf("%d of %d", s.Episodes(), k.planned), s, k.standing(), counted(stops)}
			rows = append(rows, row{cells, math.Abs(s.Estimate(0.95).Value - overall[who])})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.apart, a.apart) })
	t := world.Grid{Columns: []string{"group", "seat", "episodes", "reward", "state", "ended by"}}
	for _, r := range rows[:min(len(rows), maxGroups)] {
		t.Rows = append(t.Rows, r.cells)
	}
	return t
}

// counted lists words with their counts.
func counted(words []string) string {
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	var out []string
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[w], w))
	}
	return strings.Join(out, ", ")
}
