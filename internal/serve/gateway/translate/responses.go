package translate

import (
	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// responsesWriter writes an answer of words only.
type responsesWriter struct {
	meta Meta
	seq  int64
	said string
}

func (w *responsesWriter) event(b []byte, name string) []byte {
	b = body.Int(event(b, name), "sequence_number", w.seq)
	w.seq++
	return b
}

const itemAt = `,"output_index":0`

// Begin writes that an answer, and a message in it, begins.
func (w *responsesWriter) Begin(b []byte) []byte {
	for _, name := range []string{"response.created", "response.in_progress"} {
		b = body.Key(w.event(b, name), "response")
		b = append(appendResponse(b, w.meta, "in_progress", "", nil), "}\n\n"...)
	}
	b = append(w.event(b, "response.output_item.added"), itemAt...)
	b = append(w.item(body.Key(b, "item"), "in_progress", false), "}\n\n"...)
	b = w.place(w.event(b, "response.content_part.added"))
	return append(part(body.Key(b, "part"), ""), "}\n\n"...)
}

func (w *responsesWriter) itemID() string { return "msg_" + w.meta.ID }

func (w *responsesWriter) place(b []byte) []byte {
	return append(append(body.Str(b, "item_id", w.itemID()), itemAt...), `,"content_index":0`...)
}

func part(b []byte, words string) []byte {
	b = body.Str(append(b, `{"type":"output_text","annotations":[]`...), "text", words)
	return append(b, '}')
}

func (w *responsesWriter) item(b []byte, status string, full bool) []byte {
	b = body.Str(append(b, `{"type":"message","role":"assistant"`...), "id", w.itemID())
	b = append(body.Key(body.Str(b, "status", status), "content"), '[')
	if full {
		b = part(b, w.said)
	}
	return append(b, "]}"...)
}

// Add writes some of the words.
func (w *responsesWriter) Add(b []byte, d Delta) []byte {
	w.said += d.Text
	b = w.place(w.event(b, "response.output_text.delta"))
	return append(body.Str(b, "delta", d.Text), ",\"logprobs\":[]}\n\n"...)
}

// End writes the whole once more, as the format does.
func (w *responsesWriter) End(b []byte, r *llm.Response) []byte {
	b = w.place(w.event(b, "response.output_text.done"))
	b = append(body.Str(b, "text", w.said), ",\"logprobs\":[]}\n\n"...)
	b = w.place(w.event(b, "response.content_part.done"))
	b = append(part(body.Key(b, "part"), w.said), "}\n\n"...)
	b = append(w.event(b, "response.output_item.done"), itemAt...)
	b = append(w.item(body.Key(b, "item"), "completed", true), "}\n\n"...)
	b = body.Key(w.event(b, "response.completed"), "response")
	return append(appendResponse(b, w.meta, "completed", w.said, r), "}\n\n"...)
}

// appendResponse appends a response; with no answer yet it is one in progress.
func appendResponse(b []byte, m Meta, status, words string, r *llm.Response) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "object", "response")
	b = body.Str(body.Int(b, "created_at", m.Created), "status", status)
	b = append(b, `,"error":null,"incomplete_details":null,"instructions":null,"metadata":{}`...)
	b = append(body.Str(b, "model", m.Model), `,"parallel_tool_calls":true,"temperature":null,"top_p":null,"tool_choice":"auto","tools":[]`...)
	b = append(body.Key(b, "output"), '[')
	if r == nil {
		return append(b, `],"usage":null}`...)
	}
	w := responsesWriter{meta: m, said: words}
	b = append(w.item(b, status, true), ']')
	b = body.Int(append(body.Key(b, "usage"), '{'), "input_tokens", int64(r.Usage.Input))
	b = append(body.Int(append(body.Key(b, "input_tokens_details"), '{'), "cached_tokens", int64(r.Usage.Cached)), '}')
	b = body.Int(b, "output_tokens", int64(r.Usage.Output))
	b = append(body.Int(append(body.Key(b, "output_tokens_details"), '{'), "reasoning_tokens", int64(r.Usage.Reasoning)), '}')
	return append(body.Int(b, "total_tokens", int64(r.Usage.Total())), '}', '}')
}
