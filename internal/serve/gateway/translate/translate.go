// Package translate says in one vendor's format what was said in another's: whole answers,
// and streams as they come. It also writes answers that no model gave.
//
// It promises pure functions, and that whatever an llm.Response holds comes out as valid
// JSON of the format. Questions need no translation here: they are written by the dialects.
//
// It is not for OpenAI's responses as a format to translate from: they can only be answered
// with words of our own.
package translate

import (
	"parley/internal/serve/gateway/format"
	"parley/internal/wire/sse"
	"parley/llm"
)

// Meta is what an answer is called.
type Meta struct {
	ID, Model string
	Created   int64 // seconds since 1970
	// Usage says that a stream of chat completions is to end with what was used.
	Usage bool
}

// Delta is a step of an answer: some text, some of a thought, or some of a tool call.
type Delta struct {
	Text, Thought, Signature, Refusal string
	// Call is the number of the tool call that Name and ID begin or Arguments go on, from 0.
	// It counts only where one of them is set.
	Call                int
	ID, Name, Arguments string
}

func (d *Delta) isCall() bool { return d.ID != "" || d.Name != "" || d.Arguments != "" }

// Reader reads the steps of an answer from the events of a stream.
type Reader interface {
	Read(e sse.Event) []Delta
}

// Writer writes an answer as a stream, step by step.
type Writer interface {
	// Begin appends what comes before the first step.
	Begin(b []byte) []byte
	// Add appends a step.
	Add(b []byte, d Delta) []byte
	// End appends what comes after the last step, given the whole answer.
	End(b []byte, r *llm.Response) []byte
}

// NewReader returns the reader of an endpoint's streams.
func NewReader(api format.API) Reader {
	if api == format.Messages {
		return &messagesReader{}
	}
	return chatReader{}
}

// NewWriter returns the writer of an endpoint's streams.
func NewWriter(api format.API, m Meta) Writer {
	switch api {
	case format.Messages:
		return &messagesWriter{meta: m, block: -1}
	case format.Responses:
		return &responsesWriter{meta: m}
	default:
		return &chatWriter{meta: m}
	}
}

// AppendWhole appends a whole answer.
func AppendWhole(b []byte, api format.API, m Meta, r *llm.Response) []byte {
	switch api {
	case format.Messages:
		return appendMessage(b, m, r)
	case format.Responses:
		return appendResponse(b, m, "completed", r.Text, r)
	default:
		return appendChat(b, m, r)
	}
}

// AppendStream appends an answer as a whole stream.
func AppendStream(b []byte, api format.API, m Meta, r *llm.Response) []byte {
	w := NewWriter(api, m)
	b = w.Begin(b)
	for _, t := range r.Thoughts {
		b = w.Add(b, Delta{Thought: t.Text, Signature: t.Signature})
	}
	if r.Text != "" {
		b = w.Add(b, Delta{Text: r.Text})
	}
	for i, c := range r.ToolCalls {
		b = w.Add(b, Delta{Call: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return w.End(b, r)
}
