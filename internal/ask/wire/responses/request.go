package responses

import (
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
