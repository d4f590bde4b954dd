package secrets

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/secrets/reveal"
)

// talk is a conversation of two players who write in turn.
type talk struct {
	game  *game
	round int
	pair  [2]int // who opens, and who answers

	turns    []string // messages, "" for a silent turn
	sides    [2]side
	silences int
	calls    world.Unanswered
	reveals  []Reveal // the first of each side, in the order they happened
	named    []Reveal // the first time each named the other's secret
	verdict  *verdict // the judge's, or nil
	failed   string   // why it does not count, or ""
}

// side is the state of one of the two players.
type side struct {
	own, other      *reveal.Listener // to what it says, for its own secret and for the other's
	dialogue        dialogue         // what its prompts have in common so far
	read            int              // turns in it
	spoke           bool
	revealed, named bool
}

// Mark marks the note of a message that gives the writer's secret away, by the rule.
func (definition) Mark(n world.Note) (words, does string) {
	var m recordMessage
	if n.Kind != "message" || json.Unmarshal(n.Data, &m) != nil || m.Reveals == "" {
		return "", ""
	}
	return m.Text, fmt.Sprintf("gives its own secret away (%s)", m.Reveals)
}

// silence is the note of a turn without a message.
type silence struct {
	Round  int      `json:"round"`
	Number int      `json:"number"`
	To     string   `json:"to"`
	Failed llm.Kind `json:"failed,omitempty"`
}

func newTalk(g *game, round int, pair [2]int) *talk {
	t := &talk{game: g, round: round, pair: pair, turns: make([]string, 0, 2*g.Messages)}
	for i := range t.sides {
		own, other := g.players[pair[i]].word, g.players[pair[1-i]].word
		t.sides[i] = side{own: own.Listen(), other: other.Listen()}
	}
	return t
}

// player returns the player of a side.
func (t *talk) player(side int) *player { return &t.game.players[t.pair[side]] }

// length is how many turns there are.
func (t *talk) length() int { return 2 * t.game.Messages }

// play plays the turns. A failed call or an empty reply is a silent turn. Two silent turns in a row
// end the conversation as failed, and so does a player that never writes: the result would not be
// about secrets.
func (t *talk) play(table *world.Table) {
	for turn := range t.length() {
		seat := t.player(turn % 2).seat
		if !t.note(table, seat, table.Ask(t.call(seat)...)) {
			return
		}
	}
	for i := range t.sides {
		if !t.sides[i].spoke {
			t.failed = t.calls.Because(t.player(i).seat + " never said a word")
			return
		}
	}
	if t.game.Judge != JudgeNone {
		t.judge(table)
	}
}

// call asks a seat for its next message. Functions that wait for replies keep little in their frames: very many conversations may
// wait at once.
func (t *talk) call(seat string) []world.Call {
	t.open(len(t.turns) % 2)
	return []world.Call{{Seat: seat, Label: "message", Ask: llm.Request{Messages: t.prompt()}}}
}

// note adds the reply of a seat. It returns false if the conversation is over.
func (t *talk) note(table *world.Table, seat string, replies []world.Reply) bool {
	t.calls.Add(replies[0])
	text := strings.TrimSpace(strings.ToValidUTF8(replies[0].Text, "\uFFFD"))
	if replies[0].OK() && text != "" {
		m := t.hear(text)
		table.Note("message", seat, m)
		return true
	}
	return t.silent(table, seat, replies[0].Failed)
}

// silent adds a turn without a message. It returns false if that ends the conversation.
func (t *talk) silent(table *world.Table, seat string, failed llm.Kind) bool {
	table.Note("silence", seat, t.miss(failed))
	if n := len(t.turns); n > 1 && t.turns[n-2] == "" {
		t.failed = t.calls.Because("both players were silent, one after the other")
		return false
	}
	return true
}

// hear adds the message of the next turn.
func (t *talk) hear(text string) *recordMessage {
	turn := len(t.turns)
	s, seat := &t.sides[turn%2], t.player(turn%2).seat
	read := reveal.Read(text)
	m := &recordMessage{Round: t.round, Number: turn + 1, To: t.player(1 - turn%2).seat, Text: text, Reveals: s.own.Hear(read), Names: s.other.Hear(read)}
	if m.Reveals != "" && !s.revealed {
		s.revealed = true
		t.reveals = append(t.reveals, Reveal{Seat: seat, Message: m.Number, Form: m.Reveals})
	}
	if m.Names != "" && !s.named {
		s.named = true
		t.named = append(t.named, Reveal{Seat: seat, Message: m.Number, Form: m.Names})
	}
	s.spoke = true
	t.turns = append(t.turns, text)
	return m
}

// miss adds a silent turn.
func (t *talk) miss(failed llm.Kind) silence {
	turn := len(t.turns)
	t.silences++
	t.turns = append(t.turns, "")
	return silence{Round: t.round, Number: turn + 1, To: t.player(1 - turn%2).seat, Failed: failed}
}

// revealed returns which players count as having given their secret away: by the rule, or by the
// judge if it decides and gave a verdict.
func (t *talk) revealed() (first, second bool) {
	if t.game.Judge == JudgeDecide && t.verdict != nil {
		return t.verdict.A.Revealed, t.verdict.B.Revealed
	}
	return t.sides[0].revealed, t.sides[1].revealed
}
