package board

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Scene is what is on the board at one moment. Places are the usual abbreviations,
// a coast after a slash: BUR, STP/SC. Powers are named in English, in any case.
type Scene struct {
	Title  string            // the phase, as it shall be read; default: none
	Held   map[string]string // province to power: its tint; the supply centres among them are counted
	Units  []Unit
	Orders []Order
}

// Unit is an army or a fleet.
type Unit struct {
	Power     string
	Fleet     bool // default: an army
	At        string
	Dislodged bool // beaten and still to retreat: drawn beside the unit that beat it
}

// Order is what a unit was told and what came of it.
type Order struct {
	Unit Unit
	Kind Kind
	// From and To are the move that a support or a convoy is for; a support to hold
	// has no To. A move and a retreat have To alone.
	From, To string
	// Results are codes of the adjudicator; see Results. Default: not adjudicated.
	Results []string
}

// Kind is what an order tells a unit to do.
type Kind string

// The kinds of orders.
const (
	Hold    Kind = "hold"
	Move    Kind = "move"
	Support Kind = "support"
	Convoy  Kind = "convoy"
	Retreat Kind = "retreat"
	Build   Kind = "build"
	Disband Kind = "disband"
)

// Kinds lists the kinds of orders.
func Kinds() []Kind { return []Kind{Hold, Move, Support, Convoy, Retreat, Build, Disband} }

// Results lists the codes an order may carry.
func Results() []string {
	return []string{"success", "bounce", "cut", "void", "noconvoy", "disrupted", "illegal", "disband", "dislodged"}
}

// look is how an order with such results is drawn: the worst that happened counts.
func look(results []string) string {
	switch {
	case len(results) == 0:
		return "pending"
	case slices.Contains(results, "dislodged"), slices.Contains(results, "disband"):
		return "dislodged"
	case slices.Contains(results, "bounce"):
		return "bounce"
	case slices.Contains(results, "success"):
		return "success"
	}
	return "failed"
}

// check says what in the scene cannot be drawn.
func (s Scene) check(a *atlas) error {
	for _, at := range slices.Sorted(maps.Keys(s.Held)) {
		if err := known(a, s.Held[at], at); err != nil {
			return fmt.Errorf("board: held: %w", err)
		}
		if at != province(at) {
			return fmt.Errorf("board: held: %s is a coast: want a province", at)
		}
	}
	for i, u := range s.Units {
		if err := known(a, u.Power, u.At); err != nil {
			return fmt.Errorf("board: unit %d: %w", i+1, err)
		}
	}
	for i, o := range s.Orders {
		if err := o.check(a); err != nil {
			return fmt.Errorf("board: order %d: %w", i+1, err)
		}
	}
	return nil
}

func (o Order) check(a *atlas) error {
	if err := known(a, o.Unit.Power, o.Unit.At); err != nil {
		return err
	}
	if !slices.Contains(Kinds(), o.Kind) {
		return fmt.Errorf("no kind %.20q: want one of %v", o.Kind, Kinds())
	}
	for _, r := range o.Results {
		if !slices.Contains(Results(), r) {
			return fmt.Errorf("no result %.20q: want one of %s", r, strings.Join(Results(), ", "))
		}
	}
	for _, at := range o.places() {
		if _, err := a.find(at); err != nil {
			return fmt.Errorf("%s: %w", o.Kind, err)
		}
	}
	return nil
}

// places lists where an order of its kind points to.
func (o Order) places() []string {
	switch {
	case o.Kind == Move, o.Kind == Retreat:
		return []string{o.To}
	case o.Kind == Convoy, o.Kind == Support && o.To != "":
		return []string{o.From, o.To}
	case o.Kind == Support:
		return []string{o.From}
	}
	return nil
}

// known checks a power and a place.
func known(a *atlas, power, at string) error {
	if _, ok := findPower(power); !ok {
		var names []string
		for _, p := range powers() {
			names = append(names, p.name)
		}
		return fmt.Errorf("no power %.20q: want one of %s", power, strings.Join(names, ", "))
	}
	_, err := a.find(at)
	return err
}
