// Part recorded reads what a journal has of the answers of an episode: the asks of an attempt, what the environment said,
// conversations as chat messages.
//
// It promises that nothing is changed, except that text is valid UTF-8. It is not for rewards: package trajectory makes rows.

package training

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"parley/journal"
	"parley/llm"
	"parley/worlds/rollout/rules"
)

// Asks returns the asks of an attempt in the order in which the world made them.
func Asks(entries []journal.Entry, attempt int) (asks []*journal.Replied) {
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Attempt == attempt && r.Act == nil {
			asks = append(asks, r)
		}
	}
	slices.SortFunc(asks, func(a, b *journal.Replied) int {
		return cmp.Or(cmp.Compare(a.Turn.Turn, b.Turn.Turn), cmp.Compare(a.Index, b.Index))
	})
	return asks
}

// Outside is what the environment of an episode was made with, and what it said about each step.
type Outside struct {
	Dataset json.RawMessage         // the row of the dataset, or nil
	Info    map[int]json.RawMessage // by step
}

// outsideOf reads the acts of a try.
func outsideOf(entries []journal.Entry, attempt, try int) Outside {
	o := Outside{Info: map[int]json.RawMessage{}}
	for _, e := range entries {
		r, ok := e.(*journal.Replied)
		if !ok || r.Act == nil || r.Attempt != attempt || r.Response == nil {
			continue
		}
		switch r.Act.Name {
		case rules.Open:
			var opening rules.Opening
			var params struct{ Dataset json.RawMessage }
			if json.Unmarshal(r.Act.Body, &opening) == nil && opening.Try == try && json.Unmarshal(opening.Params, &params) == nil {
				o.Dataset = said(params.Dataset)
			}
		case rules.Step:
			var step rules.Stepping
			var stepped struct{ Info json.RawMessage }
			if json.Unmarshal(r.Act.Body, &step) == nil && step.Try == try && json.Unmarshal(r.Response.JSON, &stepped) == nil {
				o.Info[step.Step] = said(stepped.Info)
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

// recordedConversation returns a prompt and its answer as a list of chat messages.
func recordedConversation(prompt []llm.Message, resp *llm.Response) (json.RawMessage, error) {
	said := any(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: resp.Text}}, ToolCalls: resp.ToolCalls})
	if resp.Text == "" && len(resp.ToolCalls) == 0 { // an empty answer has a content too
		said = map[string]string{"role": string(llm.RoleAssistant), "content": ""}
	}
	all := make([]any, 0, len(prompt)+1)
	for _, m := range prompt {
		all = append(all, m)
	}
	return json.Marshal(append(all, said))
}

// thoughts joins the thoughts of a model before its answer.
func thoughts(resp *llm.Response) string {
	var all []string
	for _, t := range resp.Thoughts {
		if t.Text != "" {
			all = append(all, t.Text)
		}
	}
	return valid(strings.Join(all, "\n"))
}

// valid replaces invalid UTF-8 by U+FFFD, which every format can hold.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
