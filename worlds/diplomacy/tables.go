package diplomacy

import (
	"maps"
	"slices"
	"strings"

	"parley/world"
)

// tables are the tables of games: orders, press, relations and promises.
func tables() []world.NoteTable {
	phase := world.NoteColumn{Name: "phase", Type: world.NoteText, Doc: "the phase, as F1902M"}
	who := func(name, doc string) []world.NoteColumn {
		return []world.NoteColumn{
			{Name: name, Type: world.NoteText, Doc: doc}, {Name: name + "_agent", Type: world.NoteText, Doc: "the agent in that seat"},
		}
	}
	word := func(name, doc string) world.NoteColumn {
		return world.NoteColumn{Name: name, Type: world.NoteText, Doc: doc}
	}
	return []world.NoteTable{
		{
			Name: "orders", Doc: "an order that counted, with its result",
			Columns: slices.Concat([]world.NoteColumn{phase}, who("power", "the power"), []world.NoteColumn{
				word("order", "the order, as A PAR - BUR"), word("result", "success, or what happened to it, with commas"),
				{Name: "missing", Type: world.NoteBoolean, Doc: "whether the power gave no legal order, so that the unit holds"},
			}),
			Rows: rows(orderRows),
		},
		{
			Name: "press", Doc: "a message of a power",
			Columns: slices.Concat([]world.NoteColumn{phase, {Name: "round", Type: world.NoteInteger, Doc: "the round of talks, from 1"}},
				who("sender", "the power that wrote it"), who("recipient", "the power that it was sent to, or ALL"), []world.NoteColumn{word("text", "the message")}),
			Rows: rows(pressRows),
		},
		{
			Name: "relations", Doc: "how a power saw another one when it gave its orders",
			Columns: slices.Concat([]world.NoteColumn{phase}, who("power", "the power"), who("toward", "the power that it judged"), []world.NoteColumn{word("relation", "enemy, unfriendly, neutral, friendly or ally")}),
			Rows:    rows(relationRows),
		},
		{
			Name: "promises", Doc: "a promise that the judge found",
			Columns: slices.Concat([]world.NoteColumn{phase}, who("power", "the power that gave it"), who("toward", "the power that it was given to, or ALL"), []world.NoteColumn{
				word("promise", "what was promised, as hold"), word("unit", "the unit that it is about"), word("place", "the place that it is about"),
				word("quote", "the words of the message"), word("verdict", "kept, broken or unclear, by the orders"),
			}),
			Rows: rows(promiseRows),
		},
	}
}

// rows makes the rows of each phase of a game.
func rows(of func(p *Phase, agent func(string) string) [][]any) func(world.Played, []world.Note) [][]any {
	return func(p world.Played, notes []world.Note) (all [][]any) {
		g := Read(notes)
		for i := range g.Phases {
			all = append(all, of(&g.Phases[i], func(power string) string { return p.Spec.Lineup[power] })...)
		}
		return all
	}
}

func orderRows(p *Phase, agent func(string) string) (all [][]any) {
	for _, power := range slices.Sorted(maps.Keys(p.Orders)) {
		for _, o := range p.Orders[power] {
			all = append(all, []any{p.State.Name, power, agent(power), o.Order, strings.Join(o.Results, ", "), o.Missing})
		}
	}
	return all
}

func pressRows(p *Phase, agent func(string) string) (all [][]any) {
	for _, m := range p.Messages {
		all = append(all, []any{m.Phase, m.Round, m.From, agent(m.From), m.To, agent(m.To), m.Text})
	}
	return all
}

func relationRows(p *Phase, agent func(string) string) (all [][]any) {
	for _, power := range slices.Sorted(maps.Keys(p.Relations)) {
		for _, other := range slices.Sorted(maps.Keys(p.Relations[power])) {
			all = append(all, []any{p.State.Name, power, agent(power), other, agent(other), p.Relations[power][other]})
		}
	}
	return all
}

func promiseRows(p *Phase, agent func(string) string) (all [][]any) {
	for _, r := range p.Promises {
		all = append(all, []any{r.Phase, r.From, agent(r.From), r.To, agent(r.To), r.Kind, r.Unit, r.Place, r.Quote, r.Verdict})
	}
	return all
}
