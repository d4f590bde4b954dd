package openai

import (
	"encoding/json"
	"fmt"
	"net/http"

	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

// responsesRequest is the body of POST /v1/responses. Background, conversations
// and earlier responses are refused, since nothing is stored.
type responsesRequest struct {
	Temperature        *float64          `json:"temperature"`
	TopP               *float64          `json:"top_p"`
	Model              string            `json:"model"`
	Input              json.RawMessage   `json:"input"`
	Instructions       string            `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Stream             bool              `json:"stream"`
	Text               *textOptions      `json:"text"`
	Tools              []responsesTool   `json:"tools"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls"`
	Reasoning          *reasoningOptions `json:"reasoning"`
	ServiceTier        string            `json:"service_tier"`
	TopLogprobs        *int              `json:"top_logprobs"`
	Include            []string          `json:"include"`
	Background         bool              `json:"background"`
	PreviousResponseID string            `json:"previous_response_id"`
	Conversation       json.RawMessage   `json:"conversation"`
	Metadata           map[string]string `json:"metadata"`

	MaxToolCalls         json.RawMessage `json:"max_tool_calls"` // from here on: taken, not looked at
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key"`
	PromptCacheOptions   json.RawMessage `json:"prompt_cache_options"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier"`
	Store                json.RawMessage `json:"store"`
	StreamOptions        json.RawMessage `json:"stream_options"`
	Truncation           json.RawMessage `json:"truncation"`
	User                 json.RawMessage `json:"user"`
}

type textOptions struct {
	Format *struct {
		Type string `json:"type"`
		jsonSchema
	} `json:"format"`
	Verbosity json.RawMessage `json:"verbosity"`
}

type responsesTool struct {
	Type string `json:"type"`
	function
}

type reasoningOptions struct {
	Effort          string          `json:"effort"`
	Summary         json.RawMessage `json:"summary"`
	GenerateSummary json.RawMessage `json:"generate_summary"`
}

// item is a piece of the input: a message, a tool call or its result, a thought.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

type itemPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
	Detail   string `json:"detail"`
}

// DecodeResponses reads the body of POST /v1/responses.
func DecodeResponses(body []byte, lax bool) (*check.Ask, *check.Error) {
	var r responsesRequest
	if p := check.Decode(body, &r, lax); p != nil {
		return nil, invalidBody(p)
	}
	req := &llm.Request{Model: r.Model}
	for _, step := range []func(*llm.Request, bool) *check.Error{r.basics, r.options, r.fillInput, r.format, r.fillTools} {
		if err := step(req, lax); err != nil {
			return nil, err
		}
	}
	return &check.Ask{Request: req, Stream: r.Stream}, nil
}

func (r *responsesRequest) basics(_ *llm.Request, _ bool) *check.Error {
	switch {
	case r.Model == "":
		return missing("model")
	case body.IsNull(r.Input):
		return missing("input")
	case r.Background:
		return badValue("background", "Background responses are not simulated.")
	case r.PreviousResponseID != "":
		e := check.Invalid("previous_response_id", "Previous response with id '%s' not found.", r.PreviousResponseID)
		e.Code = "previous_response_not_found"
		return e
	case !body.IsNull(r.Conversation):
		e := check.Invalid("conversation", "Conversation not found.")
		e.Status = http.StatusNotFound
		return e
	}
	return nil
}

func (r *responsesRequest) options(req *llm.Request, _ bool) *check.Error {
	s := sampling{Temperature: r.Temperature, TopP: r.TopP}
	if err := s.check(); err != nil {
		return err
	}
	s.apply(req)
	if err := atLeast("max_output_tokens", r.MaxOutputTokens, 16); err != nil {
		return err
	}
	if r.MaxOutputTokens != nil {
		req.MaxTokens = *r.MaxOutputTokens
	}
	for _, inc := range r.Include {
		req.Logprobs = req.Logprobs || inc == "message.output_text.logprobs"
	}
	req.Tier = r.ServiceTier
	err := topLogprobs(req, r.TopLogprobs)
	if err == nil && r.Reasoning != nil {
		req.Effort, err = effortOf("reasoning.effort", r.Reasoning.Effort)
	}
	return err
}

func (r *responsesRequest) fillInput(req *llm.Request, _ bool) *check.Error {
	if r.Instructions != "" {
		req.Messages = append(req.Messages, llm.System(r.Instructions))
	}
	if s, ok := check.Text(r.Input); ok {
		req.Messages = append(req.Messages, llm.User(s))
		return nil
	}
	var items []item
	if json.Unmarshal(r.Input, &items) != nil {
		e := check.Invalid("input", "Invalid type for 'input': expected one of a string or array of objects.")
		e.Code = "invalid_type"
		return e
	}
	if len(items) == 0 {
		return badValue("input", "Invalid 'input': empty array.")
	}
	called := map[string]bool{}
	for i := range items {
		if err := addItem(req, &items[i], fmt.Sprintf("input[%d]", i), called); err != nil {
			return err
		}
	}
	for id, open := range called {
		if open {
			return check.Invalid("input", "No tool output found for function call %s.", id)
		}
	}
	return nil
}

// addItem adds an item to the conversation. Calls become part of the assistant's
// message before them, as the other formats have it.
func addItem(req *llm.Request, it *item, param string, called map[string]bool) *check.Error {
	switch it.Type {
	case "", "message":
		role, err := roleOf(param, it.Role)
		if err != nil {
			return err
		}
		parts, err := itemParts(param, it.Content)
		if err != nil {
			return err
		}
		req.Messages = append(req.Messages, llm.Message{Role: role, Parts: parts})
	case "function_call":
		if it.CallID == "" || it.Name == "" {
			return missing(param + ".call_id")
		}
		called[it.CallID] = true
		n := len(req.Messages)
		if n == 0 || req.Messages[n-1].Role != llm.RoleAssistant {
			req.Messages = append(req.Messages, llm.Message{Role: llm.RoleAssistant})
			n++
		}
		m := &req.Messages[n-1]
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
	case "function_call_output":
		if _, ok := called[it.CallID]; !ok {
			return check.Invalid("input", "No tool call found for function call output with call_id %s.", it.CallID)
		}
		called[it.CallID] = false
		text, ok := check.Text(it.Output)
		if !ok {
			text = string(it.Output)
		}
		req.Messages = append(req.Messages, llm.ToolResult(it.CallID, text))
	case "reasoning":
	default:
		return badValue(param+".type", "Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output', and 'reasoning'.", it.Type)
	}
	return nil
}

func itemParts(param string, raw json.RawMessage) ([]llm.Part, *check.Error) {
	if s, ok := check.Text(raw); ok {
		if s == "" {
			return nil, nil
		}
		return []llm.Part{{Text: s}}, nil
	}
	var list []itemPart
	if body.IsNull(raw) || json.Unmarshal(raw, &list) != nil {
		e := check.Invalid(param+".content", "Invalid type for '%s.content': expected one of a string or array of objects.", param)
		e.Code = "invalid_type"
		return nil, e
	}
	var parts []llm.Part
	for k, p := range list {
		switch p.Type {
		case "input_text", "output_text":
			parts = append(parts, llm.Part{Text: p.Text})
		case "refusal":
			parts = append(parts, llm.Part{Text: p.Refusal})
		case "input_image":
			part, err := imagePart(fmt.Sprintf("%s.content[%d].image_url", param, k), p.ImageURL, p.Detail)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		default:
			return nil, badValue(fmt.Sprintf("%s.content[%d].type", param, k), "Invalid value: '%s'. Supported values are: 'input_text', 'input_image', 'output_text', and 'refusal'.", p.Type)
		}
	}
	return parts, nil
}

func (r *responsesRequest) format(req *llm.Request, lax bool) *check.Error {
	if r.Text == nil || r.Text.Format == nil {
		return nil
	}
	f := r.Text.Format
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		req.Schema = &llm.Schema{JSON: []byte(anyObject)}
		return nil
	case "json_schema":
		return f.apply(req, "text.format", lax)
	default:
		return badValue("text.format.type", "Invalid value: '%s'. Supported values are: 'text', 'json_object', and 'json_schema'.", f.Type)
	}
}

func (r *responsesRequest) fillTools(req *llm.Request, lax bool) *check.Error {
	for i, t := range r.Tools {
		param := fmt.Sprintf("tools[%d]", i)
		if t.Type != "function" {
			return badValue(param+".type", "Invalid value: '%s'. The simulation supports: 'function'.", t.Type)
		}
		if err := t.add(req, param, lax); err != nil {
			return err
		}
	}
	req.OneTool = r.ParallelToolCalls != nil && !*r.ParallelToolCalls
	if len(req.Tools) == 0 {
		return nil // unlike chat completions, it takes a tool_choice without tools
	}
	var named struct {
		Name string `json:"name"`
	}
	if raw := r.ToolChoice; !body.IsNull(raw) && raw[0] == '{' {
		_ = json.Unmarshal(raw, &named) // a name that cannot be read is no tool's name
	}
	return toolChoice(req, r.ToolChoice, named.Name)
}
