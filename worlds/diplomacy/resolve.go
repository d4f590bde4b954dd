package diplomacy

import (
	"fmt"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// resolve carries out the orders of a phase, records their results, and moves to the next
// phase or ends the game.
func (g *game) resolve(t *world.Table) {
	if g.agreed() {
		t.Note(notePhase, "", g.phaseNote(&rules.Outcome{})) // it keeps the messages of the phase
		return
	}
	var orders rules.Orders
	for _, p := range g.players {
		for _, o := range p.orders {
			orders[p.power] = append(orders[p.power], o.order)
		}
	}
	out := g.rules.Adjudicate(&g.pos, &orders)
	note := g.phaseNote(&out)
	t.Note(notePhase, "", note)
	g.book.phase(&out)
	moved := g.pos.Phase.Step == rules.Movement
	again := g.movesAgain()
	if moved {
		g.last = past{year: g.pos.Phase.Year, phase: g.pos.Phase.String(), text: g.resultLines(note)}
	} else if lines := g.resultLines(note); lines != "" {
		g.last.text += fmt.Sprintf("\n%s:\n%s", g.pos.Phase, lines)
	}
	before := g.pos
	g.pos = g.rules.Advance(&out.After)
	for _, p := range g.players {
		p.orders, p.reason, p.vote = nil, "", ""
		if moved {
			p.behind = g.Diary && !p.bot && again && g.pos.Alive(p.power)
			p.changes = changes(g.rules, p.power, &before, &out.After)
		}
	}
	g.book.advance(&before)
	g.finish()
}

// finish ends the game if it is over.
func (g *game) finish() {
	alive := g.alive()
	switch winner := g.pos.Winner(); {
	case winner != rules.None && g.Scoring != scoreWelfare:
		g.ends(recordSolo, winner)
	case len(alive) == 1:
		g.ends(recordAlone, alive[0].power)
	case len(alive) == 0: // the game started from an unusual position
		g.ends(recordAlone)
	case rank(g.pos.Phase) > rank(g.until) && g.EndPhase != "":
		g.ends(recordUntil)
	case rank(g.pos.Phase) > rank(g.until):
		g.ends(recordYear)
	}
}

// ends records how the game ended.
func (g *game) ends(reason string, winners ...rules.Power) {
	g.end = &End{State: g.rules.State(&g.pos), Reason: reason}
	for _, w := range winners {
		g.end.Winners = append(g.end.Winners, w.String())
	}
	g.book.ended(reason, winners)
}

// phaseNote returns the note of a phase.
func (g *game) phaseNote(out *rules.Outcome) *Phase {
	note := &Phase{State: g.rules.State(&g.pos), Orders: map[string][]Order{}}
	for _, u := range out.Removed {
		note.Removed = append(note.Removed, g.rules.Board.UnitText(u))
	}
	for _, p := range g.players {
		for i, r := range out.Results[p.power] {
			note.Orders[p.seat] = append(note.Orders[p.seat], Order{
				Order: r.Order.Text(g.rules.Board), Results: r.Codes(), Missing: p.orders[i].missing,
			})
		}
		if p.reason != "" {
			note.Reasons = put(note.Reasons, p.seat, p.reason)
		}
		if p.vote != "" && g.pos.Phase.Step == rules.Movement {
			note.Votes = put(note.Votes, p.seat, p.vote)
		}
		if g.pos.Phase.Step == rules.Movement && g.Diary && !p.bot && g.pos.Alive(p.power) {
			note.Relations = put(note.Relations, p.seat, p.relations.record(p.power))
			note.Goals = put(note.Goals, p.seat, p.goals)
		}
	}
	return note
}

// put sets a key of a map, which it makes if needed.
func put[T any](m map[string]T, key string, value T) map[string]T {
	if m == nil {
		m = map[string]T{}
	}
	m[key] = value
	return m
}

// resultLines lists the orders of a phase and their failures, a line for each power.
func (g *game) resultLines(note *Phase) string {
	var lines []string
	for _, p := range g.players {
		if orders := note.OrderTexts(p.seat); len(orders) > 0 {
			lines = append(lines, p.power.Name()+": "+strings.Join(orders, ", "))
		}
	}
	return strings.Join(lines, "\n")
}

// changes describes what a power won and lost in a movement phase. Centres change their owner
// after fall, once no unit has to retreat.
func changes(r *rules.Rules, w rules.Power, before, after *rules.Position) string {
	var won, lost, beaten []string
	for c := range r.Board.SupplyCentres().All() {
		code := r.Board.Code(rules.Location(c))
		switch {
		case before.Owners[c] != w && after.Owners[c] == w:
			won = append(won, code)
		case before.Owners[c] == w && after.Owners[c] != w:
			lost = append(lost, code+" to "+after.Owners[c].Name())
		}
	}
	for i := range after.Dislodged {
		if d := after.Dislodged[i].Unit; d.Power == w {
			beaten = append(beaten, r.Board.UnitText(d))
		}
	}
	var parts []string
	for _, p := range []struct {
		what string
		list []string
	}{{"You won", won}, {"You lost", lost}, {"You were driven out:", beaten}} {
		if len(p.list) > 0 {
			parts = append(parts, p.what+" "+strings.Join(p.list, ", ")+".")
		}
	}
	return strings.Join(parts, " ")
}
