package simhttp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

const maxBreaks = 4

// messagesFields are the members of POST /v1/messages.
func messagesFields() fields {
	cache := field{kind: object, fields: fields{"type": {kind: text}, "ttl": {kind: text}}}
	output := field{kind: object, fields: fields{"type": {kind: text}}.ignore("schema")}
	tool := fields{"type": {kind: text}, "name": {kind: text}, "description": {kind: text}, "strict": {kind: boolean}, "cache_control": cache}
	config := fields{"format": output, "effort": {kind: text, values: []string{"low", "medium", "high", "xhigh", "max"}}}
	return fields{
		"model":          {kind: text},
		"max_tokens":     {kind: integer, limits: []float64{0}},
		"messages":       {kind: array, fields: fields{"role": {kind: text}}.ignore("content")},
		"temperature":    {kind: decimal, limits: []float64{0, 1}},
		"top_p":          {kind: decimal, limits: []float64{0, 1}},
		"top_k":          {kind: integer, limits: []float64{0}},
		"stop_sequences": {kind: array, texts: true},
		"stream":         {kind: boolean},
		"tools":          {kind: array, fields: tool.ignore("input_schema", "defer_loading", "eager_input_streaming", "input_examples")},
		"tool_choice":    {kind: object, fields: fields{"type": {kind: text}, "name": {kind: text}, "disable_parallel_tool_use": {kind: boolean}}},
		"thinking":       {kind: object, fields: fields{"type": {kind: text}, "budget_tokens": {kind: integer}}.ignore("display")},
		"output_config":  {kind: object, fields: config.ignore("task_budget")},
		"output_format":  output, // the name of output_config.format in the beta
		"cache_control":  cache,
		"service_tier":   {kind: text, values: []string{"auto", "standard_only"}},
		"speed":          {kind: text},
	}.ignore("system", "container", "context_management", "inference_geo", "metadata")
}

// Messages reads the body of POST /v1/messages.
func (c *bodyChecker) Messages(b []byte) (*Ask, *Error) {
	return c.messagesWith(b, func(a *ask) *Error { return a.length(false) })
}

// Batched reads the params of a request in a message batch.
func (c *bodyChecker) Batched(b []byte) (*Ask, *Error) {
	return c.messagesWith(b, func(a *ask) *Error { return a.length(true) })
}

// Count reads the body of POST /v1/messages/count_tokens, which needs no max_tokens.
func (c *bodyChecker) Count(b []byte) (*Ask, *Error) {
	return c.messagesWith(b, func(a *ask) *Error {
		delete(a.members, "max_tokens")
		return nil
	})
}

func (c *bodyChecker) messagesWith(b []byte, length func(*ask) *Error) (*Ask, *Error) {
	a, err := c.messages.open(b)
	if err != nil {
		return nil, err
	}
	check := func() *Error { return length(a) }
	read := func() *Error { return a.read(anthropic.ReadMember) }
	err = first(check, a.messagesBasics, a.messagesTools, a.messagesFormat, a.conversation, read, a.messagesChoice, a.thinking)
	if err != nil {
		return nil, err
	}
	if f := a.members["output_format"]; f != nil && a.Request.Schema == nil {
		a.Request.Schema = &llm.Schema{JSON: request.Raw(request.Member(f, "schema"))}
	}
	a.Request.Tier, a.NoOutput = "", a.has("max_tokens") && a.number("max_tokens") == 0
	if len(a.Breaks) > maxBreaks {
		return nil, invalid("", "A maximum of %d blocks with cache_control may be provided. Found %d.", maxBreaks, len(a.Breaks))
	}
	return &a.Ask, nil
}

// length checks max_tokens. With 0 the request only warms the prompt cache.
func (a *ask) length(batched bool) *Error {
	streams := string(a.members["stream"]) == "true"
	switch {
	case !a.has("max_tokens"):
		return a.missing("max_tokens")
	case a.number("max_tokens") == 0 && (batched || streams || a.has("thinking")):
		return invalid("", "max_tokens: 0 is not allowed in a batch, with stream or with thinking")
	case batched && streams:
		return invalid("", "stream: Streaming is not supported in message batches")
	case batched && a.str("speed") != "":
		return a.vendor(unknownMember, "speed", field{}, "")
	}
	return nil
}

func (a *ask) messagesBasics() *Error {
	switch {
	case a.str("model") == "":
		return a.missing("model")
	case !a.has("messages"):
		return a.missing("messages")
	}
	return each(a.members["stop_sequences"], func(i int, s []byte) *Error {
		if strings.TrimSpace(request.String(s)) == "" {
			return invalid("", "stop_sequences.%d: each stop sequence must contain non-whitespace", i)
		}
		return nil
	})
}

func (a *ask) messagesTools() *Error {
	return each(a.members["tools"], func(i int, t []byte) *Error {
		schema := request.Member(t, "input_schema")
		switch kind := request.Str(t, "type"); {
		case kind != "" && kind != "custom":
			return invalid("", "tools.%d.type: Input tag '%s' is not simulated: use 'custom'", i, kind)
		case request.Str(t, "name") == "":
			return a.missing(fmt.Sprintf("tools.%d.custom.name", i))
		case schema == nil:
			return a.missing(fmt.Sprintf("tools.%d.custom.input_schema", i))
		case !a.lax && string(request.Member(t, "strict")) == "true" && violation(schema, false) != "":
			return invalid("", "tools.%d.custom: For 'object' type, 'additionalProperties' must be explicitly set to false", i)
		}
		return a.mark(t, fmt.Sprintf("tools.%d", i), sim.Break{Message: -1})
	})
}

func (a *ask) messagesChoice() *Error {
	c := a.members["tool_choice"]
	switch kind, choice := request.Str(c, "type"), a.Request.ToolChoice; {
	case c == nil:
	case len(a.Request.Tools) == 0:
		return invalid("", "tool_choice may only be specified while providing tools")
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, kind):
		return invalid("", "tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", kind)
	case kind == "tool" && !a.named(choice):
		return invalid("", "tool_choice.name: Tool '%s' not found in provided tools", choice)
	}
	return nil
}

// thinking checks the budget and sets the effort. An effort without thinking changes only the
// tone of an answer, which is not simulated.
func (a *ask) thinking() *Error {
	effort := llm.Effort(request.Str(a.members["output_config"], "effort"))
	if effort == "" {
		effort = llm.EffortMedium
	}
	a.Request.Effort = ""
	t := a.members["thinking"]
	var budget *int
	request.Integer(request.Member(t, "budget_tokens"), &budget)
	switch kind := request.Str(t, "type"); {
	case t == nil || kind == "disabled":
		return nil
	case kind == "adaptive":
	case kind != "enabled":
		return invalid("", "thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'enabled', 'disabled', 'adaptive'", kind)
	case budget == nil:
		return a.missing("thinking.enabled.budget_tokens")
	case *budget < 1024:
		return invalid("", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case *budget >= a.Request.MaxTokens && a.Request.MaxTokens > 0:
		return invalid("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	if c := a.Request.ToolChoice; c != "" && c != "auto" && c != "none" {
		return invalid("", "Thinking may not be enabled when tool_choice forces tool use.")
	}
	a.Request.Effort = effort
	return nil
}

func (a *ask) messagesFormat() *Error {
	name, f := "output_config.format", request.Member(a.members["output_config"], "format")
	if f == nil {
		name, f = "output_format", a.members["output_format"]
	}
	schema := request.Member(f, "schema")
	switch {
	case f == nil:
		return nil
	case request.Str(f, "type") != "json_schema":
		return invalid("", "%s.type: Input should be 'json_schema'", name)
	case schema == nil:
		return a.missing(name + ".schema")
	case !a.lax && violation(schema, false) != "":
		return invalid("", "%s.schema: For 'object' type, 'additionalProperties' must be explicitly set to false", name)
	}
	return nil
}

// mark notes a cache breakpoint, if the object v has one.
func (a *ask) mark(v []byte, param string, at sim.Break) *Error {
	c := request.Member(v, "cache_control")
	if c == nil {
		return nil
	}
	ttl := request.Str(c, "ttl")
	if request.Str(c, "type") != "ephemeral" || ttl != "" && ttl != "5m" && ttl != "1h" {
		return invalid("", "%s.cache_control: Input should be {\"type\":\"ephemeral\"} with ttl '5m' or '1h'", param)
	}
	at.Long = ttl == "1h"
	a.Breaks = append(a.Breaks, at)
	return nil
}

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
		if role == "system" && a.LateSystem == 0 {
			a.LateSystem = i
		}
		switch {
		case i == 0 && role == "assistant":
			return invalid("", "messages: first message must use the \"user\" role")
		case role != "user" && role != "assistant" && (role != "system" || i == 0):
			return badRole(i)
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

func badRole(i int) *Error {
	return invalid("", "messages.%d.role: Input should be 'user' or 'assistant'", i)
}

// messagesHeader refuses what needs a header that the request does not have.
func messagesHeader(r *http.Request, a *Ask) *Error {
	if a.LateSystem > 0 && !strings.Contains(strings.Join(r.Header["Anthropic-Beta"], ","), "mid-conversation-system-") {
		return badRole(a.LateSystem)
	}
	return nil
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
