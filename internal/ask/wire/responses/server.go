package responses

import (
	"fmt"
	"slices"
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
	return appendObject(b, &m, status(r), itemsOf(&m, r), r)
}

func status(r *llm.Response) string {
	if cutBy(r) != "" {
		return "incomplete"
	}
	return "completed"
}

// cutBy returns why an answer is not complete, or "". A model that refuses in words has completed its answer.
func cutBy(r *llm.Response) string {
	switch {
	case r.Finish == llm.FinishLength:
		return "max_output_tokens"
	case r.Finish == llm.FinishRefused && r.Refusal == "":
		return "content_filter"
	}
	return ""
}

// appendObject appends a response. While it is in progress r is nil, and it has no output and no
// usage.
func appendObject(b []byte, m *openai.Meta, status string, items []item, r *llm.Response) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "object", "response")
	b = body.Str(body.Int(b, "created_at", m.Created), "status", status)
	b = append(b, `,"background":false,"error":null,"incomplete_details":`...)
	if status == "incomplete" {
		b = append(body.Str(append(b, '{'), "reason", cutBy(r)), '}')
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
	for _, it := range items {
		b = it.append(body.Open(b, '{'), status, true)
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
	kind     string // reasoning, message, function_call or custom_tool_call
	id       string
	text     string
	refuses  bool // text is a refusal
	logprobs []llm.Logprob
	call     llm.ToolCall
	form     request.Form // of the tool that is called
	thoughts []llm.Thought
	sealed   string // the thoughts, to be sent back
}

// newItem returns an item whose ID comes from its response. n is its number among those of its kind.
func newItem(m *openai.Meta, kind string, n int) item {
	id := strings.TrimPrefix(m.ID, "resp_")
	prefix := map[string]string{"reasoning": "rs_", "message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_"}[kind]
	if n > 0 || strings.HasSuffix(kind, "_call") {
		id = fmt.Sprintf("%s%02d", id, n)
	}
	return item{kind: kind, id: prefix + id}
}

// newCall returns the item of a tool call, in the form in which the client wrote the tool.
func newCall(m *openai.Meta, n int, c llm.ToolCall) item {
	form := m.Forms[c.Name]
	kind := "function_call"
	if form.Custom {
		kind = "custom_tool_call"
	}
	it := newItem(m, kind, n)
	it.call, it.form = c, form
	if form.Name != "" {
		it.call.Name = form.Name
	}
	it.complete(c.Arguments)
	return it
}

// complete sets the arguments of a call.
func (it *item) complete(arguments string) {
	switch {
	case it.form.Custom:
		arguments = customInput(arguments)
	case arguments == "":
		arguments = "{}" // what clients parse
	}
	it.call.Arguments = arguments
}

// itemsOf returns the items of an answer. The text of thoughts is sent only to be sent back.
func itemsOf(m *openai.Meta, r *llm.Response) []item {
	var items []item
	if len(r.Thoughts) > 0 {
		it := newItem(m, "reasoning", 0)
		it.think(m, r.Thoughts)
		items = append(items, it)
	}
	if r.Text != "" || r.Refusal != "" || len(r.ToolCalls) == 0 {
		it := newItem(m, "message", 0)
		if it.text, it.logprobs = r.Text, r.Logprobs; r.Refusal != "" {
			it.text, it.refuses = r.Refusal, true
		}
		items = append(items, it)
	}
	for i, c := range r.ToolCalls {
		items = append(items, newCall(m, i, c))
	}
	return items
}

// think sets the thoughts of the item.
func (it *item) think(m *openai.Meta, ts []llm.Thought) {
	if m.Thinker == "" {
		return
	}
	var words []string
	for _, t := range ts {
		if t.Text != "" {
			words = append(words, t.Text)
		}
	}
	it.thoughts, it.text, it.sealed = ts, strings.Join(words, "\n\n"), seal(m.Thinker, ts)
}

// append appends the members of the item and its closing brace. The content is empty unless full.
func (it *item) append(b []byte, status string, full bool) []byte {
	b = body.Str(body.Str(b, "id", it.id), "type", it.kind)
	if it.kind == "reasoning" {
		b = append(b, `,"summary":[`...)
		if full && it.text != "" {
			b = it.appendPart(b, true)
		}
		b = append(b, ']')
		if full && it.sealed != "" {
			b = body.Str(b, "encrypted_content", it.sealed)
		}
		return append(b, '}')
	}
	b = body.Str(b, "status", status)
	if it.isCall() {
		args := ""
		if full {
			args = it.call.Arguments
		}
		_, _, member := it.names()
		b = body.Str(body.Str(body.Str(b, member, args), "call_id", it.call.ID), "name", it.call.Name)
		if it.form.Group != "" {
			b = body.Str(b, "namespace", it.form.Group)
		}
		return append(b, '}')
	}
	b = append(b, `,"role":"assistant","content":[`...)
	if full {
		b = it.appendPart(b, true)
	}
	return append(b, "]}"...)
}

func (it *item) isCall() bool { return it.kind == "function_call" || it.kind == "custom_tool_call" }

// appendPart appends the only part of a message or of thoughts. Its text is empty unless full.
func (it *item) appendPart(b []byte, full bool) []byte {
	text, logprobs := "", []llm.Logprob(nil)
	if full {
		text, logprobs = it.text, it.logprobs
	}
	switch {
	case it.kind == "reasoning":
		return append(body.Str(append(b, `{"type":"summary_text"`...), "text", text), '}')
	case it.refuses:
		return append(body.Str(append(b, `{"type":"refusal"`...), "refusal", text), '}')
	}
	b = append(b, `{"type":"output_text","annotations":[],"logprobs":`...)
	return append(body.Str(openai.AppendLogprobs(b, logprobs), "text", text), '}')
}

// AppendErrorEvent appends an error as the end of a stream. The SDKs read the first event, and Codex only the second.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	b = append(sse.Begin(b, "error"), `{"type":"error"`...)
	b = body.Str(body.Nullable(b, "code", e.Code), "message", e.Message)
	b = sse.End(append(b, `,"param":null,"sequence_number":0}`...))
	b = append(sse.Begin(b, "response.failed"), `{"type":"response.failed","sequence_number":1,"response":{"object":"response","status":"failed","error":{`...)
	b = body.Str(body.Nullable(b, "code", e.Code), "message", e.Message)
	return sse.End(append(b, `},"incomplete_details":null,"output":[]}}`...))
}

// Writer writes an answer as events. A step of another kind begins a new item.
type Writer struct {
	meta        openai.Meta
	seq         int64
	n           int64          // number of the open item
	open        item           // kind is "" if there is none
	call        int            // of the open item, if it is a tool call
	written     []byte         // text of the open item
	inPart      bool           // the open item has a part that is open
	itemMembers []byte         // the members that identify the open item in events
	items       []item         // those that are closed
	kinds       map[string]int // how many of a kind there were
}

// NewWriter returns a Writer of a stream.
func NewWriter(m openai.Meta) *Writer { return &Writer{meta: m, kinds: map[string]int{}} }

func (w *Writer) event(b []byte, name string) []byte {
	b = append(append(append(sse.Begin(b, name), `{"type":"`...), name...), `","sequence_number":`...)
	b = strconv.AppendInt(b, w.seq, 10)
	w.seq++
	return b
}

func end(b []byte) []byte { return sse.End(append(b, '}')) }

// whole writes an event with the whole response.
func (w *Writer) whole(b []byte, name, status string, items []item, r *llm.Response) []byte {
	return end(appendObject(body.Key(w.event(b, name), "response"), &w.meta, status, items, r))
}

// Begin writes the events that begin an answer.
func (w *Writer) Begin(b []byte) []byte {
	b = w.whole(b, "response.created", "in_progress", nil, nil)
	return w.whole(b, "response.in_progress", "in_progress", nil, nil)
}

// Add writes a step, and begins its item if it is a new one.
func (w *Writer) Add(b []byte, d openai.Delta) []byte {
	switch {
	case d.IsCall():
		if !w.open.isCall() || w.call != d.Call {
			b, w.call = w.begin(b, newCall(&w.meta, d.Call, llm.ToolCall{ID: d.ID, Name: d.Name})), d.Call
		}
		if w.open.form.Custom { // its text is within an object: it is sent when that is whole
			w.written = append(w.written, d.Arguments...)
			return b
		}
		return w.piece(b, d.Arguments, nil)
	case d.Text != "" || d.Refusal != "":
		if w.open.kind != "message" {
			it := newItem(&w.meta, "message", w.kinds["message"])
			it.refuses = d.Refusal != ""
			b = w.begin(b, it)
		}
		return w.piece(b, d.Text+d.Refusal, d.Logprobs)
	case d.Thought != "" || d.Signature != "":
		return w.think(b, d)
	}
	return b
}

// think writes a step of a thought. The signature ends one thought of several.
func (w *Writer) think(b []byte, d openai.Delta) []byte {
	if w.open.kind != "reasoning" {
		b = w.begin(b, newItem(&w.meta, "reasoning", w.kinds["reasoning"]))
	}
	if w.meta.Thinker == "" {
		return b
	}
	n := len(w.open.thoughts)
	if n == 0 || w.open.thoughts[n-1].Signature != "" {
		w.open.thoughts = append(w.open.thoughts, llm.Thought{})
		if n++; n > 1 && len(w.written) > 0 && d.Thought != "" {
			b = w.piece(b, "\n\n", nil)
		}
	}
	t := &w.open.thoughts[n-1]
	t.Text, t.Signature = t.Text+d.Thought, d.Signature
	return w.piece(b, d.Thought, nil)
}

// begin ends the open item and begins the next.
func (w *Writer) begin(b []byte, it item) []byte {
	b = w.close(b)
	w.open, w.written = it, w.written[:0]
	w.kinds[it.kind]++
	w.itemMembers = body.Int(body.Str(append(w.itemMembers[:0], ','), "item_id", it.id), "output_index", w.n)
	switch it.kind {
	case "message":
		w.itemMembers = append(w.itemMembers, `,"content_index":0`...)
	case "reasoning":
		w.itemMembers = append(w.itemMembers, `,"summary_index":0`...)
	}
	b = w.item(b, "response.output_item.added", "in_progress", false)
	if it.kind == "message" {
		b = w.openPart(b)
	}
	return b
}

func (w *Writer) item(b []byte, name, status string, full bool) []byte {
	b = body.Int(w.event(b, name), "output_index", w.n)
	return end(w.open.append(append(b, `,"item":{`...), status, full))
}

// openPart begins the only part of the open item, unless it was begun.
func (w *Writer) openPart(b []byte) []byte {
	if w.inPart {
		return b
	}
	w.inPart = true
	return w.part(b, "added", false)
}

func (w *Writer) part(b []byte, what string, full bool) []byte {
	name := "response.content_part."
	if w.open.kind == "reasoning" {
		name = "response.reasoning_summary_part."
	}
	return end(w.open.appendPart(body.Key(w.at(b, name+what), "part"), full))
}

// at begins an event of the open item.
func (w *Writer) at(b []byte, name string) []byte {
	return append(w.event(b, name), w.itemMembers...)
}

// names returns the names of the events with the item's text, and of the member that holds it.
func (it *item) names() (delta, done, member string) {
	kind := "output_text"
	switch member = "text"; {
	case it.kind == "function_call":
		kind, member = "function_call_arguments", "arguments"
	case it.kind == "custom_tool_call":
		kind, member = "custom_tool_call_input", "input"
	case it.kind == "reasoning":
		kind = "reasoning_summary_text"
	case it.refuses:
		kind, member = "refusal", "refusal"
	}
	return "response." + kind + ".delta", "response." + kind + ".done", member
}

func (w *Writer) piece(b []byte, text string, logprobs []llm.Logprob) []byte {
	if text == "" {
		return b
	}
	if w.open.kind == "reasoning" {
		b = w.openPart(b)
	}
	w.written = append(w.written, text...)
	w.open.logprobs = append(w.open.logprobs, logprobs...)
	return w.delta(b, text, logprobs)
}

func (w *Writer) delta(b []byte, text string, logprobs []llm.Logprob) []byte {
	name, _, _ := w.open.names()
	return w.text(body.Str(w.at(b, name), "delta", text), logprobs)
}

// text ends an event with text. The text of a message has log probabilities.
func (w *Writer) text(b []byte, logprobs []llm.Logprob) []byte {
	if w.open.kind == "message" && !w.open.refuses {
		b = openai.AppendLogprobs(append(b, `,"logprobs":`...), logprobs)
	}
	return end(b)
}

// close repeats the whole open item, as the format does.
func (w *Writer) close(b []byte) []byte {
	if w.open.kind == "" {
		return b
	}
	text := string(w.written)
	switch {
	case w.open.isCall():
		if w.open.complete(text); w.open.call.Arguments != text { // a custom tool, or a call without arguments
			b = w.delta(b, w.open.call.Arguments, nil)
		}
		text = w.open.call.Arguments
	case w.open.kind == "reasoning":
		w.open.think(&w.meta, w.open.thoughts)
	default:
		w.open.text = text
	}
	if w.open.isCall() || w.inPart {
		_, name, member := w.open.names()
		b = w.text(body.Str(w.at(b, name), member, text), w.open.logprobs)
	}
	if w.inPart {
		b = w.part(b, "done", true)
	}
	b = w.item(b, "response.output_item.done", "completed", true)
	w.items = append(w.items, w.open)
	w.open, w.inPart = item{}, false
	w.n++
	return b
}

// End ends the open item, and repeats the whole answer.
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	if w.open.kind != "message" && len(r.ToolCalls) == 0 { // an answer is never empty
		b = w.begin(b, newItem(&w.meta, "message", w.kinds["message"]))
	}
	b = w.close(b)
	s := status(r)
	items := itemsOf(&w.meta, r)
	if !slices.EqualFunc(items, w.items, func(a, b item) bool { return a.id == b.id }) {
		items = w.items // in the order in which they came
	}
	return w.whole(b, "response."+s, s, items, r)
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
		return c.List(key, v, "a string or a list of items", c.item)
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
		return c.tools(v)
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
		m.ToolCalls = []llm.ToolCall{{ID: request.Str(b, "call_id"), Name: flatName(request.Str(b, "namespace"), request.Str(b, "name")), Arguments: request.Str(b, "arguments")}}
	case "custom_tool_call":
		m.ToolCalls = []llm.ToolCall{{
			ID: request.Str(b, "call_id"), Name: flatName(request.Str(b, "namespace"), request.Str(b, "name")), Arguments: customArguments(request.Str(b, "input")),
		}}
	case "function_call_output", "custom_tool_call_output":
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
