package openai

import (
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
