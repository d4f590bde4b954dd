package openai

import (
	"encoding/json"
	"fmt"

	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatToolCall  `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`

	Annotations      json.RawMessage `json:"annotations"`
	Audio            json.RawMessage `json:"audio"`
	Name             json.RawMessage `json:"name"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Refusal          json.RawMessage `json:"refusal"`
}

type chatToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL *struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	} `json:"image_url"`
}

// fillMessages checks the conversation and takes it over.
func (r *chatRequest) fillMessages(req *llm.Request, _ bool) *check.Error {
	req.Messages = make([]llm.Message, 0, len(r.Messages))
	open := openCalls{}
	for i := range r.Messages {
		m := &r.Messages[i]
		param := fmt.Sprintf("messages[%d]", i)
		role, err := roleOf(param, m.Role)
		if err != nil {
			return err
		}
		if err := open.next(param, role, m); err != nil {
			return err
		}
		parts, err := chatParts(param, role, m)
		if err != nil {
			return err
		}
		out := llm.Message{Role: role, Parts: parts, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		req.Messages = append(req.Messages, out)
	}
	return open.unanswered("messages")
}

func roleOf(param, role string) (llm.Role, *check.Error) {
	switch role {
	case "system", "developer":
		return llm.RoleSystem, nil
	case "user", "assistant", "tool":
		return llm.Role(role), nil
	case "":
		return "", missing(param + ".role")
	default:
		return "", badValue(param+".role", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", role)
	}
}

// openCalls are the tool calls that still wait for their results.
type openCalls map[string]bool

// next checks that tool results follow the calls they answer, and that nothing else does.
func (o openCalls) next(param string, role llm.Role, m *chatMessage) *check.Error {
	if role == llm.RoleTool {
		switch {
		case m.ToolCallID == "":
			return missing(param + ".tool_call_id")
		case !o[m.ToolCallID]:
			return check.Invalid(param+".role", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		}
		delete(o, m.ToolCallID)
		return nil
	}
	if err := o.unanswered(param + ".role"); err != nil {
		return err
	}
	if len(m.ToolCalls) > 0 && role != llm.RoleAssistant {
		return check.Invalid(param, "Invalid parameter: only messages with role 'assistant' can have 'tool_calls'.")
	}
	for k, c := range m.ToolCalls {
		if c.ID == "" || c.Function.Name == "" {
			return missing(fmt.Sprintf("%s.tool_calls[%d].id", param, k))
		}
		o[c.ID] = true
	}
	return nil
}

func (o openCalls) unanswered(param string) *check.Error {
	if len(o) == 0 {
		return nil
	}
	return check.Invalid(param, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
}

func chatParts(param string, role llm.Role, m *chatMessage) ([]llm.Part, *check.Error) {
	raw := m.Content
	if body.IsNull(raw) {
		if role == llm.RoleAssistant {
			return nil, nil
		}
		e := check.Invalid(param+".content", "Invalid value for 'content': expected a string, got null.")
		e.Code = "invalid_type"
		return nil, e
	}
	if s, ok := check.Text(raw); ok {
		if s == "" {
			return nil, nil
		}
		return []llm.Part{{Text: s}}, nil
	}
	var list []chatPart
	if json.Unmarshal(raw, &list) != nil {
		e := check.Invalid(param+".content", "Invalid type for '%s.content': expected one of a string or array of objects.", param)
		e.Code = "invalid_type"
		return nil, e
	}
	var parts []llm.Part
	for k, p := range list {
		switch {
		case p.Type == "text":
			parts = append(parts, llm.Part{Text: p.Text})
		case p.Type == "refusal" && role == llm.RoleAssistant:
			parts = append(parts, llm.Part{Text: p.Refusal})
		case p.Type == "image_url" && role == llm.RoleUser && p.ImageURL != nil:
			part, err := imagePart(fmt.Sprintf("%s.content[%d].image_url", param, k), p.ImageURL.URL, p.ImageURL.Detail)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		default:
			return nil, badValue(fmt.Sprintf("%s.content[%d].type", param, k), "Invalid value: '%s'. Supported values are: 'text' and 'image_url'.", p.Type)
		}
	}
	return parts, nil
}

func imagePart(param, url, detail string) (llm.Part, *check.Error) {
	img, err := llm.ImageFrom(url)
	if err != nil || (img.URL == "" && len(img.Data) == 0) {
		e := check.Invalid(param, "Invalid image URL.")
		e.Code = "invalid_image_url"
		return llm.Part{}, e
	}
	img.Detail = detail
	return llm.Part{Image: img}, nil
}
