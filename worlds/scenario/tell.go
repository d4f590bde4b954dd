package scenario

import (
	"fmt"
	"slices"

	"parley/world"
	"parley/worlds/scenario/script"
)

// maxMissed is the number of consecutive failures of the narrator that end the scenario.
const maxMissed = 2

// tell asks the narrator for what follows from the decisions and events of a turn. If it fails, the
// situation stays unchanged, and the narrator tells this turn together with the next.
func (g *game) tell(t *world.Table, m moves) {
	g.noteTalk(t, m)
	for i, d := range m.decisions {
		g.noteDecision(t, m.turn, i, d)
	}
	events := g.happening(m.turn)
	for _, e := range events {
		t.Note("event", "", e)
	}
	swan := g.swan(m.turn)
	reply := t.One(g.updateCall(m, events, swan))
	u := script.ReadUpdate(reply)
	g.accounts.Add(reply)
	if swan && u.BlackSwan != "" {
		e := recordEvent{Turn: m.turn, Name: "black swan", Type: "black_swan", Description: u.BlackSwan}
		events = append(events, e)
		t.Note("event", "", e)
	}
	g.remember(m)
	now := turn{number: m.turn, statements: m.statements, state: u.State, changes: u.Changes, consequences: u.Consequences}
	for _, p := range m.pacts {
		if p.statement != "" {
			now.pacts = append(now.pacts, p)
		}
	}
	g.events = append(g.events, events...)
	if u.State == "" {
		g.untoldTurn(m, events)
		now.state, now.stale = g.turns[len(g.turns)-1].state, true
		g.missed++
	} else {
		g.hidden, g.untold, g.missed = u.Hidden, nil, 0
	}
	g.turns = append(g.turns, now)
	if a := g.coming; a.summarized > 0 {
		g.summary, g.summarized = a.summary, a.summarized
		t.Note("summary", "", recordSummary{Turns: a.summarized, Text: a.summary, Failed: a.summaryFailed})
		for _, one := range a.asides {
			g.cast[one.who].aside = one.text
			t.Note("summary", g.cast[one.who].ShortName, recordSummary{Turns: a.summarized, Text: one.text, Failed: one.failed})
		}
	}
	g.refresh()
	t.Note("world", "", recordWorld{
		Turn: m.turn, State: now.state, Changes: now.changes, Consequences: now.consequences, Hidden: u.Hidden,
		Stale: u.State == "", Failed: reply.Failed,
	})
	g.measureTexts(t)
	g.close()
	if g.missed >= maxMissed {
		g.fail("%s; that was in %d turns, one after the other", g.accounts.Because("the narrator wrote nothing"), g.missed)
	}
}

// untoldTurn keeps what the narrator failed to tell.
func (g *game) untoldTurn(m moves, events []recordEvent) {
	for i, d := range m.decisions {
		if d.Action != "" {
			g.untold = append(g.untold, fmt.Sprintf("In turn %d, %s: %s", m.turn, g.cast[i].Name, d.Action))
		}
	}
	for _, e := range events {
		g.untold = append(g.untold, fmt.Sprintf("In turn %d, from outside: %s: %s", m.turn, e.Name, e.Description))
	}
}

// actions returns the actions of a turn.
func (g *game) actions(m moves) []saying {
	var all []saying
	for i, d := range m.decisions {
		if d.Action != "" {
			all = append(all, saying{i, d.Action})
		}
	}
	return slices.Clip(all)
}
