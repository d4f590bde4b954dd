package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/internal/ask/wire/body"
	"parley/llm"
)

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

// tokens adds the tokens of a choice, or of a chunk of one.
func (a *Assembler) tokens(c *wireChoice) {
	a.r.TokenIDs = append(a.r.TokenIDs, c.TokenIDs...)
	if len(c.PromptIDs) > 0 {
		a.r.PromptTokenIDs = c.PromptIDs
	}
	m := c.MetaInfo
	if m == nil {
		return
	}
	if m.WeightVersion != "" {
		a.r.WeightVersion = string(m.WeightVersion)
	}
	if len(c.TokenIDs) > 0 {
		return // meta_info repeats them
	}
	whole := len(a.r.Logprobs) == len(m.Tokens)
	for i, t := range m.Tokens {
		a.r.TokenIDs = append(a.r.TokenIDs, t.id)
		if whole {
			a.r.Logprobs[i].Logprob = t.logprob
		} else {
			a.r.Logprobs = append(a.r.Logprobs, llm.Logprob{Logprob: t.logprob})
		}
	}
}

// metaInfo is the part of a choice that SGLang adds.
type metaInfo struct {
	Tokens        []token `json:"output_token_logprobs"`
	WeightVersion version `json:"weight_version"`
}

// token is the JSON list [log probability, ID, text].
type token struct {
	logprob float64
	id      int
}

// UnmarshalJSON reads the first two.
func (t *token) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return errors.New("a token has no id")
	}
	if err := json.Unmarshal(parts[0], &t.logprob); err != nil {
		return fmt.Errorf("log probability of a token: %w", err)
	}
	if err := json.Unmarshal(parts[1], &t.id); err != nil {
		return fmt.Errorf("id of a token: %w", err)
	}
	return nil
}

// version is the version of a model's weights: a string, or a number with some trainers.
type version string

// UnmarshalJSON accepts both forms, and ignores anything else.
func (v *version) UnmarshalJSON(b []byte) error {
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(b, &text) == nil:
		*v = version(text)
	case json.Unmarshal(b, &number) == nil:
		*v = version(number)
	}
	return nil
}

// versioned is an object that may have the version of the weights, among anything else.
type versioned struct{ version version }

// UnmarshalJSON ignores a value that is not such an object.
func (v *versioned) UnmarshalJSON(b []byte) error {
	var o struct {
		WeightVersion version `json:"weight_version"`
	}
	if json.Unmarshal(b, &o) == nil {
		v.version = o.WeightVersion
	}
	return nil
}
