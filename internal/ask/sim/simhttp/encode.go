package simhttp

import (
	"fmt"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/llm"
)

// exchange is a request with its answer.
type exchange struct {
	*ask
	Case    *sim.Case
	Answer  *sim.Answer
	Usage   llm.Usage
	ID      string // without a prefix
	Created int64  // Unix seconds
	Chunk   int    // tokens in an event of a stream
	Batch   bool   // answered in a batch
}

// whole appends an answer that is not streamed.
func (f *format) whole(dst []byte, x *exchange) []byte {
	m, r := f.response(x)
	if f.style == sim.OpenAI {
		return append(f.append(dst, m, r), '\n')
	}
	for i, c := range r.ToolCalls {
		if !body.Valid([]byte(c.Arguments)) { // the answer was cut: the format cannot hold half a value
			r.ToolCalls[i].Arguments = "{}"
		}
	}
	return f.append(dst, m, r)
}

// stream appends the events of an answer.
func (f *format) stream(dst []byte, x *exchange) []byte {
	m, r := f.response(x)
	w := f.writer(m)
	dst = w.Begin(dst)
	for _, t := range r.Thoughts {
		for piece := range sim.Chunks(t.Text, x.Chunk) {
			dst = w.Add(dst, openai.Delta{Thought: piece})
		}
		if t.Signature != "" {
			dst = w.Add(dst, openai.Delta{Signature: t.Signature})
		}
	}
	for piece := range sim.Chunks(r.Refusal, x.Chunk) {
		dst = w.Add(dst, openai.Delta{Refusal: piece})
	}
	tokens := 0
	for piece := range sim.Chunks(r.Text, x.Chunk) {
		from := tokens
		tokens += sim.CountTokens(piece)
		dst = w.Add(dst, openai.Delta{Text: piece, Logprobs: slice(r.Logprobs, from, tokens), TokenIDs: slice(r.TokenIDs, from, tokens)})
	}
	for i, c := range r.ToolCalls {
		dst = w.Add(dst, openai.Delta{Call: i, ID: c.ID, Name: c.Name})
		for piece := range sim.Chunks(c.Arguments, x.Chunk) {
			dst = w.Add(dst, openai.Delta{Call: i, Arguments: piece})
		}
	}
	return w.End(dst, r)
}

// slice returns the part of list[from:to] that exists.
func slice[T any](list []T, from, to int) []T {
	return list[min(from, len(list)):min(to, len(list))]
}

// response returns an answer as the vendor's servers give it.
func (f *format) response(x *exchange) (openai.Meta, *llm.Response) {
	a := x.Answer
	m := openai.Meta{ID: f.id + x.ID, Model: x.Request.Model, Created: x.Created, Usage: x.ask.Usage, Stop: a.Stop, Forms: x.Forms}
	r := &llm.Response{Text: a.Text, Refusal: a.Refusal, Finish: a.Finish, Usage: x.Usage}
	for _, c := range a.ToolCalls {
		c.ID = f.callID + c.ID
		r.ToolCalls = append(r.ToolCalls, c)
	}
	if f.style == sim.Anthropic {
		m.Prompt, m.Tier = x.Usage, "standard"
		m.Prompt.Output = 1
		if x.Batch {
			m.Tier = "batch"
		}
		r.Refusal = "" // the stop reason reports it
		if a.Thought != "" {
			r.Thoughts = []llm.Thought{{Text: a.Thought, Signature: signatureOf(x)}}
		}
		return m, r
	}
	if f.style == sim.Google || f.style == sim.Amazon {
		m.Prompt, m.Tier = x.Usage, x.Request.Tier
		m.Prompt.Output, m.Prompt.Reasoning = 0, 0
		r.Refusal = "" // the finish reason reports it
		if a.Thought != "" {
			r.Thoughts = []llm.Thought{{Text: a.Thought, Signature: signatureOf(x)}}
		}
		return m, r
	}
	m.Tier, m.Fingerprint, m.Request = tierOf(x.Request.Tier), "fp_sim", &x.Request
	if x.Request.Logprobs {
		r.Logprobs = x.Case.Logprobs(a, x.Request.TopLogprobs)
	}
	if a.Reasoning > 0 && (x.Request.TokenIDs || f.id == responseID) {
		r.Thoughts = []llm.Thought{{Text: a.Thought}}
	}
	if f.id == responseID {
		return m, r
	}
	if r.Finish == llm.FinishRefused {
		r.Finish = llm.FinishStop // chat completions report a refusal in the message
	}
	if x.Request.TokenIDs {
		r.TokenIDs, r.PromptTokenIDs = a.IDs(), x.Case.PromptIDs()
		m.PromptTokenIDs = r.PromptTokenIDs
	}
	return m, r
}

// signatureOf returns the signature of a thought: "sim" in base64, and the digest of the request.
func signatureOf(x *exchange) string { return "c2lt" + fmt.Sprintf("%016x", x.Case.Digest) }

// tierOf returns the tier that serves a request.
func tierOf(asked string) string {
	switch asked {
	case "", "auto":
		return "default"
	case "fast":
		return "priority"
	default:
		return asked
	}
}
