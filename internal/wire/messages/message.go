package messages

import (
	"encoding/base64"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// cacheMark is where the provider's prompt cache is told to keep what stands before.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// system writes the system's words, which stand beside the messages. When nothing
// else was said they are the first message instead, since there must be one.
func (w *writer) system() {
	if !w.hasSystem() || w.onlySystem() {
		return
	}
	w.b = body.Open(body.Key(w.b, "system"), '[')
	ms := w.req.Messages
	last := w.lastSystem()
	for i := range ms {
		if text := ms[i].Text(); ms[i].Role == llm.RoleSystem && text != "" {
			w.b = appendText(w.b, text)
			w.mark(i == last)
		}
	}
	w.b = append(w.b, ']')
}

// lastSystem returns the system message that ends the shared prefix, or -1 when the
// prefix ends with another message, or nowhere.
func (w *writer) lastSystem() int {
	n := min(w.req.Prefix, len(w.req.Messages))
	if n <= 0 || w.req.Messages[n-1].Role != llm.RoleSystem {
		return -1
	}
	return n - 1
}

func (w *writer) hasSystem() bool {
	for i := range w.req.Messages {
		if m := &w.req.Messages[i]; m.Role == llm.RoleSystem && m.Text() != "" {
			return true
		}
	}
	return false
}

func (w *writer) onlySystem() bool {
	for i := range w.req.Messages {
		if w.req.Messages[i].Role != llm.RoleSystem {
			return false
		}
	}
	return true
}

// messages writes the turns. The format has two roles that alternate, so what
// follows one another under one role becomes one turn, tools' results being the user's.
func (w *writer) messages() {
	ms := w.req.Messages
	only := w.onlySystem()
	if n := len(ms); w.c.NoPrefill && ms[n-1].Role == llm.RoleAssistant && len(ms[n-1].ToolCalls) == 0 && n > 1 {
		w.drop(true, "prefill")
		ms = ms[:n-1]
	}
	w.b = body.Open(body.Key(w.b, "messages"), '[')
	role := ""
	for i := range ms {
		m := &ms[i]
		if m.Role == llm.RoleSystem && !only || !hasBlocks(m) {
			continue
		}
		r := "user"
		if m.Role == llm.RoleAssistant {
			r = "assistant"
		}
		if r != role {
			w.turn(role, r)
			role = r
		}
		w.blocks(m)
		w.mark(i == w.req.Prefix-1)
	}
	if role != "" {
		w.b = append(w.b, ']', '}')
	}
	w.b = append(w.b, ']')
}

// turn ends the turn of one role and begins that of the next. The first must be the
// user's.
func (w *writer) turn(from, to string) {
	switch {
	case from != "":
		w.b = append(w.b, ']', '}')
	case to == "assistant":
		w.b = append(w.b, `{"role":"user","content":[{"type":"text","text":"(The conversation begins.)"}]}`...)
	}
	w.b = body.Str(body.Open(w.b, '{'), "role", to)
	w.b = body.Open(body.Key(w.b, "content"), '[')
}

// mark puts a cache breakpoint on the block that was just written.
func (w *writer) mark(here bool) {
	if here {
		w.b = append(append(w.b[:len(w.b)-1], cacheMark...), '}')
	}
}

func hasBlocks(m *llm.Message) bool {
	if m.Role == llm.RoleTool || len(m.ToolCalls) > 0 {
		return true
	}
	for _, p := range m.Parts {
		if p.Text != "" || p.Image != nil {
			return true
		}
	}
	return false
}

func (w *writer) blocks(m *llm.Message) {
	if m.Role == llm.RoleTool {
		w.b = body.Str(body.Str(body.Open(w.b, '{'), "type", "tool_result"), "tool_use_id", toolID(m.ToolCallID))
		w.b = body.Open(body.Key(w.b, "content"), '[')
		w.parts(m.Parts)
		w.b = append(w.b, ']')
		if m.ToolFailed {
			w.b = body.Bool(w.b, "is_error", true)
		}
		w.b = append(w.b, '}')
		return
	}
	if m.Role == llm.RoleAssistant {
		w.thoughts(m.Thoughts)
	}
	w.parts(m.Parts)
	for _, c := range m.ToolCalls {
		w.b = appendToolUse(w.b, toolID(c.ID), c.Name, c.Arguments)
	}
}

// thoughts gives the model's thinking back. Only what this format signed can go:
// another's (it has an ID) would be refused.
func (w *writer) thoughts(ts []llm.Thought) {
	for _, t := range ts {
		switch {
		case t.ID != "":
		case t.Signature != "":
			w.b = appendThinking(w.b, t.Text, t.Signature)
		case t.Opaque != "":
			w.b = body.Str(body.Str(body.Open(w.b, '{'), "type", "redacted_thinking"), "data", t.Opaque)
			w.b = append(w.b, '}')
		}
	}
}

// parts writes texts and images. Empty texts are refused, so they are left out.
func (w *writer) parts(parts []llm.Part) {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Image != nil:
			w.image(p.Image)
		case p.Text != "":
			w.b = appendText(w.b, p.Text)
		}
	}
}

// Blocks of content are written alike in requests and in answers.

func appendText(b []byte, s string) []byte {
	return append(body.Str(body.Str(body.Open(b, '{'), "type", "text"), "text", s), '}')
}

func appendThinking(b []byte, text, signature string) []byte {
	b = body.Str(body.Str(body.Open(b, '{'), "type", "thinking"), "thinking", text)
	return append(body.Str(b, "signature", signature), '}')
}

func appendToolUse(b []byte, id, name, arguments string) []byte {
	b = body.Str(body.Str(body.Open(b, '{'), "type", "tool_use"), "id", id)
	return append(input(body.Key(body.Str(b, "name", name), "input"), arguments), '}')
}

func (w *writer) image(im *llm.Image) {
	w.b = append(body.Open(w.b, '{'), `"type":"image","source":{`...)
	if len(im.Data) == 0 {
		w.b = body.Str(body.Str(w.b, "type", "url"), "url", im.URL)
	} else {
		w.b = body.Str(body.Str(w.b, "type", "base64"), "media_type", im.MediaType)
		w.b = append(body.Key(w.b, "data"), '"')
		w.b = append(base64.StdEncoding.AppendEncode(w.b, im.Data), '"')
	}
	w.b = append(w.b, '}', '}')
}

// input appends the arguments of a tool call, which must be an object here. What a
// model wrote that is none is kept as text.
func input(b []byte, arguments string) []byte {
	raw := []byte(arguments)
	if body.Valid(raw) && body.Members(raw, func(_, _ []byte) bool { return true }) {
		return append(b, raw...)
	}
	b = append(b, '{')
	if arguments != "" {
		b = body.Str(b, "malformed", arguments)
	}
	return append(b, '}')
}

// toolID makes of another vendor's call id one that is allowed here.
func toolID(id string) string {
	if id == "" {
		return "call"
	}
	return body.SchemaName(id)
}
