package format

import (
	"fmt"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// chat reads a member of a chat completion.
func (c *Call) chat(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "messages":
		return c.list(v, c.chatMessage)
	case "max_tokens", "max_completion_tokens":
		return c.tokens(key, v)
	case "n":
		return c.answers(key, v, &c.Choices) && c.Choices == 1 // more are kept in Extra, for the record
	case "best_of":
		c.answers(key, v, &c.Drafts)
		return false
	case "stream_options":
		return flag(member(v, "include_usage"), &c.Usage)
	case "reasoning_effort":
		return effort(v, &q.Effort)
	case "response_format":
		return c.responseFormat(v)
	case "tools":
		return c.tools(v, func(t []byte) (llm.Tool, bool) { return function(member(t, "function"), "parameters") }, "function")
	case "tool_choice":
		return c.toolChoice(v, func(v []byte) string { return str(member(v, "function"), "name") })
	case "return_token_ids":
		return flag(v, &q.TokenIDs)
	case "frequency_penalty":
		return number(v, &q.FrequencyPenalty)
	case "presence_penalty":
		return number(v, &q.PresencePenalty)
	case "top_k":
		return integer(v, &q.TopK)
	case "seed":
		return integer(v, &q.Seed)
	case "stop":
		return texts(v, &q.Stop)
	case "logprobs":
		return flag(v, &q.Logprobs)
	default:
		return c.plain(key, v)
	}
}

// plain reads what OpenAI's two formats have in common.
func (c *Call) plain(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "top_logprobs":
		return whole(v, &q.TopLogprobs)
	case "parallel_tool_calls":
		var many bool
		ok := flag(v, &many)
		q.OneTool = ok && !many
		return ok
	default:
		return c.common(key, v)
	}
}

func (c *Call) chatMessage(i int, b []byte) bool {
	var m llm.Message
	ok := body.Members(b, func(key, v []byte) bool {
		if string(v) == "null" {
			return true
		}
		switch string(key) {
		case "role":
			return role(str(b, "role"), &m.Role)
		case "content":
			parts, ok := c.parts(v, fmt.Sprintf("messages[%d].content", i))
			m.Parts = append(m.Parts, parts...)
			return ok
		case "refusal":
			var words string
			ok := text(v, &words)
			m.Parts = append(m.Parts, llm.Part{Text: words})
			return ok
		case "reasoning_content", "reasoning":
			var words string
			if text(v, &words) && len(m.Thoughts) == 0 {
				m.Thoughts = []llm.Thought{{Text: words}}
			}
		case "tool_call_id":
			return text(v, &m.ToolCallID)
		case "tool_calls":
			return body.Elements(v, func(t []byte) bool {
				f := member(t, "function")
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: str(t, "id"), Name: str(f, "name"), Arguments: str(f, "arguments")})
				return f != nil
			})
		default:
			c.Unread += len(v)
			c.refer(v)
		}
		return true
	})
	if !ok || m.Role == "" {
		return false
	}
	c.Request.Messages = append(c.Request.Messages, m)
	return true
}

// responseFormat reads the form of an answer; only a schema has a word.
func (c *Call) responseFormat(v []byte) bool {
	if str(v, "type") != "json_schema" {
		return str(v, "type") == "text"
	}
	return c.schema(member(v, "json_schema"))
}

func (c *Call) toolChoice(v []byte, name func([]byte) string) bool {
	if text(v, &c.Request.ToolChoice) {
		return true
	}
	c.Request.ToolChoice = name(v)
	return c.Request.ToolChoice != ""
}
