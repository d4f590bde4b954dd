package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

// block is a content block of any type.
type block struct {
	Type         string        `json:"type"`
	Text         string        `json:"text"`
	CacheControl *cacheControl `json:"cache_control"`

	Source *struct { // image
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`

	ID    string          `json:"id"` // tool_use
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	ToolUseID string          `json:"tool_use_id"` // tool_result
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`

	Thinking  string `json:"thinking"` // thinking, redacted_thinking
	Signature string `json:"signature"`
	Data      string `json:"data"`
}

// reader takes a conversation over, message by message.
type reader struct {
	ask  *check.Ask
	open []string // tool uses whose results must come next
}

func (r *request) conversation(ask *check.Ask, _ bool) *check.Error {
	rd := reader{ask: ask}
	if err := rd.system(r.System); err != nil {
		return err
	}
	if r.Messages[0].Role == "assistant" {
		return check.Invalid("", "messages: first message must use the \"user\" role")
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			return check.Invalid("", "messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		blocks, err := blocksOf(m.Content, fmt.Sprintf("messages.%d.content", i))
		if err != nil {
			return err
		}
		if err := rd.message(i, m.Role, blocks); err != nil {
			return err
		}
	}
	if len(rd.open) > 0 {
		return unanswered(len(r.Messages)-1, rd.open[0])
	}
	n := len(ask.Request.Messages)
	return addBreak(ask, r.CacheControl, "", sim.Break{Message: n - 1, Part: len(ask.Request.Messages[n-1].Parts)})
}

func (rd *reader) system(raw json.RawMessage) *check.Error {
	if body.IsNull(raw) {
		return nil
	}
	blocks, err := blocksOf(raw, "system")
	if err != nil {
		return err
	}
	m := llm.Message{Role: llm.RoleSystem}
	for i, b := range blocks {
		if b.Type != "text" {
			return check.Invalid("", "system.%d.type: Input should be 'text'", i)
		}
		m.Parts = append(m.Parts, llm.Part{Text: b.Text})
		if err := addBreak(rd.ask, b.CacheControl, fmt.Sprintf("system.%d", i), sim.Break{Part: i}); err != nil {
			return err
		}
	}
	if len(m.Parts) > 0 {
		rd.ask.Request.Messages = append(rd.ask.Request.Messages, m)
	}
	return nil
}

func blocksOf(raw json.RawMessage, param string) ([]block, *check.Error) {
	if s, ok := check.Text(raw); ok {
		if s == "" && param != "system" {
			return nil, check.Invalid("", "%s: text content blocks must be non-empty", param)
		}
		return []block{{Type: "text", Text: s}}, nil
	}
	var list []block
	if body.IsNull(raw) || json.Unmarshal(raw, &list) != nil {
		return nil, check.Invalid("", "%s: Input should be a valid string or a list of content blocks", param)
	}
	return list, nil
}

// message takes a message over. The tool results of a user's message become
// messages of their own, as the other formats have it.
func (rd *reader) message(i int, role string, blocks []block) *check.Error {
	req := rd.ask.Request
	open := rd.open
	rd.open = nil
	m := llm.Message{Role: llm.Role(role)}
	for k := range blocks {
		b := &blocks[k]
		param := fmt.Sprintf("messages.%d.content.%d", i, k)
		if b.Type == "tool_result" && role == "user" {
			at := slices.Index(open, b.ToolUseID)
			if at < 0 {
				return check.Invalid("", "%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", param, b.ToolUseID)
			}
			open = slices.Delete(open, at, at+1)
			text, err := resultText(b.Content, param)
			if err != nil {
				return err
			}
			t := llm.ToolResult(b.ToolUseID, text)
			t.ToolFailed = b.IsError
			req.Messages = append(req.Messages, t)
			if err := addBreak(rd.ask, b.CacheControl, param, sim.Break{Message: len(req.Messages) - 1}); err != nil {
				return err
			}
			continue
		}
		if err := rd.block(&m, b, role, param); err != nil {
			return err
		}
		at := sim.Break{Message: len(req.Messages), Part: max(0, len(m.Parts)-1)}
		if err := addBreak(rd.ask, b.CacheControl, param, at); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return unanswered(i-1, open[0])
	}
	if len(m.Parts) > 0 || len(m.ToolCalls) > 0 || len(m.Thoughts) > 0 {
		req.Messages = append(req.Messages, m)
	}
	if len(req.Messages) == 0 {
		return check.Invalid("", "messages.%d: all messages must have non-empty content", i)
	}
	return nil
}

// block takes over any block but a tool's result.
func (rd *reader) block(m *llm.Message, b *block, role, param string) *check.Error {
	switch {
	case b.Type == "text":
		if b.Text == "" {
			return check.Invalid("", "messages: text content blocks must be non-empty")
		}
		m.Parts = append(m.Parts, llm.Part{Text: b.Text})
	case b.Type == "image" && role == "user" && b.Source != nil:
		img, err := imageOf(b, param)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, llm.Part{Image: img})
	case b.Type == "tool_use" && role == "assistant":
		if b.ID == "" || b.Name == "" || body.IsNull(b.Input) {
			return check.Invalid("", "%s.tool_use.id: Field required", param)
		}
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		rd.open = append(rd.open, b.ID)
	case b.Type == "thinking" && role == "assistant":
		if b.Signature == "" {
			return check.Invalid("", "%s.thinking.signature: Field required", param)
		}
		m.Thoughts = append(m.Thoughts, llm.Thought{Text: b.Thinking, Signature: b.Signature})
	case b.Type == "redacted_thinking" && role == "assistant":
		m.Thoughts = append(m.Thoughts, llm.Thought{Opaque: b.Data})
	default:
		return check.Invalid("", "%s: Input tag '%s' found using 'type' does not match any of the expected tags for role '%s'", param, b.Type, role)
	}
	return nil
}

func imageOf(b *block, param string) (*llm.Image, *check.Error) {
	switch s := b.Source; s.Type {
	case "url":
		return &llm.Image{URL: s.URL}, nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(s.Data)
		if err != nil || len(data) == 0 {
			return nil, check.Invalid("", "%s.image.source.base64: invalid base64 data", param)
		}
		return &llm.Image{MediaType: s.MediaType, Data: data}, nil
	default:
		return nil, check.Invalid("", "%s.image.source: Input tag '%s' found using 'type' does not match any of the expected tags: 'base64', 'url'", param, s.Type)
	}
}

func resultText(raw json.RawMessage, param string) (string, *check.Error) {
	if body.IsNull(raw) {
		return "", nil
	}
	if s, ok := check.Text(raw); ok {
		return s, nil
	}
	blocks, err := blocksOf(raw, param+".content")
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(b.Text)
	}
	return text.String(), err
}

func unanswered(i int, id string) *check.Error {
	return check.Invalid("", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, id)
}
