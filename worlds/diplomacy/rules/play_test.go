package rules

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestRandomPlay plays random phases, and checks every position and every promise of the package. With PARLEY_SWEEP, which .ci/run kills
// sets, there are a hundred thousand phases.
func TestRandomPlay(t *testing.T) {
	t.Parallel()
	phases := 4_000
	switch {
	case os.Getenv("PARLEY_SWEEP") != "":
		phases = 25_000
	case testing.Short():
		phases = 2_500
	}
	r := New()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 99))
			steps := map[Step]int{}
			p := r.Start()
			for n := range phases {
				steps[p.Phase.Step]++
				give := r.randomOrders
				if n%2 == 0 {
					give = r.coherent
				}
				orders := give(&p, rng)
				out := r.Adjudicate(&p, &orders)
				checkResults(t, r, &p, &orders, &out)
				if n%16 == 0 {
					checkPromises(t, r, &p, orders, &out, rng)
				}
				next := r.Advance(&out.After)
				checkSound(t, r, &p, &next)
				if t.Failed() {
					t.Fatalf("phase %d, %s:\n%s", n, p.Phase, r.show(&out))
				}
				if p = next; p.Winner() != None || p.Phase.Year > 1930 {
					p = r.Start()
				}
			}
			if len(steps) != 3 || steps[Retreats] < phases/100 || steps[Adjustments] < phases/100 {
				t.Errorf("too few retreats or builds: %v", steps)
			}
		})
	}
}

// checkResults checks that legal orders are not refused and that no unit appears or disappears.
func checkResults(t *testing.T, r *Rules, p *Position, orders *Orders, out *Outcome) {
	t.Helper()
	for w := range orders {
		for i, o := range orders[w] {
			if res := &out.Results[w][i]; res.Code == Illegal {
				t.Errorf("%s: %v", o.Text(r.Board), res.Err)
			}
		}
	}
	if p.Phase.Step != Movement {
		return
	}
	for _, w := range Powers() {
		lost := 0
		for i := range out.After.Dislodged {
			if out.After.Dislodged[i].Unit.Power == w {
				lost++
			}
		}
		if p.Count(w) != out.After.Count(w)+lost {
			t.Errorf("%s had %d units, has %d and %d dislodged", w, p.Count(w), out.After.Count(w), lost)
		}
	}
}

// checkSound checks that the rules can lead to a position.
func checkSound(t *testing.T, r *Rules, before, p *Position) {
	t.Helper()
	for i := range p.Units {
		x := Province(i)
		if u := p.Units[i]; u.Power != None && (r.Board.Province(u.Location) != x || !r.Board.canStand(u.Type, u.Location)) {
			t.Errorf("%s is in %s", r.Board.UnitText(u), r.Board.Name(x))
		}
		if p.Owners[i] != None && !r.Board.SupplyCentres().Has(x) {
			t.Errorf("%s owns %s", p.Owners[i], r.Board.Name(x))
		}
		d := &p.Dislodged[i]
		if d.Unit.Power != None && p.Phase.Step != Retreats {
			t.Errorf("%s is still dislodged", r.Board.UnitText(d.Unit))
		}
		for at := range d.Retreats.All() {
			if !r.Board.Moves(d.Unit.Type, d.Unit.Location).Has(at) || p.Units[r.Board.Province(at)].Power != None {
				t.Errorf("%s may retreat to %s", r.Board.UnitText(d.Unit), r.Board.Code(at))
			}
		}
	}
	if before.Phase.Step == Adjustments {
		for _, w := range Powers() {
			if p.Count(w) > p.Centres(w) {
				t.Errorf("%s has %d units and %d centres", w, p.Count(w), p.Centres(w))
			}
		}
	}
	if !p.Phase.exists() || *p == *before {
		t.Errorf("%s follows %s", p.Phase, before.Phase)
	}
}

// checkPromises adjudicates again with the orders in another sequence, with illegal orders added, and
// with powers exchanged. The results must be the same.
func checkPromises(t *testing.T, r *Rules, p *Position, orders Orders, out *Outcome, rng *rand.Rand) {
	t.Helper()
	mixed := orders
	for w := range mixed {
		mixed[w] = slices.Clone(mixed[w])
		rng.Shuffle(len(mixed[w]), func(i, j int) { mixed[w][i], mixed[w][j] = mixed[w][j], mixed[w][i] })
	}
	again := r.Adjudicate(p, &mixed)
	if again.After != out.After {
		t.Error("the results depend on the sequence of orders")
	}
	for w := range mixed {
		for i, o := range mixed[w] {
			j := slices.Index(orders[w], o)
			if again.Results[w][i].Code != out.Results[w][j].Code {
				t.Errorf("%s: the result depends on the sequence of orders", o.Text(r.Board))
			}
		}
	}
	for w := range mixed {
		mixed[w] = slices.Concat(r.illegal(p, Power(w), rng), mixed[w], r.illegal(p, Power(w), rng))
	}
	if r.Adjudicate(p, &mixed).After != out.After {
		t.Error("the results depend on illegal orders")
	}
	if p.Phase.Step != Adjustments { // a power builds only in its home centres
		checkNames(t, r, p, &orders, out, rng)
	}
}

// illegal returns random orders that are not legal.
func (r *Rules) illegal(p *Position, w Power, rng *rand.Rand) []Order {
	var list []Order
	for range 4 {
		o := Order{
			Kind: Kind(rng.IntN(9)), Via: rng.IntN(4) == 0, Type: Type(rng.IntN(4)), At: Location(rng.IntN(83)),
			OfType: Type(rng.IntN(4)), Of: Location(rng.IntN(83)), To: Location(rng.IntN(83)),
		}
		if _, err := r.Check(p, w, o); err != nil {
			list = append(list, o)
		}
	}
	return list
}

// checkNames adjudicates again with the powers exchanged.
func checkNames(t *testing.T, r *Rules, p *Position, orders *Orders, out *Outcome, rng *rand.Rand) {
	t.Helper()
	var to [Turkey + 1]Power
	for i, n := range rng.Perm(len(Powers())) {
		to[i+1] = Power(n + 1)
	}
	rename := func(p Position) Position {
		for i := range p.Units {
			p.Units[i].Power = to[p.Units[i].Power]
			p.Dislodged[i].Unit.Power = to[p.Dislodged[i].Unit.Power]
			p.Owners[i] = to[p.Owners[i]]
		}
		return p
	}
	var renamed Orders
	for w := range orders {
		renamed[to[w]] = orders[w]
	}
	other := rename(*p)
	if again := r.Adjudicate(&other, &renamed); again.After != rename(out.After) {
		t.Error("the results depend on the names of powers")
	}
}

// TestLegalIsComplete compares the list of legal orders with a search through all possible orders.
func TestLegalIsComplete(t *testing.T) {
	t.Parallel()
	r := New()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		p := r.midgame(rng)
		listed := map[Order]bool{}
		for _, o := range r.legalOrders(&p) {
			if listed[o] {
				t.Errorf("%s is listed twice", o.Text(r.Board))
			}
			listed[o] = true
			w := p.Units[r.Board.Province(o.At)].Power
			if checked, err := r.Check(&p, w, o); err != nil || checked != o {
				t.Errorf("%s is listed and not legal: %s, %v", o.Text(r.Board), checked.Text(r.Board), err)
			}
		}
		for _, u := range p.Units {
			if u.Power != None {
				everyOrder(u, func(o Order) {
					checked, err := r.Check(&p, u.Power, o)
					// A move by convoy is listed with VIA, and the support of a fleet without its coast.
					if err != nil || o.Kind == Support && o.To >= Provinces && o.To < Locations ||
						o.Kind == Move && u.Type == Army && !o.Via && !r.Board.Reach(u.Type, u.Location).Has(r.Board.Province(o.To)) {
						return
					}
					if !listed[checked] {
						t.Errorf("%s is legal and not listed", checked.Text(r.Board))
					}
				})
			}
		}
	}
}

// everyOrder calls do with every possible order of a unit, legal or not.
func everyOrder(u Unit, do func(Order)) {
	do(NewOrder(Hold, u.Type, u.Location))
	for to := range Location(Locations + 1) {
		if to == Locations {
			to = Nowhere
		}
		for _, via := range []bool{false, true} {
			do(Order{Kind: Move, Via: via, Type: u.Type, At: u.Location, Of: Nowhere, To: to})
		}
		for of := range Location(Provinces) {
			for _, k := range []Kind{Support, Convoy} {
				do(Order{Kind: k, At: u.Location, Of: of, To: to})
			}
		}
	}
}

// legalOrders returns all legal orders of all powers.
func (r *Rules) legalOrders(p *Position) (all []Order) {
	for _, c := range r.Choices(p) {
		all = append(all, c.Orders...)
	}
	return all
}

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
	legal := r.legalOrders(&p)
	b.ReportAllocs()
	for b.Loop() {
		legal = r.legalOrders(&p)
	}
	b.ReportMetric(float64(len(legal)), "orders")
}
