package chat

import (
	"errors"

	"parley/internal/dialect/wire/body"
	"parley/internal/provider"
	"parley/llm"
)

// AppendRequest appends the body that asks req, and returns the names of what was
// left out because the model refuses it.
func AppendRequest(dst []byte, req *llm.Request, c provider.Capability, stream bool) ([]byte, []string, error) {
	_, model := llm.SplitModel(req.Model)
	w := writer{b: append(dst, '{'), req: req, c: c}
	w.b = body.Str(w.b, "model", model)
	w.messages()
	w.tools()
	w.schema()
	w.effort()
	w.sampling()
	w.rest()
	if stream {
		w.b = body.Bool(w.b, "stream", true)
		if !c.NoStreamOptions {
			w.b = append(w.b, `,"stream_options":{"include_usage":true}`...)
		}
	}
	if w.err != nil {
		return dst, nil, w.err
	}
	b, err := body.Extra(w.b, req, "model", "messages", "stream")
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

func (w *writer) hasTools() bool { return len(w.req.Tools) > 0 && !w.c.NoTools }

func (w *writer) tools() {
	r := w.req
	if !w.hasTools() {
		w.drop(len(r.Tools) > 0, "tools")
		return
	}
	w.b = body.Open(body.Key(w.b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		w.b = append(body.Open(w.b, '{'), `"type":"function","function":{`...)
		if w.b, w.err = body.Tool(w.b, t, "parameters"); w.err != nil {
			return
		}
		if t.Strict && body.Strict(t.Parameters) {
			w.b = body.Bool(w.b, "strict", true)
		}
		w.b = append(w.b, '}', '}')
	}
	w.b = append(w.b, ']')
	w.toolChoice()
	if r.OneTool {
		w.b = body.Bool(w.b, "parallel_tool_calls", false)
	}
}

func (w *writer) toolChoice() {
	switch choice := w.req.ToolChoice; choice {
	case "":
	case "auto", "none":
		w.b = body.Str(w.b, "tool_choice", choice)
	case "required":
		if w.c.NoForce {
			w.drop(true, "tool_choice")
			return
		}
		w.b = body.Str(w.b, "tool_choice", choice)
	default:
		if w.c.NoForce {
			w.drop(true, "tool_choice")
			return
		}
		w.b = append(body.Key(w.b, "tool_choice"), `{"type":"function","function":{`...)
		w.b = append(body.Str(w.b, "name", choice), '}', '}')
	}
}

func (w *writer) schema() {
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
	w.b = append(body.Key(w.b, "response_format"), `{"type":"json_schema","json_schema":{`...)
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
	if w.hasTools() && w.c.NoToolEffort {
		w.drop(e != "" && e != llm.EffortNone, "effort")
		e = llm.EffortNone
	}
	if e == "" {
		return
	}
	name, ok := w.c.Effort(e)
	if !ok {
		w.drop(true, "effort")
		return
	}
	w.sent = name
	w.b = body.Str(w.b, "reasoning_effort", name)
}

func (w *writer) sampling() {
	r := w.req
	off := w.c.NoSampling && !(w.c.SampleAtNone && w.sent == string(llm.EffortNone))
	w.float("temperature", r.Temperature, off)
	w.float("top_p", r.TopP, off)
	w.float("frequency_penalty", r.FrequencyPenalty, off || w.c.NoPenalties)
	w.float("presence_penalty", r.PresencePenalty, off || w.c.NoPenalties)
	if r.TopK != nil && !off && w.c.TopK {
		w.b = body.Int(w.b, "top_k", int64(*r.TopK))
	} else {
		w.drop(r.TopK != nil, "top_k")
	}
	switch {
	case !r.Logprobs && !w.metaInfo():
	case w.c.NoLogprobs && (off || !w.c.SampleAtNone):
		w.drop(true, "logprobs")
	default:
		w.b = body.Bool(w.b, "logprobs", true)
		if r.TopLogprobs > 0 {
			w.b = body.Int(w.b, "top_logprobs", int64(r.TopLogprobs))
		}
	}
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
		name := "max_completion_tokens"
		if w.c.OldMaxField {
			name = "max_tokens"
		}
		w.b = body.Int(w.b, name, int64(r.MaxTokens))
	}
	if len(r.Stop) > 0 && !w.c.NoStop {
		w.b = body.Strings(w.b, "stop", r.Stop)
	} else {
		w.drop(len(r.Stop) > 0, "stop")
	}
	if r.Seed != nil && !w.c.NoSeed {
		name := w.c.SeedField
		if name == "" {
			name = "seed"
		}
		w.b = body.Int(w.b, name, *r.Seed)
	} else {
		w.drop(r.Seed != nil, "seed")
	}
	w.tokenIDs()
	if r.Tier != "" {
		w.b = body.Str(w.b, "service_tier", r.Tier)
	}
	if r.Session != "" && w.c.CacheKey {
		w.b = body.Str(w.b, "prompt_cache_key", r.Session)
	}
}
