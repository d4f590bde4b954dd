package openai

import (
	"strconv"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// AppendRequest appends the body of req, and returns the names of the parameters that it left out
// because the model refuses them.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	w := writer{request.Writer{Req: req, Can: c}}
	w.Begin(dst)
	if req.Begun != nil {
		return w.continued(dst)
	}
	w.messages()
	if w.Tools(`"type":"function","function":{`, "parameters", "}}", false) {
		w.ToolChoice(`{"type":"function","function":{`, "}}")
	}
	w.Schema("response_format", `{"type":"json_schema","json_schema":{`, "}}")
	w.reasoning()
	w.sampling()
	w.rest()
	if stream {
		w.B = body.Bool(w.B, "stream", true)
		if !c.NoStreamOptions {
			w.B = append(w.B, `,"stream_options":{"include_usage":true}`...)
		}
	}
	w.CheckFiles("openai")
	return w.End(dst, "model", "messages", "stream")
}

// writer appends a request part by part.
type writer struct{ request.Writer }

func (w *writer) reasoning() {
	e := w.Req.Effort
	if w.HasTools() && w.Can.NoToolEffort {
		w.Drop(e != "" && e != llm.EffortNone, "effort")
		e = llm.EffortNone
	}
	if name, ok := w.Effort(e); ok {
		w.B = body.Str(w.B, "reasoning_effort", name)
	}
}

func (w *writer) sampling() {
	r, off := w.Req, w.NoSampling()
	w.Float("temperature", r.Temperature, off)
	w.Float("top_p", r.TopP, off)
	w.Float("frequency_penalty", r.FrequencyPenalty, off || w.Can.NoPenalties)
	w.Float("presence_penalty", r.PresencePenalty, off || w.Can.NoPenalties)
	w.Int("top_k", r.TopK, off || !w.Can.TopK)
	switch {
	case !r.Logprobs && !w.metaInfo():
	case w.NoLogprobs():
		w.Drop(true, "logprobs")
	default:
		w.B = body.Bool(w.B, "logprobs", true)
		if r.TopLogprobs > 0 {
			w.B = body.Int(w.B, "top_logprobs", int64(r.TopLogprobs))
		}
	}
}

func (w *writer) rest() {
	r := w.Req
	if r.MaxTokens > 0 {
		name := "max_completion_tokens"
		if w.Can.UseMaxTokens {
			name = "max_tokens"
		}
		w.B = body.Int(w.B, name, int64(r.MaxTokens))
	}
	w.Stop("stop")
	if r.Seed != nil && !w.Can.NoSeed {
		name := w.Can.SeedField
		if name == "" {
			name = "seed"
		}
		w.B = body.Int(w.B, name, *r.Seed)
	} else {
		w.Drop(r.Seed != nil, "seed")
	}
	w.tokenIDs()
	w.Account()
}

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
		w.B = body.Str(w.B, "tool_call_id", m.ToolCallID)
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

func (w *writer) toolCalls(m *llm.Message) {
	w.B = body.Open(body.Key(w.B, "tool_calls"), '[')
	for _, c := range m.ToolCalls {
		w.B = body.Str(body.Open(w.B, '{'), "id", c.ID)
		w.B = append(w.B, `,"type":"function","function":{`...)
		w.B = body.Str(body.Str(w.B, "name", c.Name), "arguments", c.Arguments)
		w.B = append(w.B, '}')
		// Gemini refuses a tool call without its signature.
		if s := request.Signature(m, c.ID); s != "" {
			w.B = append(w.B, `,"extra_content":{"google":{`...)
			w.B = append(body.Str(w.B, "thought_signature", s), '}', '}')
		}
		w.B = append(w.B, '}')
	}
	w.B = append(w.B, ']')
}

// ContinuePath is the endpoint, below a provider's base URL, that continues an answer: text completions, which take a prompt
// as token ids (vLLM).
const ContinuePath = "/completions"

// continued writes a request that continues the answer in Begun, token by token.
func (w *writer) continued(dst []byte) ([]byte, []string, error) {
	begun := w.Req.Begun
	w.B = body.Key(w.B, "prompt")
	w.B = append(w.B, '[')
	for i, ids := range [][]int{begun.PromptTokenIDs, begun.TokenIDs} {
		for j, id := range ids {
			if i+j > 0 {
				w.B = append(w.B, ',')
			}
			w.B = strconv.AppendInt(w.B, int64(id), 10)
		}
	}
	w.B = append(w.B, ']')
	w.B = body.Int(w.B, "max_tokens", int64(w.Req.MaxTokens-len(begun.TokenIDs)))
	off := w.NoSampling()
	w.Float("temperature", w.Req.Temperature, off)
	w.Float("top_p", w.Req.TopP, off)
	w.Int("top_k", w.Req.TopK, off || !w.Can.TopK)
	if w.Req.Logprobs {
		w.B = body.Int(w.B, "logprobs", 1) // of the token itself, and of the likeliest
	}
	w.B = body.Bool(w.B, "return_token_ids", true)
	return w.End(dst, "model", "prompt")
}

// tokenIDs requests the tokens of prompt and answer, as vLLM or SGLang want it.
func (w *writer) tokenIDs() {
	switch {
	case w.metaInfo():
		w.B = body.Bool(w.B, "return_prompt_token_ids", true)
		w.B = body.Bool(w.B, "return_meta_info", true)
	case w.Req.TokenIDs && w.Can.TokenIDs:
		w.B = body.Bool(w.B, "return_token_ids", true)
	default:
		w.Drop(w.Req.TokenIDs, "token_ids")
	}
}

// metaInfo reports whether the server sends token IDs in meta_info, together with log
// probabilities. Then log probabilities are requested too.
func (w *writer) metaInfo() bool { return w.Req.TokenIDs && w.Can.TokenIDs && w.Can.SGLangTokenIDs }
