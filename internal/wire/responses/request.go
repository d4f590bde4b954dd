package responses

import (
	"errors"

	"parley/internal/dialect/wire/body"
	"parley/internal/provider"
	"parley/llm"
)

// AppendRequest appends the body that asks req, and returns the names of what was
// left out because the format or the model refuses it.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	_, model := llm.SplitModel(req.Model)
	w := writer{b: append(dst, '{'), req: req, c: c}
	w.b = body.Str(w.b, "model", model)
	w.b = body.Bool(w.b, "store", false)
	w.input()
	w.tools()
	w.format()
	w.effort()
	w.sampling()
	w.rest()
	if stream {
		w.b = body.Bool(w.b, "stream", true)
	}
	if w.err != nil {
		return dst, nil, w.err
	}
	b, err := body.Extra(w.b, req, "model", "input", "instructions", "stream", "store")
	if err != nil {
		return dst, nil, err
	}
	return append(b, '}'), w.dropped, nil
}

// writer appends a request part by part.
type writer struct {
	b       []byte
	req     *llm.Request
	c       provider.Capability
	sent    string // the effort that was sent
	dropped []string
	err     error
}

// drop notes a parameter that was asked for and is not sent.
func (w *writer) drop(asked bool, name string) {
	if asked {
		w.dropped = append(w.dropped, name)
	}
}

func (w *writer) tools() {
	r := w.req
	if len(r.Tools) == 0 || w.c.NoTools {
		w.drop(len(r.Tools) > 0, "tools")
		return
	}
	w.b = body.Open(body.Key(w.b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		w.b = body.Str(body.Open(w.b, '{'), "type", "function")
		if w.b, w.err = body.Tool(w.b, t, "parameters"); w.err != nil {
			return
		}
		// Strict is what this format does unless told otherwise.
		w.b = append(body.Bool(w.b, "strict", t.Strict && body.Strict(t.Parameters)), '}')
	}
	w.b = append(w.b, ']')
	w.toolChoice()
	if r.OneTool {
		w.b = body.Bool(w.b, "parallel_tool_calls", false)
	}
}

func (w *writer) toolChoice() {
	choice := w.req.ToolChoice
	if w.c.NoForce && choice != "" && choice != "auto" && choice != "none" {
		w.drop(true, "tool_choice")
		return
	}
	switch choice {
	case "":
	case "auto", "none", "required":
		w.b = body.Str(w.b, "tool_choice", choice)
	default:
		w.b = body.Str(body.Open(body.Key(w.b, "tool_choice"), '{'), "type", "function")
		w.b = append(body.Str(w.b, "name", choice), '}')
	}
}

func (w *writer) format() {
	s := w.req.Schema
	if s == nil {
		return
	}
	if w.c.NoSchema {
		w.drop(true, "schema")
		return
	}
	if !body.Valid(s.JSON) {
		w.err = errors.New("the schema is not JSON")
		return
	}
	w.b = append(body.Key(w.b, "text"), `{"format":{"type":"json_schema"`...)
	w.b = body.Str(w.b, "name", body.SchemaName(s.Name))
	if s.Description != "" {
		w.b = body.Str(w.b, "description", s.Description)
	}
	w.b = body.Raw(w.b, "schema", s.JSON)
	w.b = body.Bool(w.b, "strict", body.Strict(s.JSON))
	w.b = append(w.b, '}', '}')
}

func (w *writer) effort() {
	e := w.req.Effort
	if e == "" {
		return
	}
	name, ok := w.c.Effort(e)
	if !ok {
		w.drop(true, "effort")
		return
	}
	w.sent = name
	w.b = append(body.Str(body.Open(body.Key(w.b, "reasoning"), '{'), "effort", name), '}')
}

func (w *writer) sampling() {
	r := w.req
	off := w.c.NoSampling && !(w.c.SampleAtNone && w.sent == string(llm.EffortNone))
	w.float("temperature", r.Temperature, off)
	w.float("top_p", r.TopP, off)
	w.drop(r.TopK != nil, "top_k")
	w.drop(r.FrequencyPenalty != nil, "frequency_penalty")
	w.drop(r.PresencePenalty != nil, "presence_penalty")
	w.drop(r.Seed != nil, "seed")
	w.drop(len(r.Stop) > 0, "stop")
	w.drop(r.TokenIDs, "token_ids")

	logprobs := r.Logprobs && !(w.c.NoLogprobs && (off || !w.c.SampleAtNone))
	w.drop(r.Logprobs && !logprobs, "logprobs")
	if logprobs {
		w.b = body.Int(w.b, "top_logprobs", int64(r.TopLogprobs))
	}
	w.include(logprobs)
}

// include asks for what does not come by itself. Encrypted reasoning is refused by
// models that do not reason.
func (w *writer) include(logprobs bool) {
	reasons := len(w.c.Efforts) > 0
	if !reasons && !logprobs {
		return
	}
	w.b = body.Open(body.Key(w.b, "include"), '[')
	if reasons {
		w.b = body.String(w.b, "reasoning.encrypted_content")
	}
	if logprobs {
		w.b = body.String(w.b, "message.output_text.logprobs")
	}
	w.b = append(w.b, ']')
}

func (w *writer) float(name string, v *float64, off bool) {
	if off {
		w.drop(v != nil, name)
	} else if v != nil {
		w.b = body.Float(w.b, name, *v)
	}
}

func (w *writer) rest() {
	r := w.req
	if r.MaxTokens > 0 {
		w.b = body.Int(w.b, "max_output_tokens", int64(r.MaxTokens))
	}
	if r.Tier != "" {
		w.b = body.Str(w.b, "service_tier", r.Tier)
	}
	if r.Session != "" && w.c.CacheKey {
		w.b = body.Str(w.b, "prompt_cache_key", r.Session)
	}
}
