package simhttp

import (
	"fmt"
	"slices"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/request"
)

// conversation checks the messages of Anthropic's format and notes their cache breakpoints. It
// counts messages as the format's reader does: each tool result is its own message, and comes
// before the rest of the message that holds it.
type conversation struct {
	*ask
	messages int      // so far
	parts    int      // of the last one
	open     []string // tool uses whose results must follow
}

func (a *ask) conversation() *Error {
	c := conversation{ask: a}
	if err := c.system(a.members["system"]); err != nil {
		return err
	}
	n := 0
	err := each(a.members["messages"], func(i int, m []byte) *Error {
		n++
		role, content := request.Str(m, "role"), request.Member(m, "content")
		at := fmt.Sprintf("messages.%d.content", i)
		switch {
		case i == 0 && role == "assistant":
			return invalid("", "messages: first message must use the \"user\" role")
		case role != "user" && role != "assistant":
			return invalid("", "messages.%d.role: Input should be 'user' or 'assistant'", i)
		case content == nil || kindOf(content) != text && kindOf(content) != array:
			return notBlocks(at)
		case string(content) == `""`:
			return invalid("", "%s: text content blocks must be non-empty", at)
		}
		return c.message(i, role, content)
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return invalid("", "messages: at least one message is required")
	case len(c.open) > 0:
		return unanswered(n-1, c.open[0])
	}
	return a.markLast(sim.Break{Message: c.messages - 1, Part: c.parts})
}

// markLast notes the breakpoint at the end of the prompt, if the request has one.
func (a *ask) markLast(at sim.Break) *Error {
	if v := a.members["cache_control"]; v != nil {
		return a.mark([]byte(`{"cache_control":`+string(v)+`}`), "", at)
	}
	return nil
}

func notBlocks(at string) *Error {
	return invalid("", "%s: Input should be a valid string or a list of content blocks", at)
}

func unanswered(i int, id string) *Error {
	return invalid("", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, id)
}

func (c *conversation) system(v []byte) *Error {
	switch {
	case v == nil:
		return nil
	case kindOf(v) != text && kindOf(v) != array:
		return notBlocks("system")
	}
	c.messages++
	return each(v, func(i int, b []byte) *Error {
		if kindOf(b) != object {
			return notBlocks("system")
		}
		if request.Str(b, "type") != "text" {
			return invalid("", "system.%d.type: Input should be 'text'", i)
		}
		return c.mark(b, fmt.Sprintf("system.%d", i), sim.Break{Part: i})
	})
}

func (c *conversation) message(i int, role string, content []byte) *Error {
	open := c.open
	c.open, c.parts = nil, 0
	blocks := 0 // without tool results
	if kindOf(content) == text {
		c.parts, blocks = 1, 1
	}
	err := each(content, func(k int, b []byte) *Error {
		at := fmt.Sprintf("messages.%d.content.%d", i, k)
		if kindOf(b) != object {
			return notBlocks(fmt.Sprintf("messages.%d.content", i))
		}
		if id := request.Str(b, "tool_use_id"); request.Str(b, "type") == "tool_result" && role == "user" {
			n := slices.Index(open, id)
			if n < 0 {
				return invalid("", "%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", at, id)
			}
			open = slices.Delete(open, n, n+1)
			c.messages++
			return first(func() *Error { return c.result(at, b) },
				func() *Error { return c.mark(b, at, sim.Break{Message: c.messages - 1}) })
		}
		blocks++
		if err := c.block(at, role, b); err != nil {
			return err
		}
		return c.mark(b, at, sim.Break{Message: c.messages, Part: max(0, c.parts-1)})
	})
	switch {
	case err != nil:
		return err
	case len(open) > 0:
		return unanswered(i-1, open[0])
	case blocks > 0:
		c.messages++
	}
	if c.messages == 0 {
		return invalid("", "messages.%d: all messages must have non-empty content", i)
	}
	return nil
}

func (c *conversation) result(at string, b []byte) *Error {
	if v := request.Member(b, "content"); v != nil && kindOf(v) != text && kindOf(v) != array {
		return notBlocks(at + ".content")
	}
	return nil
}

// block checks a block that is not a tool's result.
func (c *conversation) block(at, role string, b []byte) *Error {
	kind, assistant := request.Str(b, "type"), role == "assistant"
	switch {
	case kind == "text":
		c.parts++
		if request.Str(b, "text") == "" {
			return invalid("", "messages: text content blocks must be non-empty")
		}
	case (kind == "image" || kind == "document") && !assistant && request.Member(b, "source") != nil:
		c.parts++
		if why := mediaAnthropic(at, b); why != "" {
			return invalid("", "%s", why)
		}
	case kind == "tool_use" && assistant:
		id := request.Str(b, "id")
		if id == "" || request.Str(b, "name") == "" || request.Member(b, "input") == nil {
			return c.missing(at + ".tool_use.id")
		}
		c.open = append(c.open, id)
	case kind == "thinking" && assistant:
		if request.Str(b, "signature") == "" {
			return c.missing(at + ".thinking.signature")
		}
	case kind == "redacted_thinking" && assistant:
	default:
		return invalid("", "%s: Input tag '%s' found using 'type' does not match any of the expected tags for role '%s'", at, kind, role)
	}
	return nil
}
