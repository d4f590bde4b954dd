package anthropic

import (
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// cacheMark tells the provider to cache the prompt up to here.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// system writes the system messages, which are not part of the messages in this format. If there
// are no other messages they become the first message, since the format requires one.
func (w *writer) system() {
	if !w.hasSystem() || w.OnlySystem() {
		return
	}
	w.B = body.Open(body.Key(w.B, "system"), '[')
	ms := w.Req.Messages
	last := w.lastSystem()
	for i := range ms {
		if text := ms[i].Text(); ms[i].Role == llm.RoleSystem && text != "" {
			w.B = appendText(w.B, text)
			w.mark(i == last)
		}
	}
	w.B = append(w.B, ']')
}

// lastSystem returns the system message that ends the shared prefix, or -1 if there is none.
func (w *writer) lastSystem() int {
	n := min(w.Req.Prefix, len(w.Req.Messages))
	if n <= 0 || w.Req.Messages[n-1].Role != llm.RoleSystem {
		return -1
	}
	return n - 1
}

func (w *writer) hasSystem() bool {
	for i := range w.Req.Messages {
		if m := &w.Req.Messages[i]; m.Role == llm.RoleSystem && m.Text() != "" {
			return true
		}
	}
	return false
}

// messages writes the turns.
func (w *writer) messages() {
	w.Turns(request.Turns{Key: "messages", Content: "content", Assistant: "assistant", First: `{"role":"user","content":[{"type":"text","text":"(The conversation begins.)"}]}`}, w.OnlySystem(), func(ms []llm.Message, i int) {
		w.blocks(&ms[i])
		w.mark(i == w.Req.Prefix-1)
	})
}

// mark adds a cache breakpoint to the last block.
func (w *writer) mark(here bool) {
	if here {
		w.B = append(append(w.B[:len(w.B)-1], cacheMark...), '}')
	}
}

func (w *writer) blocks(m *llm.Message) {
	if m.Role == llm.RoleTool {
		w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "tool_result"), "tool_use_id", toolID(m.ToolCallID))
		w.B = body.Open(body.Key(w.B, "content"), '[')
		w.parts(m.Parts)
		w.B = append(w.B, ']')
		if m.ToolFailed {
			w.B = body.Bool(w.B, "is_error", true)
		}
		w.B = append(w.B, '}')
		return
	}
	if m.Role == llm.RoleAssistant {
		w.thoughts(m.Thoughts)
	}
	w.parts(m.Parts)
	for _, c := range m.ToolCalls {
		w.B = appendToolUse(w.B, toolID(c.ID), c.Name, c.Arguments)
	}
}

// thoughts sends the model's thinking back. Thoughts of other formats have an ID, and would be
// refused.
func (w *writer) thoughts(ts []llm.Thought) {
	for _, t := range ts {
		switch {
		case t.ID != "":
		case t.Signature != "":
			w.B = appendThinking(w.B, t.Text, t.Signature)
		case t.Opaque != "":
			w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "redacted_thinking"), "data", t.Opaque)
			w.B = append(w.B, '}')
		}
	}
}

// parts writes texts, images and documents. It leaves out empty texts, which the format refuses.
func (w *writer) parts(parts []llm.Part) {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Image != nil:
			w.source("image", p.Image.MediaType, p.Image.URL, p.Image.Data)
			w.B = append(w.B, '}')
		case p.File != nil:
			w.source("document", p.File.MediaType, p.File.URL, p.File.Data)
			if p.File.Name != "" {
				w.B = body.Str(w.B, "title", p.File.Name)
			}
			w.B = append(w.B, '}')
		case p.Text != "":
			w.B = appendText(w.B, p.Text)
		}
	}
}

// Requests and answers share the blocks of content.

func appendText(b []byte, s string) []byte {
	return append(body.Str(body.Str(body.Open(b, '{'), "type", "text"), "text", s), '}')
}

func appendThinking(b []byte, text, signature string) []byte {
	b = body.Str(body.Str(body.Open(b, '{'), "type", "thinking"), "thinking", text)
	return append(body.Str(b, "signature", signature), '}')
}

func appendToolUse(b []byte, id, name, arguments string) []byte {
	b = body.Str(body.Str(body.Open(b, '{'), "type", "tool_use"), "id", id)
	return append(request.AppendObject(body.Key(body.Str(b, "name", name), "input"), arguments, "malformed"), '}')
}

// source begins a block of a type with its content.
func (w *writer) source(kind, media, url string, data []byte) {
	w.B = append(body.Str(body.Open(w.B, '{'), "type", kind), `,"source":{`...)
	if len(data) == 0 {
		w.B = body.Str(body.Str(w.B, "type", "url"), "url", url)
	} else {
		w.B = body.Str(body.Str(w.B, "type", "base64"), "media_type", media)
		w.B = request.AppendBase64(body.Key(w.B, "data"), data)
	}
	w.B = append(w.B, '}')
}

// toolID turns the call ID of another vendor into one that this format accepts.
func toolID(id string) string {
	if id == "" {
		return "call"
	}
	return body.SchemaName(id)
}
