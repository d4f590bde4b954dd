package chat

import (
	"encoding/base64"
	"strings"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

func (w *writer) messages() {
	ms := w.req.Messages
	if n := len(ms); w.c.NoPrefill && ms[n-1].Role == llm.RoleAssistant && len(ms[n-1].ToolCalls) == 0 && n > 1 {
		w.drop(true, "prefill")
		ms = ms[:n-1]
	}
	var system string
	if w.c.NoSystem {
		system = systemText(ms)
	}
	w.b = body.Open(body.Key(w.b, "messages"), '[')
	for i := range ms {
		m := &ms[i]
		if m.Role == llm.RoleSystem && w.c.NoSystem {
			continue
		}
		if m.Role == llm.RoleUser && system != "" {
			m = &llm.Message{Role: m.Role, Parts: append([]llm.Part{{Text: system + "\n\n"}}, m.Parts...)}
			system = ""
		}
		w.message(m)
	}
	if system != "" { // there was no user's message to put it before
		w.message(&llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: system}}})
	}
	w.b = append(w.b, ']')
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
	w.b = body.Str(body.Open(w.b, '{'), "role", string(m.Role))
	if m.Role == llm.RoleTool {
		w.b = body.Str(w.b, "tool_call_id", m.ToolCallID)
	}
	switch {
	case len(m.Parts) == 1 && m.Parts[0].Image == nil:
		w.b = body.Str(w.b, "content", m.Parts[0].Text)
	case len(m.Parts) > 0:
		w.parts(m.Parts)
	case len(m.ToolCalls) == 0:
		w.b = body.Str(w.b, "content", "")
	}
	if w.c.Thoughts {
		w.thoughts(m)
	}
	if len(m.ToolCalls) > 0 {
		w.toolCalls(m)
	}
	w.b = append(w.b, '}')
}

func (w *writer) parts(parts []llm.Part) {
	w.b = body.Open(body.Key(w.b, "content"), '[')
	for i := range parts {
		p := &parts[i]
		w.b = body.Open(w.b, '{')
		if p.Image == nil {
			w.b = body.Str(body.Str(w.b, "type", "text"), "text", p.Text)
		} else {
			w.b = append(w.b, `"type":"image_url","image_url":{`...)
			w.b = appendImage(body.Key(w.b, "url"), p.Image)
			if p.Image.Detail != "" {
				w.b = body.Str(w.b, "detail", p.Image.Detail)
			}
			w.b = append(w.b, '}')
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

// thoughts gives a model its reasoning back, where it wants that.
func (w *writer) thoughts(m *llm.Message) {
	var text strings.Builder
	for _, t := range m.Thoughts {
		text.WriteString(t.Text)
	}
	if text.Len() > 0 {
		w.b = body.Str(w.b, "reasoning_content", text.String())
	}
}

func (w *writer) toolCalls(m *llm.Message) {
	w.b = body.Open(body.Key(w.b, "tool_calls"), '[')
	for _, c := range m.ToolCalls {
		w.b = body.Str(body.Open(w.b, '{'), "id", c.ID)
		w.b = append(w.b, `,"type":"function","function":{`...)
		w.b = body.Str(body.Str(w.b, "name", c.Name), "arguments", c.Arguments)
		w.b = append(w.b, '}')
		// Gemini refuses to go on from a tool call whose signature is missing.
		if s := signature(m, c.ID); s != "" {
			w.b = append(w.b, `,"extra_content":{"google":{`...)
			w.b = append(body.Str(w.b, "thought_signature", s), '}', '}')
		}
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}

// signature returns what Gemini signed the tool call id with: see DecodeResponse.
func signature(m *llm.Message, id string) string {
	for i := range m.Thoughts {
		if t := &m.Thoughts[i]; t.ID == id && id != "" {
			return t.Signature
		}
	}
	return ""
}
