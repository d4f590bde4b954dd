package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

// chatRequest is the body of POST /v1/chat/completions: OpenAI's members and
// those that vLLM adds. What changes nothing here is taken and not looked at.
type chatRequest struct {
	Model               string            `json:"model"`
	Messages            []chatMessage     `json:"messages"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	FrequencyPenalty    *float64          `json:"frequency_penalty"`
	PresencePenalty     *float64          `json:"presence_penalty"`
	MaxTokens           *int              `json:"max_tokens"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	N                   *int              `json:"n"`
	Seed                *int64            `json:"seed"`
	Stop                json.RawMessage   `json:"stop"`
	Stream              bool              `json:"stream"`
	StreamOptions       *streamOptions    `json:"stream_options"`
	Logprobs            bool              `json:"logprobs"`
	TopLogprobs         *int              `json:"top_logprobs"`
	ResponseFormat      *responseFormat   `json:"response_format"`
	Tools               []chatTool        `json:"tools"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	ReasoningEffort     string            `json:"reasoning_effort"`
	ServiceTier         string            `json:"service_tier"`
	Metadata            map[string]string `json:"metadata"`

	TopK           *int `json:"top_k"`            // vLLM
	ReturnTokenIDs bool `json:"return_token_ids"` // vLLM

	chatIgnored
}

// chatIgnored are members that are allowed and change nothing here.
type chatIgnored struct {
	Audio                json.RawMessage `json:"audio"`
	LogitBias            json.RawMessage `json:"logit_bias"`
	Modalities           json.RawMessage `json:"modalities"`
	Prediction           json.RawMessage `json:"prediction"`
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key"`
	PromptCacheOptions   json.RawMessage `json:"prompt_cache_options"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier"`
	Store                json.RawMessage `json:"store"`
	User                 json.RawMessage `json:"user"`
	Verbosity            json.RawMessage `json:"verbosity"`
	WebSearchOptions     json.RawMessage `json:"web_search_options"`

	CacheSalt           json.RawMessage `json:"cache_salt"` // from here on vLLM's
	ChatTemplateKwargs  json.RawMessage `json:"chat_template_kwargs"`
	IgnoreEOS           json.RawMessage `json:"ignore_eos"`
	IncludeStop         json.RawMessage `json:"include_stop_str_in_output"`
	MinP                json.RawMessage `json:"min_p"`
	MinTokens           json.RawMessage `json:"min_tokens"`
	Priority            json.RawMessage `json:"priority"`
	RepetitionPenalty   json.RawMessage `json:"repetition_penalty"`
	ReturnAsTokenIDs    json.RawMessage `json:"return_tokens_as_token_ids"`
	SessionID           json.RawMessage `json:"session_id"`
	SkipSpecialTokens   json.RawMessage `json:"skip_special_tokens"`
	StopTokenIDs        json.RawMessage `json:"stop_token_ids"`
	VLLMExtraParameters json.RawMessage `json:"vllm_xargs"`
}

type streamOptions struct {
	IncludeUsage       bool  `json:"include_usage"`
	IncludeObfuscation *bool `json:"include_obfuscation"`
}

type responseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      *bool           `json:"strict"`
}

type chatTool struct {
	Type     string    `json:"type"`
	Function *function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// DecodeChat reads the body of POST /v1/chat/completions.
func DecodeChat(body []byte, lax bool) (*check.Ask, *check.Error) {
	var r chatRequest
	if p := check.Decode(body, &r, lax); p != nil {
		return nil, invalidBody(p)
	}
	req := &llm.Request{Model: r.Model, Logprobs: r.Logprobs, TokenIDs: r.ReturnTokenIDs, TopK: r.TopK, Seed: r.Seed}
	ask := &check.Ask{Request: req, Stream: r.Stream, IncludeUsage: r.StreamOptions != nil && r.StreamOptions.IncludeUsage}
	for _, step := range []func(*llm.Request, bool) *check.Error{r.basics, r.fillMessages, r.limits, r.format, r.fillTools} {
		if err := step(req, lax); err != nil {
			return nil, err
		}
	}
	return ask, nil
}

func (r *chatRequest) basics(req *llm.Request, _ bool) *check.Error {
	switch {
	case r.Model == "":
		return check.Invalid("", "you must provide a model parameter")
	case r.Messages == nil:
		return missing("messages")
	case len(r.Messages) == 0:
		e := check.Invalid("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
		e.Code = "empty_array"
		return e
	case r.StreamOptions != nil && !r.Stream:
		return check.Invalid("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.N != nil && *r.N > 1:
		return badValue("n", "Invalid 'n': this simulation gives one choice a request.")
	}
	s := sampling{r.Temperature, r.TopP, r.FrequencyPenalty, r.PresencePenalty}
	if err := s.check(); err != nil {
		return err
	}
	s.apply(req)
	var err *check.Error
	req.Effort, err = effortOf("reasoning_effort", r.ReasoningEffort)
	switch r.ServiceTier {
	case "", "auto", "default", "flex", "scale", "priority", "fast":
		req.Tier = r.ServiceTier
	default:
		return badValue("service_tier", "Invalid value: '%s'. Supported values are: 'auto', 'default', 'flex', 'scale', and 'priority'.", r.ServiceTier)
	}
	return err
}

func (r *chatRequest) limits(req *llm.Request, _ bool) *check.Error {
	for _, f := range []struct {
		name string
		n    *int
	}{{"n", r.N}, {"max_tokens", r.MaxTokens}, {"max_completion_tokens", r.MaxCompletionTokens}} {
		if err := atLeast(f.name, f.n, 1); err != nil {
			return err
		}
	}
	switch {
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return check.Invalid("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case r.MaxTokens != nil:
		req.MaxTokens = *r.MaxTokens
	case r.MaxCompletionTokens != nil:
		req.MaxTokens = *r.MaxCompletionTokens
	}
	err := topLogprobs(req, r.TopLogprobs)
	switch {
	case err != nil:
		return err
	case r.TopLogprobs != nil && !r.Logprobs:
		return check.Invalid("top_logprobs", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.")
	}
	req.Stop, err = stopOf(r.Stop)
	return err
}

func stopOf(raw json.RawMessage) ([]string, *check.Error) {
	if body.IsNull(raw) {
		return nil, nil
	}
	if s, ok := check.Text(raw); ok {
		return []string{s}, nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		e := check.Invalid("stop", "Invalid type for 'stop': expected a string or an array of strings.")
		e.Code = "invalid_type"
		return nil, e
	}
	if len(list) > 4 {
		e := check.Invalid("stop", "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(list))
		e.Code = "array_above_max_length"
		return nil, e
	}
	return list, nil
}

func (r *chatRequest) format(req *llm.Request, lax bool) *check.Error {
	f := r.ResponseFormat
	if f == nil {
		return nil
	}
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		for _, m := range req.Messages {
			if strings.Contains(strings.ToLower(m.Text()), "json") {
				req.Schema = &llm.Schema{JSON: []byte(anyObject)}
				return nil
			}
		}
		return check.Invalid("messages", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
	case "json_schema":
		if f.JSONSchema == nil {
			return missing("response_format.json_schema")
		}
		return f.JSONSchema.apply(req, "response_format.json_schema", lax)
	case "":
		return missing("response_format.type")
	default:
		return badValue("response_format.type", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type)
	}
}

func (r *chatRequest) fillTools(req *llm.Request, lax bool) *check.Error {
	for i, t := range r.Tools {
		param := fmt.Sprintf("tools[%d].function", i)
		if t.Type != "function" || t.Function == nil {
			return badValue(fmt.Sprintf("tools[%d].type", i), "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		}
		if err := t.Function.add(req, param, lax); err != nil {
			return err
		}
	}
	req.OneTool = r.ParallelToolCalls != nil && !*r.ParallelToolCalls
	if r.ParallelToolCalls != nil && len(r.Tools) == 0 {
		return check.Invalid("parallel_tool_calls", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	var named struct {
		Function struct{ Name string } `json:"function"`
	}
	if raw := r.ToolChoice; !body.IsNull(raw) && raw[0] == '{' {
		_ = json.Unmarshal(raw, &named) // a name that cannot be read is no tool's name
	}
	return toolChoice(req, r.ToolChoice, named.Function.Name)
}

// toolChoice reads tool_choice; name is that of its function where it is an object.
func toolChoice(req *llm.Request, raw json.RawMessage, name string) *check.Error {
	if body.IsNull(raw) {
		return nil
	}
	if len(req.Tools) == 0 {
		return check.Invalid("tool_choice", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	if s, ok := check.Text(raw); ok {
		if s != "auto" && s != "none" && s != "required" {
			return badValue("tool_choice", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", s)
		}
		req.ToolChoice = s
		return nil
	}
	for _, t := range req.Tools {
		if t.Name == name {
			req.ToolChoice = name
			return nil
		}
	}
	return check.Invalid("tool_choice", "Invalid value for 'tool_choice': no function named '%s' was specified in the 'tools' parameter.", name)
}
