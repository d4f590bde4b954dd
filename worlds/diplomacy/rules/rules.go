// Package rules has the rules of Diplomacy: which orders are legal in a position, and what
// their results are.
//
// Where rulebooks differ, it follows the choices named by the cases of testdata/datc.jsonl: the
// 2023 rules, and Szykman's rule for convoy paradoxes. The outcome depends only on the position
// and the orders, not on the order in which they are listed, except that the first legal order
// counts if a unit has two or a power orders too many builds or removals. An illegal order has
// no effect. No order makes it fail.
//
// It plays no game: it asks no player, draws no random number and keeps no history.
//
// A Board is the map (board.go), a Position the state of a game on it (position.go), and an Order
// what a unit is told to do, with its notation (order.go). legal.go checks and lists orders,
// Adjudicate carries them out, and battle.go decides which orders of a movement phase succeed.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Rules are the rules on a board. They hold no game, so any number of games can share them.
type Rules struct {
	Board *Board
}

// New returns the rules of the standard game.
func New() *Rules { return &Rules{Board: NewBoard()} }

// Orders are the orders of each power, indexed by Power.
type Orders [Turkey + 1][]Order

// Code is the result of an order.
type Code uint8

// The results of an order.
const (
	Success   Code = iota
	Bounce         // a move that was stopped
	Cut            // a support that was attacked
	Void           // legal, but it does not fit the order of its unit
	NoConvoy       // an army that no fleet carried
	Disrupted      // a convoy whose fleet was dislodged, or that is part of a paradox
	Illegal        // ignored: the unit holds, or is disbanded if it had to retreat
)

// String returns the code in a word.
func (c Code) String() string {
	return [...]string{"success", "bounce", "cut", "void", "noconvoy", "disrupted", "illegal"}[min(c, Illegal)]
}

// Result is the result of one order.
type Result struct {
	// Order is the order with types and coasts filled in. An illegal order is unchanged.
	Order Order
	Code  Code

	Dislodged bool  // the unit was dislodged
	Disbanded bool  // the unit's retreat failed
	Err       error // why the order is illegal
}

// Codes returns the result in words, as JSON files write it.
func (r Result) Codes() []string {
	codes := []string{r.Code.String()}
	if r.Disbanded {
		codes = append(codes, "disband")
	}
	if r.Dislodged {
		codes = append(codes, "dislodged")
	}
	return codes
}

// Outcome is the outcome of a phase.
type Outcome struct {
	// Results has the index of the orders.
	Results [Turkey + 1][]Result

	// After is the position after the orders, in the same phase. Advance returns the next one.
	After Position

	// Removed are the units that were removed without an order: those without an order to
	// retreat, and those of a power that ordered too few removals.
	Removed []Unit
}

// Adjudicate carries out the orders of a phase.
func (r *Rules) Adjudicate(p *Position, orders *Orders) Outcome {
	out := Outcome{After: *p}
	for w, list := range orders {
		if len(list) > 0 {
			out.Results[w] = make([]Result, len(list))
		}
	}
	switch p.Phase.Step {
	case Movement:
		r.adjudicateMovement(p, orders, &out)
	case Retreats:
		r.adjudicateRetreats(p, orders, &out)
	case Adjustments:
		r.adjudicateAdjustments(p, orders, &out)
	}
	if p.Phase.Season == Fall && p.Phase.Step != Adjustments && !out.After.pending() {
		r.occupy(&out.After)
	}
	return out
}

// occupy gives every centre to the power of the unit on it.
func (r *Rules) occupy(p *Position) {
	for c := range r.Board.SupplyCentres().All() {
		if w := p.Units[c].Power; w != None {
			p.Owners[c] = w
		}
	}
}

// accept checks the orders of all powers. take gets each legal one, and may refuse it too.
func (r *Rules) accept(p *Position, orders *Orders, out *Outcome, take func(w Power, legal Order, res *Result) error) {
	seas := r.fleetsAtSea(p)
	for w, list := range orders {
		for i, o := range list {
			res := &out.Results[w][i]
			legal, err := r.check(p, Power(w), o, seas)
			if err == nil {
				err = take(Power(w), legal, res)
			}
			res.Order = legal
			if err != nil {
				res.Order, res.Code, res.Err = o, Illegal, err
			}
		}
	}
}

// Advance returns the start of the next phase in which a power can give an order. It skips
// retreat phases in which every dislodged unit is lost, and winters without builds and
// removals.
func (r *Rules) Advance(after *Position) Position {
	next := *after
	if next.Phase.Step == Movement && next.pending() {
		next.Phase.Step = Retreats
		return next
	}
	next.Dislodged = [Provinces]Dislodged{}
	switch next.Phase.Season {
	case Spring:
		next.Phase = Phase{Year: next.Phase.Year, Season: Fall}
	case Fall:
		next.Phase = Phase{Year: next.Phase.Year, Season: Winter, Step: Adjustments}
		if slices.ContainsFunc(Powers(), func(w Power) bool { return r.Allowed(&next, w) != 0 }) {
			return next
		}
		fallthrough
	default:
		next.Phase = Phase{Year: next.Phase.Year + 1}
	}
	return next
}

// Allowed is how many units a power may build in an adjustment phase: at most one in each free
// home centre. If it is negative, the power must remove that many.
func (r *Rules) Allowed(p *Position, w Power) int {
	return min(p.surplus(w), r.Sites(p, w).Len())
}

// Sites are the home centres where w can build.
func (r *Rules) Sites(p *Position, w Power) Set[Province] {
	var free Set[Province]
	for c := range r.Board.Homes(w).All() {
		if p.Owners[c] == w && p.Units[c].Power == None {
			free.Add(c)
		}
	}
	return free
}

// errSecondOrder is the error for a second order to a unit: the first legal one counts.
var errSecondOrder = errors.New("the unit has an order already")

// adjudicateMovement carries out a movement phase.
func (r *Rules) adjudicateMovement(p *Position, orders *Orders, out *Outcome) {
	f := newBattle(r.Board, &p.Units)
	var has Set[Province]
	r.accept(p, orders, out, func(_ Power, legal Order, _ *Result) error {
		at := r.Board.Province(legal.At)
		if has.Has(at) {
			return errSecondOrder
		}
		has.Add(at)
		f.setOrder(legal)
		return nil
	})
	f.settle()
	r.carryOut(&f, p, &out.After)
	for w := range out.Results {
		for i := range out.Results[w] {
			r.setResult(&f, p, Power(w), &out.Results[w][i], &out.After)
		}
	}
}

// carryOut moves the units whose moves succeeded, and finds which units are dislodged and
// where they can retreat to.
func (r *Rules) carryOut(f *battle, before, p *Position) {
	var from [Provinces]Province
	var taken Set[Province]
	for x := range f.moves.All() {
		if f.succeeds(x) {
			p.Units[x] = Unit{}
		}
	}
	for x := range f.moves.All() {
		if !f.succeeds(x) {
			continue
		}
		to := f.to[x]
		if p.Units[to].Power != None {
			p.Dislodged[to] = Dislodged{Unit: p.Units[to], Attacker: Location(x)}
		}
		u := before.Units[x]
		u.Location = f.orders[x].To
		p.Units[to] = u
		from[to] = x
		taken.Add(to)
	}
	contested := contested(f, p)
	for x := range taken.All() {
		d := &p.Dislodged[x]
		if d.Unit.Power == None {
			continue
		}
		closed := contested
		if !f.convoyed.Has(from[x]) { // after a convoy the attacker's province stays open (4.A.5)
			closed.Add(from[x])
		}
		for at := range r.Board.Moves(d.Unit.Type, d.Unit.Location).All() {
			if q := r.Board.Province(at); p.Units[q].Power == None && !closed.Has(q) {
				d.Retreats.Add(at)
			}
		}
	}
}

// contested are the empty provinces in which moves bounced. The loser of a head to head battle
// contests nothing (6.H.9).
func contested(f *battle, p *Position) Set[Province] {
	var set Set[Province]
	for x := range f.moves.All() {
		to := f.to[x]
		if f.succeeds(x) || p.Units[to].Power != None || !f.arrives(x) {
			continue
		}
		if !f.headOn(x, to) || !f.succeeds(to) {
			set.Add(to)
		}
	}
	return set
}

// setResult fills in the result of an order.
func (r *Rules) setResult(f *battle, before *Position, w Power, res *Result, after *Position) {
	if res.Order.At >= Locations {
		return
	}
	x := r.Board.Province(res.Order.At)
	res.Dislodged = before.Units[x].Power == w && after.Dislodged[x].Unit.Power == w
	if res.Code == Illegal {
		return
	}
	switch kind, failed := res.Order.Kind, !f.succeeds(x); {
	case kind == Hold, kind == Move && !failed:
	case kind == Move && !f.arrives(x):
		res.Code = NoConvoy
	case kind == Move:
		res.Code = Bounce
	case !f.matched.Has(x):
		res.Code = Void
	case failed && kind == Support:
		res.Code = Cut
	case failed:
		res.Code = Disrupted
	}
}

// checkRetreat is Check in a retreat phase. A move of a dislodged unit is read as its
// retreat.
func (r *Rules) checkRetreat(p *Position, w Power, o Order) (Order, error) {
	d := &p.Dislodged[r.Board.Province(o.At)]
	u := d.Unit
	if u.Power == None {
		return o, fmt.Errorf("no unit in %s has to retreat", r.Board.Code(o.At))
	}
	if err := r.checkOwner(u, w, o.Type); err != nil {
		return o, err
	}
	switch o.Kind {
	case Disband:
		return NewOrder(Disband, u.Type, u.Location), nil
	case Move, Retreat:
		to, err := r.retreatTo(d, o.To)
		if err != nil {
			return o, err
		}
		o = NewOrder(Retreat, u.Type, u.Location)
		o.To = to
		return o, nil
	}
	return o, fmt.Errorf("%s is no order of a retreat phase", o.Kind)
}

// retreatTo finds the location that a retreat means.
func (r *Rules) retreatTo(d *Dislodged, to Location) (Location, error) {
	if d.Unit.Type == Army && to < Locations {
		to = Location(r.Board.Province(to))
	}
	at, found, err := r.resolveCoast(d.Retreats, to)
	switch {
	case found, err != nil:
		return at, err
	case d.Retreats.Empty():
		return to, fmt.Errorf("%s has nowhere to retreat to", r.Board.UnitText(d.Unit))
	}
	return to, fmt.Errorf("%s may retreat to %s", r.Board.UnitText(d.Unit), r.placesText(d.Retreats))
}

// adjudicateRetreats carries out a retreat phase.
func (r *Rules) adjudicateRetreats(p *Position, orders *Orders, out *Outcome) {
	var goal [Provinces]*Result // by the province that the unit lost
	var count [Provinces]int    // retreats to a province
	r.accept(p, orders, out, func(_ Power, legal Order, res *Result) error {
		at := r.Board.Province(legal.At)
		if goal[at] != nil {
			return errSecondOrder
		}
		goal[at] = res
		if legal.Kind == Retreat {
			count[r.Board.Province(legal.To)]++
		}
		return nil
	})
	out.After.Dislodged = [Provinces]Dislodged{}
	for x := range p.Dislodged {
		u := p.Dislodged[x].Unit
		switch res := goal[x]; {
		case u.Power == None:
		case res == nil:
			out.Removed = append(out.Removed, u)
		case res.Order.Kind == Disband:
		case count[r.Board.Province(res.Order.To)] > 1:
			res.Code, res.Disbanded = Bounce, true
		default:
			u.Location = res.Order.To
			out.After.Units[r.Board.Province(u.Location)] = u
		}
	}
}

// checkAdjustment is Check in an adjustment phase.
func (r *Rules) checkAdjustment(p *Position, w Power, o Order) (Order, error) {
	surplus := p.surplus(w)
	switch o.Kind {
	case Build, Waive:
		if surplus <= 0 {
			return o, fmt.Errorf("%s has nothing to build", w.Name())
		}
		if o.Kind == Waive {
			return NewOrder(Waive, AnyType, o.At), nil
		}
		return r.checkBuild(p, w, o)
	case Disband:
		u := p.Units[r.Board.Province(o.At)]
		switch {
		case surplus >= 0:
			return o, fmt.Errorf("%s has nothing to remove", w.Name())
		case u.Power != w:
			return o, fmt.Errorf("%s has no unit in %s", w.Name(), r.Board.Code(o.At))
		}
		return NewOrder(Disband, u.Type, u.Location), r.checkOwner(u, w, o.Type)
	}
	return o, fmt.Errorf("%s is no order of an adjustment phase", o.Kind)
}

func (r *Rules) checkBuild(p *Position, w Power, o Order) (Order, error) {
	at := r.Board.Province(o.At)
	switch {
	case !r.Board.Homes(w).Has(at):
		return o, fmt.Errorf("%s is no home centre of %s", r.Board.Code(Location(at)), w.Name())
	case p.Owners[at] != w:
		return o, fmt.Errorf("%s does not own %s", w.Name(), r.Board.Code(Location(at)))
	case p.Units[at].Power != None:
		return o, fmt.Errorf("there is a unit in %s", r.Board.Code(Location(at)))
	}
	coasts := r.Board.fleetLocations(at)
	switch {
	case o.Type == AnyType && len(coasts) > 0:
		return o, errors.New("say whether an army (A) or a fleet (F)")
	case o.Type != Fleet:
		return NewOrder(Build, Army, Location(at)), nil
	case len(coasts) == 0:
		return o, fmt.Errorf("a fleet cannot stand in %s", r.Board.Code(o.At))
	case len(coasts) == 1:
		return NewOrder(Build, Fleet, coasts[0]), nil
	case o.At < Provinces:
		return o, fmt.Errorf("say which coast: %s or %s", r.Board.Code(coasts[0]), r.Board.Code(coasts[1]))
	}
	return NewOrder(Build, Fleet, o.At), nil
}

// adjudicateAdjustments carries out an adjustment phase. If there are too many orders, the first legal ones
// count (4.D.4, 4.D.6).
func (r *Rules) adjudicateAdjustments(p *Position, orders *Orders, out *Outcome) {
	var given [Turkey + 1]int // adjustments that count
	r.accept(p, orders, out, func(w Power, legal Order, _ *Result) error {
		surplus := p.surplus(w)
		err := r.applyAdjustment(&out.After, w, legal, max(surplus, -surplus)-given[w])
		if err == nil {
			given[w]++
		}
		return err
	})
	for _, w := range Powers() {
		r.removeExcess(&out.After, w, out)
	}
}

// applyAdjustment carries out one adjustment, if that is still possible.
func (r *Rules) applyAdjustment(p *Position, w Power, o Order, left int) error {
	if left <= 0 {
		return fmt.Errorf("%s has ordered enough already", w.Name())
	}
	if o.Kind == Waive {
		return nil
	}
	u := &p.Units[r.Board.Province(o.At)]
	if o.Kind == Build {
		if u.Power != None {
			return errors.New("something is built there already")
		}
		*u = Unit{Power: w, Type: o.Type, Location: o.At}
		return nil
	}
	if u.Power != w {
		return errors.New("that unit is removed already")
	}
	*u = Unit{}
	return nil
}

// removeExcess removes units of a power that has too many and did not choose: those farthest
// from its centres over land or water, fleets before armies, then by the alphabet (4.D.8).
func (r *Rules) removeExcess(p *Position, w Power, out *Outcome) {
	excess := -p.surplus(w)
	if excess <= 0 {
		return
	}
	var units []Unit
	var far [Provinces]int
	for x, u := range p.Units {
		if u.Power != w {
			continue
		}
		units = append(units, u)
		far[x] = unreachable
		for c, owner := range p.Owners {
			if owner == w {
				far[x] = min(far[x], int(r.Board.hops[x][c]))
			}
		}
	}
	slices.SortFunc(units, func(a, b Unit) int {
		x, y := r.Board.Province(a.Location), r.Board.Province(b.Location)
		return cmp.Or(far[y]-far[x], int(b.Type)-int(a.Type), strings.Compare(r.Board.Name(x), r.Board.Name(y)))
	})
	for _, u := range units[:excess] {
		p.Units[r.Board.Province(u.Location)] = Unit{}
		out.Removed = append(out.Removed, u)
	}
}
