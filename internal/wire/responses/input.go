package responses

import (
	"encoding/base64"
	"strings"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// input writes the conversation as a list of items. The system's words at its head
// are the instructions; later ones stay where they were said.
func (w *writer) input() {
	ms := w.req.Messages
	n := 0
	var head []string
	for n < len(ms) && ms[n].Role == llm.RoleSystem {
		head = append(head, ms[n].Text())
		n++
	}
	if n == len(ms) { // there must be an item
		n, head = 0, nil
	}
	if len(head) > 0 {
		w.b = body.Str(w.b, "instructions", strings.Join(head, "\n\n"))
	}
	w.b = body.Open(body.Key(w.b, "input"), '[')
	for i := n; i < len(ms); i++ {
		w.message(&ms[i])
	}
	w.b = append(w.b, ']')
}

func (w *writer) message(m *llm.Message) {
	switch m.Role {
	case llm.RoleTool:
		w.result(m)
		return
	case llm.RoleAssistant:
		w.thoughts(m.Thoughts)
	}
	if len(m.Parts) > 0 || len(m.ToolCalls) == 0 {
		role := string(m.Role)
		if m.Role == llm.RoleSystem {
			role = "developer"
		}
		w.b = body.Str(body.Str(body.Open(w.b, '{'), "type", "message"), "role", role)
		w.content("content", m)
		w.b = append(w.b, '}')
	}
	for _, c := range m.ToolCalls {
		w.b = body.Str(body.Str(body.Open(w.b, '{'), "type", "function_call"), "call_id", c.ID)
		w.b = append(body.Str(body.Str(w.b, "name", c.Name), "arguments", c.Arguments), '}')
	}
}

// result writes what a tool answered.
func (w *writer) result(m *llm.Message) {
	w.b = body.Str(body.Str(body.Open(w.b, '{'), "type", "function_call_output"), "call_id", m.ToolCallID)
	w.content("output", m)
	w.b = append(w.b, '}')
}

// content writes a message's parts: as a string where they are only text, which is
// all that an assistant's may be.
func (w *writer) content(key string, m *llm.Message) {
	images := false
	for i := range m.Parts {
		images = images || m.Parts[i].Image != nil
	}
	if !images || m.Role == llm.RoleAssistant {
		w.b = body.Str(w.b, key, m.Text())
		return
	}
	w.b = body.Open(body.Key(w.b, key), '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		w.b = body.Open(w.b, '{')
		if p.Image == nil {
			w.b = body.Str(body.Str(w.b, "type", "input_text"), "text", p.Text)
		} else {
			w.b = appendImage(body.Key(body.Str(w.b, "type", "input_image"), "image_url"), p.Image)
			detail := p.Image.Detail
			if detail == "" {
				detail = "auto"
			}
			w.b = body.Str(w.b, "detail", detail)
		}
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}

// appendImage appends the address of an image, without a copy of its content.
func appendImage(b []byte, im *llm.Image) []byte {
	if len(im.Data) == 0 {
		return body.String(b, im.URL)
	}
	b = body.String(b, "data:"+im.MediaType+";base64,")
	b = base64.StdEncoding.AppendEncode(b[:len(b)-1], im.Data)
	return append(b, '"')
}

// thoughts gives encrypted reasoning back. Thoughts of other formats cannot go.
func (w *writer) thoughts(ts []llm.Thought) {
	for _, t := range ts {
		if t.ID == "" || t.Opaque == "" {
			continue
		}
		w.b = body.Str(body.Str(body.Open(w.b, '{'), "type", "reasoning"), "id", t.ID)
		w.b = body.Open(body.Key(w.b, "summary"), '[')
		if t.Text != "" {
			w.b = append(body.Str(body.Str(body.Open(w.b, '{'), "type", "summary_text"), "text", t.Text), '}')
		}
		w.b = append(w.b, ']')
		w.b = append(body.Str(w.b, "encrypted_content", t.Opaque), '}')
	}
}
