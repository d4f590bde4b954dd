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
		return atLeast1(v, &q.MaxTokens)
	case "n":
		return atLeast1(v, &c.Choices)
	case "stream_options":
		return flag(member(v, "include_usage"), &c.Usage)
	case "reasoning_effort":
		return effort(v, &q.Effort)
	case "response_format":
		return c.responseFormat(v)
	case "tools":
		return c.tools(v, func(t []byte) []byte { return member(t, "function") })
	case "tool_choice":
		return c.toolChoice(v, func(v []byte) string { return str(member(v, "function"), "name") })
	case "return_token_ids":
		return flag(v, &q.TokenIDs)
	case "frequency_penalty":
		return number(v, &q.FrequencyPenalty)
	case "presence_penalty":
		return number(v, &q.PresencePenalty)
	case "top_k":
		var n int
		if !whole(v, &n) {
			return false
		}
		q.TopK = &n
		return true
	case "seed":
		var n int
		if !whole(v, &n) {
			return false
		}
		seed := int64(n)
		q.Seed = &seed
		return true
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
	case "model":
		return text(v, &q.Model)
	case "stream":
		return flag(v, &c.Stream)
	case "temperature":
		return number(v, &q.Temperature)
	case "top_p":
		return number(v, &q.TopP)
	case "top_logprobs":
		return whole(v, &q.TopLogprobs)
	case "service_tier":
		return text(v, &q.Tier)
	case "parallel_tool_calls":
		var many bool
		ok := flag(v, &many)
		q.OneTool = ok && !many
		return ok
	default:
		return false
	}
}

// list reads a list of messages. One that cannot be read is kept as text, so that nothing
// is lost of what was asked.
func (c *Call) list(v []byte, read func(i int, m []byte) bool) bool {
	i := 0
	return body.Elements(v, func(m []byte) bool {
		if !read(i, m) {
			c.keep(i, llm.RoleUser, m)
		}
		i++
		return true
	})
}

// keep keeps a message there are no words for.
func (c *Call) keep(i int, role llm.Role, m []byte) {
	c.strange(fmt.Sprintf("messages[%d]", i))
	c.Request.Messages = append(c.Request.Messages, llm.Text(role, string(m)))
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
		}
		return true
	})
	if !ok || m.Role == "" {
		return false
	}
	c.Request.Messages = append(c.Request.Messages, m)
	return true
}

func role(s string, to *llm.Role) bool {
	switch s {
	case "developer":
		s = string(llm.RoleSystem)
	case "function":
		s = string(llm.RoleTool)
	}
	*to = llm.Role(s)
	return s == "system" || s == "user" || s == "assistant" || s == "tool"
}

// parts reads a content: a text, or a list of parts of either vendor's kinds.
func (c *Call) parts(v []byte, at string) (out []llm.Part, ok bool) {
	var one string
	if text(v, &one) {
		if one == "" {
			return nil, true
		}
		return []llm.Part{{Text: one}}, true
	}
	ok = body.Elements(v, func(p []byte) bool {
		part, known := partOf(p)
		if !known {
			c.strange(at + " of type " + str(p, "type"))
			part = llm.Part{Text: string(p)}
		}
		out = append(out, part)
		return true
	})
	return out, ok
}

func partOf(p []byte) (llm.Part, bool) {
	switch str(p, "type") {
	case "text", "input_text", "output_text":
		return llm.Part{Text: str(p, "text")}, true
	case "refusal":
		return llm.Part{Text: str(p, "refusal")}, true
	case "image_url":
		u := member(p, "image_url")
		return imageOf(str(u, "url"), str(u, "detail"))
	case "input_image":
		return imageOf(str(p, "image_url"), str(p, "detail"))
	case "image":
		return sourceOf(member(p, "source"))
	default:
		return llm.Part{}, false
	}
}

func imageOf(url, detail string) (llm.Part, bool) {
	im, err := llm.ImageFrom(url)
	if err != nil || url == "" {
		return llm.Part{}, false
	}
	im.Detail = detail
	return llm.Part{Image: im}, true
}

// responseFormat reads the form of an answer; only a schema has a word.
func (c *Call) responseFormat(v []byte) bool {
	if str(v, "type") != "json_schema" {
		return str(v, "type") == "text"
	}
	return c.schema(member(v, "json_schema"))
}

func (c *Call) schema(s []byte) bool {
	form := member(s, "schema")
	if form == nil {
		return false
	}
	c.Request.Schema = &llm.Schema{Name: str(s, "name"), Description: str(s, "description"), JSON: raw(form)}
	return true
}

// tools reads the functions of a list of tools. Where there are others too, all of the
// list is kept as it stands.
func (c *Call) tools(v []byte, in func(tool []byte) []byte) bool {
	all := true
	ok := body.Elements(v, func(t []byte) bool {
		f, known := function(in(t), "parameters")
		if kind := str(t, "type"); !known || kind != "function" {
			c.strange("tool of type " + kind)
			all = false
			return true
		}
		c.Request.Tools = append(c.Request.Tools, f)
		return true
	})
	return ok && all
}

func (c *Call) toolChoice(v []byte, name func([]byte) string) bool {
	if text(v, &c.Request.ToolChoice) {
		return true
	}
	c.Request.ToolChoice = name(v)
	return c.Request.ToolChoice != ""
}
