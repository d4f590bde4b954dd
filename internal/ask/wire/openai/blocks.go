package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// MaxBlocks bounds the blocks of an answer.
const MaxBlocks = 100_000

// Steps passes on the steps of an answer that is being assembled.
type Steps struct{ each func(Delta) }

// Each sets a function that is called with every step of the answer.
func (s *Steps) Each(each func(Delta)) { s.each = each }

// Step passes on a step, unless it adds nothing.
func (s *Steps) Step(d Delta) {
	if s.each != nil && !d.IsEmpty() {
		s.each(d)
	}
}

// Blocks assembles the content of an answer in formats that number its blocks: texts, thoughts and tool calls.
type Blocks struct {
	Steps
	list  []Block
	calls int
}

// BlockKind is what a block is.
type BlockKind int

// The kinds. A block of another kind is no part of an answer.
const (
	OtherBlock BlockKind = iota
	TextBlock
	ThoughtBlock
	CallBlock
)

// Block is a block as it begins.
type Block struct {
	Kind              BlockKind
	ID, Name          string // of a tool call
	Text              string // of a text or a thought; or the arguments of a tool call, if nothing follows
	Signature, Opaque string // of a thought

	call                    int    // its number, if it is a tool call
	text, signature, opaque []byte // what followed
}

// Len returns the number of blocks.
func (c *Blocks) Len() int { return len(c.list) }

// Begin adds a block.
func (c *Blocks) Begin(b Block) error {
	if len(c.list) == MaxBlocks {
		return fault.Malformed("the answer has too many blocks", nil)
	}
	var d Delta
	switch b.call = c.calls; b.Kind {
	case CallBlock:
		c.calls++
		d = Delta{Call: b.call, ID: b.ID, Name: b.Name}
	case TextBlock:
		d.Text = b.Text
	case ThoughtBlock:
		d.Thought = b.Text
	}
	c.list = append(c.list, b)
	c.Step(d)
	return nil
}

// Think makes block n, which began as a text, a thought. Some formats say what a block is only with its first part.
func (c *Blocks) Think(n int) {
	if n >= 0 && n < len(c.list) && c.list[n].Kind == TextBlock {
		c.list[n].Kind = ThoughtBlock
	}
}

// Add adds a step to block n, which may have an opaque part too.
func (c *Blocks) Add(n int, d Delta, opaque string) error {
	if n < 0 || n >= len(c.list) {
		return fault.Malformed("a part of the stream belongs to no block", nil)
	}
	b := &c.list[n]
	b.text = append(append(append(b.text, d.Text...), d.Thought...), d.Arguments...)
	b.signature, b.opaque = append(b.signature, d.Signature...), append(b.opaque, opaque...)
	if d.Call = b.call; b.Kind != OtherBlock {
		c.Step(d)
	}
	return nil
}

// Decode adds the blocks of a whole answer: a list, which must not be decoded at once, since each element takes far more memory than its
// text. read reads one, and where says what the list belongs to.
func (c *Blocks) Decode(list json.RawMessage, where string, read func(raw []byte) (Block, error)) (failed error) {
	if body.IsNull(list) {
		return nil
	}
	whole := body.Elements(list, func(raw []byte) bool {
		b, err := read(raw)
		if err != nil {
			failed = fault.Malformed("the content of the answer is not "+where, err)
		} else {
			failed = c.Begin(b)
		}
		return failed == nil
	})
	if failed == nil && !whole {
		failed = fault.Malformed("the content of the answer is not "+where, nil)
	}
	return failed
}

// Received returns the number of bytes received.
func (c *Blocks) Received() int {
	n := 0
	for i := range c.list {
		b := &c.list[i]
		n += len(b.Name) + len(b.text)
		if b.Kind != CallBlock {
			n += len(b.Text)
		}
	}
	return n
}

// Fill adds the content to an answer.
func (c *Blocks) Fill(r *llm.Response) {
	var text strings.Builder
	for i := range c.list {
		switch b := &c.list[i]; b.Kind {
		case TextBlock:
			text.WriteString(b.Text)
			text.Write(b.text)
		case ThoughtBlock:
			r.Thoughts = append(r.Thoughts, llm.Thought{
				Text: b.Text + string(b.text), Signature: b.Signature + string(b.signature), Opaque: b.Opaque + string(b.opaque),
			})
		case CallBlock:
			args := cmp.Or(string(b.text), b.Text, "{}")
			r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: args})
		}
	}
	r.Text = text.String()
}
