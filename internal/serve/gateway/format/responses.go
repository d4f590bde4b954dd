package format

import (
	"fmt"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// responses reads a member of a request to OpenAI's responses.
func (c *Call) responses(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "input":
		var one string
		if text(v, &one) {
			q.Messages = append(q.Messages, llm.User(one))
			return true
		}
		return c.list(v, c.item)
	case "instructions":
		var words string
		if !text(v, &words) {
			return false
		}
		q.Messages = append([]llm.Message{llm.System(words)}, q.Messages...)
		return true
	case "max_output_tokens":
		return c.tokens(key, v)
	case "reasoning":
		effort(member(v, "effort"), &q.Effort)
		return false // kept as it is too: it may say more
	case "text":
		f := member(v, "format")
		if str(f, "type") == "json_schema" {
			c.schema(f)
		}
		return false
	case "tools":
		return c.tools(v, func(t []byte) (llm.Tool, bool) { return function(t, "parameters") }, "function")
	case "tool_choice":
		return c.toolChoice(v, func(v []byte) string { return str(v, "name") })
	default:
		return c.plain(key, v)
	}
}

// item reads a part of the input: what somebody said, a tool's call or result, a thought.
func (c *Call) item(i int, b []byte) bool {
	m := llm.Message{Role: llm.RoleAssistant}
	switch kind := str(b, "type"); kind {
	case "", "message":
		content := member(b, "content")
		if !role(str(b, "role"), &m.Role) || content == nil {
			return false
		}
		var ok bool
		if m.Parts, ok = c.parts(content, fmt.Sprintf("input[%d].content", i)); !ok {
			return false
		}
	case "function_call":
		m.ToolCalls = []llm.ToolCall{{ID: str(b, "call_id"), Name: str(b, "name"), Arguments: str(b, "arguments")}}
	case "function_call_output":
		m.Role, m.ToolCallID = llm.RoleTool, str(b, "call_id")
		var ok bool
		if m.Parts, ok = c.parts(member(b, "output"), fmt.Sprintf("input[%d].output", i)); !ok {
			return false
		}
	case "reasoning":
		m.Thoughts = []llm.Thought{{ID: str(b, "id"), Opaque: str(b, "encrypted_content"), Text: summary(member(b, "summary"))}}
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
		words += str(p, "text")
		return true
	})
	return words
}
