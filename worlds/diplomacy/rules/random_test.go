package rules

import (
	"math/rand/v2"
	"testing"
)

// byUnit returns the legal orders of each unit, by power.
func (r *Rules) byUnit(p *Position) (lists [Turkey + 1][][]Order) {
	for _, c := range r.Choices(p) {
		lists[c.Power] = append(lists[c.Power], c.Orders)
	}
	return lists
}

// randomOrders gives every unit one of its legal orders.
func (r *Rules) randomOrders(p *Position, rng *rand.Rand) Orders {
	var orders Orders
	lists := r.byUnit(p)
	for _, w := range Powers() {
		for _, list := range lists[w] {
			orders[w] = append(orders[w], list[rng.IntN(len(list))])
		}
		if n := r.Allowed(p, w); p.Phase.Step == Adjustments {
			rng.Shuffle(len(orders[w]), func(i, j int) { orders[w][i], orders[w][j] = orders[w][j], orders[w][i] })
			orders[w] = orders[w][:min(len(orders[w]), max(n, -n))]
		}
	}
	return orders
}

// coherent gives related orders: half of the units move, and most of the others support or convoy one
// of them.
func (r *Rules) coherent(p *Position, rng *rand.Rand) Orders {
	if p.Phase.Step != Movement {
		return r.randomOrders(p, rng)
	}
	var orders Orders
	lists := r.byUnit(p)
	moves := map[Location]Province{}
	for _, w := range Powers() {
		for _, list := range lists[w] {
			o := list[0]
			if rng.IntN(2) == 0 {
				o = pick(rng, list, func(o Order) bool { return o.Kind == Move })
				moves[o.At] = r.Board.Province(o.To)
			}
			orders[w] = append(orders[w], o)
		}
	}
	for _, w := range Powers() {
		for i, list := range lists[w] {
			if orders[w][i].Kind == Move {
				continue
			}
			convoy := rng.IntN(2) == 0
			orders[w][i] = pick(rng, list, func(o Order) bool {
				to, ok := moves[o.Of]
				return ok && o.To < Locations && to == r.Board.Province(o.To) && (o.Kind == Convoy) == convoy
			})
		}
	}
	return orders
}

// pick returns a random order for which want is true, or any order if there is no such one.
func pick(rng *rand.Rand, list []Order, want func(Order) bool) Order {
	best, n := list[rng.IntN(len(list))], 0
	for _, o := range list {
		if want(o) {
			if n++; rng.IntN(n) == 0 {
				best = o
			}
		}
	}
	return best
}

// midgame returns a position with many units, after some years of random play.
func (r *Rules) midgame(rng *rand.Rand) Position {
	p := r.Start()
	for p.Phase.Year < 1907 || p.Phase.Step != Movement {
		orders := r.coherent(&p, rng)
		out := r.Adjudicate(&p, &orders)
		p = r.Advance(&out.After)
	}
	return p
}

func BenchmarkAdjudicate(b *testing.B) {
	r := New()
	rng := rand.New(rand.NewPCG(1, 2))
	p := r.midgame(rng)
	var sets [64]Orders
	for i := range sets {
		sets[i] = r.coherent(&p, rng)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Adjudicate(&p, &sets[i%len(sets)])
	}
	units := 0
	for _, w := range Powers() {
		units += p.Count(w)
	}
	b.ReportMetric(float64(units), "units")
}

func BenchmarkLegal(b *testing.B) {
	r := New()
	p := r.midgame(rand.New(rand.NewPCG(1, 2)))
	legal := r.Legal(&p, nil)
	b.ReportAllocs()
	for b.Loop() {
		legal = r.Legal(&p, legal)
	}
	b.ReportMetric(float64(len(legal)), "orders")
}
