package anthropic

import (
	"fmt"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	b = body.Open(head(b, &m), '[')
	for _, t := range r.Thoughts {
		b = appendThinking(b, t.Text, t.Signature)
	}
	if words := r.Text; words != "" || r.Refusal != "" {
		if words == "" {
			words = r.Refusal
		}
		b = appendText(b, words)
	}
	for _, c := range r.ToolCalls {
		b = appendToolUse(b, c.ID, c.Name, c.Arguments)
	}
	b = body.Str(append(b, ']'), "stop_reason", stopReason(&m, r))
	b = body.Nullable(b, "stop_sequence", m.Stop)
	return append(appendUsage(b, &m, r.Usage), '}')
}

// head appends the beginning of a message, up to its content.
func head(b []byte, m *openai.Meta) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "type", "message")
	return body.Key(body.Str(body.Str(b, "role", "assistant"), "model", m.Model), "content")
}

func stopReason(m *openai.Meta, r *llm.Response) string { return m.StopReason(r, "refusal") }

// appendUsage appends the usage. The format counts cached tokens separately.
func appendUsage(b []byte, m *openai.Meta, u llm.Usage) []byte {
	created := u.CacheWrite + u.CacheWriteLong
	b = body.Int(append(body.Key(b, "usage"), '{'), "input_tokens", int64(max(0, u.Input-u.Cached-created)))
	b = body.Int(b, "cache_creation_input_tokens", int64(created))
	b = body.Int(b, "cache_read_input_tokens", int64(u.Cached))
	b = body.Int(append(body.Key(b, "cache_creation"), '{'), "ephemeral_5m_input_tokens", int64(u.CacheWrite))
	b = append(body.Int(b, "ephemeral_1h_input_tokens", int64(u.CacheWriteLong)), '}')
	b = body.Int(b, "output_tokens", int64(u.Output))
	if m.Tier != "" {
		b = body.Str(b, "service_tier", m.Tier)
	}
	return append(b, '}')
}

// Writer writes an answer as events. A step of another kind begins a new block.
type Writer struct {
	meta  openai.Meta
	block int    // the number of the last block, or -1
	kind  string // of the open block, or ""
	call  int    // of the open block, if it is a tool call
}

// NewWriter returns a Writer of a stream.
func NewWriter(m openai.Meta) *Writer { return &Writer{meta: m, block: -1} }

func event(b []byte, name string) []byte {
	return append(append(append(sse.Begin(b, name), `{"type":"`...), name...), '"')
}

func end(b []byte) []byte { return sse.End(append(b, '}')) }

// Begin writes an empty message.
func (w *Writer) Begin(b []byte) []byte {
	b = head(body.Key(event(b, "message_start"), "message"), &w.meta)
	b = append(b, `[],"stop_reason":null,"stop_sequence":null`...)
	return end(append(appendUsage(b, &w.meta, w.meta.Prompt), '}'))
}

// Add writes a piece of a block, and begins the block if it is a new one.
func (w *Writer) Add(b []byte, d openai.Delta) []byte {
	switch {
	case d.IsCall():
		b = w.open(b, "tool_use", d)
		if d.Arguments == "" {
			return b
		}
		return w.delta(b, "input_json_delta", "partial_json", d.Arguments)
	case d.Thought != "" || d.Signature != "":
		b = w.open(b, "thinking", d)
		if d.Thought != "" {
			b = w.delta(b, "thinking_delta", "thinking", d.Thought)
		}
		if d.Signature != "" {
			b = w.delta(b, "signature_delta", "signature", d.Signature)
		}
		return b
	default:
		return w.delta(w.open(b, "text", d), "text_delta", "text", d.Text+d.Refusal)
	}
}

func (w *Writer) open(b []byte, kind string, d openai.Delta) []byte {
	if w.kind == kind && (kind != "tool_use" || w.call == d.Call) {
		return b
	}
	b = w.close(b)
	w.block++
	w.kind, w.call = kind, d.Call
	b = body.Key(body.Int(event(b, "content_block_start"), "index", int64(w.block)), "content_block")
	switch kind {
	case "tool_use":
		b = appendToolUse(b, d.ID, d.Name, "")
	case "thinking":
		b = appendThinking(b, "", "")
	default:
		b = appendText(b, "")
	}
	if b = end(b); w.block == 0 {
		b = end(event(b, "ping"))
	}
	return b
}

func (w *Writer) close(b []byte) []byte {
	if w.kind == "" {
		return b
	}
	w.kind = ""
	return end(body.Int(event(b, "content_block_stop"), "index", int64(w.block)))
}

func (w *Writer) delta(b []byte, kind, key, s string) []byte {
	b = body.Int(event(b, "content_block_delta"), "index", int64(w.block))
	b = body.Str(append(b, `,"delta":{`...), "type", kind)
	return end(append(body.Str(b, key, s), '}'))
}

// End ends the open block, and the message with its usage.
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	b = event(w.close(b), "message_delta")
	b = body.Str(append(b, `,"delta":{`...), "stop_reason", stopReason(&w.meta, r))
	b = append(body.Nullable(b, "stop_sequence", w.meta.Stop), '}')
	b = end(appendUsage(b, &w.meta, r.Usage))
	return end(event(b, "message_stop"))
}

// AppendError appends the body of an error.
func AppendError(b []byte, e openai.Error) []byte {
	b = append(b, `{"type":"error","error":{`...)
	b = append(body.Str(body.Str(b, "type", e.Type), "message", e.Message), '}')
	if e.RequestID != "" {
		b = body.Str(b, "request_id", e.RequestID)
	}
	if e.Code != "" {
		b = body.Str(b, "code", e.Code)
	}
	return append(b, '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	return sse.End(AppendError(sse.Begin(b, "error"), e))
}

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "system":
		return c.system(v)
	case "messages":
		return c.List(key, v, "a list of messages", c.turn)
	case "max_tokens":
		return c.Tokens(key, v)
	case "top_k":
		return request.Integer(v, &q.TopK)
	case "stop_sequences":
		return request.Texts(v, &q.Stop)
	case "tools":
		return c.ReadTools(v, func(t []byte) (llm.Tool, bool) { return request.Function(t, "input_schema") }, "", "custom")
	case "tool_choice":
		return c.messageChoice(v)
	case "thinking":
		c.thinking(v)
		return false // the caller keeps it too: an effort says less
	case "output_config":
		return c.output(v)
	default:
		return c.Common(key, v)
	}
}

// system puts the system message first, whatever the order of the members.
func (c reader) system(v []byte) bool {
	parts, ok := c.Parts(v, "system")
	if ok {
		c.Request.Messages = append([]llm.Message{{Role: llm.RoleSystem, Parts: parts}}, c.Request.Messages...)
	}
	return ok
}

// turn reads a message. Each tool result in it becomes its own message, before the rest.
func (c reader) turn(i int, b []byte) bool {
	var m llm.Message
	content := request.Member(b, "content")
	if !request.Role(request.Str(b, "role"), &m.Role) || content == nil {
		return false
	}
	var one string
	if request.Text(content, &one) {
		c.Request.Messages = append(c.Request.Messages, llm.Text(m.Role, one))
		return true
	}
	ok := body.Elements(content, func(e []byte) bool {
		switch request.Str(e, "type") {
		case "tool_use":
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: request.Str(e, "id"), Name: request.Str(e, "name"), Arguments: string(request.Member(e, "input"))})
		case "tool_result":
			c.result(i, e)
		case "thinking":
			m.Thoughts = append(m.Thoughts, llm.Thought{Text: request.Str(e, "thinking"), Signature: request.Str(e, "signature")})
		case "redacted_thinking":
			m.Thoughts = append(m.Thoughts, llm.Thought{Opaque: request.Str(e, "data")})
		default:
			p, known := request.Part(e)
			if !known {
				c.Note(fmt.Sprintf("messages[%d].content of type %s", i, request.Str(e, "type")))
				c.Refer(e)
				p = llm.Part{Text: string(e)}
			}
			m.Parts = append(m.Parts, p)
		}
		return true
	})
	if !ok {
		return false
	}
	if len(m.Parts)+len(m.ToolCalls)+len(m.Thoughts) > 0 {
		c.Request.Messages = append(c.Request.Messages, m)
	}
	return true
}

func (c reader) result(i int, e []byte) {
	m := llm.Message{Role: llm.RoleTool, ToolCallID: request.Str(e, "tool_use_id")}
	request.Flag(request.Member(e, "is_error"), &m.ToolFailed)
	if content := request.Member(e, "content"); content != nil {
		m.Parts, _ = c.Parts(content, fmt.Sprintf("messages[%d].tool_result", i))
	}
	c.Request.Messages = append(c.Request.Messages, m)
}

func (c reader) messageChoice(v []byte) bool {
	q := &c.Request
	request.Flag(request.Member(v, "disable_parallel_tool_use"), &q.OneTool)
	switch kind := request.Str(v, "type"); kind {
	case "auto", "none":
		q.ToolChoice = kind
	case "any":
		q.ToolChoice = "required"
	case "tool":
		q.ToolChoice = request.Str(v, "name")
	default:
		return false
	}
	return true
}

// thinking turns a budget of tokens into an effort: the reverse of writer.budget.
func (c reader) thinking(v []byte) {
	if c.Request.Effort != "" {
		return
	}
	var n int
	switch request.Str(v, "type") {
	case "disabled":
		c.Request.Effort = llm.EffortNone
	case "enabled":
		request.Whole(request.Member(v, "budget_tokens"), &n)
		switch {
		case n <= 2048:
			c.Request.Effort = llm.EffortLow
		case n <= 8192:
			c.Request.Effort = llm.EffortMedium
		default:
			c.Request.Effort = llm.EffortHigh
		}
	}
}

func (c reader) output(v []byte) bool {
	if e := request.Member(v, "effort"); e != nil && !request.Effort(e, &c.Request.Effort) {
		return false
	}
	f := request.Member(v, "format")
	if f == nil {
		return true
	}
	return request.Str(f, "type") == "json_schema" && c.ReadSchema(f)
}
