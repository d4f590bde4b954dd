package secrets

import (
	"encoding/json"

	"parley/world"
	"parley/world/part"
	"parley/worlds/secrets/reveal"
)

// Game is the data of an outcome. Readers of it skip what they cannot read, because a run file may come from
// anywhere.
type Game struct {
	Mode string `json:"mode"`
	// Secrets is seat to word, and Target the seat whose word is the target.
	Secrets map[string]string `json:"secrets"`
	Target  string            `json:"target,omitempty"`
	// Points are the points of each seat, and Winner is the seat with the most, or "" for a tie.
	Points map[string]float64 `json:"points"`
	Winner string             `json:"winner,omitempty"`
	// Collected is seat to the seats whose secrets it collected, in order. Not in mode standard.
	Collected map[string][]string `json:"collected,omitempty"`
	// Conversations are in order of rounds.
	Conversations []Conversation `json:"conversations"`
}

// roundNote is the pairs of a round: the data of a note.
type roundNote struct {
	Round int         `json:"round"`
	Pairs [][2]string `json:"pairs"` // the seat that opens, and the seat that answers
	Sits  string      `json:"sits,omitempty"`
}

// messageNote is a message: the data of a note, with its writer as seat.
type messageNote struct {
	Round   int         `json:"round"`
	Number  int         `json:"number"` // of the turn, from 1
	To      string      `json:"to"`
	Text    string      `json:"text"`
	Reveals reveal.Form `json:"reveals,omitempty"` // how it gives the writer's secret away
	Names   reveal.Form `json:"names,omitempty"`   // how it names the other's
}

// Conversation is the result of a conversation.
type Conversation struct {
	Round int `json:"round"`
	// Seats are the seat that opened it and the seat that answered.
	Seats [2]string `json:"seats"`
	// Messages counts the messages, and Silences the turns without one.
	Messages int `json:"messages"`
	Silences int `json:"silences,omitempty"`
	// Reveals are by the rule: the first of each seat, in the order they happened.
	Reveals []Reveal `json:"reveals"`
	// Named is the first time that each seat named the other's secret: a guess, or an echo.
	Named []Reveal `json:"named,omitempty"`
	// Verdicts are the verdicts of the judge, if there are any.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Revealed lists the seats that count as having given their secret away, by the rule or by
	// the judge.
	Revealed []string `json:"revealed"`
	// Failed is why the conversation does not count, or "".
	Failed string `json:"failed,omitempty"`
}

// Reveal is when a player first gave a secret away, and how.
type Reveal struct {
	Seat    string      `json:"seat"`
	Message int         `json:"message"` // its number, from 1
	Form    reveal.Form `json:"form"`
}

// Verdict is the verdict of the judge on a player.
type Verdict struct {
	Seat     string `json:"seat"`
	Revealed bool   `json:"revealed"`
	Message  int    `json:"message,omitempty"` // the first that did, if it said so
}

// Tables are the tables of games of secrets: reveals.
func (definition) Tables() []part.NoteTable {
	word := func(name, doc string) part.NoteColumn {
		return part.NoteColumn{Name: name, Type: part.NoteText, Doc: doc}
	}
	return []part.NoteTable{{
		Name: "reveals", Doc: "a message that gives a secret away or names the other's, by the rule",
		Columns: []part.NoteColumn{
			{Name: "round", Type: part.NoteInteger, Doc: "the round, from 1"}, {Name: "message", Type: part.NoteInteger, Doc: "the number of the message in its conversation, from 1"},
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
		var m messageNote
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
