package bot

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// greedyOrders is a simple player: every unit moves towards the nearest centre that its power
// does not own, no two to the same province, and units without a good move support others. It
// makes no agreements and plans only one phase.
func greedyOrders(r *rules.Rules, p *rules.Position, w board.Power, chance *rand.Rand) []order.Order {
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
	w       board.Power
	chance  *rand.Rand
	choices []rules.Choice
}

// option is an order and its value.
type option struct {
	unit  int // of choices
	order order.Order
	worth float64
}

// moves assigns the best moves first, and lets the other units support them.
func (g *greedy) moves() []order.Order {
	var options []option
	for i, c := range g.choices {
		for _, o := range c.Orders {
			if o.Kind == order.Hold || o.Kind == order.Move && !o.Via {
				options = append(options, option{i, o, g.worth(o) + g.chance.Float64()/4})
			}
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(b.worth, a.worth) })
	orders := make([]*order.Order, len(g.choices))
	var taken board.Set[board.Province]
	for _, o := range options {
		to := g.target(o.order)
		if orders[o.unit] == nil && !taken.Has(to) {
			orders[o.unit] = &o.order
			taken.Add(to)
		}
	}
	g.support(orders)
	var all []order.Order
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
func (g *greedy) support(orders []*order.Order) {
	var contested []order.Order
	for _, o := range orders {
		if o != nil && o.Kind == order.Move && g.contested(g.target(*o)) && g.worth(*o) >= 5 {
			contested = append(contested, *o)
		}
	}
	for i, c := range g.choices {
		if orders[i] != nil && g.worth(*orders[i]) >= 5 {
			continue
		}
		for _, m := range contested {
			at := slices.IndexFunc(c.Orders, func(o order.Order) bool {
				return o.Kind == order.Support && o.Of == m.At && o.To != board.Nowhere && g.rules.Board.Province(o.To) == g.target(m)
			})
			if at >= 0 {
				orders[i] = &c.Orders[at]
				break
			}
		}
	}
}

// target is the province a unit will be in if its order succeeds.
func (g *greedy) target(o order.Order) board.Province {
	if o.Kind == order.Move || o.Kind == order.Retreat {
		return g.rules.Board.Province(o.To)
	}
	return g.rules.Board.Province(o.At)
}

// contested reports whether a unit of another power is in a province or could move there.
func (g *greedy) contested(at board.Province) bool {
	for _, u := range g.p.Units {
		if u.Power != board.None && u.Power != g.w && (g.rules.Board.Province(u.Location) == at || g.rules.Board.Reach(u.Type, u.Location).Has(at)) {
			return true
		}
	}
	return false
}

// worth is the value of the province that an order leads to: highest for centres of others, then
// for the power's threatened centres, then by the distance to a centre.
func (g *greedy) worth(o order.Order) float64 {
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
	if o.Kind != order.Hold {
		place = o.To
	}
	return 3 - float64(g.far(o.Type, place))/2
}

// far is the distance to the nearest centre of others, at most ten.
func (g *greedy) far(t board.Type, from board.Location) int {
	best := 10
	for c := range g.rules.Board.SupplyCentres().All() {
		if g.p.Owners[c] != g.w {
			best = min(best, g.rules.Board.Distance(t, from, c))
		}
	}
	return best
}

// retreats chooses the retreats of the highest value, and disbands only without one.
func (g *greedy) retreats() []order.Order {
	var orders []order.Order
	for _, c := range g.choices {
		best := c.Orders[len(c.Orders)-1]
		for _, o := range c.Orders {
			if o.Kind == order.Retreat && (best.Kind != order.Retreat || g.worth(o) > g.worth(best)) {
				best = o
			}
		}
		orders = append(orders, best)
	}
	return orders
}

// adjustments builds the units nearest to a centre, and removes those farthest from one.
func (g *greedy) adjustments() []order.Order {
	n := g.rules.Allowed(g.p, g.w)
	var options []option
	for i, c := range g.choices {
		for _, o := range c.Orders {
			if o.Kind == order.Waive {
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
	var orders []order.Order
	used := map[int]bool{}
	for _, o := range options {
		if len(orders) < max(n, -n) && !used[o.unit] {
			used[o.unit] = true
			orders = append(orders, o.order)
		}
	}
	return orders
}
