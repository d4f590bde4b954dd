package gemini

import (
	"errors"
	"net/http"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// AppendRequest appends the body of req, and returns the names of the parameters that it left out
// because the model refuses them. The model and the choice of a stream are in the path.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, _ bool) ([]byte, []string, error) {
	w := writer{request.Writer{Req: req, Can: c, B: append(dst, '{')}, !body.IsNull(req.Extra["cachedContent"])}
	if w.cached && len(req.Tools) > 0 {
		return dst, nil, errCachedTools
	}
	w.system()
	w.contents()
	w.tools()
	w.config()
	if req.Tier != "" {
		w.B = body.Str(w.B, "serviceTier", req.Tier)
	}
	w.Drop(req.TokenIDs, "token_ids")
	w.Drop(req.OneTool, "one_tool")
	w.CheckFiles("gemini")
	return w.End(dst, "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "serviceTier")
}

// writer appends a request part by part.
type writer struct {
	request.Writer
	cached bool // the request refers to cached content: Gemini refuses system instructions and tools beside it
}

var errCachedTools = errors.New("the request has tools and cached content (cached_content of an agent): Gemini takes tools only from the cache, and Parley cannot see those")

func (w *writer) tools() {
	if !w.HasTools() {
		w.Drop(len(w.Req.Tools) > 0, "tools")
		return
	}
	w.B = append(body.Key(w.B, "tools"), `[{"functionDeclarations":[`...)
	for i := range w.Req.Tools {
		w.B = body.Open(w.B, '{')
		if w.B, w.Err = body.Tool(w.B, &w.Req.Tools[i], "parametersJsonSchema"); w.Err != nil {
			return
		}
		w.B = append(w.B, '}')
	}
	w.B = append(w.B, `]}]`...)
	var mode, name string
	switch choice := w.Req.ToolChoice; {
	case choice == "":
		return
	case choice == "auto" || choice == "none":
		mode = strings.ToUpper(choice)
	case w.Can.NoForce:
		w.Drop(true, "tool_choice")
		return
	case choice == "required":
		mode = "ANY"
	default:
		mode, name = "ANY", choice
	}
	w.B = append(body.Key(w.B, "toolConfig"), `{"functionCallingConfig":{`...)
	w.B = body.Str(w.B, "mode", mode)
	if name != "" {
		w.B = body.Strings(w.B, "allowedFunctionNames", []string{name})
	}
	w.B = append(w.B, '}', '}')
}

// config writes the parameters of the answer.
func (w *writer) config() {
	r, off := w.Req, w.NoSampling()
	w.B = body.Open(body.Key(w.B, "generationConfig"), '{')
	if r.MaxTokens > 0 {
		w.B = body.Int(w.B, "maxOutputTokens", int64(r.MaxTokens))
	}
	w.float("temperature", "temperature", r.Temperature, off)
	w.float("topP", "top_p", r.TopP, off)
	switch {
	case r.TopK != nil && !off:
		w.B = body.Int(w.B, "topK", int64(*r.TopK))
	default:
		w.Drop(r.TopK != nil, "top_k")
	}
	w.float("frequencyPenalty", "frequency_penalty", r.FrequencyPenalty, off || w.Can.NoPenalties)
	w.float("presencePenalty", "presence_penalty", r.PresencePenalty, off || w.Can.NoPenalties)
	if r.Seed != nil && !w.Can.NoSeed && int64(int32(*r.Seed)) == *r.Seed { // the format's seeds are that small
		w.B = body.Int(w.B, "seed", *r.Seed)
	} else {
		w.Drop(r.Seed != nil, "seed")
	}
	w.Stop("stopSequences")
	w.logprobs()
	w.schema()
	w.thinking()
	w.B = append(w.B, '}')
}

// float writes a number under the format's name, or drops it under our own.
func (w *writer) float(key, name string, v *float64, off bool) {
	if off {
		w.Drop(v != nil, name)
		return
	}
	w.Float(key, v, false)
}

func (w *writer) logprobs() {
	switch {
	case !w.Req.Logprobs:
	case w.NoLogprobs():
		w.Drop(true, "logprobs")
	default:
		w.B = body.Bool(w.B, "responseLogprobs", true)
		if n := w.Req.TopLogprobs; n > 0 {
			w.B = body.Int(w.B, "logprobs", int64(n))
		}
	}
}

func (w *writer) schema() {
	s := w.Req.Schema
	switch {
	case s == nil:
	case w.Can.NoSchema:
		w.Drop(true, "schema")
	case !body.Valid(s.JSON):
		w.Err = request.ErrSchema
	default:
		w.B = body.Raw(body.Str(w.B, "responseMimeType", "application/json"), "responseJsonSchema", s.JSON)
	}
}

// budgets are the tokens that models of the generation 2.5 think with at an effort, as Gemini's own endpoint for
// OpenAI's format has them.
func budgets(effort string) int64 {
	switch llm.Effort(effort) {
	case llm.EffortNone:
		return 0
	case llm.EffortMinimal, llm.EffortLow:
		return 1024
	case llm.EffortMedium:
		return 8192
	}
	return 24_576
}

// thinking says how long to think, and asks for the thoughts.
func (w *writer) thinking() {
	effort, ok := w.Effort(w.Req.Effort)
	if !ok {
		return
	}
	w.B = body.Open(body.Key(w.B, "thinkingConfig"), '{')
	if w.Can.Thinking == provider.ThinkingBudget {
		w.B = body.Int(w.B, "thinkingBudget", budgets(effort))
	} else {
		w.B = body.Str(w.B, "thinkingLevel", strings.ToUpper(effort))
	}
	if effort != string(llm.EffortNone) {
		w.B = body.Bool(w.B, "includeThoughts", true)
	}
	w.B = append(w.B, '}')
}

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
	sign := request.Signature(m, textID)
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
		w.sign(request.Signature(m, c.ID))
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

// TierHeader is the header that names the service tier on Vertex AI, which refuses a serviceTier in the body. From Google's
// pages "Flex PayGo" and "Priority PayGo" (docs.cloud.google.com), read in November 2026.
const TierHeader = "X-Vertex-Ai-Llm-Shared-Request-Type"

// AppendVertexRequest is AppendRequest for Vertex AI, where the tier is in a header.
func AppendVertexRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	if req.Tier != "" {
		plain := *req
		plain.Tier, req = "", &plain
	}
	return AppendRequest(dst, req, c, stream)
}

// VertexHeader returns the header of a request to Vertex AI. The standard tier has none, whatever vendor's name for it a
// client of the gateway uses.
func VertexHeader(req *llm.Request) http.Header {
	switch req.Tier {
	case "", standard, "auto", "default", "standard_only":
		return nil
	}
	return http.Header{TierHeader: {req.Tier}}
}

const standard = "standard"

// Traffic returns Vertex AI's name of a service tier, for its answers.
func Traffic(tier string) string {
	switch tier {
	case "flex":
		return "ON_DEMAND_FLEX"
	case "priority":
		return "ON_DEMAND_PRIORITY"
	}
	return "ON_DEMAND"
}

// tier returns the service tier that an answer names. What Vertex AI has beyond these is charged as the standard tier.
func (u *wireUsage) tier() string {
	switch {
	case u.Tier != "":
		return u.Tier
	case u.Traffic == "":
		return ""
	}
	for _, tier := range []string{"flex", "priority"} {
		if u.Traffic == Traffic(tier) {
			return tier
		}
	}
	return standard
}
