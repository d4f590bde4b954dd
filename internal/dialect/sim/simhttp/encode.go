package simhttp

import (
	"strconv"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/internal/wire/chat"
	"parley/internal/wire/completion"
	"parley/internal/wire/messages"
	"parley/llm"
)

// whole appends an answer in one piece.
func (f *format) whole(dst []byte, x *check.Exchange) []byte {
	m, r := f.response(x)
	if f.style != quota.Anthropic {
		return append(f.append(dst, m, r), '\n')
	}
	for i, c := range r.ToolCalls {
		if !body.Valid([]byte(c.Arguments)) { // cut off: what is not streamed is never a part of a value
			r.ToolCalls[i].Arguments = "{}"
		}
	}
	return f.append(dst, m, r)
}

// stream appends the events of an answer.
func (f *format) stream(dst []byte, x *check.Exchange) []byte {
	m, r := f.response(x)
	w := f.writer(m)
	dst = w.Begin(dst)
	for _, t := range r.Thoughts {
		for piece := range sim.Chunks(t.Text, x.Chunk) {
			dst = w.Add(dst, completion.Delta{Thought: piece})
		}
		if t.Signature != "" {
			dst = w.Add(dst, completion.Delta{Signature: t.Signature})
		}
	}
	for piece := range sim.Chunks(r.Refusal, x.Chunk) {
		dst = w.Add(dst, completion.Delta{Refusal: piece})
	}
	at := 0 // in the tokens
	for piece := range sim.Chunks(r.Text, x.Chunk) {
		from := at
		at += sim.CountTokens(piece)
		dst = w.Add(dst, completion.Delta{Text: piece, Logprobs: part(r.Logprobs, from, at), TokenIDs: part(r.TokenIDs, from, at)})
	}
	for i, c := range r.ToolCalls {
		dst = w.Add(dst, completion.Delta{Call: i, ID: c.ID, Name: c.Name})
		for piece := range sim.Chunks(c.Arguments, x.Chunk) {
			dst = w.Add(dst, completion.Delta{Call: i, Arguments: piece})
		}
	}
	return w.End(dst, r)
}

// part is list[from:to], as far as there is any; of no list it is none.
func part[T any](list []T, from, to int) []T {
	return list[min(from, len(list)):min(to, len(list))]
}

// response puts an answer as the vendor's servers would give it.
func (f *format) response(x *check.Exchange) (completion.Meta, *llm.Response) {
	a := x.Answer
	m := completion.Meta{ID: f.id + x.ID, Model: x.Request.Model, Created: x.Created, Usage: x.IncludeUsage, Stop: a.Stop}
	r := &llm.Response{Text: a.Text, Refusal: a.Refusal, Finish: a.Finish, Usage: x.Usage}
	for _, c := range a.ToolCalls {
		c.ID = f.callID + c.ID
		r.ToolCalls = append(r.ToolCalls, c)
	}
	if f.style == quota.Anthropic {
		m.Prompt, m.Tier = x.Usage, "standard"
		m.Prompt.Output = 1
		if x.Batch {
			m.Tier = "batch"
		}
		r.Refusal = "" // it is told by the reason to stop
		if a.Thought != "" {
			r.Thoughts = []llm.Thought{{Text: a.Thought, Signature: "c2lt" + strconv.FormatUint(x.Case.Digest, 16)}} // "sim" in base64
		}
		return m, r
	}
	m.Tier, m.Fingerprint, m.Request = tierOf(x.Request.Tier), "fp_sim", x.Request
	if x.Request.Logprobs {
		r.Logprobs = x.Case.Logprobs(a, x.Request.TopLogprobs)
	}
	if a.Reasoning > 0 && (x.Request.TokenIDs || f.id == responseID) {
		r.Thoughts = []llm.Thought{{Text: a.Thought}}
	}
	if f.id == responseID {
		return m, r
	}
	m.WeightVersion = x.WeightVersion
	if r.Finish == llm.FinishRefused {
		r.Finish = llm.FinishStop // a refusal stops like any other answer
	}
	if x.Request.TokenIDs {
		r.TokenIDs, r.PromptTokenIDs = a.IDs(), x.Case.PromptIDs()
		m.PromptTokenIDs = r.PromptTokenIDs
	}
	return m, r
}

// tierOf returns the tier a request was served in.
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

// appendError appends an error in a vendor's form.
func appendError(dst []byte, style quota.Style, e *check.Error, requestID string) []byte {
	if style == quota.Anthropic {
		return messages.AppendError(dst, e.Told(requestID))
	}
	return append(chat.AppendError(dst, e.Told("")), '\n')
}
