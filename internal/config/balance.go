package config

import (
	"fmt"
	"maps"
	"slices"
)

// Balance says how evenly the lineups of a matrix put agents into seats.
type Balance struct {
	Lineups int `json:"lineups"`
	// Seats means that every agent sits in every seat equally often, Meetings that every two
	// agents are in one lineup equally often, and Neighbours that every agent follows every other
	// one equally often, in the order of the kind's seats.
	Seats      bool `json:"seats"`
	Meetings   bool `json:"meetings"`
	Neighbours bool `json:"neighbours"`
	// Uneven says of what is not balanced who has most and who has least of it.
	Uneven []string `json:"uneven,omitempty"`
}

// mostBalanced is up to how many agents it is looked at who meets whom.
const mostBalanced = 500

// Balance returns the balance of the matrix; nil where it does not move agents between seats, or
// has more agents than mostBalanced.
func (p *Plan) Balance() *Balance {
	if p.Matrix == nil {
		return nil
	}
	lineups := p.Matrix.seatings(p.Seats)
	seats := slices.DeleteFunc(slices.Clone(p.Seats), func(seat string) bool {
		return !slices.ContainsFunc(lineups, func(l map[string]string) bool { return l[seat] != lineups[0][seat] })
	})
	if len(seats) < 2 || len(p.Agents) > mostBalanced {
		return nil
	}
	return balance(seats, lineups)
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
	var places, pairs, orders [][2]string
	for i, a := range agents {
		for _, seat := range seats {
			places = append(places, [2]string{a, seat})
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
	b.Seats = b.even(sits, places, "%s sits in %s %d times, and %s in %s %d times")
	b.Meetings = b.even(meets, pairs, "%s meets %s %d times, and %s meets %s %d times")
	b.Neighbours = b.even(follows, orders, "%s follows %s %d times, and %s follows %s %d times")
	return b
}

// even says whether all of the keys were counted equally often, and else notes which were not.
func (b *Balance) even(counts map[[2]string]int, keys [][2]string, format string) bool {
	if len(keys) == 0 {
		return true
	}
	most, least := keys[0], keys[0]
	for _, k := range keys {
		if counts[k] > counts[most] {
			most = k
		}
		if counts[k] < counts[least] {
			least = k
		}
	}
	if counts[most] == counts[least] {
		return true
	}
	b.Uneven = append(b.Uneven, fmt.Sprintf(format, most[0], most[1], counts[most], least[0], least[1], counts[least]))
	return false
}
