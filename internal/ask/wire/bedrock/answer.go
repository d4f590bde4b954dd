package bedrock

import (
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/eventstream"
	"parley/llm"
)

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	b = append(b, `{"output":{"message":{"role":"assistant","content":[`...)
	for _, t := range r.Thoughts {
		b = appendThought(b, t.Text, t.Signature)
	}
	if r.Text != "" {
		b = append(body.Str(body.Open(b, '{'), "text", r.Text), '}')
	}
	for _, c := range r.ToolCalls {
		b = appendCall(b, c)
	}
	b = body.Str(append(b, `]}}`...), "stopReason", stopReason(&m, r))
	return append(appendUsage(b, &m, &r.Usage), '}')
}

func stopReason(m *openai.Meta, r *llm.Response) string {
	return m.StopReason(r, "content_filtered")
}

func appendUsage(b []byte, m *openai.Meta, u *llm.Usage) []byte {
	b = append(body.Key(b, "usage"), '{')
	b = body.Int(b, "inputTokens", int64(u.Input-u.Cached-u.CacheWrite))
	b = body.Int(b, "outputTokens", int64(u.Output))
	b = body.Int(b, "totalTokens", int64(u.Total()))
	if u.Cached > 0 {
		b = body.Int(b, "cacheReadInputTokens", int64(u.Cached))
	}
	if u.CacheWrite > 0 {
		b = body.Int(b, "cacheWriteInputTokens", int64(u.CacheWrite))
	}
	b = append(b, `},"metrics":{"latencyMs":1}`...)
	if m.Tier != "" {
		b = append(body.Str(append(body.Key(b, tier), '{'), "type", m.Tier), '}')
	}
	return b
}

// Writer writes an answer as events.
type Writer struct {
	meta  openai.Meta
	index int // of the block
	open  int // kind of the open block, or -1
	call  int // number of the open tool call
}

// NewWriter returns a Writer of a stream.
func NewWriter(m openai.Meta) *Writer { return &Writer{meta: m, open: -1} }

// Begin writes the first event.
func (*Writer) Begin(b []byte) []byte {
	return eventstream.Append(b, "messageStart", []byte(`{"role":"assistant"}`))
}

// Add writes a piece of a block.
func (w *Writer) Add(b []byte, d openai.Delta) []byte {
	switch {
	case d.IsCall():
		if w.open != kindCall || w.call != d.Call {
			b = w.next(b, kindCall)
			w.call = d.Call
			p := append(w.at(), `,"start":{"toolUse":{`...)
			p = append(body.Str(body.Str(p, "toolUseId", d.ID), "name", d.Name), `}}}`...)
			b = eventstream.Append(b, "contentBlockStart", p)
		}
		if d.Arguments != "" {
			b = w.delta(b, append(body.Str([]byte(`{"toolUse":{`), "input", d.Arguments), '}', '}'))
		}
	case d.Thought != "" || d.Signature != "":
		b = w.next(b, kindThought)
		for _, piece := range [][2]string{{"text", d.Thought}, {"signature", d.Signature}} {
			if piece[1] != "" {
				b = w.delta(b, append(body.Str([]byte(`{"reasoningContent":{`), piece[0], piece[1]), '}', '}'))
			}
		}
	case d.Text != "":
		b = w.delta(w.next(b, kindText), append(body.Str([]byte{'{'}, "text", d.Text), '}'))
	}
	return b
}

// at begins a payload with the number of the block.
func (w *Writer) at() []byte { return body.Int([]byte{'{'}, "contentBlockIndex", int64(w.index)) }

func (w *Writer) delta(b, delta []byte) []byte {
	return eventstream.Append(b, "contentBlockDelta", append(body.Raw(w.at(), "delta", delta), '}'))
}

// next makes sure that the open block is of a kind. Each tool call has its own.
func (w *Writer) next(b []byte, kind int) []byte {
	if w.open == kind && kind != kindCall {
		return b
	}
	b = w.stop(b)
	w.open = kind
	return b
}

func (w *Writer) stop(b []byte) []byte {
	if w.open < 0 {
		return b
	}
	b = eventstream.Append(b, "contentBlockStop", append(w.at(), '}'))
	w.index, w.open = w.index+1, -1
	return b
}

// End writes the last events.
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	b = w.stop(b)
	b = eventstream.Append(b, "messageStop", append(body.Str([]byte{'{'}, "stopReason", stopReason(&w.meta, r)), '}'))
	return eventstream.Append(b, "metadata", append(appendUsage([]byte{'{'}, &w.meta, &r.Usage), '}'))
}

// AppendError appends the body of an error. Its type is in a header.
func AppendError(b []byte, e openai.Error) []byte {
	return append(body.Str(append(b, '{'), "message", e.Message), '}')
}

// AppendErrorEvent appends an exception that ends a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	return eventstream.AppendException(b, e.Type, AppendError(nil, e))
}
