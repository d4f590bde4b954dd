package planfile

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"parley/internal/kit/yamltree"
	"parley/internal/run/results"
)

// tags checks the tags of an agent or a variation.
func (r *resolver) tags(tags map[string]string, here yamltree.Path) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		at := here.To(name)
		switch {
		case !isTagName(name):
			r.ComplainOfKey(at, "the name of a tag is one word of letters, digits, _ and -, at most 64 long")
		case slices.Contains(results.OwnFactors(), name):
			r.ComplainOfKey(at, "scores can be grouped by %s without a tag: choose another name; taken: %s", name, documentListed(results.OwnFactors()))
		}
		if len(tags[name]) > 64 || strings.ContainsFunc(tags[name], unicode.IsControl) {
			r.Complain(at, "the value of a tag is one line of at most 64 bytes")
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
		if !isAgentName(name) {
			r.ComplainOfKey(at, "the name of a variation is one word of letters, digits and _ . @ + / -, at most 64 long")
		}
		r.variationSeats(m, v, at.To("lineup"))
		r.tags(v.Tags, at.To("tags"))
		for _, tag := range slices.Sorted(maps.Keys(v.Tags)) {
			if agent, both := ofAgents[tag]; both {
				r.ComplainOfKey(at.To("tags").To(tag), "agent %s has a tag of that name: a tag is of agents or of variations", r.Quote(agent))
			}
		}
		for _, param := range slices.Sorted(maps.Keys(m.Params)) {
			head, _, _ := strings.Cut(param, ".")
			if _, both := v.Params[head]; both {
				r.ComplainOfKey(at.To("params").To(head), "plan.matrix.params varies it too: leave it out there or here")
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
		r.Complain(here, "cannot be combined with agents or seats: remove these, or remove lineups")
	}
	seen := map[string]bool{}
	for i, l := range m.Lineups {
		at := here.To(yamltree.Index(i))
		for _, seat := range slices.Sorted(maps.Keys(l)) {
			if r.matrixSeat(seat, at.To(seat)) && m.Lineup[seat] != nil {
				r.ComplainOfKey(at.To(seat), "is also in lineup: remove it there or here")
			}
			r.agentKnown(l[seat], at.To(seat))
		}
		if first := slices.Sorted(maps.Keys(m.Lineups[0])); !slices.Equal(slices.Sorted(maps.Keys(l)), first) {
			r.Complain(at, "fills %s: every lineup of the list fills the same seats, and the first one fills %s", documentListed(slices.Sorted(maps.Keys(l))), documentListed(first))
		}
		if text := lineupText(l); seen[text] {
			r.Complain(at, "is listed twice")
		} else {
			seen[text] = true
		}
	}
}

func (r *resolver) rotation(m *Matrix, here yamltree.Path) {
	switch {
	case m.Rotate == "":
	case len(m.Agents) == 0 && len(m.Lineups) == 0:
		r.Complain(here, "moves agents or lineups round the seats, and the matrix has none: name agents or lineups")
	case !m.Swap:
		r.Complain(yamltree.Path{"plan", "matrix", "swap"}, "is false, and rotate moves agents to other seats: leave one of them out")
	case m.Rotate == "williams" && (len(m.Lineups) > 0 || len(m.Agents) < len(m.Seats)):
		r.Complain(here, "williams wants agents, at least one for each of the %d seats it fills: use latin", max(len(m.Seats), len(m.OwnSeats())))
	}
}

// variationSeats checks the lineup of a variation.
func (r *resolver) variationSeats(m *Matrix, v Variation, here yamltree.Path) {
	for _, seat := range slices.Sorted(maps.Keys(v.Lineup)) {
		at := here.To(seat)
		switch {
		case !r.seatKnown(seat):
			r.ComplainOfKey(at, "%s has no such seat%s", r.plan.Kind.Name, r.seatsLike(seat))
		case slices.Contains(m.Seats, seat) || m.Lineup[seat] != nil || len(m.Lineups) > 0 && m.Lineups[0][seat] != "":
			r.ComplainOfKey(at, "the matrix fills that seat in every variation: leave it out there or here")
		}
		r.agentKnown(v.Lineup[seat], at)
	}
}
