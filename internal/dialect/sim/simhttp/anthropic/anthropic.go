// Package anthropic checks requests in Anthropic's format for the simulated server:
// messages, with tools, thinking, structured output and cache breakpoints.
//
// It promises pure functions: nothing here waits, keeps state or touches the
// network, and bad input gives an error in the vendor's words. It is not for answers, which
// the packages of internal/wire write. It shares no code with what they do with requests, so
// that a mistake there is seen here.
package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

const maxBreaks = 4

// request is the body of POST /v1/messages.
type request struct {
	Model         string          `json:"model"`
	MaxTokens     *int            `json:"max_tokens"`
	Messages      []message       `json:"messages"`
	System        json.RawMessage `json:"system"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	TopK          *int            `json:"top_k"`
	StopSequences []string        `json:"stop_sequences"`
	Stream        bool            `json:"stream"`
	Tools         []tool          `json:"tools"`
	ToolChoice    *toolChoice     `json:"tool_choice"`
	Thinking      *thinking       `json:"thinking"`
	OutputConfig  *outputConfig   `json:"output_config"`
	OutputFormat  *outputFormat   `json:"output_format"` // as it was called in beta
	CacheControl  *cacheControl   `json:"cache_control"`
	ServiceTier   string          `json:"service_tier"`
	Speed         string          `json:"speed"`

	Container         json.RawMessage `json:"container"` // from here on: taken, not looked at
	ContextManagement json.RawMessage `json:"context_management"`
	InferenceGeo      json.RawMessage `json:"inference_geo"`
	Metadata          json.RawMessage `json:"metadata"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

type tool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	Strict       bool            `json:"strict"`
	CacheControl *cacheControl   `json:"cache_control"`

	DeferLoading        json.RawMessage `json:"defer_loading"`
	EagerInputStreaming json.RawMessage `json:"eager_input_streaming"`
	InputExamples       json.RawMessage `json:"input_examples"`
}

type toolChoice struct {
	Type                   string `json:"type"`
	Name                   string `json:"name"`
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use"`
}

type thinking struct {
	Type         string          `json:"type"`
	BudgetTokens *int            `json:"budget_tokens"`
	Display      json.RawMessage `json:"display"`
}

type outputConfig struct {
	Format     *outputFormat   `json:"format"`
	Effort     string          `json:"effort"`
	TaskBudget json.RawMessage `json:"task_budget"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// Decode reads the body of POST /v1/messages.
func Decode(body []byte, lax bool) (*check.Ask, *check.Error) { return decode(body, lax, false, true) }

// DecodeBatched reads the params of a request in a batch.
func DecodeBatched(body []byte, lax bool) (*check.Ask, *check.Error) {
	return decode(body, lax, true, true)
}

// DecodeCount reads the body of POST /v1/messages/count_tokens.
func DecodeCount(body []byte, lax bool) (*check.Ask, *check.Error) {
	return decode(body, lax, false, false)
}

func decode(body []byte, lax, batched, needMax bool) (*check.Ask, *check.Error) {
	var r request
	if p := check.Decode(body, &r, lax); p != nil {
		return nil, invalidBody(p)
	}
	ask := &check.Ask{Request: &llm.Request{Model: r.Model, TopK: r.TopK, Temperature: r.Temperature, TopP: r.TopP}, Stream: r.Stream}
	if needMax {
		if err := r.length(ask, batched); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(*check.Ask, bool) *check.Error{r.basics, r.tools, r.thoughts, r.format, r.conversation} {
		if err := step(ask, lax); err != nil {
			return nil, err
		}
	}
	if len(ask.Breaks) > maxBreaks {
		return nil, check.Invalid("", "A maximum of %d blocks with cache_control may be provided. Found %d.", maxBreaks, len(ask.Breaks))
	}
	return ask, nil
}

// invalidBody puts what Decode found into the vendor's words.
func invalidBody(p *check.Problem) *check.Error {
	switch {
	case p.Unknown != "":
		return check.Invalid("", "%s: Extra inputs are not permitted", p.Unknown)
	case p.Field != "":
		return check.Invalid("", "%s: Input should be %s", p.Field, strings.Replace(p.Want, "a decimal", "a valid number", 1))
	default:
		return check.Invalid("", "The request body is not valid JSON: %s", p.Syntax)
	}
}

// length checks max_tokens. Zero only warms the prompt cache.
func (r *request) length(ask *check.Ask, batched bool) *check.Error {
	switch {
	case r.MaxTokens == nil:
		return check.Invalid("", "max_tokens: Field required")
	case *r.MaxTokens < 0:
		return check.Invalid("", "max_tokens: Input should be greater than or equal to 0")
	case *r.MaxTokens == 0 && (batched || r.Stream || r.Thinking != nil):
		return check.Invalid("", "max_tokens: 0 is not allowed in a batch, with stream or with thinking")
	case batched && r.Stream:
		return check.Invalid("", "stream: Streaming is not supported in message batches")
	case batched && r.Speed != "":
		return check.Invalid("", "speed: Extra inputs are not permitted")
	}
	ask.Request.MaxTokens = *r.MaxTokens
	ask.NoOutput = *r.MaxTokens == 0
	return nil
}

func (r *request) basics(ask *check.Ask, _ bool) *check.Error {
	switch {
	case r.Model == "":
		return check.Invalid("", "model: Field required")
	case r.Messages == nil:
		return check.Invalid("", "messages: Field required")
	case len(r.Messages) == 0:
		return check.Invalid("", "messages: at least one message is required")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return check.Invalid("", "temperature: range: 0..1")
	case r.TopP != nil && (*r.TopP < 0 || *r.TopP > 1):
		return check.Invalid("", "top_p: range: 0..1")
	case r.TopK != nil && *r.TopK < 0:
		return check.Invalid("", "top_k: Input should be greater than or equal to 0")
	}
	for i, s := range r.StopSequences {
		if strings.TrimSpace(s) == "" {
			return check.Invalid("", "stop_sequences.%d: each stop sequence must contain non-whitespace", i)
		}
	}
	ask.Request.Stop = r.StopSequences
	switch r.ServiceTier {
	case "", "auto", "standard_only":
	default:
		return check.Invalid("", "service_tier: Input should be 'auto' or 'standard_only'")
	}
	return nil
}

func (r *request) tools(ask *check.Ask, lax bool) *check.Error {
	req := ask.Request
	for i, t := range r.Tools {
		switch {
		case t.Type != "" && t.Type != "custom":
			return check.Invalid("", "tools.%d.type: Input tag '%s' is not simulated: use 'custom'", i, t.Type)
		case t.Name == "":
			return check.Invalid("", "tools.%d.custom.name: Field required", i)
		case body.IsNull(t.InputSchema):
			return check.Invalid("", "tools.%d.custom.input_schema: Field required", i)
		}
		if t.Strict && !lax && check.Strict(t.InputSchema, false) != "" {
			return check.Invalid("", "tools.%d.custom: For 'object' type, 'additionalProperties' must be explicitly set to false", i)
		}
		req.Tools = append(req.Tools, llm.Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema, Strict: t.Strict})
		if err := addBreak(ask, t.CacheControl, fmt.Sprintf("tools.%d", i), sim.Break{Message: -1}); err != nil {
			return err
		}
	}
	return r.choice(req)
}

func (r *request) choice(req *llm.Request) *check.Error {
	c := r.ToolChoice
	if c == nil {
		return nil
	}
	if len(req.Tools) == 0 {
		return check.Invalid("", "tool_choice may only be specified while providing tools")
	}
	req.OneTool = c.DisableParallelToolUse
	switch c.Type {
	case "auto", "none":
		req.ToolChoice = c.Type
	case "any":
		req.ToolChoice = "required"
	case "tool":
		for _, t := range req.Tools {
			if t.Name == c.Name {
				req.ToolChoice = c.Name
				return nil
			}
		}
		return check.Invalid("", "tool_choice.name: Tool '%s' not found in provided tools", c.Name)
	default:
		return check.Invalid("", "tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", c.Type)
	}
	return nil
}

// thoughts sets how much is thought. Effort without thinking changes only the tone,
// of which there is none here.
func (r *request) thoughts(ask *check.Ask, _ bool) *check.Error {
	effort := llm.EffortMedium
	if r.OutputConfig != nil && r.OutputConfig.Effort != "" {
		switch effort = llm.Effort(r.OutputConfig.Effort); effort {
		case llm.EffortLow, llm.EffortMedium, llm.EffortHigh, llm.EffortXHigh, llm.EffortMax:
		default:
			return check.Invalid("", "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
		}
	}
	if r.Thinking == nil || r.Thinking.Type == "disabled" {
		return nil
	}
	switch t := r.Thinking; {
	case t.Type == "adaptive":
	case t.Type != "enabled":
		return check.Invalid("", "thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'enabled', 'disabled', 'adaptive'", t.Type)
	case t.BudgetTokens == nil:
		return check.Invalid("", "thinking.enabled.budget_tokens: Field required")
	case *t.BudgetTokens < 1024:
		return check.Invalid("", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case *t.BudgetTokens >= ask.Request.MaxTokens && ask.Request.MaxTokens > 0:
		return check.Invalid("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	if c := ask.Request.ToolChoice; c != "" && c != "auto" && c != "none" {
		return check.Invalid("", "Thinking may not be enabled when tool_choice forces tool use.")
	}
	ask.Request.Effort = effort
	return nil
}

func (r *request) format(ask *check.Ask, lax bool) *check.Error {
	f := r.OutputFormat
	name := "output_format"
	if r.OutputConfig != nil && r.OutputConfig.Format != nil {
		f, name = r.OutputConfig.Format, "output_config.format"
	}
	switch {
	case f == nil:
		return nil
	case f.Type != "json_schema":
		return check.Invalid("", "%s.type: Input should be 'json_schema'", name)
	case body.IsNull(f.Schema):
		return check.Invalid("", "%s.schema: Field required", name)
	case !lax && check.Strict(f.Schema, false) != "":
		return check.Invalid("", "%s.schema: For 'object' type, 'additionalProperties' must be explicitly set to false", name)
	}
	ask.Request.Schema = &llm.Schema{JSON: f.Schema}
	return nil
}

// addBreak notes a cache breakpoint, if c is one.
func addBreak(ask *check.Ask, c *cacheControl, param string, at sim.Break) *check.Error {
	if c == nil {
		return nil
	}
	if c.Type != "ephemeral" || (c.TTL != "" && c.TTL != "5m" && c.TTL != "1h") {
		return check.Invalid("", "%s.cache_control: Input should be {\"type\":\"ephemeral\"} with ttl '5m' or '1h'", param)
	}
	at.Long = c.TTL == "1h"
	ask.Breaks = append(ask.Breaks, at)
	return nil
}
