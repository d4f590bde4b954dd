package messages

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
	w := writer{b: append(dst, '{'), req: req, c: c, max: MaxTokens(req, c)}
	w.b = body.Str(w.b, "model", model)
	w.b = body.Int(w.b, "max_tokens", int64(w.max))
	w.system()
	w.messages()
	w.tools()
	w.thinking()
	w.output()
	w.sampling()
	w.rest()
	if stream {
		w.b = body.Bool(w.b, "stream", true)
	}
	if w.err != nil {
		return dst, nil, w.err
	}
	b, err := body.Extra(w.b, req, "model", "messages", "system", "max_tokens", "stream")
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
	max     int
	forced  bool   // a tool must be called
	thinks  bool   // the model was told to think
	effort  string // goes out with the form of the answer
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
		w.b = body.Open(w.b, '{')
		if w.b, w.err = body.Tool(w.b, t, "input_schema"); w.err != nil {
			return
		}
		if t.Strict && body.Strict(t.Parameters) {
			w.b = body.Bool(w.b, "strict", true)
		}
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
	w.toolChoice()
}

func (w *writer) toolChoice() {
	kind, name := "auto", ""
	switch w.req.ToolChoice {
	case "":
		if !w.req.OneTool {
			return
		}
	case "auto", "none":
		kind = w.req.ToolChoice
	case "required":
		kind, w.forced = "any", true
	default:
		kind, name, w.forced = "tool", w.req.ToolChoice, true
	}
	if w.forced && (w.c.NoForce || w.c.Thinking == provider.ThinkingAlways) {
		w.drop(true, "tool_choice")
		kind, name, w.forced = "auto", "", false
	}
	w.b = body.Str(body.Open(body.Key(w.b, "tool_choice"), '{'), "type", kind)
	if name != "" {
		w.b = body.Str(w.b, "name", name)
	}
	if w.req.OneTool && kind != "none" {
		w.b = body.Bool(w.b, "disable_parallel_tool_use", true)
	}
	w.b = append(w.b, '}')
}

// thinking switches thinking on or off, which each generation of models does in a
// way of its own. A model that must call a tool may not think.
func (w *writer) thinking() {
	e := w.req.Effort
	if name, ok := w.c.Effort(e); ok && e != "" && e != llm.EffortNone {
		w.effort = name
	}
	switch w.c.Thinking {
	case provider.ThinkingAlways:
		if e == llm.EffortNone {
			w.effort, _ = w.c.Effort(llm.EffortLow)
		}
	case provider.ThinkingDefault:
		if e == llm.EffortNone || w.forced {
			w.b = append(body.Key(w.b, "thinking"), `{"type":"disabled"}`...)
			if w.effort == string(llm.EffortXHigh) || w.effort == string(llm.EffortMax) {
				w.effort = string(llm.EffortHigh) // above, not thinking is refused
			}
		}
	case provider.ThinkingAdaptive:
		if e != "" && e != llm.EffortNone && !w.forced {
			w.thinks = true
			w.b = append(body.Key(w.b, "thinking"), `{"type":"adaptive"}`...)
		}
	case provider.ThinkingBudget:
		w.budget()
	default:
		w.drop(e != "" && e != llm.EffortNone && w.effort == "", "effort")
	}
}

// budget grants the older models tokens to think with: a share of what they may
// produce that grows with the effort.
func (w *writer) budget() {
	share := map[llm.Effort]int{
		llm.EffortMinimal: 8, llm.EffortLow: 8, llm.EffortMedium: 4, llm.EffortHigh: 2, llm.EffortXHigh: 2, llm.EffortMax: 2,
	}[w.req.Effort]
	if share == 0 {
		return
	}
	n := min(max(w.max/share, 1024), 32_000)
	if w.forced || n >= w.max {
		w.drop(w.effort == "", "effort")
		return
	}
	w.thinks = true
	w.b = append(body.Key(w.b, "thinking"), `{"type":"enabled"`...)
	w.b = append(body.Int(w.b, "budget_tokens", int64(n)), '}')
}

// output says what form the answer is to have, and how much effort to spend on it.
func (w *writer) output() {
	s := w.req.Schema
	var schema []byte
	if s != nil {
		if !body.Valid(s.JSON) {
			w.err = errors.New("the schema is not JSON")
			return
		}
		ok := !w.c.NoSchema
		if ok {
			schema, ok = body.AppendClosed(make([]byte, 0, len(s.JSON)+64), s.JSON)
		}
		if !ok {
			schema = nil
			w.drop(true, "schema")
		}
	}
	if w.effort == "" && schema == nil {
		return
	}
	w.b = body.Open(body.Key(w.b, "output_config"), '{')
	if w.effort != "" {
		w.b = body.Str(w.b, "effort", w.effort)
	}
	if schema != nil {
		w.b = append(body.Key(w.b, "format"), `{"type":"json_schema"`...)
		w.b = append(body.Raw(w.b, "schema", schema), '}')
	}
	w.b = append(w.b, '}')
}

// sampling writes what the format knows of it. A model that thinks refuses
// temperature and top_k.
func (w *writer) sampling() {
	r, off := w.req, w.c.NoSampling
	switch {
	case r.Temperature == nil:
	case off || w.thinks:
		w.drop(true, "temperature")
	default:
		w.b = body.Float(w.b, "temperature", *r.Temperature)
	}
	switch {
	case r.TopP == nil:
	case off || w.thinks && *r.TopP < 0.95:
		w.drop(true, "top_p")
	default:
		w.b = body.Float(w.b, "top_p", *r.TopP)
	}
	switch {
	case r.TopK == nil:
	case off || w.thinks:
		w.drop(true, "top_k")
	default:
		w.b = body.Int(w.b, "top_k", int64(*r.TopK))
	}
	w.drop(r.FrequencyPenalty != nil, "frequency_penalty")
	w.drop(r.PresencePenalty != nil, "presence_penalty")
	w.drop(r.Seed != nil, "seed")
	w.drop(r.Logprobs, "logprobs")
	w.drop(r.TokenIDs, "token_ids")
}

func (w *writer) rest() {
	r := w.req
	if len(r.Stop) > 0 && !w.c.NoStop {
		w.b = body.Strings(w.b, "stop_sequences", r.Stop)
	} else {
		w.drop(len(r.Stop) > 0, "stop")
	}
	if r.Tier != "" {
		w.b = body.Str(w.b, "service_tier", r.Tier)
	}
}
