package format

import (
	"fmt"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// messages reads a member of Anthropic's messages.
func (c *Call) messages(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "system":
		return c.system(v)
	case "messages":
		return c.list(v, c.turn)
	case "max_tokens":
		return c.tokens(key, v)
	case "top_k":
		return integer(v, &q.TopK)
	case "stop_sequences":
		return texts(v, &q.Stop)
	case "tools":
		return c.tools(v, func(t []byte) (llm.Tool, bool) { return function(t, "input_schema") }, "", "custom")
	case "tool_choice":
		return c.messageChoice(v)
	case "thinking":
		c.thinking(v)
		return false // kept as it is too: an effort says less
	case "output_config":
		return c.output(v)
	default:
		return c.common(key, v)
	}
}

// system puts the system's words before everything else, whatever the order of members.
func (c *Call) system(v []byte) bool {
	parts, ok := c.parts(v, "system")
	if ok {
		c.Request.Messages = append([]llm.Message{{Role: llm.RoleSystem, Parts: parts}}, c.Request.Messages...)
	}
	return ok
}

// turn reads a message: tools' results in it are messages of their own, before the rest.
func (c *Call) turn(i int, b []byte) bool {
	var m llm.Message
	content := member(b, "content")
	if !role(str(b, "role"), &m.Role) || content == nil {
		return false
	}
	var one string
	if text(content, &one) {
		c.Request.Messages = append(c.Request.Messages, llm.Text(m.Role, one))
		return true
	}
	ok := body.Elements(content, func(e []byte) bool {
		switch str(e, "type") {
		case "tool_use":
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: str(e, "id"), Name: str(e, "name"), Arguments: string(member(e, "input"))})
		case "tool_result":
			c.result(i, e)
		case "thinking":
			m.Thoughts = append(m.Thoughts, llm.Thought{Text: str(e, "thinking"), Signature: str(e, "signature")})
		case "redacted_thinking":
			m.Thoughts = append(m.Thoughts, llm.Thought{Opaque: str(e, "data")})
		default:
			p, known := partOf(e)
			if !known {
				c.strange(fmt.Sprintf("messages[%d].content of type %s", i, str(e, "type")))
				c.refer(e)
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

func (c *Call) result(i int, e []byte) {
	m := llm.Message{Role: llm.RoleTool, ToolCallID: str(e, "tool_use_id")}
	flag(member(e, "is_error"), &m.ToolFailed)
	if content := member(e, "content"); content != nil {
		m.Parts, _ = c.parts(content, fmt.Sprintf("messages[%d].tool_result", i))
	}
	c.Request.Messages = append(c.Request.Messages, m)
}

func (c *Call) messageChoice(v []byte) bool {
	q := &c.Request
	flag(member(v, "disable_parallel_tool_use"), &q.OneTool)
	switch kind := str(v, "type"); kind {
	case "auto", "none":
		q.ToolChoice = kind
	case "any":
		q.ToolChoice = "required"
	case "tool":
		q.ToolChoice = str(v, "name")
	default:
		return false
	}
	return true
}

// thinking makes an effort of a budget of tokens, in steps that mirror how budgets are
// made of efforts.
func (c *Call) thinking(v []byte) {
	if c.Request.Effort != "" {
		return
	}
	var n int
	switch str(v, "type") {
	case "disabled":
		c.Request.Effort = llm.EffortNone
	case "enabled":
		whole(member(v, "budget_tokens"), &n)
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

func (c *Call) output(v []byte) bool {
	if e := member(v, "effort"); e != nil && !effort(e, &c.Request.Effort) {
		return false
	}
	f := member(v, "format")
	if f == nil {
		return true
	}
	return str(f, "type") == "json_schema" && c.schema(f)
}
