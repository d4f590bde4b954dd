package rules

import (
	"errors"
	"fmt"
)

// maxText is longer than any order.
const maxText = 200

// Parse reads an order.
func Parse(b *Board, text string) (Order, error) {
	o, err := parse(b, text)
	if err != nil {
		if len(text) > maxText {
			text = text[:40] + "…"
		}
		return Order{}, fmt.Errorf("order: %q: %w", text, err)
	}
	return o, nil
}

// ParseUnit reads a unit: A PAR, F STP/SC.
func ParseUnit(b *Board, text string) (Type, Location, error) {
	if len(text) > maxText {
		return 0, 0, errors.New("order: a unit of far too many letters")
	}
	toks, err := tokens(b, text)
	if err == nil {
		p := parser{rest: toks}
		t, at, found := p.unit()
		if found && t != boardAny && len(p.rest) == 0 {
			return t, at, nil
		}
		err = errors.New("a unit is A or F and a place: A PAR, F STP/SC")
	}
	return 0, 0, fmt.Errorf("order: %q: %w", text, err)
}

// ParseLocation reads a location: PAR, STP/SC.
func ParseLocation(b *Board, text string) (Location, error) {
	if len(text) > maxText {
		return 0, errors.New("order: a place of far too many letters")
	}
	toks, err := tokens(b, text)
	if err == nil {
		if len(toks) == 1 && toks[0].sense == place {
			return toks[0].place, nil
		}
		err = errors.New("that is no place: PAR, STP/SC")
	}
	return 0, fmt.Errorf("order: %q: %w", text, err)
}

// parser reads an order from tokens, left to right.
type parser struct {
	rest []token
}

func parse(b *Board, text string) (Order, error) {
	if len(text) > maxText {
		return Order{}, fmt.Errorf("longer than %d bytes", maxText)
	}
	toks, err := tokens(b, text)
	if err != nil {
		return Order{}, err
	}
	p := parser{rest: toks}
	if p.take(waives) {
		return NewOrder(Waive, boardAny, Nowhere), nil
	}
	lead := unknown
	for _, s := range []sense{builds, disbands, retreats, holds} {
		if p.take(s) {
			lead = s
			break
		}
	}
	t, at, ok := p.unit()
	if !ok {
		return Order{}, errors.New("it does not say which unit: begin like A PAR or F BRE")
	}
	o, err := p.action(NewOrder(Hold, t, at), lead)
	if err != nil {
		return Order{}, err
	}
	if len(p.rest) > 0 {
		return Order{}, fmt.Errorf("%q is too much", p.rest[0].raw)
	}
	return o, nil
}

// action reads the action of the unit of o. lead is a verb before the unit, or unknown.
func (p *parser) action(o Order, lead sense) (Order, error) {
	switch {
	case lead == holds || p.take(holds):
		return o, nil
	case lead == builds || p.take(builds):
		o.Kind = Build
		return o, nil
	case lead == disbands || p.take(disbands):
		o.Kind = Disband
		return o, nil
	case lead == retreats || p.take(retreats):
		o.Kind = Retreat
		return p.target(o)
	case p.take(supports):
		o.Kind = Support
		return p.support(o)
	case p.take(convoys):
		if p.peek() == arrow || len(p.rest) == 0 {
			o.Via = true // A LON convoys to NWY
			return p.move(o)
		}
		o.Kind = Convoy
		return p.convoy(o)
	}
	return p.move(o)
}

func (p *parser) support(o Order) (Order, error) {
	var ok bool
	if o.OfType, o.Of, ok = p.unit(); !ok {
		return o, errors.New("it does not say which unit is supported")
	}
	moves := p.take(arrow)
	if p.take(holds) || !moves {
		return o, nil
	}
	o, err := p.target(o)
	p.byConvoy()
	return o, err
}

func (p *parser) convoy(o Order) (Order, error) {
	var ok bool
	if o.OfType, o.Of, ok = p.unit(); !ok {
		return o, errors.New("it does not say which army is carried")
	}
	o, err := p.target(o)
	p.byConvoy()
	return o, err
}

// move reads a move, which may name the seas it goes over.
func (p *parser) move(o Order) (Order, error) {
	o.Kind = Move
	if p.byConvoy() {
		o.Via = true
	}
	if p.peek() != arrow {
		return o, errors.New("it does not say what the unit is to do: H, - BUR, S A MAR - BUR, C A LON - NWY, R BUR, D or B")
	}
	o, err := p.target(o)
	for err == nil && p.peek() == arrow {
		o.Via = true
		o, err = p.target(o)
	}
	if p.byConvoy() {
		o.Via = true
	}
	return o, err
}

// byConvoy reads "via", "via convoy" or "convoy", and the seas after it.
func (p *parser) byConvoy() bool {
	if !p.take(via) && !p.take(convoys) {
		return false
	}
	for p.peek() == place {
		p.rest = p.rest[1:]
	}
	return true
}

// target reads where a unit moves.
func (p *parser) target(o Order) (Order, error) {
	p.take(arrow)
	if p.peek() != place {
		return o, errors.New("it does not say where to")
	}
	o.To = p.rest[0].place
	p.rest = p.rest[1:]
	return o, nil
}

// unit reads a unit, whose type may be missing. If there are several types, the last counts:
// in "a fleet", the first is an article.
func (p *parser) unit() (t Type, at Location, ok bool) {
	for {
		switch p.peek() {
		case armyWord:
			t = Army
		case fleetWord:
			t = Fleet
		case place:
			at = p.rest[0].place
			p.rest = p.rest[1:]
			return t, at, true
		default:
			return t, Nowhere, false
		}
		p.rest = p.rest[1:]
	}
}

func (p *parser) peek() sense {
	if len(p.rest) == 0 {
		return unknown
	}
	return p.rest[0].sense
}

func (p *parser) take(s sense) bool {
	if p.peek() != s {
		return false
	}
	p.rest = p.rest[1:]
	return true
}
