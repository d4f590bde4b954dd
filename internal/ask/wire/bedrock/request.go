package bedrock

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// AppendRequest appends the body of req, and returns the names of the parameters that it left out. The model and the
// choice of a stream are in the path.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, _ bool) ([]byte, []string, error) {
	w := writer{Writer: request.Writer{Req: req, Can: c, B: append(dst, '{')}}
	w.system()
	w.messages()
	w.inference()
	w.tools()
	w.output()
	if req.Tier != "" {
		w.B = append(body.Str(body.Open(body.Key(w.B, tier), '{'), "type", req.Tier), '}')
	}
	w.Drop(req.TopK != nil, "top_k")
	w.Drop(req.FrequencyPenalty != nil, "frequency_penalty")
	w.Drop(req.PresencePenalty != nil, "presence_penalty")
	w.Drop(req.Seed != nil, "seed")
	w.Drop(req.Logprobs, "logprobs")
	w.Drop(req.TokenIDs, "token_ids")
	w.Drop(req.OneTool, "one_tool")
	w.CheckFiles("bedrock")
	return w.End(dst, messages, system, inference, tools, output, tier)
}

// writer appends a request part by part.
type writer struct {
	request.Writer
	names map[string]bool // of documents, in lower case
}

// system writes the system messages, which are not part of the conversation.
func (w *writer) system() {
	if w.OnlySystem() {
		return
	}
	begun := false
	for i := range w.Req.Messages {
		m := &w.Req.Messages[i]
		if text := m.Text(); m.Role == llm.RoleSystem && text != "" {
			if !begun {
				w.B = body.Open(body.Key(w.B, system), '[')
				begun = true
			}
			w.text(text)
			w.cachePoint(i)
		}
	}
	if begun {
		w.B = append(w.B, ']')
	}
}

// messages writes the turns.
func (w *writer) messages() {
	w.Turns(request.Turns{Key: messages, Content: "content", Assistant: "assistant", First: `{"role":"user","content":[{"text":"(The conversation begins.)"}]}`}, w.OnlySystem(), func(ms []llm.Message, i int) {
		w.content(&ms[i])
		w.cachePoint(i)
	})
}

func (w *writer) content(m *llm.Message) {
	if m.Role == llm.RoleTool {
		w.B = append(body.Open(w.B, '{'), `"toolResult":{`...)
		w.B = body.Str(w.B, "toolUseId", request.ToolID(m.ToolCallID))
		w.B = body.Open(body.Key(w.B, "content"), '[')
		w.parts(m.Parts)
		w.B = append(w.B, ']')
		if m.ToolFailed {
			w.B = body.Str(w.B, "status", "error")
		}
		w.B = append(w.B, '}', '}')
		return
	}
	if m.Role == llm.RoleAssistant {
		for _, t := range m.Thoughts {
			if t.ID == "" && t.Signature != "" { // those of other formats would be refused
				w.B = appendThought(w.B, t.Text, t.Signature)
			}
		}
	}
	w.parts(m.Parts)
	for _, c := range m.ToolCalls {
		w.B = appendCall(w.B, llm.ToolCall{ID: request.ToolID(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
}

func (w *writer) parts(parts []llm.Part) {
	for i := range parts {
		switch p := &parts[i]; {
		case p.Image != nil:
			w.image(p.Image)
		case p.File != nil:
			w.file(p.File)
		case p.Text != "":
			w.text(p.Text)
		}
	}
}

// cachePoint tells the provider to cache the prompt up to here, if message i is the last of the shared prefix.
func (w *writer) cachePoint(i int) {
	if w.Can.CachePoint && i == w.Req.Prefix-1 {
		w.B = append(body.Open(w.B, '{'), `"cachePoint":{"type":"default"}}`...)
	}
}

func (w *writer) text(text string) { w.B = append(body.Str(body.Open(w.B, '{'), "text", text), '}') }

// image writes an image. The format takes no addresses of images.
func (w *writer) image(im *llm.Image) {
	if len(im.Data) == 0 {
		w.Err = errImageURL
		return
	}
	format := strings.TrimPrefix(im.MediaType, "image/")
	w.B = append(body.Open(w.B, '{'), `"image":{`...)
	w.source(format, im.Data)
}

// source ends a block with its format and its bytes.
func (w *writer) source(format string, data []byte) {
	w.B = append(body.Key(body.Str(w.B, "format", format), "source"), `{"bytes":`...)
	w.B = append(request.AppendBase64(w.B, data), `}}}`...)
}

func (w *writer) file(f *llm.File) {
	if f.IsAudio() {
		w.B = append(body.Open(w.B, '{'), `"audio":{`...)
	} else {
		w.B = append(body.Open(w.B, '{'), `"document":{`...)
		w.B = body.Str(w.B, "name", w.unique(documentName(request.DocumentName(f))))
	}
	w.source(f.Format(), f.Data)
}

// documentName returns a name as the format allows it: letters and digits, single spaces, hyphens, parentheses and brackets.
func documentName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-()[]", r) {
			return r
		}
		return ' '
	}, strings.TrimSuffix(name, ".pdf"))
	name = strings.Join(strings.Fields(name), " ")
	return cmp.Or(strings.TrimSpace(name[:min(len(name), maxName)]), "document")
}

// maxName is how long the name of a document may be.
const maxName = 200

// unique returns a name that no earlier document has, as the format wants it: with -2, -3 and so on at its end.
func (w *writer) unique(name string) string {
	if w.names == nil {
		w.names = map[string]bool{}
	}
	own := name
	for i := 2; w.names[strings.ToLower(own)]; i++ {
		end := "-" + strconv.Itoa(i)
		own = strings.TrimSpace(name[:min(len(name), maxName-len(end))]) + end
	}
	w.names[strings.ToLower(own)] = true
	return own
}

// inference writes the parameters that every model has.
func (w *writer) inference() {
	r, off := w.Req, w.NoSampling()
	max := r.MaxTokens
	if max == 0 {
		max = w.Can.MaxOutput
	}
	if max == 0 && r.Temperature == nil && r.TopP == nil && len(r.Stop) == 0 {
		return
	}
	w.B = body.Open(body.Key(w.B, inference), '{')
	if max > 0 {
		w.B = body.Int(w.B, "maxTokens", int64(max))
	}
	w.Float("temperature", r.Temperature, off)
	if off {
		w.Drop(r.TopP != nil, "top_p")
	} else {
		w.Float("topP", r.TopP, false)
	}
	w.Stop("stopSequences")
	w.B = append(w.B, '}')
}

func (w *writer) tools() {
	called := slices.ContainsFunc(w.Req.Messages, func(m llm.Message) bool { return len(m.ToolCalls) > 0 })
	switch {
	case !w.HasTools():
		w.Drop(len(w.Req.Tools) > 0, "tools")
		return
	case w.Req.ToolChoice == "none" && !called: // the format has no none, and wants the tools only after a call
		return
	}
	w.B = append(body.Key(w.B, tools), `{"tools":[`...)
	for i := range w.Req.Tools {
		t := &w.Req.Tools[i]
		w.B = body.Str(append(body.Open(w.B, '{'), `"toolSpec":{`...), "name", t.Name)
		if t.Description != "" {
			w.B = body.Str(w.B, "description", t.Description)
		}
		schema := []byte(t.Parameters)
		if len(schema) == 0 {
			schema = []byte(`{"type":"object"}`)
		}
		if !body.Valid(schema) {
			w.Err = request.ErrSchema
			return
		}
		w.B = append(body.Raw(append(body.Key(w.B, "inputSchema"), '{'), "json", schema), '}', '}', '}')
	}
	w.B = append(w.B, ']')
	switch choice := w.Req.ToolChoice; {
	case choice == "" || choice == "none":
		w.Drop(choice == "none", "tool_choice")
	case choice == "auto":
		w.B = append(body.Key(w.B, "toolChoice"), `{"auto":{}}`...)
	case w.Can.NoForce:
		w.Drop(true, "tool_choice")
	case choice == "required":
		w.B = append(body.Key(w.B, "toolChoice"), `{"any":{}}`...)
	default:
		w.B = append(body.Str(append(body.Key(w.B, "toolChoice"), `{"tool":{`...), "name", choice), '}', '}')
	}
	w.B = append(w.B, '}')
}

// output writes the effort and the schema of the answer, whose text is a string in this format.
func (w *writer) output() {
	effort, thinks := w.Effort(w.Req.Effort)
	s := w.Req.Schema
	if s != nil && !body.Valid(s.JSON) {
		w.Err = request.ErrSchema
		return
	}
	native := s != nil && !w.Can.NoSchema
	w.Drop(s != nil && !native, "schema")
	if !thinks && !native {
		return
	}
	w.B = body.Open(body.Key(w.B, output), '{')
	if thinks {
		w.B = body.Str(w.B, "effort", effort)
	}
	if native {
		w.B = append(body.Key(w.B, "textFormat"), `{"type":"json_schema","structure":{"jsonSchema":{`...)
		w.B = append(body.Str(body.Str(w.B, "name", body.SchemaName(s.Name)), "schema", string(s.JSON)), `}}}`...)
	}
	w.B = append(w.B, '}')
}

// Requests and answers share the blocks of content.

func appendThought(b []byte, text, signature string) []byte {
	b = append(body.Open(b, '{'), `"reasoningContent":{"reasoningText":{`...)
	return append(body.Str(body.Str(b, "text", text), "signature", signature), `}}}`...)
}

func appendCall(b []byte, c llm.ToolCall) []byte {
	b = append(body.Open(b, '{'), `"toolUse":{`...)
	b = body.Str(body.Str(b, "toolUseId", c.ID), "name", c.Name)
	return append(request.AppendObject(body.Key(b, "input"), c.Arguments, "malformed"), '}', '}')
}
