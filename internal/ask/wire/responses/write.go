package responses

import (
	"strconv"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

// Writer writes an answer as events. A step of another kind begins a new item.
type Writer struct {
	meta  openai.Meta
	seq   int64
	n     int64  // number of the open item
	open  item   // kind is "" if there is none
	call  int    // of the open item, if it is a tool call
	said  []byte // text of the open item
	where []byte // the members that identify the open item in events
}

// NewWriter returns a Writer of a stream.
func NewWriter(m openai.Meta) *Writer { return &Writer{meta: m} }

func (w *Writer) event(b []byte, name string) []byte {
	b = append(append(append(sse.Begin(b, name), `{"type":"`...), name...), `","sequence_number":`...)
	b = strconv.AppendInt(b, w.seq, 10)
	w.seq++
	return b
}

func end(b []byte) []byte { return sse.End(append(b, '}')) }

// whole writes an event with the whole response.
func (w *Writer) whole(b []byte, name, status string, r *llm.Response) []byte {
	return end(appendObject(body.Key(w.event(b, name), "response"), &w.meta, status, r))
}

// Begin writes the events that begin an answer.
func (w *Writer) Begin(b []byte) []byte {
	b = w.whole(b, "response.created", "in_progress", nil)
	return w.whole(b, "response.in_progress", "in_progress", nil)
}

// Add writes a step, and begins its item if it is a new one.
func (w *Writer) Add(b []byte, d openai.Delta) []byte {
	switch {
	case d.IsCall():
		if w.open.kind != "function_call" || w.call != d.Call {
			it := newItem(&w.meta, "function_call", d.Call)
			it.call = llm.ToolCall{ID: d.ID, Name: d.Name}
			b, w.call = w.begin(b, it), d.Call
		}
		return w.piece(b, d.Arguments, nil)
	case d.Text != "" || d.Refusal != "":
		if w.open.kind != "message" {
			it := newItem(&w.meta, "message", 0)
			it.refuses = d.Refusal != ""
			b = w.begin(b, it)
		}
		return w.piece(b, d.Text+d.Refusal, d.Logprobs)
	case d.Thought != "" && w.open.kind != "reasoning":
		return w.begin(b, newItem(&w.meta, "reasoning", 0))
	}
	return b
}

// begin ends the open item and begins the next.
func (w *Writer) begin(b []byte, it item) []byte {
	b = w.close(b)
	w.open, w.said = it, w.said[:0]
	w.where = body.Int(body.Str(append(w.where[:0], ','), "item_id", it.id), "output_index", w.n)
	if it.kind == "message" {
		w.where = append(w.where, `,"content_index":0`...)
	}
	b = w.item(b, "response.output_item.added", "in_progress", false)
	if it.kind == "message" {
		b = w.part(b, "response.content_part.added", false)
	}
	return b
}

func (w *Writer) item(b []byte, name, status string, full bool) []byte {
	b = body.Int(w.event(b, name), "output_index", w.n)
	return end(w.open.append(append(b, `,"item":{`...), status, full))
}

func (w *Writer) part(b []byte, name string, full bool) []byte {
	return end(w.open.appendPart(body.Key(w.at(b, name), "part"), full))
}

// at begins an event of the open item.
func (w *Writer) at(b []byte, name string) []byte {
	return append(w.event(b, name), w.where...)
}

// names returns the names of the events with the open item's text, and of the member that holds it.
func (w *Writer) names() (delta, done, member string) {
	switch {
	case w.open.kind == "function_call":
		return "response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"
	case w.open.refuses:
		return "response.refusal.delta", "response.refusal.done", "refusal"
	default:
		return "response.output_text.delta", "response.output_text.done", "text"
	}
}

func (w *Writer) piece(b []byte, text string, logprobs []llm.Logprob) []byte {
	if text == "" {
		return b
	}
	w.said = append(w.said, text...)
	w.open.logprobs = append(w.open.logprobs, logprobs...)
	name, _, member := w.names()
	return w.text(body.Str(w.at(b, name), "delta", text), member, logprobs)
}

// text ends an event with text. The text of a message has log probabilities.
func (w *Writer) text(b []byte, member string, logprobs []llm.Logprob) []byte {
	if member == "text" {
		b = openai.AppendLogprobs(append(b, `,"logprobs":`...), logprobs)
	}
	return end(b)
}

// close repeats the whole open item, as the format does.
func (w *Writer) close(b []byte) []byte {
	if w.open.kind == "" {
		return b
	}
	if w.open.kind != "reasoning" {
		text := string(w.said)
		w.open.text, w.open.call.Arguments = text, text
		_, name, member := w.names()
		b = w.text(body.Str(w.at(b, name), member, text), member, w.open.logprobs)
	}
	if w.open.kind == "message" {
		b = w.part(b, "response.content_part.done", true)
	}
	b = w.item(b, "response.output_item.done", "completed", true)
	w.open = item{}
	w.n++
	return b
}

// End ends the open item, and repeats the whole answer.
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	if w.open.kind != "message" && len(r.ToolCalls) == 0 { // an answer is never empty
		b = w.begin(b, newItem(&w.meta, "message", 0))
	}
	b = w.close(b)
	s := status(r)
	return w.whole(b, "response."+s, s, r)
}
