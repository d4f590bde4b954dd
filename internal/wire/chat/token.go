package chat

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/internal/wire/body"
	"parley/llm"
)

// tokenIDs asks for the exact tokens of prompt and answer, in the words of vLLM or SGLang.
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

// metaInfo says whether token ids come beside the log probabilities, in meta_info: then
// those are asked for too.
func (w *writer) metaInfo() bool { return w.Req.TokenIDs && w.Can.TokenIDs && w.Can.MetaInfo }

// tokens takes the tokens of a choice, or of a chunk of one.
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
		return // the same once more
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

// metaInfo is what SGLang adds to a choice.
type metaInfo struct {
	Tokens        []token `json:"output_token_logprobs"`
	WeightVersion version `json:"weight_version"`
}

// token is written [log probability, id, text].
type token struct {
	logprob float64
	id      int
}

// UnmarshalJSON takes the first two.
func (t *token) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return errors.New("a token without its id")
	}
	if err := json.Unmarshal(parts[0], &t.logprob); err != nil {
		return fmt.Errorf("log probability of a token: %w", err)
	}
	if err := json.Unmarshal(parts[1], &t.id); err != nil {
		return fmt.Errorf("id of a token: %w", err)
	}
	return nil
}

// version is that of a model's weights: a text, or with some trainers a number.
type version string

// UnmarshalJSON takes either form, and leaves anything else alone.
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

// versioned is an object that may say the version of the weights. Servers put what they like
// there.
type versioned struct{ version version }

// UnmarshalJSON leaves alone what is no such object.
func (v *versioned) UnmarshalJSON(b []byte) error {
	var o struct {
		WeightVersion version `json:"weight_version"`
	}
	if json.Unmarshal(b, &o) == nil {
		v.version = o.WeightVersion
	}
	return nil
}
