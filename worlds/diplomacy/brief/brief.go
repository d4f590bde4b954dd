// Package brief describes positions of Diplomacy for players: the board in a few lines, and
// what each unit of a power can do.
//
// Texts are short and always in the same order, so that providers can cache what does not
// change. They hold only what every player may know: the board is public.
package brief

import (
	"fmt"
	"strings"

	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// Texts of a briefing by which package standin reads it.
const (
	Centres    = " centres: "        // of a power on the board
	Moves      = "moves"             // of a unit
	CanRetreat = ": can retreat to " // of a unit that was dislodged
	MayBuild   = "You may build %d"  // in winter
	MustRemove = "You have to remove %d"
)

// Brief describes a position.
type Brief struct {
	Rules    *rules.Rules
	Position *rules.Position
	choices  []rules.Choice
	board    string
}

// New returns the Brief of a position, for all powers. The position must not change.
func New(r *rules.Rules, p *rules.Position) *Brief {
	b := &Brief{Rules: r, Position: p, choices: r.Choices(p)}
	b.board = b.writeBoard()
	return b
}

// Tag returns a power in three letters, or a dash for None.
func Tag(w board.Power) string {
	if w == board.None {
		return "-"
	}
	return w.Name()[:3]
}

// Board lists the units and centres of every power, a line each.
func (b *Brief) Board() string { return b.board }

func (b *Brief) writeBoard() string {
	var lines []string
	for _, w := range board.Powers() {
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
		lines = append(lines, fmt.Sprintf("%s: %s; %d%s%s", w.Name(), orNone(strings.Join(units, ", ")), len(centres), Centres, orNone(strings.Join(centres, " "))))
	}
	if free := b.free(); free != "" {
		lines = append(lines, "Nobody's: "+free)
	}
	return strings.Join(lines, "\n")
}

// free lists the centres without an owner.
func (b *Brief) free() string {
	var free []string
	for c := range b.Rules.Board.SupplyCentres().All() {
		if b.Position.Owners[c] == board.None {
			free = append(free, b.Rules.Board.Code(board.Location(c)))
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
func (b *Brief) Choices(w board.Power) []rules.Choice { return rules.ChoicesOf(b.choices, w) }

// Options describes the legal orders of a power, at the provinces of only or, if that is empty,
// at all.
func (b *Brief) Options(w board.Power, only board.Set[board.Province]) string {
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

func (b *Brief) retreats(w board.Power, only board.Set[board.Province]) string {
	var lines []string
	for _, c := range b.Choices(w) {
		if !only.Empty() && !only.Has(c.At) {
			continue
		}
		var to []string
		for _, o := range c.Orders {
			if o.Kind == order.Retreat {
				to = append(to, b.place(o.To))
			}
		}
		lines = append(lines, b.Rules.Board.UnitText(b.Position.Dislodged[c.At].Unit)+CanRetreat+orNone(strings.Join(to, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (b *Brief) adjustments(w board.Power) string {
	n := b.Rules.Allowed(b.Position, w)
	var sites []string
	for _, c := range b.Choices(w) {
		var orders []string
		for _, o := range c.Orders {
			if o.Kind != order.Waive {
				orders = append(orders, o.Text(b.Rules.Board))
			}
		}
		sites = append(sites, strings.Join(orders, " or "))
	}
	if n < 0 {
		return fmt.Sprintf(MustRemove+" of your units: %s.", -n, strings.Join(sites, ", "))
	}
	return fmt.Sprintf(MayBuild+", one in a place: %s. WAIVE leaves one out.", n, strings.Join(sites, "; "))
}

// place describes a location and what is there.
func (b *Brief) place(at board.Location) string {
	text := b.Rules.Board.Code(at)
	p := b.Rules.Board.Province(at)
	if b.Rules.Board.SupplyCentres().Has(p) {
		text += "*" + Tag(b.Position.Owners[p])
	}
	if u := b.Position.Units[p]; u.Power != board.None {
		text += "[" + u.Type.String() + " " + Tag(u.Power) + "]"
	}
	return text
}
