// Package world holds the vocabulary of play: the rules and what they ask (World, Table, Call, Reply, Outcome), who plays (Agent, Lineup), and
// what is played (Kind, Spec, Stages). An author writes a Definition, and Define makes a Kind of it. What a kind can have besides is in package
// part, and what it shows in package exhibit.
//
// A world is straight-line Go: it asks through its Table and continues when the replies have arrived. Its state is not saved. To resume an
// episode, its world is played again from the beginning with the recorded replies. So a world may depend only on its params, its replies and
// Table.Rand. It does no I/O, reads no clock, starts no goroutine, and does not depend on the order of a map.
//
// Replies are in the order of their calls; strands of one episode never run at the same time; two plays with the same Deal and the same replies
// have the same calls, notes and outcome. The driver of a world (the engine, worldtest) calls models and keeps records, through Strand.
package world

import (
	"context"
	"encoding/json"

	"parley/llm"
)

// World is the rules of one episode.
type World interface {
	// Play plays the episode to its end. It is called once.
	Play(t *Table) Outcome
}

// Func is a function that implements World.
type Func func(t *Table) Outcome

// Play calls f.
func (f Func) Play(t *Table) Outcome { return f(t) }

// Call is one thing that a world waits for: an ask of a seat or, if Act is set, an act on the outside.
type Call struct {
	// Seat is the seat whose agent is asked, or for which something is done. An act without a seat is the episode's own.
	Seat string
	// Label says in a word or two what the call is for: message, orders. Statistics are kept by label.
	Label string
	// Ask is the request. The agent in the seat adds its model, its system prompt, and the parameters that Ask leaves
	// open.
	Ask llm.Request
	// Act is something done on the outside, such as a step of an environment. Nil: an ask.
	Act *Act
	// Offer helps a person to answer. Models do not get it, and it is not recorded.
	Offer *Offer
	// Work is what a program gets to work on, besides the question. Models, bots and people do not get it. It is not
	// recorded: it follows from the params. The reply of a program then has a Done as its JSON.
	Work *Work
}

// Offer helps a person to answer a question: a picture, and choices for the items of a list in the answer.
type Offer struct {
	// SVG is a picture, Alt the same in words, and Caption how to read it. Everything in it that could fetch or run something is removed.
	SVG     string `json:"svg,omitempty"`
	Alt     string `json:"alt,omitempty"`
	Caption string `json:"caption,omitempty"`
	// Field is the property of the answer that is a list of texts. Each choice adds at most one text to it.
	Field   string   `json:"field,omitempty"`
	Choices []Choice `json:"choices,omitempty"`
}

// Choice is a selection from some texts.
type Choice struct {
	Name string `json:"name"` // what the choice is about: a unit
	// At is where that is in the picture: the element with this data-at belongs to it. Empty: nowhere.
	At      string   `json:"at,omitempty"`
	Options []string `json:"options"`
}

// Act is something that an Actor does on the outside.
type Act struct {
	Name string          `json:"name"` // reset, step, …
	Body json.RawMessage `json:"body,omitempty"`
	// Do carries it out and returns its result, for a world whose acts leave nothing outside that a resumed run would
	// miss. It may be called again if the process was killed before the result was recorded: key is then the same, and no
	// other act has it. A *CodeError is what the act's own code raised, and any other error that is not an *llm.Error is a
	// failure of the act. Nil: the Actor of the kind carries it out.
	Do func(ctx context.Context, key string) (json.RawMessage, error) `json:"-"`
}

// Reply is the answer to a Call. A failure is a reply too: Failed is its kind, and everything else but Why is empty. The text
// of a model's failure stays in the journal, so that nobody can take it for an answer.
type Reply struct {
	Text      string          `json:"text,omitempty"`
	JSON      json.RawMessage `json:"json,omitempty"` // the valid answer to a Schema, the result of an act, or what a program has Done
	ToolCalls []llm.ToolCall  `json:"tool_calls,omitempty"`
	Thoughts  []llm.Thought   `json:"thoughts,omitempty"`
	Finish    llm.Finish      `json:"finish,omitempty"`
	Failed    llm.Kind        `json:"failed,omitempty"`
	// Why is what the code of an act raised, if Failed is llm.KindRaised. It is hostile, as every text from outside.
	Why string `json:"why,omitempty"`
	// Weights is the version of the weights that answered, if the server reports it.
	Weights string `json:"weights,omitempty"`
}

// OK reports whether the call was answered.
func (r Reply) OK() bool { return r.Failed == "" }

// Outcome is the result of an episode. What was not measured has no score: 0 is a measurement. An episode in which no
// ask was answered becomes a failed one without scores, whatever its world returns.
type Outcome struct {
	// Scores are in an order that the world chooses.
	Scores []Score `json:"scores,omitempty"`
	// Data is the world's record for its report. It must always marshal to the same JSON.
	Data any `json:"data,omitempty"`
	// Failed says why the episode could not be finished, or is "". A failed outcome has no scores.
	Failed string `json:"failed,omitempty"`
}

// Score is a number about one seat, or about the whole episode if Seat is "".
type Score struct {
	Seat  string  `json:"seat,omitempty"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// TranscriptEntry is an entry of a transcript: a note, or a call with its reply.
type TranscriptEntry struct {
	Turn string // its name: 3, or 4.2/0 in a strand
	Note *Note  // nil: a call
	// Seat is the seat of the call, Agent who sat there, and Label its purpose.
	Seat, Agent, Label string
	Act                *Act // nil: an ask, or the call of a bot
	Reply              Reply
}

// Note is a world's remark for readers. It has no effect on play.
type Note struct {
	Kind string          `json:"kind"` // message, board, metric, …
	Seat string          `json:"seat,omitempty"`
	Data json.RawMessage `json:"data"`
}

// phaseKind is the kind of the notes with which phases begin. Their data is the name.
const phaseKind = "phase"

// Phase returns the name of the phase that begins with the note: see Table.Phase. It is empty for other notes.
func (n Note) Phase() (name string) {
	if n.Kind != phaseKind || json.Unmarshal(n.Data, &name) != nil {
		return ""
	}
	return name
}

// NotesOf returns the notes of a transcript, in order.
func NotesOf(transcript []TranscriptEntry) []Note {
	var notes []Note
	for _, t := range transcript {
		if t.Note != nil {
			notes = append(notes, *t.Note)
		}
	}
	return notes
}
