package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

func (w *writer) messages() {
	ms := w.Messages()
	var system string
	if w.Can.NoSystem {
		system = systemText(ms)
	}
	w.B = body.Open(body.Key(w.B, "messages"), '[')
	for i := range ms {
		m := &ms[i]
		if m.Role == llm.RoleSystem && w.Can.NoSystem {
			continue
		}
		if m.Role == llm.RoleUser && system != "" {
			m = &llm.Message{Role: m.Role, Parts: append([]llm.Part{{Text: system + "\n\n"}}, m.Parts...)}
			system = ""
		}
		w.message(m)
		if w.Can.Prefix && i == len(ms)-1 && m.Role == llm.RoleAssistant && len(m.ToolCalls) == 0 {
			w.B = append(body.Bool(w.B[:len(w.B)-1], "prefix", true), '}')
		}
	}
	if system != "" { // no message of the user to put it in
		w.message(&llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: system}}})
	}
	w.B = append(w.B, ']')
}

func systemText(ms []llm.Message) string {
	var all []string
	for i := range ms {
		if ms[i].Role == llm.RoleSystem {
			all = append(all, ms[i].Text())
		}
	}
	return strings.Join(all, "\n\n")
}

func (w *writer) message(m *llm.Message) {
	w.B = body.Str(body.Open(w.B, '{'), "role", string(m.Role))
	if m.Role == llm.RoleTool {
		w.B = body.Str(w.B, "tool_call_id", w.callID(m.ToolCallID))
	}
	switch {
	case len(m.Parts) == 1 && m.Parts[0].IsText():
		w.B = body.Str(w.B, "content", m.Parts[0].Text)
	case len(m.Parts) > 0:
		w.parts(m.Parts)
	case len(m.ToolCalls) == 0:
		w.B = body.Str(w.B, "content", "")
	}
	if w.Can.SendReasoningBack {
		w.thoughts(m)
	}
	if len(m.ToolCalls) > 0 {
		w.toolCalls(m)
	}
	w.B = append(w.B, '}')
}

func (w *writer) parts(parts []llm.Part) {
	w.B = body.Open(body.Key(w.B, "content"), '[')
	for i := range parts {
		p := &parts[i]
		w.B = body.Open(w.B, '{')
		switch {
		case p.Image != nil:
			w.B = append(w.B, `"type":"image_url","image_url":{`...)
			w.B = request.AppendImage(body.Key(w.B, "url"), p.Image)
			if p.Image.Detail != "" {
				w.B = body.Str(w.B, "detail", p.Image.Detail)
			}
			w.B = append(w.B, '}')
		case p.File != nil:
			w.file(p.File)
		default:
			w.B = body.Str(body.Str(w.B, "type", "text"), "text", p.Text)
		}
		w.B = append(w.B, '}')
	}
	w.B = append(w.B, ']')
}

func (w *writer) file(f *llm.File) {
	if f.IsAudio() {
		w.B = append(w.B, `"type":"input_audio","input_audio":{`...)
		w.B = request.AppendBase64(body.Key(w.B, "data"), f.Data)
		w.B = append(body.Str(w.B, "format", f.Format()), '}')
		return
	}
	w.B = append(w.B, `"type":"file","file":{`...)
	w.B = body.Str(w.B, "filename", request.DocumentName(f))
	w.B = append(request.AppendDocument(body.Key(w.B, "file_data"), f), '}')
}

// thoughts sends a model's reasoning back to it.
func (w *writer) thoughts(m *llm.Message) {
	var text strings.Builder
	for _, t := range m.Thoughts {
		text.WriteString(t.Text)
	}
	if text.Len() > 0 {
		w.B = body.Str(w.B, "reasoning_content", text.String())
	}
}

// callID returns the id of a tool call as the model accepts it. The same id gives the same one again.
func (w *writer) callID(id string) string {
	const size = 9
	if !w.Can.ShortIDs || len(id) == size && !strings.ContainsFunc(id, func(r rune) bool { return r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:size]
}

func (w *writer) toolCalls(m *llm.Message) {
	w.B = body.Open(body.Key(w.B, "tool_calls"), '[')
	for _, c := range m.ToolCalls {
		w.B = body.Str(body.Open(w.B, '{'), "id", w.callID(c.ID))
		w.B = append(w.B, `,"type":"function","function":{`...)
		w.B = body.Str(body.Str(w.B, "name", c.Name), "arguments", c.Arguments)
		w.B = append(w.B, '}')
		// Gemini refuses a tool call without its signature.
		if s := signature(m, c.ID); s != "" {
			w.B = append(w.B, `,"extra_content":{"google":{`...)
			w.B = append(body.Str(w.B, "thought_signature", s), '}', '}')
		}
		w.B = append(w.B, '}')
	}
	w.B = append(w.B, ']')
}

// signature returns Gemini's signature of a tool call: see DecodeResponse.
func signature(m *llm.Message, id string) string {
	for i := range m.Thoughts {
		if t := &m.Thoughts[i]; t.ID == id && id != "" {
			return t.Signature
		}
	}
	return ""
}
