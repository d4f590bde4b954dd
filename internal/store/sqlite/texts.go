package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// letter is a role as replies.roles has it.
func letter(r llm.Role) byte {
	switch r {
	case llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
		return r[0]
	default:
		return 'x'
	}
}

func roleOf(letter byte, rest *rest) llm.Role {
	switch letter {
	case 's':
		return llm.RoleSystem
	case 'u':
		return llm.RoleUser
	case 'a':
		return llm.RoleAssistant
	case 't':
		return llm.RoleTool
	}
	if rest != nil {
		return llm.Role(rest.Role)
	}
	return ""
}

// plain says whether m is one text and whose it is, and nothing else, as most are.
func plain(m *llm.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].Image == nil && letter(m.Role) != 'x' &&
		len(m.Thoughts) == 0 && len(m.ToolCalls) == 0 && m.ToolCallID == "" && !m.ToolFailed
}

// rest is what a message has beside its text. Parts are there where one text does not say
// it all: several, none, or an image.
type rest struct {
	Role       string         `json:"role,omitempty"` // where it is none of the four
	Parts      []part         `json:"parts,omitempty"`
	Empty      bool           `json:"empty,omitempty"` // it has no parts
	Thoughts   []llm.Thought  `json:"thoughts,omitempty"`
	ToolCalls  []llm.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	ToolFailed bool           `json:"tool_failed,omitempty"`
}

type part struct {
	Text  string `json:"text,omitempty"`
	Image *image `json:"image,omitempty"`
}

type image struct {
	URL       string `json:"url,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

func newRest(m *llm.Message) rest {
	r := rest{Thoughts: m.Thoughts, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, ToolFailed: m.ToolFailed}
	if letter(m.Role) == 'x' {
		r.Role = string(m.Role)
	}
	switch {
	case len(m.Parts) == 0:
		r.Empty = true
	case len(m.Parts) > 1 || m.Parts[0].Image != nil:
		for _, p := range m.Parts {
			r.Parts = append(r.Parts, part{p.Text, (*image)(p.Image)})
		}
	}
	return r
}

// message is what a text with a rest was made of.
func (r *rest) message(text string) llm.Message {
	m := llm.Message{Role: llm.Role(r.Role), Thoughts: r.Thoughts, ToolCalls: r.ToolCalls, ToolCallID: r.ToolCallID, ToolFailed: r.ToolFailed}
	switch {
	case len(r.Parts) > 0:
		for _, p := range r.Parts {
			m.Parts = append(m.Parts, llm.Part{Text: p.Text, Image: (*llm.Image)(p.Image)})
		}
	case !r.Empty:
		m.Parts = []llm.Part{{Text: text}}
	}
	return m
}

// settings is a request but for its messages and what is different in every call.
type settings struct {
	llm.Request
	Messages  *struct{}     `json:"messages,omitempty"` // hides those of Request
	Deadline  time.Duration `json:"deadline,omitempty"`
	Fallbacks []string      `json:"fallbacks,omitempty"`
}

func newSettings(r *llm.Request) settings {
	s := settings{Request: *r, Deadline: r.Deadline, Fallbacks: r.Fallbacks}
	s.Sample = 0
	return s
}

func (s *settings) request() *llm.Request {
	r := s.Request
	r.Messages, r.Deadline, r.Fallbacks = nil, s.Deadline, s.Fallbacks
	return &r
}

// encode writes v as JSON without the escapes that only a web page needs.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// appendList writes ids as a JSON list.
func appendList(b []byte, ids []int64) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, ']')
}

// ids reads what appendList wrote.
func ids(list string) (out []int64, err error) {
	list, ok := strings.CutPrefix(list, "[")
	list, closed := strings.CutSuffix(list, "]")
	if !ok || !closed {
		return nil, fmt.Errorf("%w: a prompt is no list", ErrDamaged)
	}
	if list != "" {
		out = make([]int64, 0, 1+strings.Count(list, ","))
	}
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, ",")
		id, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: a prompt is no list of numbers", ErrDamaged)
		}
		out = append(out, id)
	}
	return out, nil
}
