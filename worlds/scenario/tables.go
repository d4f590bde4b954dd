package scenario

import (
	"encoding/json"
	"strings"

	"parley/world"
)

// tables are the tables of scenarios: events and statements.
func tables() []world.NoteTable {
	turn := world.NoteColumn{Name: "turn", Type: world.NoteInteger, Doc: "the turn, from 1"}
	word := func(name, doc string) world.NoteColumn {
		return world.NoteColumn{Name: name, Type: world.NoteText, Doc: doc}
	}
	return []world.NoteTable{
		{
			Name: "events", Doc: "something that happened from outside",
			Columns: []world.NoteColumn{turn, word("name", "the name of the event"), word("type", "trend, random, conditional, scheduled or black_swan"), word("description", "what happened")},
			Rows:    eventRows,
		},
		{
			Name: "statements", Doc: "something that an actor said: in public, to another actor, or with a coalition",
			Columns: []world.NoteColumn{
				turn, word("actor", "who said it"), word("agent", "the agent in its seat"), word("how", "public, private, proposal, agreement or joint"),
				word("recipients", "who could read it, with commas; null for everybody"), word("text", "the words"),
			},
			Rows: statementRows,
		},
	}
}

func eventRows(_ world.Played, notes []world.Note) (all [][]any) {
	for _, n := range notes {
		var e recordEvent
		if n.Kind == "event" && json.Unmarshal(n.Data, &e) == nil {
			all = append(all, []any{e.Turn, e.Name, e.Type, e.Description})
		}
	}
	return all
}

func statementRows(p world.Played, notes []world.Note) (all [][]any) {
	for _, n := range notes {
		add := func(turn int, how, to, text string) {
			if text != "" {
				all = append(all, []any{turn, n.Seat, p.Spec.Lineup[n.Seat], how, to, text})
			}
		}
		switch n.Kind {
		case "statement":
			var s recordStatement
			if json.Unmarshal(n.Data, &s) == nil {
				add(s.Turn, "public", "", s.Text)
			}
		case "message":
			var m recordMessage
			if json.Unmarshal(n.Data, &m) == nil {
				add(m.Turn, "private", m.To, m.Text)
			}
		case "coalition":
			var c coalition
			if json.Unmarshal(n.Data, &c) == nil {
				members := strings.Join(c.Members, ",")
				add(c.Turn, "proposal", members, c.Purpose)
				add(c.Turn, "agreement", members, c.Agreed)
				add(c.Turn, "joint", "", c.Statement)
			}
		}
	}
	return all
}
