package rules

import (
	"bytes"
	"fmt"
	"slices"

	"parley/llm"
)

// Delta is the changes of a prompt by agent, so that a conversation is recorded once and not again at every
// step.
type Delta map[string]ProtocolChange

// ProtocolChange is the question to one agent: how many messages of its last one stay, and what follows them.
type ProtocolChange struct {
	Keep int           `json:"keep,omitempty"`
	Add  []llm.Message `json:"add,omitempty"`
	// Tools are the tools from now on. Nil: as before.
	Tools *ProtocolTools `json:"tools,omitempty"`
}

// Past is the last question to each agent.
type Past map[string]Question

// Delta returns the changes in next, and remembers it.
func (p Past) Delta(next Prompt) Delta {
	d := Delta{}
	for agent, q := range next {
		was, keep := p[agent], 0
		for keep < len(was.Messages) && keep < len(q.Messages) && same(&was.Messages[keep], &q.Messages[keep]) {
			keep++
		}
		c := ProtocolChange{Keep: keep, Add: q.Messages[keep:]}
		if !slices.EqualFunc(was.Tools, q.Tools, sameTool) {
			c.Tools = &q.Tools
		}
		d[agent], p[agent] = c, q
	}
	return d
}

// Apply returns the prompt that d describes, and remembers it. Prompts do not share memory that is written to.
func (p Past) Apply(d Delta) (Prompt, error) {
	next := Prompt{}
	for agent, c := range d {
		q := p[agent]
		if c.Keep < 0 || c.Keep > len(q.Messages) {
			return nil, fmt.Errorf("prompt of %.40q: keeps %d messages of %d", agent, c.Keep, len(q.Messages))
		}
		q.Messages = append(slices.Clip(q.Messages[:c.Keep]), c.Add...)
		if c.Tools != nil {
			q.Tools = append(ProtocolTools(nil), *c.Tools...)
		}
		next.add(agent, q)
		p[agent] = q
	}
	return next, nil
}

func sameTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && bytes.Equal(a.Parameters, b.Parameters)
}

// same reports whether two messages are equal.
func same(a, b *llm.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolFailed == b.ToolFailed &&
		slices.Equal(a.ToolCalls, b.ToolCalls) && slices.Equal(a.Thoughts, b.Thoughts) && slices.EqualFunc(a.Parts, b.Parts, samePart)
}

func samePart(a, b llm.Part) bool {
	if x, y := a.File, b.File; x != nil && y != nil {
		return x.Name == y.Name && x.URL == y.URL && x.MediaType == y.MediaType && bytes.Equal(x.Data, y.Data)
	}
	if a.Image == nil || b.Image == nil {
		return a == b
	}
	x, y := a.Image, b.Image
	return a.Text == b.Text && x.URL == y.URL && x.MediaType == y.MediaType && x.Detail == y.Detail && bytes.Equal(x.Data, y.Data)
}
