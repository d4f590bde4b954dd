package responses

import (
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// input writes the conversation as a list of items. System messages at its beginning become the
// instructions. Later ones stay in their position.
func (w *writer) input() {
	ms := w.Req.Messages
	n := 0
	var head []string
	for n < len(ms) && ms[n].Role == llm.RoleSystem {
		head = append(head, ms[n].Text())
		n++
	}
	if n == len(ms) { // the format requires an item
		n, head = 0, nil
	}
	if len(head) > 0 {
		w.B = body.Str(w.B, "instructions", strings.Join(head, "\n\n"))
	}
	w.B = body.Open(body.Key(w.B, "input"), '[')
	for i := n; i < len(ms); i++ {
		w.message(&ms[i])
	}
	w.B = append(w.B, ']')
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
		w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "message"), "role", role)
		w.content("content", m)
		w.B = append(w.B, '}')
	}
	for _, c := range m.ToolCalls {
		w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "function_call"), "call_id", c.ID)
		w.B = append(body.Str(body.Str(w.B, "name", c.Name), "arguments", c.Arguments), '}')
	}
}

// result writes the result of a tool.
func (w *writer) result(m *llm.Message) {
	w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "function_call_output"), "call_id", m.ToolCallID)
	w.content("output", m)
	w.B = append(w.B, '}')
}

// content writes the parts of a message, as a string if they are only text. An assistant's parts are
// always text.
func (w *writer) content(key string, m *llm.Message) {
	plain := true
	for i := range m.Parts {
		plain = plain && m.Parts[i].IsText()
	}
	if plain || m.Role == llm.RoleAssistant {
		w.B = body.Str(w.B, key, m.Text())
		return
	}
	w.B = body.Open(body.Key(w.B, key), '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		w.B = body.Open(w.B, '{')
		switch {
		case p.File != nil:
			w.file(p.File)
		case p.Image == nil:
			w.B = body.Str(body.Str(w.B, "type", "input_text"), "text", p.Text)
		default:
			w.B = request.AppendImage(body.Key(body.Str(w.B, "type", "input_image"), "image_url"), p.Image)
			detail := p.Image.Detail
			if detail == "" {
				detail = "auto"
			}
			w.B = body.Str(w.B, "detail", detail)
		}
		w.B = append(w.B, '}')
	}
	w.B = append(w.B, ']')
}

// file writes a document. An address has no name in this format.
func (w *writer) file(f *llm.File) {
	w.B = body.Str(w.B, "type", "input_file")
	if len(f.Data) == 0 {
		w.B = body.Str(w.B, "file_url", f.URL)
		return
	}
	w.B = request.AppendDocument(body.Key(body.Str(w.B, "filename", request.DocumentName(f)), "file_data"), f)
}

// thoughts sends encrypted reasoning back. It leaves out thoughts of other formats.
func (w *writer) thoughts(ts []llm.Thought) {
	for _, t := range ts {
		if t.ID == "" || t.Opaque == "" {
			continue
		}
		w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "reasoning"), "id", t.ID)
		w.B = body.Open(body.Key(w.B, "summary"), '[')
		if t.Text != "" {
			w.B = append(body.Str(body.Str(body.Open(w.B, '{'), "type", "summary_text"), "text", t.Text), '}')
		}
		w.B = append(w.B, ']')
		w.B = append(body.Str(w.B, "encrypted_content", t.Opaque), '}')
	}
}
