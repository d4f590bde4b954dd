package trajectory

import (
	"encoding/json"

	"parley/journal"
	"parley/llm"
	"parley/worlds/rollout/rules/protocol"
)

// outside is what the environment of an episode was made with, and what it said about each step.
type outside struct {
	dataset json.RawMessage         // the row of the dataset, or nil
	info    map[int]json.RawMessage // by step
}

// outsideOf reads the acts of a try.
func outsideOf(entries []journal.Entry, attempt, try int) outside {
	o := outside{info: map[int]json.RawMessage{}}
	for _, e := range entries {
		r, ok := e.(*journal.Replied)
		if !ok || r.Act == nil || r.Attempt != attempt || r.Response == nil {
			continue
		}
		switch r.Act.Name {
		case protocol.Open:
			var opening protocol.Opening
			var params struct{ Dataset json.RawMessage }
			if json.Unmarshal(r.Act.Body, &opening) == nil && opening.Try == try && json.Unmarshal(opening.Params, &params) == nil {
				o.dataset = said(params.Dataset)
			}
		case protocol.Step:
			var step protocol.Stepping
			var stepped struct{ Info json.RawMessage }
			if json.Unmarshal(r.Act.Body, &step) == nil && step.Try == try && json.Unmarshal(r.Response.JSON, &stepped) == nil {
				o.info[step.Step] = said(stepped.Info)
			}
		}
	}
	return o
}

// said returns a value, or nil if it says nothing.
func said(raw json.RawMessage) json.RawMessage {
	if text := string(raw); text == "" || text == "null" || text == "{}" {
		return nil
	}
	return raw
}

// sampling returns the parameters that an answer was drawn with, or nil if the request left all to the provider.
func sampling(r *llm.Request) (json.RawMessage, error) {
	b, err := json.Marshal(struct {
		Temperature      *float64   `json:"temperature,omitempty"`
		TopP             *float64   `json:"top_p,omitempty"`
		TopK             *int       `json:"top_k,omitempty"`
		MaxTokens        int        `json:"max_tokens,omitempty"`
		FrequencyPenalty *float64   `json:"frequency_penalty,omitempty"`
		PresencePenalty  *float64   `json:"presence_penalty,omitempty"`
		Seed             *int64     `json:"seed,omitempty"`
		Stop             []string   `json:"stop,omitempty"`
		Effort           llm.Effort `json:"effort,omitempty"`
	}{r.Temperature, r.TopP, r.TopK, r.MaxTokens, r.FrequencyPenalty, r.PresencePenalty, r.Seed, r.Stop, r.Effort})
	return said(b), err
}
