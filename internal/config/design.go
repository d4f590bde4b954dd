package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"parley/internal/config/document"
	"parley/internal/config/schema"
	"parley/internal/view"
	"parley/internal/yamltree"
)

// Variation is a group of settings of a matrix.
type Variation struct {
	// Params override those of the plan; mappings are merged. Default: none.
	Params map[string]any `json:"params,omitempty"`
	// Lineup overrides that of the plan: seat to agent. Default: none.
	Lineup map[string]string `json:"lineup,omitempty"`
	// Tags group scores. Default: none.
	Tags map[string]string `json:"tags,omitempty"`
}

// variations lists the names of the variations, sorted. Without variations it is one empty name.
func (m *Matrix) variations() []string {
	if len(m.Variations) == 0 {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(m.Variations))
}

// ownSeats returns the seats that Lineup, Lineups or Variations fill.
func (m *Matrix) ownSeats() map[string]bool {
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

// agentsNamed lists the agents that the matrix puts into seats, with repetitions.
func (m *Matrix) agentsNamed() []string {
	names := slices.Concat(m.Agents, slices.Concat(slices.Collect(maps.Values(m.Lineup))...))
	for _, l := range append(slices.Clone(m.Lineups), m.variationLineups()...) {
		names = slices.AppendSeq(names, maps.Values(l))
	}
	return names
}

// merged returns base with over on top: mappings are merged by key, other values replaced. It
// changes neither.
func merged(base, over any) any {
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
			v = merged(old, v)
		}
		out[name] = v
	}
	return out
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

// tagName matches names that work in --by and as the head of a column.
var tagName = regexp.MustCompile(`^[\pL\pN_][\pL\pN_-]{0,63}$`)

// tags checks the tags of an agent or a variation.
func (r *resolver) tags(tags map[string]string, here yamltree.Path) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		at := here.To(name)
		switch {
		case !tagName.MatchString(name):
			r.complainOfKey(at, "the name of a tag is one word of letters, digits, _ and -, at most 64 long")
		case slices.Contains(view.OwnFactors(), name):
			r.complainOfKey(at, "scores can be grouped by %s without a tag: choose another name; taken: %s", name, document.Listed(view.OwnFactors()))
		}
		if len(tags[name]) > 64 || strings.ContainsFunc(tags[name], unicode.IsControl) {
			r.complain(at, "the value of a tag is one line of at most 64 bytes")
		}
	}
}

// design checks explicit lineups, variations and rotation.
func (r *resolver) design(m *Matrix, here yamltree.Path) {
	r.matrixLineups(m, here.To("lineups"))
	r.rotation(m, here.To("rotate"))
	ofAgents := map[string]string{}
	for _, a := range r.plan.Agents {
		for tag := range a.Tags {
			ofAgents[tag] = a.Name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Variations)) {
		v, at := m.Variations[name], here.To("variations").To(name)
		if !agentName.MatchString(name) {
			r.complainOfKey(at, "the name of a variation is one word of letters, digits and _ . @ + / -, at most 64 long")
		}
		r.variationSeats(m, v, at.To("lineup"))
		r.tags(v.Tags, at.To("tags"))
		for _, tag := range slices.Sorted(maps.Keys(v.Tags)) {
			if agent, both := ofAgents[tag]; both {
				r.complainOfKey(at.To("tags").To(tag), "agent %s has a tag of that name: a tag is of agents or of variations", r.Quote(agent))
			}
		}
		for _, param := range slices.Sorted(maps.Keys(m.Params)) {
			head, _, _ := strings.Cut(param, ".")
			if _, both := v.Params[head]; both {
				r.complainOfKey(at.To("params").To(head), "plan.matrix.params varies it too: leave it out there or here")
			}
		}
	}
}

// matrixLineups checks the explicit lineups: all fill the same seats, and no two are the same.
func (r *resolver) matrixLineups(m *Matrix, here yamltree.Path) {
	if len(m.Lineups) == 0 {
		return
	}
	if len(m.Agents) > 0 || len(m.Seats) > 0 {
		r.complain(here, "cannot be combined with agents or seats: remove these, or remove lineups")
	}
	seen := map[string]bool{}
	for i, l := range m.Lineups {
		at := here.To(yamltree.Index(i))
		for _, seat := range slices.Sorted(maps.Keys(l)) {
			if r.matrixSeat(seat, at.To(seat)) && m.Lineup[seat] != nil {
				r.complainOfKey(at.To(seat), "is also in lineup: remove it there or here")
			}
			r.agentKnown(l[seat], at.To(seat))
		}
		if first := slices.Sorted(maps.Keys(m.Lineups[0])); !slices.Equal(slices.Sorted(maps.Keys(l)), first) {
			r.complain(at, "fills %s: every lineup of the list fills the same seats, and the first one fills %s", document.Listed(slices.Sorted(maps.Keys(l))), document.Listed(first))
		}
		if text := lineupText(l); seen[text] {
			r.complain(at, "is listed twice")
		} else {
			seen[text] = true
		}
	}
}

func (r *resolver) rotation(m *Matrix, here yamltree.Path) {
	switch {
	case m.Rotate == "":
	case len(m.Agents) == 0 && len(m.Lineups) == 0:
		r.complain(here, "moves agents or lineups round the seats, and the matrix has none: name agents or lineups")
	case !m.Swap:
		r.complain(yamltree.Path{"plan", "matrix", "swap"}, "is false, and rotate moves agents to other seats: leave one of them out")
	case m.Rotate == "williams" && (len(m.Lineups) > 0 || len(m.Agents) < len(m.Seats)):
		r.complain(here, "williams wants agents, at least one for each of the %d seats it fills: use latin", max(len(m.Seats), len(m.ownSeats())))
	}
}

// variationSeats checks the lineup of a variation.
func (r *resolver) variationSeats(m *Matrix, v Variation, here yamltree.Path) {
	for _, seat := range slices.Sorted(maps.Keys(v.Lineup)) {
		at := here.To(seat)
		switch {
		case !r.seatKnown(seat):
			r.complainOfKey(at, "%s has no such seat%s its seats: %s", r.plan.Kind.Name, schema.Hint(document.Suggestion(seat, r.plan.Seats)), document.Listed(r.plan.Seats))
		case slices.Contains(m.Seats, seat) || m.Lineup[seat] != nil || len(m.Lineups) > 0 && m.Lineups[0][seat] != "":
			r.complainOfKey(at, "the matrix fills that seat in every variation: leave it out there or here")
		}
		r.agentKnown(v.Lineup[seat], at)
	}
}
