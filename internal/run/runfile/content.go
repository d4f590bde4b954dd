// Part content encodes what a run file stores once for many calls: messages and the
// settings of requests. Both are rows of the table texts.
//
// A Key identifies equal content, so that a writer stores it once. Keys remember the ids of
// content that was stored lately.

package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// otherRole is the letter of a role other than the four.
const otherRole = 'x'

// contentLetter returns a role as the column roles has it.
func contentLetter(r llm.Role) byte {
	switch r {
	case llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool:
		return r[0]
	default:
		return otherRole
	}
}

// role returns the role of a letter. rest may be nil.
func role(letter byte, rest *contentRest) llm.Role {
	for _, r := range []llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleSystem, llm.RoleTool} {
		if r[0] == letter {
			return r
		}
	}
	if rest != nil {
		return llm.Role(rest.Role)
	}
	return ""
}

// contentPlain reports whether a message is one text of a known role, as most are.
func contentPlain(m *llm.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].IsText() && contentLetter(m.Role) != otherRole &&
		len(m.Thoughts) == 0 && len(m.ToolCalls) == 0 && m.ToolCallID == "" && !m.ToolFailed
}

// contentRest is everything in a message except its text. Parts is set unless the message has
// exactly one part, a text.
type contentRest struct {
	Role       string         `json:"role,omitempty"` // if it is not one of the four
	Parts      []part         `json:"parts,omitempty"`
	Empty      bool           `json:"empty,omitempty"` // the message has no parts
	Thoughts   []llm.Thought  `json:"thoughts,omitempty"`
	ToolCalls  []llm.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	ToolFailed bool           `json:"tool_failed,omitempty"`
}

type part struct {
	Text  string       `json:"text,omitempty"`
	Image *image       `json:"image,omitempty"`
	File  *contentFile `json:"file,omitempty"`
}

type contentFile struct {
	Name      string `json:"name,omitempty"`
	URL       string `json:"url,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

type image struct {
	URL       string `json:"url,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// newRest returns the rest of a message.
func newRest(m *llm.Message) contentRest {
	r := contentRest{Thoughts: m.Thoughts, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, ToolFailed: m.ToolFailed}
	if contentLetter(m.Role) == otherRole {
		r.Role = string(m.Role)
	}
	switch {
	case len(m.Parts) == 0:
		r.Empty = true
	case len(m.Parts) > 1 || !m.Parts[0].IsText():
		for _, p := range m.Parts {
			r.Parts = append(r.Parts, part{p.Text, (*image)(p.Image), (*contentFile)(p.File)})
		}
	}
	return r
}

// Message returns the message with the given text and letter of its role.
func (r *contentRest) Message(text string, letter byte) llm.Message {
	m := llm.Message{Role: role(letter, r), Thoughts: r.Thoughts, ToolCalls: r.ToolCalls, ToolCallID: r.ToolCallID, ToolFailed: r.ToolFailed}
	switch {
	case len(r.Parts) > 0:
		for _, p := range r.Parts {
			m.Parts = append(m.Parts, llm.Part{Text: p.Text, Image: (*llm.Image)(p.Image), File: (*llm.File)(p.File)})
		}
	case !r.Empty:
		m.Parts = []llm.Part{{Text: text}}
	}
	return m
}

// Size returns about how many bytes of memory the parts take.
func (r *contentRest) Size() (n int) {
	for _, p := range r.Parts {
		n += len(p.Text)
		if p.Image != nil {
			n += len(p.Image.Data)
		}
		if p.File != nil {
			n += len(p.File.Data)
		}
	}
	return n
}

// settings is a request without its messages, and without what differs in every call.
type settings struct {
	llm.Request
	Messages  *struct{}     `json:"messages,omitempty"` // hides those of Request
	Deadline  time.Duration `json:"deadline,omitempty"`
	Fallbacks []string      `json:"fallbacks,omitempty"`
}

// encodeSettings writes the settings of a request as JSON.
func encodeSettings(r *llm.Request) (string, error) {
	s := settings{Request: *r, Deadline: r.Deadline, Fallbacks: r.Fallbacks}
	s.Sample = 0
	return encode(s)
}

// decodeSettings reads what EncodeSettings writes.
func decodeSettings(text string) (*llm.Request, error) {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	r := s.Request
	r.Messages, r.Deadline, r.Fallbacks = nil, s.Deadline, s.Fallbacks
	return &r, nil
}

// encode writes v as JSON without HTML escapes.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// appendIDs appends ids as a JSON list.
func appendIDs(b []byte, ids []int64) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, ']')
}

// parseIDs reads what AppendIDs writes.
func parseIDs(list string) (out []int64, err error) {
	list, opened := strings.CutPrefix(list, "[")
	list, closed := strings.CutSuffix(list, "]")
	if !opened || !closed {
		return nil, errors.New("its prompt is not a list")
	}
	if list != "" {
		out = make([]int64, 0, 1+strings.Count(list, ","))
	}
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, ",")
		id, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, errors.New("its prompt is not a list of numbers")
		}
		out = append(out, id)
	}
	return out, nil
}
