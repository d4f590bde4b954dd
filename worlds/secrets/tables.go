package secrets

import (
	"encoding/json"

	"parley/world"
)

// Tables are the tables of games of secrets: reveals.
func (definition) Tables() []world.NoteTable {
	word := func(name, doc string) world.NoteColumn {
		return world.NoteColumn{Name: name, Type: world.NoteText, Doc: doc}
	}
	return []world.NoteTable{{
		Name: "reveals", Doc: "a message that gives a secret away or names the other's, by the rule",
		Columns: []world.NoteColumn{
			{Name: "round", Type: world.NoteInteger, Doc: "the round, from 1"}, {Name: "message", Type: world.NoteInteger, Doc: "the number of the message in its conversation, from 1"},
			word("seat", "who wrote it"), word("agent", "the agent in that seat"), word("other", "who read it"), word("other_agent", "the agent in that seat"),
			word("whose", "own if it gives its writer's secret away, other if it names the reader's"), word("secret", "the secret"),
			word("form", "how the secret is there, as said or spelled"), word("text", "the message"),
		},
		Rows: revealRows,
	}}
}

func revealRows(p world.Played, notes []world.Note) (all [][]any) {
	var g Game
	if raw, ok := p.Outcome.Data.(json.RawMessage); !ok || json.Unmarshal(raw, &g) != nil {
		return nil
	}
	for _, n := range notes {
		var m recordMessage
		if n.Kind != "message" || json.Unmarshal(n.Data, &m) != nil {
			continue
		}
		add := func(whose, secret, form string) {
			if form != "" {
				all = append(all, []any{m.Round, m.Number, n.Seat, p.Spec.Lineup[n.Seat], m.To, p.Spec.Lineup[m.To], whose, secret, form, m.Text})
			}
		}
		add("own", g.Secrets[n.Seat], string(m.Reveals))
		add("other", g.Secrets[m.To], string(m.Names))
	}
	return all
}
