// Package order is what a player can tell a unit to do, and how that is written.
//
// Parse reads orders as people and models write them: any case, full names, other
// names and near misses of them, arrows, brackets, words for letters, a unit's type
// or a coast left out. It promises never to panic and never to guess between two
// meanings. Text writes an order in the notation of the Python package diplomacy:
// A PAR - BUR, F STP/SC S F BOT, A LON - NWY VIA, A PAR R BUR, F BRE B, WAIVE.
//
// It is not for saying whether an order is legal: that takes a position, and is for
// package rules.
package order

import (
	"parley/worlds/diplomacy/rules/board"
)

// Kind says what an order tells its unit to do.
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
	Waive // a build that is given up
)

// String is the kind in a word.
func (k Kind) String() string {
	return [...]string{"hold", "move", "support", "convoy", "retreat", "disband", "build", "waive"}[min(k, Waive)]
}

// Order is one order. Types may be board.Any and places without a coast as long as
// nobody has compared the order with a position.
type Order struct {
	Kind Kind

	// Via is said of an army that wants to be carried even where it could walk.
	Via bool

	// Type and At are the unit that is ordered. Waive needs neither; in a list of legal
	// orders At is the centre that would be left empty.
	Type board.Type
	At   board.Location

	// OfType and Of are the unit that is supported or carried.
	OfType board.Type
	Of     board.Location

	// To is where a unit goes, is supported or carried. For the support of a unit
	// that stays it is board.Nowhere.
	To board.Location
}

// New returns an order without other places than the unit's.
func New(k Kind, t board.Type, at board.Location) Order {
	return Order{Kind: k, Type: t, At: at, Of: board.Nowhere, To: board.Nowhere}
}

// Text writes the order.
func (o Order) Text(b *board.Board) string { return string(o.Append(nil, b)) }

// Append adds the order's text to buf.
func (o Order) Append(buf []byte, b *board.Board) []byte {
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
	if o.To != board.Nowhere {
		buf = append(append(buf, " - "...), b.Code(o.To)...)
	}
	if o.Via {
		buf = append(buf, " VIA"...)
	}
	return buf
}

func appendUnit(buf []byte, b *board.Board, t board.Type, at board.Location) []byte {
	if t != board.Any {
		buf = append(append(buf, t.String()...), ' ')
	}
	return append(buf, b.Code(at)...)
}
