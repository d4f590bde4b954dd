package anthropic

import (
	"fmt"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "system":
		return c.system(v)
	case "messages":
		return c.List(v, c.turn)
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
