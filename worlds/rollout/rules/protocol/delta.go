package protocol

import (
	"bytes"
	"fmt"
	"slices"

	"parley/llm"
)

// Delta is a prompt as what is new in it: agent to how many messages of its prompt before
// are still there, and what follows them. A conversation is thus recorded once, not again at
// every step.
type Delta map[string]Change

// Change is the prompt of one agent.
type Change struct {
	Keep int           `json:"keep,omitempty"`
	Add  []llm.Message `json:"add,omitempty"`
}

// Past is the last prompt of each agent.
type Past map[string][]llm.Message

// Delta returns what is new in next, and remembers it.
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

// Apply returns the prompt that d stands for, and remembers it. It shares no memory that
// is written to with the prompts before.
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

// same says whether two messages say the same.
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
