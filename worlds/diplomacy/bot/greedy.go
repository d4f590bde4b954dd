package bot

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// greedyOrders is a simple player: every unit wants the nearest centre that is not its
// power's, no two go to the same place, and whoever has nothing better to do supports a
// neighbour. It makes no agreements and plans for one phase only.
func greedyOrders(r *rules.Rules, p *rules.Position, w board.Power, chance *rand.Rand) []order.Order {
	g := &greedy{rules: r, p: p, w: w, chance: chance, choices: ownChoices(r, p, w)}
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

// option is a way to go and what it is worth.
type option struct {
	unit  int // of choices
	order order.Order
	worth float64
}

// moves gives the best moves out first, and lets the units that are left support them.
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
		if o == nil { // everything around is taken by others of its own
			hold := g.choices[i].Orders[0]
			o = &hold
		}
		all = append(all, *o)
	}
	return all
}

// support turns units whose own way is worth little into supporters of contested moves.
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

// contested says whether somebody else stands in a province, or could go there.
func (g *greedy) contested(at board.Province) bool {
	for _, u := range g.p.Units {
		if u.Power != board.None && u.Power != g.w && (g.rules.Board.Province(u.Location) == at || g.rules.Board.Reach(u.Type, u.Location).Has(at)) {
			return true
		}
	}
	return false
}

// worth is what it is worth to be where an order leads: centres of others most, then being
// near to one; guarding an own centre that is threatened counts as well.
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

// far is how far the nearest centre of others is, at most ten.
func (g *greedy) far(t board.Type, from board.Location) int {
	best := 10
	for c := range g.rules.Board.SupplyCentres().All() {
		if g.p.Owners[c] != g.w {
			best = min(best, g.rules.Board.Distance(t, from, c))
		}
	}
	return best
}

// retreats goes where it is worth most, and disbands only where there is no way.
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

// adjustments builds what has the shortest way to a centre, and removes what has the longest.
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
