package anthropic

import (
	"net/url"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// AppendRequest appends the body of req, and returns the names of the parameters that it left out
// because the model refuses them.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	w := writer{Writer: request.Writer{Req: req, Can: c}, max: MaxTokens(req, c)}
	w.Begin(dst)
	return w.rest(dst, stream)
}

// AppendVertexRequest is AppendRequest for Vertex AI, where the model is in the path and the version in the body.
func AppendVertexRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	w := writer{Writer: request.Writer{Req: req, Can: c}, max: MaxTokens(req, c)}
	w.B = body.Str(append(dst, '{'), "anthropic_version", provider.VertexVersion)
	return w.rest(dst, stream)
}

// VertexPath returns the endpoint of a model on Vertex AI, below a provider's base URL.
func VertexPath(model string, stream bool) string {
	if stream {
		return "/models/" + url.PathEscape(model) + ":streamRawPredict"
	}
	return "/models/" + url.PathEscape(model) + ":rawPredict"
}

// rest writes what follows the model.
func (w *writer) rest(dst []byte, stream bool) ([]byte, []string, error) {
	w.B = body.Int(w.B, "max_tokens", int64(w.max))
	w.system()
	w.messages()
	if w.Tools("", "input_schema", "}", false) {
		w.toolChoice()
	}
	w.thinking()
	w.output()
	w.sampling()
	w.Stop("stop_sequences")
	w.Tier()
	if stream {
		w.B = body.Bool(w.B, "stream", true)
	}
	w.CheckFiles("anthropic")
	return w.End(dst, "model", "anthropic_version", "messages", "system", "max_tokens", "stream")
}

// writer appends a request part by part.
type writer struct {
	request.Writer
	max    int
	forced bool   // the model must call a tool
	thinks bool   // thinking is switched on
	effort string // is sent with the schema of the answer
}

func (w *writer) toolChoice() {
	kind, name := "auto", ""
	switch w.Req.ToolChoice {
	case "":
		if !w.Req.OneTool {
			return
		}
	case "auto", "none":
		kind = w.Req.ToolChoice
	case "required":
		kind, w.forced = "any", true
	default:
		kind, name, w.forced = "tool", w.Req.ToolChoice, true
	}
	if w.forced && (w.Can.NoForce || w.Can.Thinking == provider.ThinkingAlways) {
		w.Drop(true, "tool_choice")
		kind, name, w.forced = "auto", "", false
	}
	w.B = body.Str(body.Open(body.Key(w.B, "tool_choice"), '{'), "type", kind)
	if name != "" {
		w.B = body.Str(w.B, "name", name)
	}
	if w.Req.OneTool && kind != "none" {
		w.B = body.Bool(w.B, "disable_parallel_tool_use", true)
	}
	w.B = append(w.B, '}')
}

// thinking switches thinking on or off, in the way of the model's generation. A model that must call
// a tool may not think.
func (w *writer) thinking() {
	e := w.Req.Effort
	if name, ok := w.Can.Effort(e); ok && e != "" && e != llm.EffortNone {
		w.effort = name
	}
	switch w.Can.Thinking {
	case provider.ThinkingAlways:
		if e == llm.EffortNone {
			w.effort, _ = w.Can.Effort(llm.EffortLow)
		}
	case provider.ThinkingDefault:
		if e == llm.EffortNone || w.forced {
			w.B = append(body.Key(w.B, "thinking"), `{"type":"disabled"}`...)
			if w.effort == string(llm.EffortXHigh) || w.effort == string(llm.EffortMax) {
				w.effort = string(llm.EffortHigh) // a higher effort requires thinking
			}
		}
	case provider.ThinkingAdaptive:
		if e != "" && e != llm.EffortNone && !w.forced {
			w.thinks = true
			w.B = append(body.Key(w.B, "thinking"), `{"type":"adaptive"}`...)
		}
	case provider.ThinkingBudget:
		w.budget()
	default:
		w.Drop(e != "" && e != llm.EffortNone && w.effort == "", "effort")
	}
}

// budget sets the number of tokens that an older model may think with: a share of its maximum
// output that grows with the effort.
func (w *writer) budget() {
	share := map[llm.Effort]int{
		llm.EffortMinimal: 8, llm.EffortLow: 8, llm.EffortMedium: 4, llm.EffortHigh: 2, llm.EffortXHigh: 2, llm.EffortMax: 2,
	}[w.Req.Effort]
	if share == 0 {
		return
	}
	n := min(max(w.max/share, 1024), 32_000)
	if w.forced || n >= w.max {
		w.Drop(w.effort == "", "effort")
		return
	}
	w.thinks = true
	w.B = append(body.Key(w.B, "thinking"), `{"type":"enabled"`...)
	w.B = append(body.Int(w.B, "budget_tokens", int64(n)), '}')
}

// output writes the schema of the answer, and the effort.
func (w *writer) output() {
	s := w.Req.Schema
	var schema []byte
	if s != nil {
		if !body.Valid(s.JSON) {
			w.Err = request.ErrSchema
			return
		}
		ok := !w.Can.NoSchema
		if ok {
			schema, ok = body.AppendClosed(make([]byte, 0, len(s.JSON)+64), s.JSON)
		}
		if !ok {
			schema = nil
			w.Drop(true, "schema")
		}
	}
	if w.effort == "" && schema == nil {
		return
	}
	w.B = body.Open(body.Key(w.B, "output_config"), '{')
	if w.effort != "" {
		w.B = body.Str(w.B, "effort", w.effort)
	}
	if schema != nil {
		w.B = append(body.Key(w.B, "format"), `{"type":"json_schema"`...)
		w.B = append(body.Raw(w.B, "schema", schema), '}')
	}
	w.B = append(w.B, '}')
}

// sampling writes the sampling parameters of the format. A model that thinks refuses temperature and
// top_k.
func (w *writer) sampling() {
	r, off := w.Req, w.Can.NoSampling
	w.Float("temperature", r.Temperature, off || w.thinks)
	w.Float("top_p", r.TopP, off || w.thinks && r.TopP != nil && *r.TopP < 0.95)
	w.Int("top_k", r.TopK, off || w.thinks)
	w.Drop(r.FrequencyPenalty != nil, "frequency_penalty")
	w.Drop(r.PresencePenalty != nil, "presence_penalty")
	w.Drop(r.Seed != nil, "seed")
	w.Drop(r.Logprobs, "logprobs")
	w.Drop(r.TokenIDs, "token_ids")
}

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
		w.B = body.Str(body.Str(body.Open(w.B, '{'), "type", "tool_result"), "tool_use_id", request.ToolID(m.ToolCallID))
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
		w.B = appendToolUse(w.B, request.ToolID(c.ID), c.Name, c.Arguments)
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
