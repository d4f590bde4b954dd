// Package openai writes and reads OpenAI's chat completions, which most other vendors and every local
// server speak too: requests, answers, streams and errors.
//
// It promises pure functions, so that they serve a batch file as well as a connection. An
// incomplete answer is an error, never a shorter answer. A parameter that the model refuses, by its
// provider.Capability, is left out and listed in Response.Dropped.
//
// request.go writes requests and response.go reads answers, for calls to a provider. server.go does the reverse, for the
// gateway and the simulated server. generate.go is for the endpoints of vLLM and SGLang that work on tokens. The other
// formats use what is in this file: the metadata and the steps of an answer, errors, and log probabilities.
//
// It does not handle connections (internal/ask/transport does), or OpenAI's newer format
// (package responses).
package openai

import (
	"strconv"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// Path is the endpoint of chat completions, below a provider's base URL.
const Path = "/chat/completions"

// Meta is the metadata of an answer.
type Meta struct {
	ID, Model string
	Created   int64 // seconds since 1970
	// Usage means that a stream of chat completions must end with the usage.
	Usage bool

	// Only some servers send the following. Empty fields are left out.
	Tier           string       // the service tier that was used
	Fingerprint    string       // of the system that answers
	PromptTokenIDs []int        // of the prompt
	Stop           string       // the stop sequence that ended the answer
	Prompt         llm.Usage    // the usage that is known when a stream begins
	Request        *llm.Request // the request, if the answer repeats some of it
	// Forms are the tools that clients of responses did not write as functions, by the names that the model knows.
	Forms map[string]request.Form
	// Thinker is the provider whose thoughts clients of responses get to send them back. Empty: the thoughts are not sent.
	Thinker string
}

// StopReason returns why an answer ended, in the words of Anthropic's messages and of Bedrock. They differ only in that of a refusal.
func (m *Meta) StopReason(r *llm.Response, refused string) string {
	switch {
	case r.Finish == llm.FinishLength:
		return "max_tokens"
	case r.Finish == llm.FinishTools:
		return "tool_use"
	case r.Finish == llm.FinishRefused:
		return refused
	case m.Stop != "":
		return "stop_sequence"
	default:
		return "end_turn"
	}
}

// Delta is a step of an answer: a piece of text, of a thought, or of a tool call, but never of two
// of these.
type Delta struct {
	Text, Thought, Signature, Refusal string
	// Call is the number of the tool call, from 0. Name and ID begin it, and Arguments continue it.
	// It is valid only if one of them is set.
	Call                int
	ID, Name, Arguments string

	Logprobs []llm.Logprob // of the tokens of Text
	TokenIDs []int
}

// IsCall reports whether the step belongs to a tool call.
func (d *Delta) IsCall() bool { return d.ID != "" || d.Name != "" || d.Arguments != "" }

// IsEmpty reports whether the step adds nothing.
func (d *Delta) IsEmpty() bool {
	return d.Text == "" && d.Thought == "" && d.Signature == "" && d.Refusal == "" && !d.IsCall()
}

// CompletionWriter writes an answer as a stream, step by step.
type CompletionWriter interface {
	// Begin appends the beginning of the stream.
	Begin(b []byte) []byte
	// Add appends a step.
	Add(b []byte, d Delta) []byte
	// End appends the end of the stream. r is the whole answer.
	End(b []byte, r *llm.Response) []byte
}

// InSequence returns a writer for formats in which nothing else comes before a tool call is whole: it writes the steps of an answer
// with w, and holds back those that arrive while a call lacks a part of its arguments. Servers of chat completions may send the calls of
// an answer in turns. A call is whole when its arguments are a JSON object; one that never is, when the answer ends.
func InSequence(w CompletionWriter) CompletionWriter {
	return &sequence{CompletionWriter: w, open: -1, written: map[int]bool{}, heldCalls: map[int]*heldBack{}}
}

type sequence struct {
	CompletionWriter
	open      int // the call that is written; -1: none
	arguments body.ObjectEnd
	written   map[int]bool // the calls that are written, or begun
	held      []*heldBack  // in the order in which they began
	heldCalls map[int]*heldBack
}

// heldBack is steps that are held back: those of one call, or some without a call.
type heldBack struct {
	call  int // -1: none
	steps []Delta
}

// Add implements CompletionWriter.
func (s *sequence) Add(b []byte, d Delta) []byte {
	same := d.IsCall() && d.Call == s.open
	switch {
	case !same && d.IsCall() && s.written[d.Call]:
		return b // it goes on after its end: that is no JSON
	case !same && s.open >= 0 && !s.arguments.Found():
		s.hold(d)
		return b
	}
	return s.release(s.write(b, d))
}

// hold keeps a step for later.
func (s *sequence) hold(d Delta) {
	call := -1
	if d.IsCall() {
		call = d.Call
	}
	h := s.heldCalls[call]
	if n := len(s.held); call < 0 && n > 0 && s.held[n-1].call < 0 {
		h = s.held[n-1]
	}
	if h == nil {
		h = &heldBack{call: call}
		s.held = append(s.held, h)
		if call >= 0 {
			s.heldCalls[call] = h
		}
	}
	h.steps = append(h.steps, d)
}

// write writes a step.
func (s *sequence) write(b []byte, d Delta) []byte {
	switch {
	case !d.IsCall():
		s.open = -1
	case d.Call != s.open:
		s.open, s.arguments, s.written[d.Call] = d.Call, body.ObjectEnd{}, true
	}
	s.arguments.Add(d.Arguments)
	return s.CompletionWriter.Add(b, d)
}

// release writes what was held back, as far as it can be written now.
func (s *sequence) release(b []byte) []byte {
	for len(s.held) > 0 && (s.open < 0 || s.arguments.Found()) {
		h := s.held[0]
		s.held = s.held[1:]
		delete(s.heldCalls, h.call)
		for _, d := range h.steps {
			b = s.write(b, d)
		}
	}
	return b
}

// End implements CompletionWriter.
func (s *sequence) End(b []byte, r *llm.Response) []byte {
	for len(s.held) > 0 {
		s.open = -1 // it has no end
		b = s.release(b)
	}
	return s.CompletionWriter.End(b, r)
}

// AppendStream appends a whole answer as a stream.
func AppendStream(b []byte, w CompletionWriter, r *llm.Response) []byte {
	b = w.Begin(b)
	for _, t := range r.Thoughts {
		b = w.Add(b, Delta{Thought: t.Text, Signature: t.Signature})
	}
	switch {
	case r.Text != "":
		b = w.Add(b, Delta{Text: r.Text})
	case r.Refusal != "":
		b = w.Add(b, Delta{Refusal: r.Refusal})
	}
	for i, c := range r.ToolCalls {
		b = w.Add(b, Delta{Call: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return w.End(b, r)
}

// Error is an error that a server reports.
type Error struct {
	Type, Message string
	Code, Param   string // may be empty
	RequestID     string // if the format has it
	Reason        string // the same
}

// Logprob is a token as OpenAI's formats write it.
type Logprob struct {
	Token   string    `json:"token"`
	Logprob float64   `json:"logprob"`
	Top     []Logprob `json:"top_logprobs"`
}

// Logprobs appends decoded tokens to out.
func Logprobs(out []llm.Logprob, in []Logprob) []llm.Logprob {
	for i := range in {
		p := llm.Logprob{Token: in[i].Token, Logprob: in[i].Logprob}
		// vLLM has an option to write tokens as their IDs.
		if id, ok := strings.CutPrefix(p.Token, "token_id:"); ok {
			p.ID, _ = strconv.Atoi(id)
		}
		if len(in[i].Top) > 0 {
			p.Top = Logprobs(make([]llm.Logprob, 0, len(in[i].Top)), in[i].Top)
		}
		out = append(out, p)
	}
	return out
}

// AppendLogprobs appends a list of tokens, each with its alternatives.
func AppendLogprobs(b []byte, list []llm.Logprob) []byte {
	b = append(b, '[')
	for _, l := range list {
		b = append(appendLogprob(b, l), `,"top_logprobs":[`...)
		for _, t := range l.Top {
			b = append(appendLogprob(b, t), '}')
		}
		b = append(b, "]}"...)
	}
	return append(b, ']')
}

// appendLogprob appends a token without the brace that ends it.
func appendLogprob(b []byte, l llm.Logprob) []byte {
	b = body.Str(body.Open(b, '{'), "token", l.Token)
	b = append(b, `,"logprob":`...)
	b = strconv.AppendFloat(b, l.Logprob, 'g', 8, 64)
	b = append(b, `,"bytes":[`...)
	for i := range len(l.Token) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(l.Token[i]), 10)
	}
	return append(b, ']')
}
