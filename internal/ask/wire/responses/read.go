package responses

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
