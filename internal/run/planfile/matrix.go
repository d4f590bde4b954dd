package planfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"parley/internal/kit/yamltree"
)

// maxCells is the largest number of cells of a matrix.
const maxCells = 100_000

// Matrix plays agents in seats in every way, with every combination of params.
type Matrix struct {
	Agents     []string             `json:"agents,omitempty" doc:"The agents to put into the seats, in every way." default:"none; the lineup does not change" filled:"true" nonempty:"true"`
	Seats      []string             `json:"seats,omitempty" doc:"The seats to put them into. All other seats are filled by lineup." default:"those that lineup leaves empty" filled:"true" nonempty:"true"`
	Lineup     map[string][]string  `json:"lineup,omitempty" doc:"Agents to try in a seat, a list for each seat: every combination of them is played." default:"none" free:"SEAT" filled:"true" nonempty:"true"`
	Lineups    []map[string]string  `json:"lineups,omitempty" doc:"The lineups to play, one by one, each a mapping of seats to agents. Not together with agents." default:"none" free:"SEAT" filled:"true" nonempty:"true"`
	Self       bool                 `json:"self" doc:"Whether an agent may sit in several of the seats, and so play itself." default:"false"`
	Swap       bool                 `json:"swap" doc:"Whether the same agents are also played in other seats: with two, both ways round." default:"true"`
	Rotate     string               `json:"rotate,omitempty" doc:"Moves agents round the seats with few lineups, so that every agent sits in every seat equally often. latin: as many lineups as agents (a Latin square). williams: each agent also follows each other one equally often; twice as many lineups for an odd number of agents. With lineups, each of these is moved round its seats." default:"none: as swap says" oneof:"latin,williams"`
	Params     map[string][]any     `json:"params,omitempty" doc:"Values to try, a list for each param or for a value within one, as 'set.turns'. Every combination is played." default:"none"`
	Variations map[string]Variation `json:"variations,omitempty" doc:"Settings that belong together, by names of your choice: each is played with every lineup and every combination of params." default:"none" aliases:"variants,conditions,arms" free:"NAME"`
	Repeat     int                  `json:"repeat,omitempty" doc:"How many episodes to play of each cell. Not together with until." default:"1" aliases:"episodes,repetitions" range:"1..2147483647"`
}

// Variation is a group of settings of a matrix.
type Variation struct {
	Params map[string]any    `json:"params,omitempty" doc:"What differs from the plan's params. Mappings are merged; lists are replaced." default:"none"`
	Lineup map[string]string `json:"lineup,omitempty" doc:"Who sits in seats that the matrix does not fill, instead of the plan's lineup." default:"none" filled:"true" free:"SEAT"`
	Tags   map[string]string `json:"tags,omitempty" doc:"Names and values of your choice to group scores by, as for agents." default:"none" filled:"true" free:"TAG"`
}

// FillsSeats reports whether the matrix fills any seat. Otherwise it varies only params.
func (m *Matrix) FillsSeats() bool {
	return m != nil && (len(m.Agents) > 0 || len(m.Seats) > 0 || len(m.OwnSeats()) > 0)
}

// UnmarshalJSON sets the defaults that are not zero.
func (m *Matrix) UnmarshalJSON(b []byte) error {
	type plain Matrix
	v := plain{Swap: true}
	if err := unmarshal(b, &v); err != nil {
		return fmt.Errorf("matrix: %w", err)
	}
	*m = Matrix(v)
	return nil
}

// OwnSeats returns the seats that Lineup, Lineups or Variations fill.
func (m *Matrix) OwnSeats() map[string]bool {
	seats := map[string]bool{}
	for _, l := range append(slices.Clone(m.Lineups), m.variationLineups()...) {
		for seat := range l {
			seats[seat] = true
		}
	}
	for seat := range m.Lineup {
		seats[seat] = true
	}
	return seats
}

// variationLineups lists the lineups of the variations, in no order.
func (m *Matrix) variationLineups() (all []map[string]string) {
	for _, v := range m.Variations {
		all = append(all, v.Lineup)
	}
	return all
}

// AgentNames lists the agents that the matrix puts into seats, with repetitions.
func (m *Matrix) AgentNames() []string {
	names := slices.Concat(m.Agents, slices.Concat(slices.Collect(maps.Values(m.Lineup))...))
	for _, l := range append(slices.Clone(m.Lineups), m.variationLineups()...) {
		names = slices.AppendSeq(names, maps.Values(l))
	}
	return names
}

// Seatings lists the ways to put the agents into the seats. It stops after maxCells+1. Without Swap
// the agents keep their order; without Self each sits once. order is the order of the kind's seats.
func (m *Matrix) Seatings(order []string) []map[string]string {
	var all []map[string]string
	if m.Rotate != "" || len(m.Lineups) > 0 {
		all = m.rotated(order)
	} else {
		all = m.arranged()
	}
	for _, seat := range slices.Sorted(maps.Keys(m.Lineup)) {
		all = m.seatIn(seat, all)
	}
	return all
}

// arranged lists the ways to put Agents into Seats without a rotation.
func (m *Matrix) arranged() (all []map[string]string) {
	chosen := make([]int, len(m.Seats))
	var choose func(seat int)
	choose = func(seat int) {
		if seat == len(m.Seats) {
			lineup := make(map[string]string, len(m.Seats))
			for i, a := range chosen {
				lineup[m.Seats[i]] = m.Agents[a]
			}
			all = append(all, lineup)
			return
		}
		for a := range m.Agents {
			again := slices.Contains(chosen[:seat], a)
			back := seat > 0 && a < chosen[seat-1]
			if len(all) > maxCells || again && !m.Self || back && !m.Swap {
				continue
			}
			chosen[seat] = a
			choose(seat + 1)
		}
	}
	choose(0)
	return all
}

// seatIn combines each of the lineups with each agent that Lineup lists for a seat.
func (m *Matrix) seatIn(seat string, lineups []map[string]string) []map[string]string {
	var all []map[string]string
	for _, lineup := range lineups {
		for _, agent := range m.Lineup[seat] {
			if len(all) > maxCells {
				return all
			}
			one := maps.Clone(lineup)
			one[seat] = agent
			all = append(all, one)
		}
	}
	return all
}

// rotated lists the lineups of Lineups, or those that put Agents into Seats by the rows of a
// square, without duplicates. It stops after maxCells+1.
func (m *Matrix) rotated(order []string) []map[string]string {
	var all []map[string]string
	for _, l := range m.Lineups {
		seats := slices.DeleteFunc(slices.Clone(order), func(seat string) bool { return l[seat] == "" })
		turns := 1
		if m.Rotate != "" {
			turns = len(seats)
		}
		for by := range turns {
			moved := make(map[string]string, len(seats))
			for i, seat := range seats {
				moved[seat] = l[seats[(i+by)%len(seats)]]
			}
			all = append(all, moved)
		}
	}
	if len(m.Lineups) == 0 && len(m.Agents) <= maxCells {
		for _, row := range latinSquare(len(m.Agents), len(m.Seats), m.Rotate == "williams") {
			lineup := make(map[string]string, len(m.Seats))
			for i, seat := range m.Seats {
				lineup[seat] = m.Agents[row[i]]
			}
			all = append(all, lineup)
		}
	}
	if len(m.Lineups) == 0 && len(all) == 0 {
		return []map[string]string{{}}
	}
	return distinctLineups(all)
}

func distinctLineups(all []map[string]string) (out []map[string]string) {
	seen := map[string]bool{}
	for _, l := range all {
		key := lineupText(l)
		if !seen[key] && len(out) <= maxCells {
			seen[key] = true
			out = append(out, l)
		}
	}
	return out
}

// lineupText writes a lineup as "seat: agent, seat: agent".
func lineupText(l map[string]string) string {
	parts := make([]string, 0, len(l))
	for _, seat := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, seat+": "+l[seat])
	}
	return strings.Join(parts, ", ")
}

// latinSquare returns rows of the numbers below n, each with the given number of places, in which every
// number is in every place equally often: a Latin square, or its first columns. It is the square of
// Williams (1949): the first row is 0, 1, n-1, 2, n-2 …, and each next row adds 1. For an even n
// every number follows every other one equally often. For an odd n that also needs the rows in
// reverse, which both adds.
func latinSquare(n, places int, both bool) (rows [][]int) {
	if n == 0 {
		return nil
	}
	first := make([]int, max(n, places))
	for i := range first {
		switch k := i % n; {
		case k%2 == 1:
			first[i] = (k + 1) / 2
		default:
			first[i] = (n - k/2) % n
		}
	}
	for by := range n {
		row := make([]int, places)
		for i := range row {
			row[i] = (first[i] + by) % n
		}
		rows = append(rows, row)
	}
	if both && n%2 == 1 {
		for by := range n {
			row := make([]int, places)
			for i := range row {
				row[i] = (first[n-1-i%n] + by) % n
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Parts lists base and all parts of lineups that the matrix has, which may be nil. order is the order of the kind's
// seats.
func (m *Matrix) Parts(base map[string]string, order []string) []map[string]string {
	all := []map[string]string{base}
	if m != nil {
		all = append(all, m.Seatings(order)...)
		for _, v := range m.Variations {
			all = append(all, v.Lineup)
		}
	}
	return all
}

// Combinations lists every choice of one value for each param; the last param by name changes
// fastest. Without params it is one empty choice.
func (m *Matrix) Combinations() []map[string]any {
	all := []map[string]any{{}}
	for _, name := range slices.Sorted(maps.Keys(m.Params)) {
		var longer []map[string]any
		for _, before := range all {
			for _, v := range m.Params[name] {
				one := maps.Clone(before)
				one[name] = v
				longer = append(longer, one)
			}
		}
		all = longer
	}
	return all
}

// Variant is a variation with a combination of params.
type Variant struct {
	Name string // of the variation; empty: there are none
	Variation
	Change map[string]any // the combination
}

// Variants lists every variation with every combination.
func (m *Matrix) Variants() (all []Variant) {
	combinations := m.Combinations()
	for _, name := range m.VariationNames() {
		for _, change := range combinations {
			all = append(all, Variant{name, m.Variations[name], change})
		}
	}
	return all
}

// Place returns where the matrix has the params of a variant, and which values of its own params that has, by their indexes.
func (m *Matrix) Place(v Variant) (at yamltree.Path, tried map[string]int) {
	at = yamltree.Path{"plan", "matrix", "params"}
	if v.Name != "" {
		at = yamltree.Path{"plan", "matrix", "variations", v.Name, "params"}
	}
	tried = map[string]int{}
	for name, value := range v.Change {
		tried[name] = slices.IndexFunc(m.Params[name], func(one any) bool { return reflect.DeepEqual(one, value) })
	}
	return at, tried
}

// CellLabel describes a combination without the params that have one value: these do not distinguish cells.
func (m *Matrix) CellLabel(change map[string]any) string {
	change = maps.Clone(change)
	maps.DeleteFunc(change, func(name string, _ any) bool { return len(m.Params[name]) < 2 })
	return combinationLabel(change)
}

// combinationLabel describes a combination, as "messages=4, mode=standard".
func combinationLabel(change map[string]any) string {
	parts := make([]string, 0, len(change))
	for _, name := range slices.Sorted(maps.Keys(change)) {
		b, err := json.Marshal(change[name])
		if err != nil {
			b = fmt.Append(nil, change[name]) // not reached: the value is from JSON
		}
		parts = append(parts, name+"="+strings.Trim(string(b), `"`))
	}
	return strings.Join(parts, ", ")
}

// setParam sets a param, or a value at a path within one, in a copy of that param.
func setParam(values map[string]any, s *Shape, name string, value any) {
	head, rest, dotted := strings.Cut(name, ".")
	if !dotted || s == nil || s.Free != "" || s.Key(name) != nil {
		values[name] = value
		return
	}
	inner, _ := values[head].(map[string]any)
	if inner = maps.Clone(inner); inner == nil {
		inner = map[string]any{}
	}
	setParam(inner, s.Under(head), rest, value)
	values[head] = inner
}

// mergeParams returns base with over on top: mappings are merged by key, other values replaced. It
// changes neither.
func mergeParams(base, over any) any {
	b, ok := base.(map[string]any)
	o, ok2 := over.(map[string]any)
	if !ok || !ok2 {
		return over
	}
	out := maps.Clone(b)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range o {
		if old, there := out[name]; there {
			v = mergeParams(old, v)
		}
		out[name] = v
	}
	return out
}

// VariationNames lists the names of the variations, sorted. Without variations it is one empty name.
func (m *Matrix) VariationNames() []string {
	if len(m.Variations) == 0 {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(m.Variations))
}

// Balance reports how evenly the lineups of a matrix put agents into seats.
type Balance struct {
	Lineups int `json:"lineups"`
	// Seats: every agent sits in every seat equally often. Meetings: every two agents share a lineup
	// equally often. Neighbours: every agent follows every other one equally often, in the order of seats.
	Seats      bool `json:"seats"`
	Meetings   bool `json:"meetings"`
	Neighbours bool `json:"neighbours"`
	// Fixed are the seats in which one agent always sits, with that agent: the rest is about the other seats.
	Fixed map[string]string `json:"fixed,omitempty"`
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
	b := balance(moved, lineups)
	for _, seat := range seats {
		if slices.Contains(moved, seat) {
			continue
		}
		if b.Fixed == nil {
			b.Fixed = map[string]string{}
		}
		b.Fixed[seat] = lineups[0][seat]
	}
	return b
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
