package planfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Balance reports how evenly the lineups of a matrix put agents into seats.
type Balance struct {
	Lineups int `json:"lineups"`
	// Seats: every agent sits in every seat equally often. Meetings: every two agents share a lineup
	// equally often. Neighbours: every agent follows every other one equally often, in the order of seats.
	Seats      bool `json:"seats"`
	Meetings   bool `json:"meetings"`
	Neighbours bool `json:"neighbours"`
	// Uneven lists what is not balanced: the pairs with the highest and the lowest count.
	Uneven []string `json:"uneven,omitempty"`
}

// maxBalanced is the largest number of agents for which Balance counts pairs.
const maxBalanced = 500

// Balance returns the balance of the matrix over the kind's seats. It is nil if the matrix does not move
// agents between seats, or has more than maxBalanced agents.
func (m *Matrix) Balance(seats []string) *Balance {
	if m == nil {
		return nil
	}
	lineups := m.Seatings(seats)
	moved := slices.DeleteFunc(slices.Clone(seats), func(seat string) bool {
		return !slices.ContainsFunc(lineups, func(l map[string]string) bool { return l[seat] != lineups[0][seat] })
	})
	if agents := slices.Compact(slices.Sorted(slices.Values(m.AgentNames()))); len(moved) < 2 || len(agents) > maxBalanced {
		return nil
	}
	return balance(moved, lineups)
}

func balance(seats []string, lineups []map[string]string) *Balance {
	sits, meets, follows := map[[2]string]int{}, map[[2]string]int{}, map[[2]string]int{}
	known := map[string]bool{}
	for _, l := range lineups {
		var here []string
		for i, seat := range seats {
			agent := l[seat]
			sits[[2]string{agent, seat}]++
			if i > 0 {
				follows[[2]string{agent, l[seats[i-1]]}]++
			}
			if !slices.Contains(here, agent) {
				for _, other := range here {
					meets[[2]string{min(agent, other), max(agent, other)}]++
				}
				here = append(here, agent)
			}
			known[agent] = true
		}
	}
	agents := slices.Sorted(maps.Keys(known))
	var placements, pairs, orders [][2]string
	for i, a := range agents {
		for _, seat := range seats {
			placements = append(placements, [2]string{a, seat})
		}
		for j, b := range agents {
			if i < j {
				pairs = append(pairs, [2]string{a, b})
			}
			if i != j {
				orders = append(orders, [2]string{a, b})
			}
		}
	}
	b := &Balance{Lineups: len(lineups)}
	b.Seats = b.even(sits, placements, "%s sits in %s %d times, and %s in %s %d times")
	b.Meetings = b.even(meets, pairs, "%s meets %s %d times, and %s meets %s %d times")
	b.Neighbours = b.even(follows, orders, "%s follows %s %d times, and %s follows %s %d times")
	return b
}

// even reports whether all keys have the same count, and otherwise adds to Uneven.
func (b *Balance) even(counts map[[2]string]int, keys [][2]string, format string) bool {
	if len(keys) == 0 {
		return true
	}
	byCount := func(a, b [2]string) int { return cmp.Compare(counts[a], counts[b]) }
	// The first of equal counts, as a reader would find it.
	high, low := slices.MaxFunc(keys, byCount), slices.MinFunc(keys, byCount)
	if counts[high] == counts[low] {
		return true
	}
	b.Uneven = append(b.Uneven, fmt.Sprintf(format, high[0], high[1], counts[high], low[0], low[1], counts[low]))
	return false
}
