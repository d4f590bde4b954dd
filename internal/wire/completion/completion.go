// Package completion is what the formats of answers have in common: what an answer is called,
// the steps of its stream, its errors, and the log probabilities that OpenAI's formats share.
//
// It promises nothing of its own: each format has a package that writes and reads these.
package completion

import (
	"strconv"
	"strings"

	"parley/internal/wire/body"
	"parley/llm"
)

// Meta is what is said of an answer beside its content.
type Meta struct {
	ID, Model string
	Created   int64 // seconds since 1970
	// Usage says that a stream of chat completions is to end with what was used.
	Usage bool

	// What only some servers say. Where it is empty it is left out.
	Tier           string       // the service tier that was used
	Fingerprint    string       // of the system that answers
	WeightVersion  string       // of the model
	PromptTokenIDs []int        // of the prompt
	Stop           string       // the stop sequence that ended the answer
	Prompt         llm.Usage    // what is known to be used when a stream begins
	Request        *llm.Request // the question, where the answer repeats some of it
}

// Delta is a step of an answer: some text, some of a thought, or some of a tool call, but never
// two of these.
type Delta struct {
	Text, Thought, Signature, Refusal string
	// Call is the number of the tool call that Name and ID begin or Arguments go on, from 0.
	// It counts only where one of them is set.
	Call                int
	ID, Name, Arguments string

	Logprobs []llm.Logprob // of the tokens of Text
	TokenIDs []int
}

// IsCall says whether the step belongs to a tool call.
func (d *Delta) IsCall() bool { return d.ID != "" || d.Name != "" || d.Arguments != "" }

// IsEmpty says whether the step adds nothing.
func (d *Delta) IsEmpty() bool {
	return d.Text == "" && d.Thought == "" && d.Signature == "" && d.Refusal == "" && !d.IsCall()
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

// AppendStream appends a whole answer as a stream.
func AppendStream(b []byte, w Writer, r *llm.Response) []byte {
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

// Error is a failure as a server says it.
type Error struct {
	Type, Message string
	Code, Param   string // may be empty
	RequestID     string // of the exchange, where the format says it
}

// Logprob is a token as OpenAI's formats write it.
type Logprob struct {
	Token   string    `json:"token"`
	Logprob float64   `json:"logprob"`
	Top     []Logprob `json:"top_logprobs"`
}

// Logprobs appends to out the tokens that were read.
func Logprobs(out []llm.Logprob, in []Logprob) []llm.Logprob {
	for i := range in {
		p := llm.Logprob{Token: in[i].Token, Logprob: in[i].Logprob}
		// vLLM can be told to write tokens as their ids.
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
