// Part order has the orders of Diplomacy and their notation.
//
// Parse reads orders as people and models write them: any case, full names, other names and
// near misses of them, arrows, brackets, words for letters, a unit's type or a coast left out.
// It never panics and never guesses between two meanings. Text writes an order in the notation
// of the Python package diplomacy: A PAR - BUR, F STP/SC S F BOT, A LON - NWY VIA, A PAR R BUR,
// F BRE B, WAIVE.
//
// Whether an order is legal depends on a position: see package rules.

package rules

// Kind is the kind of an order.
type Kind uint8

// The kinds of orders.
const (
	Hold Kind = iota
	Move
	Support // a unit that stays, or one that moves
	Convoy
	Retreat
	Disband
	Build
	Waive // a build that is not used
)

// String returns the kind in a word.
func (k Kind) String() string {
	return [...]string{"hold", "move", "support", "convoy", "retreat", "disband", "build", "waive"}[min(k, Waive)]
}

// Order is one order. Until it is checked against a position, types may be boardAny and
// locations may lack a coast.
type Order struct {
	Kind Kind

	// Via means that an army moves by convoy even if it could walk.
	Via bool

	// Type and At are the unit that is ordered. Waive needs neither; in a list of legal orders
	// its At is the centre that stays empty.
	Type Type
	At   Location

	// OfType and Of are the unit that is supported or carried.
	OfType Type
	Of     Location

	// To is where a unit moves, or is supported or carried to. For the support of a unit that
	// holds it is Nowhere.
	To Location
}

// NewOrder returns an order with no location except the unit's.
func NewOrder(k Kind, t Type, at Location) Order {
	return Order{Kind: k, Type: t, At: at, Of: Nowhere, To: Nowhere}
}

// Text writes the order.
func (o Order) Text(b *Board) string { return string(o.Append(nil, b)) }

// Append adds the order's text to buf.
func (o Order) Append(buf []byte, b *Board) []byte {
	if o.Kind == Waive {
		return append(buf, "WAIVE"...)
	}
	buf = appendUnit(buf, b, o.Type, o.At)
	switch o.Kind {
	case Hold:
		return append(buf, " H"...)
	case Disband:
		return append(buf, " D"...)
	case Build:
		return append(buf, " B"...)
	case Retreat:
		return append(append(buf, " R "...), b.Code(o.To)...)
	case Support:
		buf = appendUnit(append(buf, " S "...), b, o.OfType, o.Of)
	case Convoy:
		buf = appendUnit(append(buf, " C "...), b, o.OfType, o.Of)
	}
	if o.To != Nowhere {
		buf = append(append(buf, " - "...), b.Code(o.To)...)
	}
	if o.Via {
		buf = append(buf, " VIA"...)
	}
	return buf
}

func appendUnit(buf []byte, b *Board, t Type, at Location) []byte {
	if t != boardAny {
		buf = append(append(buf, t.String()...), ' ')
	}
	return append(buf, b.Code(at)...)
}
