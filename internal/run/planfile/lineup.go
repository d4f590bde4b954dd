package planfile

import (
	"maps"
	"slices"
	"strings"
)

// Seatings lists the ways to put the agents into the seats. It stops after MaxCells+1. Without Swap
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
// square, without duplicates. It stops after MaxCells+1.
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
		for _, row := range square(len(m.Agents), len(m.Seats), m.Rotate == "williams") {
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

// square returns rows of the numbers below n, each with the given number of places, in which every
// number is in every place equally often: a Latin square, or its first columns. It is the square of
// Williams (1949): the first row is 0, 1, n-1, 2, n-2 …, and each next row adds 1. For an even n
// every number follows every other one equally often. For an odd n that also needs the rows in
// reverse, which both adds.
func square(n, places int, both bool) (rows [][]int) {
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
