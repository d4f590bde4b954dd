package responses

import (
	"fmt"
	"strconv"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	return appendObject(b, &m, status(r), r)
}

func status(r *llm.Response) string {
	if r.Finish == llm.FinishLength {
		return "incomplete"
	}
	return "completed"
}

// appendObject appends a response. While it is in progress r is nil, and it has no output and no
// usage.
func appendObject(b []byte, m *openai.Meta, status string, r *llm.Response) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "object", "response")
	b = body.Str(body.Int(b, "created_at", m.Created), "status", status)
	b = append(b, `,"background":false,"error":null,"incomplete_details":`...)
	if status == "incomplete" {
		b = append(b, `{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, "null"...)
	}
	asked := m.Request
	if asked == nil {
		asked = &llm.Request{}
	}
	b = append(b, `,"instructions":null,"max_output_tokens":`...)
	if asked.MaxTokens > 0 {
		b = fmt.Append(b, asked.MaxTokens)
	} else {
		b = append(b, "null"...)
	}
	b = append(body.Key(body.Str(b, "model", m.Model), "output"), '[')
	if r != nil {
		for _, it := range itemsOf(m, r) {
			b = it.append(body.Open(b, '{'), status, true)
		}
	}
	b = body.Bool(append(b, ']'), "parallel_tool_calls", !asked.OneTool)
	b = body.Nullable(append(b, `,"previous_response_id":null,"reasoning":{`...), "effort", string(asked.Effort))
	b = append(b, `,"summary":null}`...)
	if m.Tier != "" {
		b = body.Str(b, "service_tier", m.Tier)
	}
	b = body.Float(append(b, `,"store":false`...), "temperature", orOne(asked.Temperature))
	b = append(b, `,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[]`...)
	b = append(body.Float(b, "top_p", orOne(asked.TopP)), `,"truncation":"disabled","usage":`...)
	if r != nil {
		b = appendUsage(b, r.Usage)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"user":null,"metadata":{}}`...)
}

func orOne(f *float64) float64 {
	if f == nil {
		return 1
	}
	return *f
}

func appendUsage(b []byte, u llm.Usage) []byte {
	b = body.Int(append(b, '{'), "input_tokens", int64(u.Input))
	b = append(body.Int(append(b, `,"input_tokens_details":{`...), "cached_tokens", int64(u.Cached)), '}')
	b = body.Int(b, "output_tokens", int64(u.Output))
	b = append(body.Int(append(b, `,"output_tokens_details":{`...), "reasoning_tokens", int64(u.Reasoning)), '}')
	return append(body.Int(b, "total_tokens", int64(u.Total())), '}')
}

// item is a piece of a response's output.
type item struct {
	kind     string // reasoning, message or function_call
	id       string
	text     string
	refuses  bool // text is a refusal
	logprobs []llm.Logprob
	call     llm.ToolCall
}

// newItem returns an item whose ID comes from its response. n is the number of a call.
func newItem(m *openai.Meta, kind string, n int) item {
	id := strings.TrimPrefix(m.ID, "resp_")
	switch kind {
	case "reasoning":
		return item{kind: kind, id: "rs_" + id}
	case "message":
		return item{kind: kind, id: "msg_" + id}
	default:
		return item{kind: kind, id: fmt.Sprintf("fc_%s%02d", id, n)}
	}
}

// itemsOf returns the items of an answer. The text of thoughts is not sent.
func itemsOf(m *openai.Meta, r *llm.Response) []item {
	var items []item
	if len(r.Thoughts) > 0 {
		items = append(items, newItem(m, "reasoning", 0))
	}
	if r.Text != "" || r.Refusal != "" || len(r.ToolCalls) == 0 {
		it := newItem(m, "message", 0)
		if it.text, it.logprobs = r.Text, r.Logprobs; r.Refusal != "" {
			it.text, it.refuses = r.Refusal, true
		}
		items = append(items, it)
	}
	for i, c := range r.ToolCalls {
		it := newItem(m, "function_call", i)
		it.call = c
		items = append(items, it)
	}
	return items
}

// append appends the members of the item and its closing brace. The content is empty unless full.
func (it *item) append(b []byte, status string, full bool) []byte {
	b = body.Str(body.Str(b, "id", it.id), "type", it.kind)
	if it.kind == "reasoning" {
		return append(b, `,"summary":[]}`...)
	}
	b = body.Str(b, "status", status)
	if it.kind == "function_call" {
		args := ""
		if full {
			args = it.call.Arguments
		}
		return append(body.Str(body.Str(body.Str(b, "arguments", args), "call_id", it.call.ID), "name", it.call.Name), '}')
	}
	b = append(b, `,"role":"assistant","content":[`...)
	if full {
		b = it.appendPart(b, true)
	}
	return append(b, "]}"...)
}

// appendPart appends the only part of the message. Its text is empty unless full.
func (it *item) appendPart(b []byte, full bool) []byte {
	text, logprobs := "", []llm.Logprob(nil)
	if full {
		text, logprobs = it.text, it.logprobs
	}
	if it.refuses {
		return append(body.Str(append(b, `{"type":"refusal"`...), "refusal", text), '}')
	}
	b = append(b, `{"type":"output_text","annotations":[],"logprobs":`...)
	return append(body.Str(openai.AppendLogprobs(b, logprobs), "text", text), '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	b = append(sse.Begin(b, "error"), `{"type":"error"`...)
	b = body.Str(body.Nullable(b, "code", e.Code), "message", e.Message)
	return sse.End(append(b, `,"param":null,"sequence_number":0}`...))
}

// Writer writes an answer as events. A step of another kind begins a new item.
type Writer struct {
	meta        openai.Meta
	seq         int64
	n           int64  // number of the open item
	open        item   // kind is "" if there is none
	call        int    // of the open item, if it is a tool call
	written     []byte // text of the open item
	itemMembers []byte // the members that identify the open item in events
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
	w.open, w.written = it, w.written[:0]
	w.itemMembers = body.Int(body.Str(append(w.itemMembers[:0], ','), "item_id", it.id), "output_index", w.n)
	if it.kind == "message" {
		w.itemMembers = append(w.itemMembers, `,"content_index":0`...)
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
	return append(w.event(b, name), w.itemMembers...)
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
	w.written = append(w.written, text...)
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
		text := string(w.written)
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

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "input":
		var one string
		if request.Text(v, &one) {
			q.Messages = append(q.Messages, llm.User(one))
			return true
		}
		return c.List(v, c.item)
	case "instructions":
		var words string
		if !request.Text(v, &words) {
			return false
		}
		q.Messages = append([]llm.Message{llm.System(words)}, q.Messages...)
		return true
	case "max_output_tokens":
		return c.Tokens(key, v)
	case "reasoning":
		request.Effort(request.Member(v, "effort"), &q.Effort)
		return false // the caller keeps it too: it may have more members
	case "text":
		f := request.Member(v, "format")
		if request.Str(f, "type") == "json_schema" {
			c.ReadSchema(f)
		}
		return false
	case "tools":
		return c.ReadTools(v, func(t []byte) (llm.Tool, bool) { return request.Function(t, "parameters") }, "function")
	case "tool_choice":
		return c.ReadToolChoice(v, func(v []byte) string { return request.Str(v, "name") })
	default:
		return c.OpenAI(key, v)
	}
}

// item reads an item of the input: a message, a tool call, a tool result or a thought.
func (c reader) item(i int, b []byte) bool {
	m := llm.Message{Role: llm.RoleAssistant}
	switch kind := request.Str(b, "type"); kind {
	case "", "message":
		content := request.Member(b, "content")
		if !request.Role(request.Str(b, "role"), &m.Role) || content == nil {
			return false
		}
		var ok bool
		if m.Parts, ok = c.Parts(content, fmt.Sprintf("input[%d].content", i)); !ok {
			return false
		}
	case "function_call":
		m.ToolCalls = []llm.ToolCall{{ID: request.Str(b, "call_id"), Name: request.Str(b, "name"), Arguments: request.Str(b, "arguments")}}
	case "function_call_output":
		m.Role, m.ToolCallID = llm.RoleTool, request.Str(b, "call_id")
		var ok bool
		if m.Parts, ok = c.Parts(request.Member(b, "output"), fmt.Sprintf("input[%d].output", i)); !ok {
			return false
		}
	case "reasoning":
		m.Thoughts = []llm.Thought{{ID: request.Str(b, "id"), Opaque: request.Str(b, "encrypted_content"), Text: summary(request.Member(b, "summary"))}}
	default:
		return false
	}
	c.Request.Messages = append(c.Request.Messages, m)
	return true
}

func summary(v []byte) (words string) {
	body.Elements(v, func(p []byte) bool {
		if words != "" {
			words += "\n\n"
		}
		words += request.Str(p, "text")
		return true
	})
	return words
}
