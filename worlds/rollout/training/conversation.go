// Part conversation makes the records of trainers that read conversations: whole ones, the best and the worst of a
// group, and first prompts.
//
// It promises that a group and an agent give one record, or a reason why there is none.
//
// It is not for tokens: package trajectory has sequences.

package training

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"parley/worlds/rollout/rules"
)

// conversationPart is a conversation of one agent: a part of an episode.
type conversationPart struct {
	Seat, Env string
	Messages  json.RawMessage // a list, which begins with Prompt messages that were asked first
	Tools     json.RawMessage // a list in OpenAI's form, or empty
	Prompt    int
	Return    float64 // of the agent, in the whole episode
}

// Reasons why there is no record.
const (
	LeftParts   = "several parts"     // no episode, or only one for a pair, is a single conversation
	leftEqual   = "equal reward"      // the best episode is no better than the worst
	LeftPrompts = "different prompts" // the best and the worst episode do not answer the same
	LeftSingle  = "one episode"       // there is nothing to compare it with
)

// conversationGroup is the parts of each episode of a group.
type conversationGroup [][]conversationPart

// single returns the only part of each episode, by seat, and how many episodes a seat has parts in. Episodes with several
// parts have no only one.
func (g conversationGroup) single() (of map[string][]*conversationPart, episodes map[string]int) {
	of, episodes = map[string][]*conversationPart{}, map[string]int{}
	for _, parts := range g {
		by := map[string][]*conversationPart{}
		for i := range parts {
			by[parts[i].Seat] = append(by[parts[i].Seat], &parts[i])
		}
		for seat, all := range by {
			if episodes[seat]++; len(all) == 1 {
				of[seat] = append(of[seat], all[0])
			}
		}
	}
	return of, episodes
}

// Pairs returns the best and the worst episode of each seat, for TRL. It calls left with the reason if a seat has no pair.
func (g conversationGroup) Pairs(left func(why string)) (all []any, err error) {
	of, episodes := g.single()
	for _, seat := range slices.Sorted(maps.Keys(episodes)) {
		record, why, err := pair(of[seat], episodes[seat])
		switch {
		case err != nil:
			return nil, err
		case why != "":
			left(why)
		default:
			all = append(all, record)
		}
	}
	return all, nil
}

// pair returns the best and the worst of the parts of a seat, or why there is no pair.
func pair(of []*conversationPart, episodes int) (record map[string]any, why string, err error) {
	switch {
	case episodes < 2:
		return nil, LeftSingle, nil
	case len(of) < 2:
		return nil, LeftParts, nil
	}
	best, worst := slices.MaxFunc(of, byReturn), slices.MinFunc(of, byReturn)
	if best.Return == worst.Return {
		return nil, leftEqual, nil
	}
	prompt, chosen, err := best.split()
	if err != nil {
		return nil, "", err
	}
	same, rejected, err := worst.split()
	if err != nil {
		return nil, "", err
	}
	if string(prompt) != string(same) {
		return nil, LeftPrompts, nil
	}
	record, err = best.record(false, map[string]json.RawMessage{"prompt": prompt, "chosen": chosen, "rejected": rejected})
	return record, "", err
}

func byReturn(a, b *conversationPart) int { return cmp.Compare(a.Return, b.Return) }

// Prompts returns the first prompt of each seat, with what names the task, for TRL. It calls left with the reason if a seat
// has none.
func (g conversationGroup) Prompts(id string, left func(why string)) (all []any, err error) {
	of, episodes := g.single()
	for _, seat := range slices.Sorted(maps.Keys(episodes)) {
		if len(of[seat]) == 0 {
			left(LeftParts)
			continue
		}
		first := of[seat][0]
		prompt, _, err := first.split()
		if err != nil {
			return nil, err
		}
		record, err := first.record(false, map[string]json.RawMessage{"prompt": prompt})
		if err != nil {
			return nil, err
		}
		record["group"], record["env"], record["agent"] = id, first.Env, seat
		all = append(all, record)
	}
	return all, nil
}

// Whole returns every part, for OpenAI or for TRL.
func (g conversationGroup) Whole(openAI bool) (all []any, err error) {
	for _, parts := range g {
		for i := range parts {
			record, err := parts[i].record(openAI, map[string]json.RawMessage{"messages": parts[i].Messages})
			if err != nil {
				return nil, err
			}
			all = append(all, record)
		}
	}
	return all, nil
}

// split returns the messages of the first prompt, and those after it.
func (p *conversationPart) split() (prompt, rest json.RawMessage, err error) {
	var all []json.RawMessage
	if err := json.Unmarshal(p.Messages, &all); err != nil {
		return nil, nil, err
	}
	if prompt, err = json.Marshal(all[:p.Prompt]); err != nil {
		return nil, nil, err
	}
	rest, err = json.Marshal(all[p.Prompt:])
	return prompt, rest, err
}

// record returns a record of conversations by name, and the tools, as another program reads them. OpenAI has a list of tools.
// TRL has them as JSON in a text, because a table would give each tool the parameters of all others.
func (p *conversationPart) record(openAI bool, conversations map[string]json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	for name, raw := range conversations {
		ms, err := conventional(raw, !openAI)
		if err != nil {
			return nil, err
		}
		out[name] = ms
	}
	switch {
	case len(p.Tools) == 0:
	case openAI:
		out["tools"] = p.Tools
	default:
		out["tools"] = string(p.Tools)
	}
	return out, nil
}

// conventional returns messages without what only Parley has. For a chat template, as TRL uses, the arguments of calls are objects, as chat templates
// want them, and every message has a content.
func conventional(raw json.RawMessage, template bool) (any, error) {
	if !bytes.Contains(raw, []byte(`"tool`)) && !bytes.Contains(raw, []byte(`"thoughts"`)) {
		return raw, nil
	}
	var ms []struct {
		Role       string     `json:"role"`
		Content    any        `json:"content,omitempty"`
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	if err := json.Unmarshal(raw, &ms); err != nil {
		return nil, err
	}
	for i := range ms {
		if !template {
			continue
		}
		if ms[i].Content == nil {
			ms[i].Content = ""
		}
		for k := range ms[i].ToolCalls {
			ms[i].ToolCalls[k].parse()
		}
	}
	return ms, nil
}

// wireCall is a call of a tool in a message.
type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a text
	} `json:"function"`
}

// parse makes an object of the arguments, unless they are something else.
func (c *wireCall) parse() {
	var text string
	if json.Unmarshal(c.Function.Arguments, &text) == nil && rules.IsObject(json.RawMessage(text)) {
		c.Function.Arguments = json.RawMessage(text)
	}
}
