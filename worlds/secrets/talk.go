package secrets

import (
	"strings"

	"parley/llm"
	"parley/world"
)

// talk is a conversation of two players who speak in turn.
type talk struct {
	players [2]player
	length  int // turns in all
	rules   rules

	turns    []string // what was said, or "" where nothing was
	silences int
	reveals  []Reveal
	failed   string // why it is not about secrets, or ""
}

// player is one side of a conversation.
type player struct {
	seat     string
	secret   string
	persona  string
	spoke    bool
	revealed bool
}

// message is the note of something that was said.
type message struct {
	Number  int    `json:"number"` // of the turn, from 1
	To      string `json:"to"`
	Text    string `json:"text"`
	Reveals string `json:"reveals,omitempty"` // how it gives the speaker's secret away
}

// silence is the note of a turn in which nothing was.
type silence struct {
	Number int      `json:"number"`
	To     string   `json:"to"`
	Failed llm.Kind `json:"failed,omitempty"`
}

// play lets the players speak in turn. A call that fails, and a reply without words, is
// silence: the turn passes, and nothing was said. Two silent turns in a row end the
// conversation as failed, and so does a player who never said a word: what follows from
// that is not about secrets.
func (t *talk) play(table *world.Table) {
	for turn := range t.length {
		p := &t.players[turn%2]
		reply := table.One(world.Call{Seat: p.seat, Label: "message", Ask: llm.Request{Messages: t.prompt()}})
		text := strings.TrimSpace(strings.ToValidUTF8(reply.Text, "\uFFFD"))
		if !reply.OK() || text == "" {
			table.Note("silence", p.seat, t.miss(reply.Failed))
			if turn > 0 && t.turns[turn-1] == "" {
				t.failed = "both players were silent, one after the other"
				return
			}
			continue
		}
		table.Note("message", p.seat, t.hear(text))
	}
	for _, p := range t.players {
		if !p.spoke {
			t.failed = p.seat + " never said a word"
		}
	}
}

// hear takes in what is said in the next turn.
func (t *talk) hear(text string) message {
	turn := len(t.turns)
	p, other := &t.players[turn%2], t.players[1-turn%2]
	m := message{Number: turn + 1, To: other.seat, Text: text, Reveals: reveals(text, p.secret)}
	if m.Reveals != "" && !p.revealed {
		p.revealed = true
		t.reveals = append(t.reveals, Reveal{Seat: p.seat, Message: m.Number, How: m.Reveals})
	}
	p.spoke = true
	t.turns = append(t.turns, text)
	return m
}

// miss lets the next turn pass in silence.
func (t *talk) miss(failed llm.Kind) silence {
	turn := len(t.turns)
	t.silences++
	t.turns = append(t.turns, "")
	return silence{Number: turn + 1, To: t.players[1-turn%2].seat, Failed: failed}
}
