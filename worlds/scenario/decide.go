package scenario

import (
	"slices"

	"parley/llm"
	"parley/world"
)

// decision is what an actor does in a turn.
type decision struct {
	failed     llm.Kind // why there is none
	long       []string
	short      []string
	reasoning  string
	action     string
	reflection string
}

// decide asks every actor at the same moment. One that fails to answer does nothing.
func (g *game) decide(t *world.Table, m *moves) {
	calls := make([]world.Call, len(g.cast))
	for i := range g.cast {
		calls[i] = g.decisionCall(m, i)
	}
	for _, r := range t.Ask(calls...) {
		m.decisions = append(m.decisions, readDecision(r))
	}
}

// noteDecision says what an actor decided, and how its goals changed.
func (g *game) noteDecision(t *world.Table, turn, who int, d decision) {
	a, did := &g.cast[who], &g.conduct[who]
	g.choices.Add(world.Reply{Failed: d.failed})
	if d.action == "" {
		t.Note("silence", a.ShortName, Silence{Turn: turn, Failed: d.failed})
		did.Silences++
	} else {
		note := Decision{
			Turn: turn, LongTerm: d.long, ShortTerm: d.short, Reasoning: d.reasoning, Action: d.action, Reflection: d.reflection,
			Added: without(d.long, a.long), Dropped: without(a.long, d.long),
		}
		t.Note("decision", a.ShortName, note)
		did.Decisions++
		did.GoalsAdded += len(note.Added)
		did.GoalsDropped += len(note.Dropped)
	}
	if len(d.long) > 0 {
		a.long = d.long
	}
	if len(d.short) > 0 {
		a.short = d.short
	}
}

// without returns what is in all and not in some; nothing if either says nothing.
func without(all, some []string) []string {
	if len(all) == 0 || len(some) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// remember lets each actor keep what it alone knows of a turn.
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
