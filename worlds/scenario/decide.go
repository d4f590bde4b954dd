package scenario

import (
	"slices"

	"parley/world"
	"parley/worlds/scenario/script"
)

// decide asks all actors at the same moment. An actor that fails to answer does nothing.
func (g *game) decide(t *world.Table, m *moves) {
	calls := make([]world.Call, len(g.cast))
	for i := range g.cast {
		calls[i] = g.decisionCall(m, i)
	}
	for _, r := range t.Ask(calls...) {
		m.decisions = append(m.decisions, script.ReadDecision(r))
	}
}

// noteDecision notes what an actor decided, and how its goals changed.
func (g *game) noteDecision(t *world.Table, turn, who int, d script.Decision) {
	a, did := &g.cast[who], &g.conduct[who]
	g.choices.Add(world.Reply{Failed: d.Failed})
	if d.Action == "" {
		t.Note("silence", a.ShortName, silence{Turn: turn, Failed: d.Failed})
		did.Silences++
	} else {
		note := recordDecision{
			Turn: turn, LongTerm: d.LongTerm, ShortTerm: d.ShortTerm, Reasoning: d.Reasoning, Action: d.Action, Reflection: d.Reflection,
			Added: without(d.LongTerm, a.long), Dropped: without(a.long, d.LongTerm),
		}
		t.Note("decision", a.ShortName, note)
		did.Decisions++
		did.GoalsAdded += len(note.Added)
		did.GoalsDropped += len(note.Dropped)
	}
	if len(d.LongTerm) > 0 {
		a.long = d.LongTerm
	}
	if len(d.ShortTerm) > 0 {
		a.short = d.ShortTerm
	}
}

// without returns the elements of all that are not in some, or nothing if either is empty.
func without(all, some []string) []string {
	if len(all) == 0 || len(some) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// remember adds what each actor alone knows of a turn to its memory.
func (g *game) remember(m moves) {
	for i := range g.cast {
		mem := memory{decision: m.decisions[i]}
		for _, x := range m.exchanges {
			if slices.Contains(x.between[:], i) {
				mem.exchanges = append(mem.exchanges, x)
			}
		}
		for _, p := range m.pacts {
			if slices.Contains(p.members, i) {
				mem.pacts = append(mem.pacts, p)
			}
		}
		g.cast[i].past = append(g.cast[i].past, mem)
	}
}
