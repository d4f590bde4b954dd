package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is the author of a message.
type Role string

// The four roles. Dialects translate: some have no tool role, some take system messages separately.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation. Its JSON form is that of OpenAI's chat completions, which most datasets and
// tools use.
type Message struct {
	Role  Role
	Parts []Part
	// Thoughts are the model's reasoning before these words, unchanged. Some providers want them back to continue after a
	// tool call.
	Thoughts []Thought
	// ToolCalls are the calls that an assistant's message asks for.
	ToolCalls []ToolCall
	// ToolCallID is the call that a tool's message answers.
	ToolCallID string
	// ToolFailed marks a tool's message as a failure.
	ToolFailed bool
}

// Part is a piece of a message: text, or an image or a file if one of them is set.
type Part struct {
	Text  string `json:"text,omitempty"`
	Image *Image `json:"image,omitempty"`
	File  *File  `json:"file,omitempty"`
}

// IsText reports whether p is text.
func (p *Part) IsText() bool { return p.Image == nil && p.File == nil }

// Image is a picture, by address or by content.
type Image struct {
	URL       string `json:"url,omitempty"`        // http(s) address; empty when Data is set
	MediaType string `json:"media_type,omitempty"` // of Data: image/png, image/jpeg, image/gif, image/webp
	Data      []byte `json:"data,omitempty"`
	Detail    string `json:"detail,omitempty"` // low, high, auto; if the provider knows it
}

// Thought is a piece of reasoning. Signature and Opaque are the provider's, to be sent back unchanged.
type Thought struct {
	Text      string `json:"text,omitempty"`
	ID        string `json:"id,omitempty"`
	Signature string `json:"signature,omitempty"`
	Opaque    string `json:"opaque,omitempty"`
}

// ToolCall is a model's request to call a tool.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON as the model wrote it; it may be malformed
}

// System returns a system message.
func System(text string) Message { return Text(RoleSystem, text) }

// User returns a message of the user.
func User(text string) Message { return Text(RoleUser, text) }

// Assistant returns a message of the model.
func Assistant(text string) Message { return Text(RoleAssistant, text) }

// ToolResult returns the message that answers the tool call id.
func ToolResult(id, text string) Message {
	m := Text(RoleTool, text)
	m.ToolCallID = id
	return m
}

// Text returns a message of one text part, or without parts for an empty text.
func Text(role Role, text string) Message {
	if text == "" {
		return Message{Role: role}
	}
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// Text returns the joined text parts of m.
func (m Message) Text() string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// DataURL returns the address of the image: its URL, or its content as a data: URL.
func (i *Image) DataURL() string { return dataURL(i.URL, i.MediaType, i.Data) }

// ImageFrom makes an Image from an http(s) address or a data: URL.
func ImageFrom(url string) (*Image, error) {
	if !strings.HasPrefix(url, "data:") {
		return &Image{URL: url}, nil
	}
	media, data, err := parseDataURL(url)
	if err != nil {
		return nil, fmt.Errorf("llm: image: %w", err)
	}
	return &Image{MediaType: media, Data: data}, nil
}

type wireMessage struct {
	Role       Role            `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	Thoughts   []Thought       `json:"thoughts,omitempty"`
	ToolCalls  []wireToolCall  `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	ToolFailed bool            `json:"tool_failed,omitempty"`
}

type wirePart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *wireImage `json:"image_url,omitempty"`
	File     *wireFile  `json:"file,omitempty"`
	Audio    *wireAudio `json:"input_audio,omitempty"`
}

type wireImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

type wireToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
	flatCall
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// flatCall is a call in the form of ToolCall, which replies have. It is only read.
type flatCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// MarshalJSON writes m as OpenAI's chat completions do. It refuses a file without content and a web address, or with both.
func (m Message) MarshalJSON() ([]byte, error) {
	if i := slices.IndexFunc(m.Parts, func(p Part) bool { return p.File != nil && p.File.place() != nil }); i >= 0 {
		return nil, fmt.Errorf("llm: content[%d]: %w", i, m.Parts[i].File.place())
	}
	w := wireMessage{Role: m.Role, Thoughts: m.Thoughts, ToolCallID: m.ToolCallID, ToolFailed: m.ToolFailed}
	var err error
	switch {
	case isEmpty(m.Parts):
	case len(m.Parts) == 1 && m.Parts[0].IsText():
		w.Content, err = json.Marshal(m.Parts[0].Text)
	default:
		w.Content, err = json.Marshal(toWireParts(m.Parts))
	}
	if err != nil {
		return nil, err
	}
	for _, c := range m.ToolCalls {
		t := wireToolCall{ID: c.ID, Type: "function"}
		t.Function.Name, t.Function.Arguments = c.Name, c.Arguments
		w.ToolCalls = append(w.ToolCalls, t)
	}
	return json.Marshal(w)
}

// isEmpty reports whether parts have no content.
func isEmpty(parts []Part) bool {
	return len(parts) == 0 || len(parts) == 1 && parts[0] == (Part{})
}

func toWireParts(parts []Part) []wirePart {
	out := make([]wirePart, len(parts))
	for i, p := range parts {
		switch {
		case p.Image != nil:
			out[i] = wirePart{Type: "image_url", ImageURL: &wireImage{URL: p.Image.DataURL(), Detail: p.Image.Detail}}
		case p.File != nil:
			out[i] = toWireFile(p.File)
		default:
			out[i] = wirePart{Type: "text", Text: p.Text}
		}
	}
	return out
}

// UnmarshalJSON reads what MarshalJSON writes. It reads the developer role of newer OpenAI models as system. An unknown
// role or part is an error.
func (m *Message) UnmarshalJSON(b []byte) error {
	if plain, ok := plainMessage(b); ok {
		*m = plain
		return nil
	}
	var w wireMessage
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.Role == "developer" {
		w.Role = RoleSystem
	}
	switch w.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	default:
		return fmt.Errorf("unknown role %q; want one of system, user, assistant, tool", w.Role)
	}
	parts, err := fromWireContent(w.Content)
	if err != nil {
		return err
	}
	*m = Message{Role: w.Role, Parts: parts, Thoughts: w.Thoughts, ToolCallID: w.ToolCallID, ToolFailed: w.ToolFailed}
	for _, c := range w.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: c.ID, Name: cmp.Or(c.Function.Name, c.Name), Arguments: cmp.Or(c.Function.Arguments, c.Arguments)})
	}
	return nil
}

func fromWireContent(raw json.RawMessage) ([]Part, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil || s == "" {
			return nil, err
		}
		return []Part{{Text: s}}, nil
	}
	var ps []wirePart
	if err := json.Unmarshal(raw, &ps); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, errors.New("content: want a string or a list of parts")
		}
		return nil, fmt.Errorf("content: %w", err)
	}
	out := make([]Part, len(ps))
	for i := range ps {
		var err error
		if out[i], err = ps[i].part(); err != nil {
			return nil, fmt.Errorf("content part of type %q: %w", ps[i].Type, err)
		}
	}
	if isEmpty(out) {
		return nil, nil
	}
	return out, nil
}

func (p *wirePart) part() (Part, error) {
	switch {
	case p.Type == "text" || p.Type == "input_text":
		return Part{Text: p.Text}, nil
	case p.Type == "image_url" && p.ImageURL != nil:
		img, err := ImageFrom(p.ImageURL.URL)
		if err != nil {
			return Part{}, err
		}
		img.Detail = p.ImageURL.Detail
		return Part{Image: img}, nil
	case p.Type == "file" && p.File != nil:
		f, err := p.File.file()
		return Part{File: f}, err
	case p.Type == "input_audio" && p.Audio != nil:
		f, err := p.Audio.file()
		return Part{File: f}, err
	default:
		return Part{}, errors.New("want text, image_url with its url, file with its file_data, or input_audio with its data and format")
	}
}
