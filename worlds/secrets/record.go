// Part record defines the data of a game of secrets, as its outcome and notes hold it, and the
// kind's part of a report, which is made from any number of games. It also tells a single game as a story.
//
// It accepts outcomes from anywhere and skips broken ones.

package secrets

import "parley/worlds/secrets/reveal"

// Game is the data of an outcome.
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

// recordRound is the pairs of a round: the data of a note.
type recordRound struct {
	Round int         `json:"round"`
	Pairs [][2]string `json:"pairs"` // the seat that opens, and the seat that answers
	Sits  string      `json:"sits,omitempty"`
}

// recordMessage is a message: the data of a note, with its writer as seat.
type recordMessage struct {
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
	Reason   string `json:"reason,omitempty"`
}
