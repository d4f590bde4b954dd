// Package world holds the words of play: what a world is and asks (World, Table,
// Call, Reply, Outcome), who plays it (Seat, Agent, Lineup), and what is played
// (Kind, Spec, Plan).
//
// A world is written as straight-line Go: it asks through its Table and goes on when the
// replies are there. Its state is not saved. To resume an episode, its world is played again
// from the beginning with the replies that were recorded, until these are used up: then it
// is where it was. This is what a pure fold over replies means in this module. Resuming,
// replaying and forking an episode all work this way, on any machine.
//
// So what a world does may depend on nothing but its params, its replies and Table.Rand. It
// does no I/O, reads no clock, starts no goroutine, and does not depend on the order of a map.
//
// What the package promises: replies come in the order of their calls; a strand of an episode
// never runs at the same time as another of the same episode; two plays with the same Deal
// and the same replies have the same calls, notes and outcome.
//
// What it is not for: it calls no model and keeps no record. Whoever drives a world (the
// engine, worldtest) does that through Strand.
package world

import (
	"encoding/json"

	"parley/llm"
)

// World is the rules of one episode.
type World interface {
	// Play plays the episode to its end. It is called once.
	Play(t *Table) Outcome
}

// Func makes a World of a function.
type Func func(t *Table) Outcome

// Play calls f.
func (f Func) Play(t *Table) Outcome { return f(t) }

// Call is one thing a world waits for: an ask of a seat or, when Act is set, an act on
// the outside.
type Call struct {
	// Seat is whose agent is asked, or on whose behalf something is done.
	Seat string
	// Label says what the call is for, in a word or two: message, orders. Statistics are
	// kept by it.
	Label string
	// Ask is the question. The agent in the seat adds its model, its system prompt and
	// its parameters where Ask leaves them open.
	Ask llm.Request
	// Act is something done on the outside, such as a step of an environment. Nil: an ask.
	Act *Act
}

// Act is something done on the outside by an actor.
type Act struct {
	Name string          `json:"name"` // reset, step, …
	Body json.RawMessage `json:"body,omitempty"`
}

// Reply is the answer to a Call. A failure is a reply too: Failed is then its kind
// and everything else is empty. Its text stays in the journal, so that it can never be
// taken for an answer or a message.
type Reply struct {
	Text      string          `json:"text,omitempty"`
	JSON      json.RawMessage `json:"json,omitempty"` // the answer to a Schema, valid; or what an act returned
	ToolCalls []llm.ToolCall  `json:"tool_calls,omitempty"`
	Thoughts  []llm.Thought   `json:"thoughts,omitempty"`
	Finish    llm.Finish      `json:"finish,omitempty"`
	Failed    llm.Kind        `json:"failed,omitempty"`
	// Weights is the version of the weights that answered, where the server gives it.
	Weights string `json:"weights,omitempty"`
}

// OK says whether the call was answered.
func (r Reply) OK() bool { return r.Failed == "" }

// Outcome is the result of an episode. What was not measured has no score: 0 is a measurement,
// and unknown is not. An episode in which no ask was answered is made a failed one without
// scores, whatever its world returns.
type Outcome struct {
	// Scores are what is counted, in an order of the world's choosing.
	Scores []Score `json:"scores,omitempty"`
	// Data is the world's own record, for its report. It must marshal to JSON the same way
	// each time.
	Data any `json:"data,omitempty"`
	// Failed is why the episode could not be finished, or "". An outcome that failed has no
	// scores.
	Failed string `json:"failed,omitempty"`
}

// Score is one number about one seat, or about the whole episode where Seat is "".
type Score struct {
	Seat  string  `json:"seat,omitempty"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// TranscriptEntry is an entry of a transcript: a note, or a call with its reply.
type TranscriptEntry struct {
	Note *Note // nil: a call
	// Seat is whose call it was, Agent who sat there, and Label what it was for.
	Seat, Agent, Label string
	Act                *Act // nil: an ask, or the call of a bot
	Reply              Reply
}

// Note is something a world says for readers. It has no effect on play.
type Note struct {
	Kind string          `json:"kind"` // message, board, metric, …
	Seat string          `json:"seat,omitempty"`
	Data json.RawMessage `json:"data"`
}

// NotesOf returns the notes of a transcript, in order.
func NotesOf(told []TranscriptEntry) []Note {
	var notes []Note
	for _, t := range told {
		if t.Note != nil {
			notes = append(notes, *t.Note)
		}
	}
	return notes
}
