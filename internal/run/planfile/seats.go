package planfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/world"
)

// params decodes the params and gets the seats from the kind.
func (r *resolver) params(beside *Files) {
	if !r.known {
		return
	}
	p := r.plan
	var err error
	p.Params, p.ParamsJSON, err = decodeParams(p.Kind, r.file.Params)
	if err != nil {
		r.ComplainOfParams(r.plan.Kind.Name, err, yamltree.Path{"params"}, nil)
		return
	}
	loaded := r.load(beside)
	seats, err := seatsOf(p.Kind, p.Params)
	if err != nil && loaded {
		if of, refused := r.firstCell(); of != nil && refused == nil {
			seats, err = of, nil
		}
	}
	for _, one := range leaves(err) {
		if one != nil && (loaded || !errors.Is(one, world.ErrUnread)) { // unread files were reported
			r.ComplainOfParams(r.plan.Kind.Name, one, yamltree.Path{"params"}, nil)
		}
	}
	if loaded && err == nil {
		p.Seats, r.seated = seats, true
	}
}

// firstCell returns the seats of the first cell of a matrix, or nil if there is none. Only cells are played, so
// the params of the plan may lack what every cell sets; each cell is checked with the matrix.
func (r *resolver) firstCell() ([]string, error) {
	if r.file.Plan == nil || r.file.Plan.Matrix == nil || r.plan.Kind.External() {
		return nil, nil
	}
	m, change := r.file.Plan.Matrix, map[string]any{}
	for name, values := range m.Params {
		if len(values) > 0 {
			change[name] = values[0]
		}
	}
	params, _, err := r.plan.vary(Variant{Variation: m.Variations[m.VariationNames()[0]], Change: change})
	if err != nil {
		return nil, err
	}
	return seatsOf(r.plan.Kind, params)
}

// seatsOf returns the seats for params. Each must have its own name.
func seatsOf(k world.Kind, params world.Params) ([]string, error) {
	seats, err := k.Seats(params)
	for i, seat := range seats {
		switch {
		case err != nil:
		case seat == "":
			err = fmt.Errorf("the kind makes %d seats of these params, and seat %d has no name: correct its method Seats", len(seats), i+1)
		case slices.Contains(seats[:i], seat):
			err = fmt.Errorf("the kind makes the seat %s twice of these params: correct its method Seats", yamltree.Quote(seat))
		}
	}
	return seats, err
}

// lineup checks which agent sits in which seat.
func (r *resolver) lineup() {
	p := r.plan
	p.Lineup = r.file.Lineup
	matrix := r.file.Plan != nil && r.file.Plan.Matrix.FillsSeats()
	if r.Tree.Field("lineup") == nil && !matrix && (len(p.Agents) > 0 || !p.Kind.ChoosesModels()) {
		r.seatAll()
		return
	}
	for _, seat := range slices.Sorted(maps.Keys(p.Lineup)) {
		here := yamltree.Path{"lineup", seat}
		if r.seatKnown(seat) {
			r.agentKnown(p.Lineup[seat], here)
		} else {
			r.ComplainOfKey(here, "%s has no such seat%s", p.Kind.Name, r.seatsLike(seat))
		}
	}
	r.seatModels()
	if empty := r.emptySeats(); len(empty) > 0 && !matrix {
		r.Complain(yamltree.Path{"lineup"}, "nobody sits in %s: add `%s: AGENT` for each; agents: %s", strings.Join(empty, ", "), empty[0], documentListed(r.agentNames()))
	}
}

// seatAll fills a missing lineup: the only agent sits in every seat.
func (r *resolver) seatAll() {
	names := r.agentNames()
	if mine := slices.DeleteFunc(slices.Clone(names), r.bySet); len(mine) == 1 {
		names = mine // an agent that an override adds is not a second one: see unseated
	}
	if len(names) != 1 {
		if len(r.plan.Seats) > 0 && len(names) > 0 {
			r.Complain(yamltree.Path{"lineup"}, "is missing: with several agents, say who sits where; the seats are %s", documentListed(r.plan.Seats))
		}
		return
	}
	r.plan.Lineup = map[string]string{}
	for _, seat := range r.plan.Seats {
		r.plan.Lineup[seat] = names[0]
	}
}

// emptySeats lists the seats that the lineup leaves out. A seat whose entry has an error is not empty.
func (r *resolver) emptySeats() []string {
	var empty []string
	for _, seat := range r.plan.Seats {
		if r.Tree.Field("lineup").Field(seat) == nil && r.plan.Lineup[seat] == "" {
			empty = append(empty, seat)
		}
	}
	return empty
}

func (r *resolver) agentNames() []string {
	names := make([]string, len(r.plan.Agents))
	for i, a := range r.plan.Agents {
		names[i] = a.Name
	}
	return names
}

func (r *resolver) agentKnown(name string, here yamltree.Path) bool {
	// An agent with wrong keys is still known. If there are no agents, that was reported.
	names := r.agentNames()
	if len(names) == 0 || r.Tree.Field("agents").Field(name) != nil {
		return true
	}
	r.Complain(here, "no agent is named %s%s agents: %s", r.Quote(name), schemaHint(text.Suggest(name, names)), documentListed(names))
	return false
}

// seatKnown reports whether the kind has a seat. It is true if the seats are not known.
func (r *resolver) seatKnown(seat string) bool {
	return !r.seated || slices.Contains(r.plan.Seats, seat)
}

// seatsLike lists the seats for an error about one that does not exist, and suggests the nearest.
func (r *resolver) seatsLike(seat string) string {
	return schemaHint(text.Suggest(seat, r.plan.Seats)) + " its seats: " + documentListed(r.plan.Seats)
}

// unseated removes the agents without a seat, and reports them: a misspelled name in an override adds such an agent, and the
// one that was meant would play unchanged. An agent of the file may be a template for others (&base) or lose its seat by an
// override, and a recorded plan may hold agents of other episodes.
func (r *resolver) unseated() {
	if !r.seated || slices.ContainsFunc(r.Errs, func(e *Error) bool {
		return strings.HasPrefix(e.Key, "lineup") || strings.HasPrefix(e.Key, "plan")
	}) {
		return // the lineup is not known
	}
	seated := map[string]bool{}
	for _, name := range r.plan.Lineup {
		seated[name] = true
	}
	if r.plan.Matrix != nil {
		for _, name := range r.plan.Matrix.AgentNames() {
			seated[name] = true
		}
	}
	addFallbacks(seated, r.plan.Agents)
	moved := r.Tree.Field("lineup").Overridden() || r.Tree.Field("plan").Overridden()
	names := slices.Sorted(maps.Keys(seated))
	others := ""
	if len(names) > 0 {
		others = "; agents with a seat: " + documentListed(names)
	}
	all := r.plan.Agents
	r.plan.Agents = slices.DeleteFunc(slices.Clone(all), func(a world.Agent) bool { return !seated[a.Name] })
	for _, a := range all {
		name := a.Name
		if seated[name] || !r.bySet(name) && (moved || r.Source.Recorded || r.Tree.Field("agents").Field(name).Anchor) {
			continue
		}
		here := yamltree.Path{"agents", name}
		// Other errors in an agent that nobody wanted do not matter.
		r.Errs = slices.DeleteFunc(r.Errs, func(e *Error) bool {
			return r.bySet(name) && (e.Key == here.String() || strings.HasPrefix(e.Key, here.String()+"."))
		})
		r.ComplainOfKey(here, "sits in no seat%s give it one in lineup, or leave it out%s", schemaHint(text.Suggest(name, names)), others)
	}
}

// bySet reports whether only an override names an agent.
func (r *resolver) bySet(name string) bool {
	n := r.Tree.Field("agents").Field(name)
	return n != nil && n.Key.Set != ""
}
