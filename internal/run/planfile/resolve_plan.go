package planfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
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
	if !r.seatsKnown {
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
		r.Complain(here.To("agents"), "%d agents cannot fill %d seats (%s): name more, or set self: true to let one sit in several", len(m.Agents), len(m.Seats), listed(m.Seats))
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
		r.Complain(here, "has no seat to fill: remove the seats that it should fill from lineup; the seats are %s", listed(r.plan.Seats))
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
	seatings := m.Seatings(r.plan.Seats)
	if len(seatings) == 0 && len(r.Errs) == 0 {
		r.Complain(here, "makes no lineups: it seats no agent")
		return
	}
	cells := min(len(seatings)*max(1, len(m.Variations)), maxCells+1)
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
		name := combinationLabel(change)
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
		r.Complain(here, "%s has other seats (%s) than the params of the plan (%s): a matrix needs the same", r.Quote(combinationLabel(mergeParams(v.Params, v.Change).(map[string]any))), listed(seats), listed(r.plan.Seats))
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
	// Making the plan checks the rest.
	if _, err := r.plan.World(); err != nil {
		r.Complain(here, "%v", err)
	}
}

// FlagUntil makes a rule of the values of the flag --until. Its keys are those of plan.until, except for those that say whose score it is.
func FlagUntil(values map[string]string) (*planner.Until, error) {
	const flag = "--until"
	s := documented[planner.Until]()
	s.Keys = slices.DeleteFunc(s.Keys, func(k Key) bool { return k.Name == "seat" || k.Name == "agent" })
	tree := &yamltree.Node{Form: yamltree.Mapping}
	c := &checker{report: &report{Source: &source{Name: flag}}, Tree: tree, Root: s, Meant: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		override(c.report, tree, s, flag, name+"="+values[name])
	}
	read, _ := c.Value(tree, s, nil)
	if err := c.Err(); err != nil {
		return nil, err
	}
	u := &planner.Until{}
	_ = remarshal(read, u) // it was checked
	if err := u.WithDefaults().Check(); err != nil {
		return nil, fmt.Errorf("--%w", err) // it begins with until
	}
	return u, nil
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
		r.Complain(here.To("score"), "%s has no score %s%s its scores: %s", r.plan.Kind.Name, r.Quote(u.Score), endHint(text.Suggest(u.Score, names)), listed(names))
		return
	}
	switch seats := all[at].Seats; {
	case len(seats) == 0 && u.Seat != "":
		r.Complain(here.To("seat"), "%s is a score of the whole episode: leave the seat out", u.Score)
	case len(seats) == 0 && u.Agent != "":
		r.Complain(here.To("agent"), "%s is a score of the whole episode: leave the agent out", u.Score)
	case len(seats) > 0 && u.Seat == "" && u.Agent == "":
		r.Complain(here.To("score"), "%s is a score of seats: say whose with seat (%s) or agent", u.Score, listed(seats))
	case len(seats) > 0 && u.Seat != "" && !slices.Contains(seats, u.Seat):
		r.Complain(here.To("seat"), "%s has no %s: it is a score of %s", u.Seat, u.Score, listed(seats))
	}
}

// ownParam reports whether a kind has a param of a name, and so reads a key of train itself.
func ownParam(k world.Kind, name string) bool {
	return slices.ContainsFunc(paramsShape(k).Keys, func(key Key) bool { return key.Name == name })
}

// trainParams gives params the keys of train that the kind reads itself.
func (r *resolver) trainParams() {
	t := r.file.Train
	if t == nil {
		return
	}
	given := map[string]any{}
	if t.Group > 0 {
		given["group"] = t.Group
	}
	if t.MaxStaleness != nil {
		given["max_staleness"] = *t.MaxStaleness
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !ownParam(r.plan.Kind, name) {
			continue
		}
		if was, both := r.file.Params[name]; both && fmt.Sprint(was) != fmt.Sprint(given[name]) {
			r.Complain(yamltree.Path{"params", name}, "is %v, and train.%s is %v: leave one of them out", was, name, given[name])
		}
		if r.file.Params == nil {
			r.file.Params = map[string]any{}
		}
		r.file.Params[name] = given[name]
	}
}

// train checks the train key and fills in its defaults.
func (r *resolver) train() {
	p, here := r.plan, yamltree.Path{"train"}
	if p.trains = r.file.Train; p.trains != nil {
		p.Train = *p.trains
	}
	var own struct {
		Group        int
		MaxStaleness *int `json:"max_staleness"`
	}
	_ = unmarshal(p.ParamsJSON, &own) // what is no number is another param of that name
	p.Train.Group = cmp.Or(p.Train.Group, own.Group)
	p.Train.MaxStaleness = cmp.Or(p.Train.MaxStaleness, own.MaxStaleness)
	for _, a := range p.Agents {
		switch _, _, past := Version(a.Model); {
		case past && a.Trainable:
			r.Complain(yamltree.Path{"agents", a.Name, "model"}, "is an earlier version, and what is trained is the latest: leave @past out, or trainable")
		case !past && strings.Contains(a.Model, "@past:"):
			r.Complain(yamltree.Path{"agents", a.Name, "model"}, "%s: want a share of deals from 0 to 1 after @past:, as @past:0.3", r.Quote(a.Model))
		}
	}
	if p.trains == nil || !r.seatsKnown {
		return
	}
	if name := p.Kind.Name; p.trains.Group > 1 && !ownParam(p.Kind, "group") {
		switch {
		case p.Kind.Plans():
			r.Complain(here.To("group"), "%s decides by itself what to play: remove group", name)
		case p.Until != nil:
			r.Complain(here.To("group"), "cannot be combined with plan.until, which decides how many to play: leave it out there or here")
		case p.Episodes > world.MaxEpisodes/p.trains.Group:
			r.Complain(here.To("group"), "makes groups of %d of %d deals, and at most %d episodes are possible: lower it, or episodes", p.trains.Group, p.Episodes, world.MaxEpisodes)
		}
	}
	r.reward(here.To("reward"))
	marked := slices.ContainsFunc(p.Agents, func(a world.Agent) bool { return a.Trainable })
	for i := range p.Agents {
		a := &p.Agents[i]
		if a.Trainable == marked && a.Model != "" && !a.Human() {
			name, _ := llm.SplitModel(a.Model)
			account, known := r.account(name)
			a.Tokens = a.Tokens || known && account.ReturnsTokens(a.Model)
		}
	}
}

// Version returns the model of a name such as lab/policy@latest without its version, and for lab/policy@past:0.2 in which share of
// episodes an earlier one is meant. Other names, lab/policy@v12 too, are those that a server knows.
func Version(model string) (base string, share float64, past bool) {
	if base, ok := strings.CutSuffix(model, "@latest"); ok {
		return base, 0, false
	}
	base, rest, found := strings.Cut(model, "@past")
	if !found {
		return model, 0, false
	}
	if rest == "" {
		return base, 1, true
	}
	share, err := strconv.ParseFloat(strings.TrimPrefix(rest, ":"), 64)
	if err != nil || rest[0] != ':' || !(share >= 0 && share <= 1) {
		return model, 0, false
	}
	return base, share, true
}

// reward checks that the kind declares the score that is the reward.
func (r *resolver) reward(here yamltree.Path) {
	all, score := r.plan.Kind.Measures(r.plan.Params), r.plan.Train.Reward
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	if score != "" && len(names) > 0 && !slices.Contains(names, score) {
		r.Complain(here, "%s has no score %s%s its scores: %s", r.plan.Kind.Name, r.Quote(score), endHint(text.Suggest(score, names)), listed(names))
	}
}

// tags checks the tags of an agent or a variation.
func (r *resolver) tags(tags map[string]string, here yamltree.Path) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		at := here.To(name)
		switch {
		case !isTagName(name):
			r.ComplainOfKey(at, "the name of a tag is one word of letters, digits, _ and -, at most 64 long")
		case slices.Contains(results.OwnFactors(), name):
			r.ComplainOfKey(at, "scores can be grouped by %s without a tag: choose another name; taken: %s", name, listed(results.OwnFactors()))
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
			r.Complain(at, "fills %s: every lineup of the list fills the same seats, and the first one fills %s", listed(slices.Sorted(maps.Keys(l))), listed(first))
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
