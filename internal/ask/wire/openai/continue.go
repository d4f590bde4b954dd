package openai

import (
	"strconv"

	"parley/internal/ask/wire/body"
)

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

// oldLogprobs are the log probabilities of a text completion.
type oldLogprobs struct {
	Tokens        []string  `json:"tokens"`
	TokenLogprobs []float64 `json:"token_logprobs"`
}

// list returns them as chat completions have them.
func (o *oldLogprobs) list() (all []Logprob) {
	for i, p := range o.TokenLogprobs {
		l := Logprob{Logprob: p}
		if i < len(o.Tokens) {
			l.Token = o.Tokens[i]
		}
		all = append(all, l)
	}
	return all
}

// completed adds what a text completion has.
func (a *Assembler) completed(c *wireChoice) {
	a.text.WriteString(c.Text)
	if c.Logprobs != nil {
		a.r.Logprobs = Logprobs(a.r.Logprobs, c.Logprobs.list())
	}
}
