package gemini

import (
	"parley/internal/wire/body"
	"parley/internal/wire/request"
	"parley/llm"
)

// system writes the system messages, which are not part of the contents. Beside cached content they are.
func (w *writer) system() {
	if w.OnlySystem() || w.cached {
		return
	}
	begun := false
	for i := range w.Req.Messages {
		m := &w.Req.Messages[i]
		text := m.Text()
		if m.Role != llm.RoleSystem || text == "" {
			continue
		}
		if !begun {
			w.B = append(body.Key(w.B, "systemInstruction"), `{"parts":[`...)
			begun = true
		}
		w.text(text, "")
	}
	if begun {
		w.B = append(w.B, ']', '}')
	}
}

// contents writes the turns. The format has two alternating roles, so consecutive messages of one role become one turn.
// The results of tools belong to the user.
func (w *writer) contents() {
	ms, only := w.Messages(), w.OnlySystem() || w.cached
	w.B = body.Open(body.Key(w.B, "contents"), '[')
	role := ""
	for i := range ms {
		m := &ms[i]
		if m.Role == llm.RoleSystem && !only || !request.HasContent(m) {
			continue
		}
		r := "user"
		if m.Role == llm.RoleAssistant {
			r = "model"
		}
		if r != role {
			w.turn(role, r)
			role = r
		}
		w.parts(ms[:i], m)
	}
	if role != "" {
		w.B = append(w.B, ']', '}')
	}
	w.B = append(w.B, ']')
}

// turn ends a turn and begins the next. The first must be the user's.
func (w *writer) turn(from, to string) {
	switch {
	case from != "":
		w.B = append(w.B, ']', '}')
	case to == "model":
		w.B = append(w.B, `{"role":"user","parts":[{"text":"(The conversation begins.)"}]}`...)
	}
	w.B = body.Str(body.Open(w.B, '{'), "role", to)
	w.B = body.Open(body.Key(w.B, "parts"), '[')
}

// parts writes the parts of a message. earlier are the messages before it.
func (w *writer) parts(earlier []llm.Message, m *llm.Message) {
	if m.Role == llm.RoleTool {
		w.result(earlier, m)
		return
	}
	sign := signature(m, textID)
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case !p.IsText():
			w.media(p)
		case p.Text != "":
			w.text(p.Text, sign)
			sign = "" // only one part has it
		}
	}
	for _, c := range m.ToolCalls {
		w.B = append(body.Open(w.B, '{'), `"functionCall":{`...)
		w.B = body.Str(body.Str(w.B, "id", c.ID), "name", c.Name)
		w.B = append(request.AppendObject(body.Key(w.B, "args"), c.Arguments, "malformed"), '}')
		w.sign(signature(m, c.ID))
		w.B = append(w.B, '}')
	}
}

func (w *writer) text(text, sign string) {
	w.B = body.Str(body.Open(w.B, '{'), "text", text)
	w.sign(sign)
	w.B = append(w.B, '}')
}

func (w *writer) sign(s string) {
	if s != "" {
		w.B = body.Str(w.B, "thoughtSignature", s)
	}
}

// result writes the result of a tool. The format wants the name of the tool, which is in the call.
func (w *writer) result(earlier []llm.Message, m *llm.Message) {
	name := m.ToolCallID
	for i := len(earlier) - 1; i >= 0; i-- {
		for _, c := range earlier[i].ToolCalls {
			if c.ID == m.ToolCallID {
				name, i = c.Name, 0
				break
			}
		}
	}
	key := "result"
	if m.ToolFailed {
		key = "error"
	}
	w.B = append(body.Open(w.B, '{'), `"functionResponse":{`...)
	w.B = body.Str(body.Str(w.B, "id", m.ToolCallID), "name", name)
	w.B = body.Key(w.B, "response")
	if m.ToolFailed {
		w.B = append(body.Str(append(w.B, '{'), key, m.Text()), '}')
	} else {
		w.B = request.AppendObject(w.B, m.Text(), key)
	}
	w.B = append(w.B, '}', '}')
	for i := range m.Parts {
		if p := &m.Parts[i]; !p.IsText() {
			w.media(p)
		}
	}
}

// media writes an image or a file.
func (w *writer) media(p *llm.Part) {
	var media, url string
	var data []byte
	if f := p.File; f != nil {
		media, url, data = f.MediaType, f.URL, f.Data
	} else {
		media, url, data = p.Image.MediaType, p.Image.URL, p.Image.Data
	}
	if len(data) == 0 {
		w.B = append(body.Open(w.B, '{'), `"fileData":{`...)
		if media != "" {
			w.B = body.Str(w.B, "mimeType", media)
		}
		w.B = append(body.Str(w.B, "fileUri", url), '}', '}')
		return
	}
	w.B = append(body.Open(w.B, '{'), `"inlineData":{`...)
	w.B = request.AppendBase64(body.Key(body.Str(w.B, "mimeType", media), "data"), data)
	w.B = append(w.B, '}', '}')
}
