package gemini

import (
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
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

// contents writes the turns.
func (w *writer) contents() {
	w.Turns(request.Turns{Key: "contents", Content: "parts", Assistant: "model", First: `{"role":"user","parts":[{"text":"(The conversation begins.)"}]}`}, w.OnlySystem() || w.cached, func(ms []llm.Message, i int) {
		w.parts(ms[:i], &ms[i])
	})
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
