package protocol

import (
	"bytes"
	"fmt"
	"slices"

	"parley/llm"
)

// Delta is the changes of a prompt by agent, so that a conversation is recorded once and not again at every
// step.
type Delta map[string]Change

// Change is the prompt of one agent: how many messages of its last prompt stay, and what follows them.
type Change struct {
	Keep int           `json:"keep,omitempty"`
	Add  []llm.Message `json:"add,omitempty"`
}

// Past is the last prompt of each agent.
type Past map[string][]llm.Message

// Delta returns the changes in next, and remembers it.
func (p Past) Delta(next Prompt) Delta {
	d := Delta{}
	for agent, ms := range next {
		was, keep := p[agent], 0
		for keep < len(was) && keep < len(ms) && same(&was[keep], &ms[keep]) {
			keep++
		}
		d[agent] = Change{Keep: keep, Add: ms[keep:]}
		p[agent] = ms
	}
	return d
}

// Apply returns the prompt that d describes, and remembers it. Prompts do not share memory that is written to.
func (p Past) Apply(d Delta) (Prompt, error) {
	next := Prompt{}
	for agent, c := range d {
		was := p[agent]
		if c.Keep < 0 || c.Keep > len(was) {
			return nil, fmt.Errorf("prompt of %.40q: keeps %d messages of %d", agent, c.Keep, len(was))
		}
		ms := append(slices.Clip(was[:c.Keep]), c.Add...)
		next.add(agent, ms)
		p[agent] = ms
	}
	return next, nil
}

// same reports whether two messages are equal.
func same(a, b *llm.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolFailed == b.ToolFailed &&
		slices.Equal(a.ToolCalls, b.ToolCalls) && slices.Equal(a.Thoughts, b.Thoughts) && slices.EqualFunc(a.Parts, b.Parts, samePart)
}

func samePart(a, b llm.Part) bool {
	if a.Image == nil || b.Image == nil {
		return a == b
	}
	x, y := a.Image, b.Image
	return a.Text == b.Text && x.URL == y.URL && x.MediaType == y.MediaType && x.Detail == y.Detail && bytes.Equal(x.Data, y.Data)
}
