package diplomacy

import (
	"fmt"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// Texts of a briefing by which the stand-in reads it.
const (
	centresLabel = " centres: "        // of a power on the board
	movesLabel   = "moves"             // of a unit
	canRetreat   = ": can retreat to " // of a unit that was dislodged
	mayBuild     = "You may build %d"  // in winter
	mustRemove   = "You have to remove %d"
)

// briefing describes a position for players: the board in a few lines, and what each unit of a
// power can do. Its texts are short and always in the same order, so that providers can cache what
// does not change.
type briefing struct {
	rules    *rules.Rules
	position *rules.Position
	choices  []rules.Choice
	board    string // the units and centres of every power, a line each
}

// newBriefing returns the briefing of a position, for all powers. The position must not change.
func newBriefing(r *rules.Rules, p *rules.Position) *briefing {
	b := &briefing{rules: r, position: p, choices: r.Choices(p)}
	b.board = b.writeBoard()
	return b
}

// powerTag returns a power in three letters, or a dash for None.
func powerTag(w rules.Power) string {
	if w == rules.None {
		return "-"
	}
	return w.Name()[:3]
}

// writeBoard lists the units and centres of every power, a line each.
func (b *briefing) writeBoard() string {
	var lines []string
	for _, w := range rules.Powers() {
		if !b.position.Alive(w) {
			lines = append(lines, w.Name()+": out")
			continue
		}
		units := b.rules.UnitTexts(b.position, w)
		for i := range b.position.Dislodged {
			if d := b.position.Dislodged[i].Unit; d.Power == w {
				units = append(units, b.rules.Board.UnitText(d)+" (dislodged)")
			}
		}
		centres := b.rules.CentreTexts(b.position, w)
		lines = append(lines, fmt.Sprintf("%s: %s; %d%s%s", w.Name(), orNone(strings.Join(units, ", ")), len(centres), centresLabel, orNone(strings.Join(centres, " "))))
	}
	if free := b.unownedCentres(); free != "" {
		lines = append(lines, "Nobody's: "+free)
	}
	return strings.Join(lines, "\n")
}

// unownedCentres lists the centres without an owner.
func (b *briefing) unownedCentres() string {
	var free []string
	for c := range b.rules.Board.SupplyCentres().All() {
		if b.position.Owners[c] == rules.None {
			free = append(free, b.rules.Board.Code(rules.Location(c)))
		}
	}
	return strings.Join(free, " ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// choicesOf returns the legal orders of a power, by province.
func (b *briefing) choicesOf(w rules.Power) []rules.Choice { return rules.ChoicesOf(b.choices, w) }

// options describes the legal orders of a power in some provinces, or in all if only is empty.
func (b *briefing) options(w rules.Power, only rules.Set[rules.Province]) string {
	switch b.position.Phase.Step {
	case rules.Retreats:
		return b.retreats(w, only)
	case rules.Adjustments:
		return b.adjustments(w)
	}
	lines := []string{"(* has a centre, *Ger one of Germany, *- one of nobody; [A Ger] an army of Germany is there; +A MAR your A MAR can support that)"}
	for _, c := range b.choicesOf(w) {
		if only.Empty() || only.Has(c.At) {
			lines = append(lines, b.unitText(c))
		}
	}
	return strings.Join(lines, "\n")
}

func (b *briefing) retreats(w rules.Power, only rules.Set[rules.Province]) string {
	var lines []string
	for _, c := range b.choicesOf(w) {
		if !only.Empty() && !only.Has(c.At) {
			continue
		}
		var to []string
		for _, o := range c.Orders {
			if o.Kind == rules.Retreat {
				to = append(to, b.place(o.To))
			}
		}
		lines = append(lines, b.rules.Board.UnitText(b.position.Dislodged[c.At].Unit)+canRetreat+orNone(strings.Join(to, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (b *briefing) adjustments(w rules.Power) string {
	n := b.rules.Allowed(b.position, w)
	var sites []string
	for _, c := range b.choicesOf(w) {
		var orders []string
		for _, o := range c.Orders {
			if o.Kind != rules.Waive {
				orders = append(orders, o.Text(b.rules.Board))
			}
		}
		sites = append(sites, strings.Join(orders, " or "))
	}
	if n < 0 {
		return fmt.Sprintf(mustRemove+" of your units: %s.", -n, strings.Join(sites, ", "))
	}
	return fmt.Sprintf(mayBuild+", one in a place: %s. WAIVE leaves one out.", n, strings.Join(sites, "; "))
}

// place describes a location and what is there.
func (b *briefing) place(at rules.Location) string {
	text := b.rules.Board.Code(at)
	p := b.rules.Board.Province(at)
	if b.rules.Board.SupplyCentres().Has(p) {
		text += "*" + powerTag(b.position.Owners[p])
	}
	if u := b.position.Units[p]; u.Power != rules.None {
		text += "[" + u.Type.String() + " " + powerTag(u.Power) + "]"
	}
	return text
}

// maxNearest is how many threats and centres a unit's text lists.
const maxNearest = 3

// unitText describes what a unit can do, and what is around it.
func (b *briefing) unitText(c rules.Choice) string {
	u := b.position.Units[c.At]
	head := b.rules.Board.UnitText(u) + ", " + b.rules.Board.Terrain(c.At).String()
	if b.rules.Board.SupplyCentres().Has(c.At) {
		head += ", *" + powerTag(b.position.Owners[c.At])
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
			moves = append(moves, b.place(o.To)+b.supports(u, b.rules.Board.Province(o.To)))
		case o.Kind == rules.Convoy:
			if army := "A " + b.rules.Board.Code(o.Of); !slices.Contains(carries, army) {
				carries = append(carries, army)
			}
		}
	}
	add(movesLabel, moves)
	add("VIA", carried)
	add("can convoy", carries)
	add("beside", b.beside(u, c.At))
	add("threats", b.threats(u))
	add("centres", b.centres(u))
	return strings.Join(lines, "\n")
}

// supports lists the other units of the same power that can support u where it is, or
// into a province.
func (b *briefing) supports(u rules.Unit, to rules.Province) string {
	var text strings.Builder
	for _, other := range b.position.Units {
		if other.Power != u.Power || other == u || b.rules.Board.Province(other.Location) == to {
			continue
		}
		if b.rules.Board.Reach(other.Type, other.Location).Has(to) {
			text.WriteString(" +" + b.rules.Board.UnitText(other))
		}
	}
	return text.String()
}

// beside lists the provinces that touch a unit's own and that it cannot go to itself.
func (b *briefing) beside(u rules.Unit, at rules.Province) []string {
	var list []string
	for p := range b.rules.Board.Near(at).Minus(b.rules.Board.Reach(u.Type, u.Location)).All() {
		list = append(list, b.place(rules.Location(p)))
	}
	return list
}

// threats are the nearest units of others, and their ways.
func (b *briefing) threats(u rules.Unit) []string {
	var list []string
	for _, w := range b.rules.NearestThreats(b.position, u, maxNearest) {
		list = append(list, powerTag(w.Unit.Power)+" "+w.Unit.Type.String()+" "+b.path(w.Path))
	}
	return list
}

// centres are the ways to the nearest centres of others, except neighbours, which are among the
// moves.
func (b *briefing) centres(u rules.Unit) []string {
	var list []string
	for _, w := range b.rules.NearestCentres(b.position, u, maxNearest+8) {
		if len(w.Path) > 2 && len(list) < maxNearest {
			list = append(list, b.path(w.Path)+"*"+powerTag(b.position.Owners[w.To]))
		}
	}
	return list
}

func (b *briefing) path(places []rules.Location) string {
	codes := make([]string, len(places))
	for i, p := range places {
		codes[i] = b.rules.Board.Code(p)
	}
	return strings.Join(codes, "-")
}
