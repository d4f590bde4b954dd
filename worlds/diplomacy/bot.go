package diplomacy

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// newBots returns the bots by name, baselines to measure models against: random draws among the
// legal orders of each unit, greedy moves to the nearest centres. They write no messages and no
// diary.
func newBots(r *rules.Rules) map[string]world.Bot {
	return map[string]world.Bot{
		"random": newBot(r, randomOrders),
		"greedy": newBot(r, greedyOrders),
	}
}

// botQuestion is the question to a bot: the position, and a seed, so that games with different deals
// differ.
type botQuestion struct {
	Power string      `json:"power"`
	State rules.State `json:"state"`
	Draw  uint64      `json:"draw"`
}

// botCall asks the bot in a seat for orders.
func botCall(seat, label string, form *llm.Schema, state rules.State, draw uint64) world.Call {
	b, err := json.Marshal(botQuestion{seat, state, draw})
	if err != nil {
		b = []byte("{}") // texts and lists always marshal
	}
	return world.Call{Seat: seat, Label: label, Ask: llm.Request{Messages: []llm.Message{llm.User(string(b))}, Schema: form}}
}

// botStrategy returns the orders of a power in a position.
type botStrategy func(r *rules.Rules, p *rules.Position, w rules.Power, chance *rand.Rand) []rules.Order

// newBot makes a bot from a strategy. It answers any question that botCall did not make with no orders.
func newBot(r *rules.Rules, think botStrategy) world.Bot {
	return func(c world.Call) world.Reply {
		var seen botQuestion
		answer := struct {
			Reason string   `json:"reason"`
			Orders []string `json:"orders"`
		}{Orders: []string{}}
		if ms := c.Ask.Messages; len(ms) > 0 && json.Unmarshal([]byte(ms[len(ms)-1].Text()), &seen) == nil {
			p, err := r.FromState(seen.State)
			if w, ok := rules.ParsePower(seen.Power); ok && err == nil {
				for _, o := range think(r, &p, w, rand.New(rand.NewPCG(seen.Draw, uint64(w)))) {
					answer.Orders = append(answer.Orders, o.Text(r.Board))
				}
			}
		}
		b, err := json.Marshal(answer)
		if err != nil {
			return world.Reply{Failed: llm.KindMalformed}
		}
		return world.Reply{Text: string(b), JSON: b, Finish: llm.FinishStop}
	}
}

// randomOrders draws an order for each unit, and as many builds or removals as are due.
func randomOrders(r *rules.Rules, p *rules.Position, w rules.Power, chance *rand.Rand) []rules.Order {
	choices := rules.ChoicesOf(r.Choices(p), w)
	if p.Phase.Step == rules.Adjustments {
		n := r.Allowed(p, w)
		chance.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
		choices = choices[:min(len(choices), max(n, -n))]
	}
	orders := make([]rules.Order, len(choices))
	for i, c := range choices {
		orders[i] = c.Orders[chance.IntN(len(c.Orders))]
	}
	return orders
}

// greedyOrders is a simple player: every unit moves towards the nearest centre that its power
// does not own, no two to the same province, and units without a good move support others. It
// makes no agreements and plans only one phase.
func greedyOrders(r *rules.Rules, p *rules.Position, w rules.Power, chance *rand.Rand) []rules.Order {
	g := &greedy{rules: r, p: p, w: w, chance: chance, choices: rules.ChoicesOf(r.Choices(p), w)}
	switch p.Phase.Step {
	case rules.Retreats:
		return g.retreats()
	case rules.Adjustments:
		return g.adjustments()
	}
	return g.moves()
}

type greedy struct {
	rules   *rules.Rules
	p       *rules.Position
	w       rules.Power
	chance  *rand.Rand
	choices []rules.Choice
}

// option is an order and its value.
type option struct {
	unit  int // of choices
	order rules.Order
	worth float64
}

// moves assigns the best moves first, and lets the other units support them.
func (g *greedy) moves() []rules.Order {
	var options []option
	for i, c := range g.choices {
		for _, o := range c.Orders {
			if o.Kind == rules.Hold || o.Kind == rules.Move && !o.Via {
				options = append(options, option{i, o, g.worth(o) + g.chance.Float64()/4})
			}
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(b.worth, a.worth) })
	orders := make([]*rules.Order, len(g.choices))
	var taken rules.Set[rules.Province]
	for _, o := range options {
		to := g.target(o.order)
		if orders[o.unit] == nil && !taken.Has(to) {
			orders[o.unit] = &o.order
			taken.Add(to)
		}
	}
	g.support(orders)
	var all []rules.Order
	for i, o := range orders {
		if o == nil { // other units of the power move to all of its targets
			hold := g.choices[i].Orders[0]
			o = &hold
		}
		all = append(all, *o)
	}
	return all
}

// support makes units with a move of little value support contested moves.
func (g *greedy) support(orders []*rules.Order) {
	var contested []rules.Order
	for _, o := range orders {
		if o != nil && o.Kind == rules.Move && g.contested(g.target(*o)) && g.worth(*o) >= 5 {
			contested = append(contested, *o)
		}
	}
	for i, c := range g.choices {
		if orders[i] != nil && g.worth(*orders[i]) >= 5 {
			continue
		}
		for _, m := range contested {
			at := slices.IndexFunc(c.Orders, func(o rules.Order) bool {
				return o.Kind == rules.Support && o.Of == m.At && o.To != rules.Nowhere && g.rules.Board.Province(o.To) == g.target(m)
			})
			if at >= 0 {
				orders[i] = &c.Orders[at]
				break
			}
		}
	}
}

// target is the province a unit will be in if its order succeeds.
func (g *greedy) target(o rules.Order) rules.Province {
	if o.Kind == rules.Move || o.Kind == rules.Retreat {
		return g.rules.Board.Province(o.To)
	}
	return g.rules.Board.Province(o.At)
}

// contested reports whether a unit of another power is in a province or could move there.
func (g *greedy) contested(at rules.Province) bool {
	for _, u := range g.p.Units {
		if u.Power != rules.None && u.Power != g.w && (g.rules.Board.Province(u.Location) == at || g.rules.Board.Reach(u.Type, u.Location).Has(at)) {
			return true
		}
	}
	return false
}

// worth is the value of the province that an order leads to: highest for centres of others, then
// for the power's threatened centres, then by the distance to a centre.
func (g *greedy) worth(o rules.Order) float64 {
	at := g.target(o)
	wanted := g.rules.Board.SupplyCentres().Has(at) && g.p.Owners[at] != g.w
	switch {
	case wanted && g.p.Phase.Season == rules.Fall:
		return 12
	case wanted:
		return 9
	case g.p.Owners[at] == g.w && g.contested(at):
		return 4
	}
	place := o.At
	if o.Kind != rules.Hold {
		place = o.To
	}
	return 3 - float64(g.far(o.Type, place))/2
}

// far is the distance to the nearest centre of others, at most ten.
func (g *greedy) far(t rules.Type, from rules.Location) int {
	best := 10
	for c := range g.rules.Board.SupplyCentres().All() {
		if g.p.Owners[c] != g.w {
			best = min(best, g.rules.Board.Distance(t, from, c))
		}
	}
	return best
}

// retreats chooses the retreats of the highest value, and disbands only without one.
func (g *greedy) retreats() []rules.Order {
	var orders []rules.Order
	for _, c := range g.choices {
		best := c.Orders[len(c.Orders)-1]
		for _, o := range c.Orders {
			if o.Kind == rules.Retreat && (best.Kind != rules.Retreat || g.worth(o) > g.worth(best)) {
				best = o
			}
		}
		orders = append(orders, best)
	}
	return orders
}

// adjustments builds the units nearest to a centre, and removes those farthest from one.
func (g *greedy) adjustments() []rules.Order {
	n := g.rules.Allowed(g.p, g.w)
	var options []option
	for i, c := range g.choices {
		for _, o := range c.Orders {
			if o.Kind == rules.Waive {
				continue
			}
			worth := -float64(g.far(o.Type, o.At)) + g.chance.Float64()
			if n < 0 {
				worth = -worth
			}
			options = append(options, option{i, o, worth})
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(b.worth, a.worth) })
	var orders []rules.Order
	used := map[int]bool{}
	for _, o := range options {
		if len(orders) < max(n, -n) && !used[o.unit] {
			used[o.unit] = true
			orders = append(orders, o.order)
		}
	}
	return orders
}
