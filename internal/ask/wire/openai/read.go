package openai

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
	case "messages":
		return c.List(v, c.message)
	case "max_tokens", "max_completion_tokens":
		return c.Tokens(key, v)
	case "n":
		return c.Answers(key, v, &c.Choices) && c.Choices == 1 // Extra keeps more than one
	case "best_of":
		c.Answers(key, v, &c.Drafts)
		return false
	case "stream_options":
		return request.Flag(request.Member(v, "include_usage"), &c.Usage)
	case "reasoning_effort":
		return request.Effort(v, &q.Effort)
	case "response_format":
		return c.responseFormat(v)
	case "tools":
		return c.ReadTools(v, func(t []byte) (llm.Tool, bool) { return request.Function(request.Member(t, "function"), "parameters") }, "function")
	case "tool_choice":
		return c.ReadToolChoice(v, func(v []byte) string { return request.Str(request.Member(v, "function"), "name") })
	case "return_token_ids":
		return request.Flag(v, &q.TokenIDs)
	case "frequency_penalty":
		return request.Number(v, &q.FrequencyPenalty)
	case "presence_penalty":
		return request.Number(v, &q.PresencePenalty)
	case "top_k":
		return request.Integer(v, &q.TopK)
	case "seed":
		return request.Integer(v, &q.Seed)
	case "stop":
		return request.Texts(v, &q.Stop)
	case "logprobs":
		return request.Flag(v, &q.Logprobs)
	default:
		return c.OpenAI(key, v)
	}
}

func (c reader) message(i int, b []byte) bool {
	var m llm.Message
	ok := body.Members(b, func(key, v []byte) bool {
		if string(v) == "null" {
			return true
		}
		switch string(key) {
		case "role":
			return request.Role(request.Str(b, "role"), &m.Role)
		case "content":
			parts, ok := c.Parts(v, fmt.Sprintf("messages[%d].content", i))
			m.Parts = append(m.Parts, parts...)
			return ok
		case "refusal":
			var words string
			ok := request.Text(v, &words)
			m.Parts = append(m.Parts, llm.Part{Text: words})
			return ok
		case "reasoning_content", "reasoning":
			var words string
			if request.Text(v, &words) && len(m.Thoughts) == 0 {
				m.Thoughts = []llm.Thought{{Text: words}}
			}
		case "tool_call_id":
			return request.Text(v, &m.ToolCallID)
		case "tool_calls":
			return body.Elements(v, func(t []byte) bool {
				f := request.Member(t, "function")
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: request.Str(t, "id"), Name: request.Str(f, "name"), Arguments: request.Str(f, "arguments")})
				return f != nil
			})
		default:
			c.Unread += len(v)
			c.Refer(v)
		}
		return true
	})
	if !ok || m.Role == "" {
		return false
	}
	c.Request.Messages = append(c.Request.Messages, m)
	return true
}

// responseFormat reads the format of the answer, if it is a schema.
func (c reader) responseFormat(v []byte) bool {
	if request.Str(v, "type") != "json_schema" {
		return request.Str(v, "type") == "text"
	}
	return c.ReadSchema(request.Member(v, "json_schema"))
}
