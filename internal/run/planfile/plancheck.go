package planfile

import (
	"maps"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
)

// matrix checks the matrix and fills in its defaults.
func (r *resolver) matrix() {
	if r.file.Plan == nil || r.file.Plan.Matrix == nil {
		return
	}
	m := r.file.Plan.Matrix
	r.plan.Matrix = m
	here := yamltree.Path{"plan", "matrix"}
	r.distinct(m.Agents, here.To("agents"), r.agentKnown)
	r.distinct(m.Seats, here.To("seats"), r.matrixSeat)
	r.matrixLineup(m, here.To("lineup"))
	if !r.seated {
		return
	}
	r.matrixSeats(m, here)
	r.design(m, here)
	switch {
	case r.file.Plan.Until != nil && m.Repeat > 0:
		r.Complain(here.To("repeat"), "cannot be combined with until, which decides how many to play: leave it out")
	case r.file.Plan.Until == nil && m.Repeat == 0:
		m.Repeat = 1
	}
	if len(m.Agents) > 0 && !m.Self && len(m.Agents) < len(m.Seats) {
		r.Complain(here.To("agents"), "%d agents cannot fill %d seats (%s): name more, or set self: true to let one sit in several", len(m.Agents), len(m.Seats), documentListed(m.Seats))
	}
	r.cells(m, here)
}

// matrixLineup checks the agents to try in single seats.
func (r *resolver) matrixLineup(m *Matrix, here yamltree.Path) {
	for _, seat := range slices.Sorted(maps.Keys(m.Lineup)) {
		at := here.To(seat)
		if r.matrixSeat(seat, at) && slices.Contains(m.Seats, seat) {
			r.ComplainOfKey(at, "is also in seats: remove it there or here")
		}
		r.distinct(m.Lineup[seat], at, r.agentKnown)
	}
}

// matrixSeats checks that every seat is filled and that something varies.
func (r *resolver) matrixSeats(m *Matrix, here yamltree.Path) {
	empty := r.unfilled(m)
	switch {
	case len(m.Agents) == 0 && len(m.Seats) > 0:
		r.Complain(here.To("agents"), "there is nobody to put into %s: name the agents", strings.Join(m.Seats, ", "))
		return
	case len(m.Agents) == 0 && len(m.Lineup) == 0 && len(m.Lineups) == 0 && len(m.Params) == 0 && len(m.Variations) == 0:
		r.Complain(here, "varies nothing: give agents, lineup, lineups, params or variations")
		return
	case len(m.Agents) == 0 && len(empty) > 0:
		r.Complain(here.To("agents"), "nobody sits in %s: name agents to put there, or fill these seats in lineup", strings.Join(empty, ", "))
		return
	case len(m.Agents) == 0:
		return
	case len(m.Seats) == 0 && len(empty) == 0:
		r.Complain(here, "has no seat to fill: remove the seats that it should fill from lineup; the seats are %s", documentListed(r.plan.Seats))
	case len(m.Seats) == 0:
		m.Seats = empty
	}
	if left := slices.DeleteFunc(slices.Clone(empty), func(s string) bool { return slices.Contains(m.Seats, s) }); len(left) > 0 {
		r.Complain(here.To("seats"), "nobody sits in %s: add to these or to lineup", strings.Join(left, ", "))
	}
}

// unfilled lists the seats that neither the plan's lineup nor the matrix fills, unless agents are put
// there. A seat that only some variations fill is one of them.
func (r *resolver) unfilled(m *Matrix) []string {
	return slices.DeleteFunc(r.emptySeats(), func(s string) bool {
		always := len(m.Variations) > 0
		for _, v := range m.Variations {
			always = always && v.Lineup[s] != ""
		}
		return m.Lineup[s] != nil || always || len(m.Lineups) > 0 && m.Lineups[0][s] != ""
	})
}

// cells counts the cells of a matrix and checks each setting of its params.
func (r *resolver) cells(m *Matrix, here yamltree.Path) {
	cells := min(len(m.Seatings(r.plan.Seats))*max(1, len(m.Variations)), maxCells+1)
	for _, values := range m.Params {
		cells = min(cells*max(1, len(values)), maxCells+1)
	}
	if cells > maxCells || m.Repeat > maxEpisodes/max(1, cells) {
		r.Complain(here, "makes too many episodes: at most %d cells and %d episodes", maxCells, maxEpisodes)
		return
	}
	names := map[string]bool{}
	for _, v := range m.Variants() {
		r.variant(m, v)
	}
	for _, change := range m.Combinations() {
		name := label(change)
		if names[name] {
			r.Complain(here.To("params"), "lists %s twice", r.Quote(name))
		}
		names[name] = true
	}
}

// variant checks one setting of the params: the kind must accept it and have the same seats.
func (r *resolver) variant(m *Matrix, v Variant) {
	here, tried := m.Place(v)
	params, _, err := r.plan.vary(v)
	var seats []string
	if err == nil {
		seats, err = seatsOf(r.plan.Kind, params)
	}
	if err != nil {
		r.ComplainOfParams(r.plan.Kind.Name, err, here, tried)
		return
	}
	if !slices.Equal(seats, r.plan.Seats) {
		r.Complain(here, "%s has other seats (%s) than the params of the plan (%s): a matrix needs the same", r.Quote(label(merge(v.Params, v.Change).(map[string]any))), documentListed(seats), documentListed(r.plan.Seats))
	}
}

// distinct checks that each name of a list is known and none is repeated.
func (r *resolver) distinct(names []string, here yamltree.Path, known func(string, yamltree.Path) bool) {
	for i, name := range names {
		if at := here.To(yamltree.Index(i)); known(name, at) && slices.Contains(names[:i], name) {
			r.Complain(at, "%s is listed twice", r.Quote(name))
		}
	}
}

// matrixSeat checks a seat that a matrix fills.
func (r *resolver) matrixSeat(seat string, here yamltree.Path) bool {
	if !r.seatKnown(seat) {
		r.Complain(here, "%s has no seat %s%s", r.plan.Kind.Name, r.Quote(seat), r.seatsLike(seat))
		return false
	}
	if agent, taken := r.plan.Lineup[seat]; taken {
		r.Complain(here, "%s sits in %s by lineup: leave it out there or here", r.Quote(agent), seat)
	}
	return true
}

// until checks until and fills in its defaults.
func (r *resolver) until() {
	if r.file.Plan == nil || r.file.Plan.Until == nil {
		return
	}
	u := r.file.Plan.Until
	r.plan.Until = u
	here := yamltree.Path{"plan", "until"}
	if name := r.plan.Kind.Name; r.plan.Kind.Plans() {
		r.Complain(here, "%s decides by itself when to stop: remove until. To play it several times, use episodes or matrix", name)
		return
	}
	switch {
	case u.Seat != "" && !r.seatKnown(u.Seat):
		r.Complain(here.To("seat"), "%s has no seat %s%s", r.plan.Kind.Name, r.Quote(u.Seat), r.seatsLike(u.Seat))
	case u.Agent != "":
		r.agentKnown(u.Agent, here.To("agent"))
	}
	r.score(u, here)
	*u = u.WithDefaults()
	if u.Max < u.Min {
		r.Complain(here.To("max"), "is less than min, which is %d", u.Min)
	}
	if len(r.Errs) > 0 {
		return
	}
	// Package world checks the rest.
	if _, err := r.plan.World(); err != nil {
		r.Complain(here, "%v", err)
	}
}

// score checks that the kind declares the score, for the seat or agent that is wanted. If a kind
// declares no scores, a wrong name is found during play.
func (r *resolver) score(u *planner.Until, here yamltree.Path) {
	all := r.plan.Kind.Measures(r.plan.Params)
	if all == nil || len(r.Errs) > 0 {
		return
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	at := slices.Index(names, u.Score)
	if at < 0 {
		r.Complain(here.To("score"), "%s has no score %s%s its scores: %s", r.plan.Kind.Name, r.Quote(u.Score), schemaHint(text.Suggest(u.Score, names)), documentListed(names))
		return
	}
	switch seats := all[at].Seats; {
	case len(seats) == 0 && u.Seat != "":
		r.Complain(here.To("seat"), "%s is a score of the whole episode: leave the seat out", u.Score)
	case len(seats) == 0 && u.Agent != "":
		r.Complain(here.To("agent"), "%s is a score of the whole episode: leave the agent out", u.Score)
	case len(seats) > 0 && u.Seat == "" && u.Agent == "":
		r.Complain(here.To("score"), "%s is a score of seats: say whose with seat (%s) or agent", u.Score, documentListed(seats))
	case len(seats) > 0 && u.Seat != "" && !slices.Contains(seats, u.Seat):
		r.Complain(here.To("seat"), "%s has no %s: it is a score of %s", u.Seat, u.Score, documentListed(seats))
	}
}
