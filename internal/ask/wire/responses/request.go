package responses

import (
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// AppendRequest appends the body of req, and returns the names of the parameters that it left out
// because the format or the model refuses them.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	w := writer{request.Writer{Req: req, Can: c}}
	w.Begin(dst)
	w.B = body.Bool(w.B, "store", false)
	w.input()
	if w.Tools(`"type":"function"`, "parameters", "}", true) { // the default of this format is strict
		w.ToolChoice(`{"type":"function"`, "}")
	}
	w.Schema("text", `{"format":{"type":"json_schema"`, "}}")
	if name, ok := w.Effort(req.Effort); ok {
		w.B = append(body.Str(body.Open(body.Key(w.B, "reasoning"), '{'), "effort", name), '}')
	}
	w.sampling()
	if req.MaxTokens > 0 {
		w.B = body.Int(w.B, "max_output_tokens", int64(req.MaxTokens))
	}
	w.Account()
	if stream {
		w.B = body.Bool(w.B, "stream", true)
	}
	w.CheckFiles("responses")
	return w.End(dst, "model", "input", "instructions", "stream", "store")
}

// writer appends a request part by part.
type writer struct{ request.Writer }

func (w *writer) sampling() {
	r, off := w.Req, w.NoSampling()
	w.Float("temperature", r.Temperature, off)
	w.Float("top_p", r.TopP, off)
	w.Drop(r.TopK != nil, "top_k")
	w.Drop(r.FrequencyPenalty != nil, "frequency_penalty")
	w.Drop(r.PresencePenalty != nil, "presence_penalty")
	w.Drop(r.Seed != nil, "seed")
	w.Drop(len(r.Stop) > 0, "stop")
	w.Drop(r.TokenIDs, "token_ids")

	logprobs := r.Logprobs && !w.NoLogprobs()
	w.Drop(r.Logprobs && !logprobs, "logprobs")
	if logprobs {
		w.B = body.Int(w.B, "top_logprobs", int64(r.TopLogprobs))
	}
	w.include(logprobs)
}

// include requests output that the server does not send by default. Models that do not reason refuse
// to send encrypted reasoning.
func (w *writer) include(logprobs bool) {
	reasons := len(w.Can.Efforts) > 0
	if !reasons && !logprobs {
		return
	}
	w.B = body.Open(body.Key(w.B, "include"), '[')
	if reasons {
		w.B = body.String(w.B, "reasoning.encrypted_content")
	}
	if logprobs {
		w.B = body.String(w.B, "message.output_text.logprobs")
	}
	w.B = append(w.B, ']')
}

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
