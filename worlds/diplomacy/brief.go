// Part brief describes positions of Diplomacy for players: the board in a few lines, and
// what each unit of a power can do.
//
// Texts are short and always in the same order, so that providers can cache what does not
// change. They hold only what every player may know: the board is public.

package diplomacy

import (
	"fmt"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// Texts of a briefing by which package standin reads it.
const (
	briefCentres = " centres: "        // of a power on the board
	briefMoves   = "moves"             // of a unit
	canRetreat   = ": can retreat to " // of a unit that was dislodged
	mayBuild     = "You may build %d"  // in winter
	mustRemove   = "You have to remove %d"
)

// diplomacyBrief describes a position.
type diplomacyBrief struct {
	Rules    *rules.Rules
	Position *rules.Position
	choices  []rules.Choice
	board    string
}

// newBrief returns the Brief of a position, for all powers. The position must not change.
func newBrief(r *rules.Rules, p *rules.Position) *diplomacyBrief {
	b := &diplomacyBrief{Rules: r, Position: p, choices: r.Choices(p)}
	b.board = b.writeBoard()
	return b
}

// Tag returns a power in three letters, or a dash for None.
func Tag(w rules.Power) string {
	if w == rules.None {
		return "-"
	}
	return w.Name()[:3]
}

// Board lists the units and centres of every power, a line each.
func (b *diplomacyBrief) Board() string { return b.board }

func (b *diplomacyBrief) writeBoard() string {
	var lines []string
	for _, w := range rules.Powers() {
		if !b.Position.Alive(w) {
			lines = append(lines, w.Name()+": out")
			continue
		}
		units := b.Rules.UnitTexts(b.Position, w)
		for i := range b.Position.Dislodged {
			if d := b.Position.Dislodged[i].Unit; d.Power == w {
				units = append(units, b.Rules.Board.UnitText(d)+" (dislodged)")
			}
		}
		centres := b.Rules.CentreTexts(b.Position, w)
		lines = append(lines, fmt.Sprintf("%s: %s; %d%s%s", w.Name(), orNone(strings.Join(units, ", ")), len(centres), briefCentres, orNone(strings.Join(centres, " "))))
	}
	if free := b.free(); free != "" {
		lines = append(lines, "Nobody's: "+free)
	}
	return strings.Join(lines, "\n")
}

// free lists the centres without an owner.
func (b *diplomacyBrief) free() string {
	var free []string
	for c := range b.Rules.Board.SupplyCentres().All() {
		if b.Position.Owners[c] == rules.None {
			free = append(free, b.Rules.Board.Code(rules.Location(c)))
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

// Choices returns the legal orders of a power, by province.
func (b *diplomacyBrief) Choices(w rules.Power) []rules.Choice { return rules.ChoicesOf(b.choices, w) }

// Options describes the legal orders of a power, at the provinces of only or, if that is empty,
// at all.
func (b *diplomacyBrief) Options(w rules.Power, only rules.Set[rules.Province]) string {
	switch b.Position.Phase.Step {
	case rules.Retreats:
		return b.retreats(w, only)
	case rules.Adjustments:
		return b.adjustments(w)
	}
	lines := []string{"(* has a centre, *Ger one of Germany, *- one of nobody; [A Ger] an army of Germany is there; +A MAR your A MAR can support that)"}
	for _, c := range b.Choices(w) {
		if only.Empty() || only.Has(c.At) {
			lines = append(lines, b.unit(c))
		}
	}
	return strings.Join(lines, "\n")
}

func (b *diplomacyBrief) retreats(w rules.Power, only rules.Set[rules.Province]) string {
	var lines []string
	for _, c := range b.Choices(w) {
		if !only.Empty() && !only.Has(c.At) {
			continue
		}
		var to []string
		for _, o := range c.Orders {
			if o.Kind == rules.Retreat {
				to = append(to, b.place(o.To))
			}
		}
		lines = append(lines, b.Rules.Board.UnitText(b.Position.Dislodged[c.At].Unit)+canRetreat+orNone(strings.Join(to, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (b *diplomacyBrief) adjustments(w rules.Power) string {
	n := b.Rules.Allowed(b.Position, w)
	var sites []string
	for _, c := range b.Choices(w) {
		var orders []string
		for _, o := range c.Orders {
			if o.Kind != rules.Waive {
				orders = append(orders, o.Text(b.Rules.Board))
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
func (b *diplomacyBrief) place(at rules.Location) string {
	text := b.Rules.Board.Code(at)
	p := b.Rules.Board.Province(at)
	if b.Rules.Board.SupplyCentres().Has(p) {
		text += "*" + Tag(b.Position.Owners[p])
	}
	if u := b.Position.Units[p]; u.Power != rules.None {
		text += "[" + u.Type.String() + " " + Tag(u.Power) + "]"
	}
	return text
}
