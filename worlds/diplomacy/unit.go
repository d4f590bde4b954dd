package diplomacy

import (
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// nearest is how many threats and centres a unit's text lists.
const nearest = 3

// unit describes what a unit can do, and what is around it.
func (b *diplomacyBrief) unit(c rules.Choice) string {
	u := b.Position.Units[c.At]
	head := b.Rules.Board.UnitText(u) + ", " + b.Rules.Board.Terrain(c.At).String()
	if b.Rules.Board.SupplyCentres().Has(c.At) {
		head += ", *" + Tag(b.Position.Owners[c.At])
	}
	lines := []string{head + b.supports(u, c.At)}
	add := func(name string, items []string) {
		if len(items) > 0 {
			lines = append(lines, " "+name+": "+strings.Join(items, ", "))
		}
	}
	var moves, carried, carries []string
	for _, o := range c.Orders {
		switch {
		case o.Kind == rules.Move && o.Via:
			carried = append(carried, b.place(o.To))
		case o.Kind == rules.Move:
			moves = append(moves, b.place(o.To)+b.supports(u, b.Rules.Board.Province(o.To)))
		case o.Kind == rules.Convoy:
			if army := "A " + b.Rules.Board.Code(o.Of); !slices.Contains(carries, army) {
				carries = append(carries, army)
			}
		}
	}
	add(briefMoves, moves)
	add("VIA", carried)
	add("can convoy", carries)
	add("beside", b.beside(u, c.At))
	add("threats", b.threats(u))
	add("centres", b.centres(u))
	return strings.Join(lines, "\n")
}

// supports lists the other units of the same power that can support u where it is, or
// into a province.
func (b *diplomacyBrief) supports(u rules.Unit, to rules.Province) string {
	var text strings.Builder
	for _, other := range b.Position.Units {
		if other.Power != u.Power || other == u || b.Rules.Board.Province(other.Location) == to {
			continue
		}
		if b.Rules.Board.Reach(other.Type, other.Location).Has(to) {
			text.WriteString(" +" + b.Rules.Board.UnitText(other))
		}
	}
	return text.String()
}

// beside lists the provinces that touch a unit's own and that it cannot go to itself.
func (b *diplomacyBrief) beside(u rules.Unit, at rules.Province) []string {
	var list []string
	for p := range b.Rules.Board.Near(at).Minus(b.Rules.Board.Reach(u.Type, u.Location)).All() {
		list = append(list, b.place(rules.Location(p)))
	}
	return list
}

// threats are the nearest units of others, and their ways.
func (b *diplomacyBrief) threats(u rules.Unit) []string {
	var list []string
	for _, w := range b.Rules.NearestThreats(b.Position, u, nearest) {
		list = append(list, Tag(w.Unit.Power)+" "+w.Unit.Type.String()+" "+b.path(w.Path))
	}
	return list
}

// centres are the ways to the nearest centres of others, except neighbours, which are among the
// moves.
func (b *diplomacyBrief) centres(u rules.Unit) []string {
	var list []string
	for _, w := range b.Rules.NearestCentres(b.Position, u, nearest+8) {
		if len(w.Path) > 2 && len(list) < nearest {
			list = append(list, b.path(w.Path)+"*"+Tag(b.Position.Owners[w.To]))
		}
	}
	return list
}

func (b *diplomacyBrief) path(places []rules.Location) string {
	codes := make([]string, len(places))
	for i, p := range places {
		codes[i] = b.Rules.Board.Code(p)
	}
	return strings.Join(codes, "-")
}
