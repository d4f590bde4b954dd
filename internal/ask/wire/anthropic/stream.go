package anthropic

import (
	"encoding/json"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

// NewAssembler returns an Assembler of a stream.
func NewAssembler() *Assembler { return &Assembler{} }

// Each sets a function that is called with every step of the answer.
func (a *Assembler) Each(each func(openai.Delta)) { a.each = each }

// Assembler assembles an answer from its events.
type Assembler struct {
	r       llm.Response
	blocks  []block
	tokens  count
	stop    string
	details *stopDetails
	done    bool               // after message_stop, or if the answer was not streamed
	each    func(openai.Delta) // may be nil
	calls   int                // blocks that are tool calls
}

// maxBlocks bounds the blocks of an answer.
const maxBlocks = 100_000

// block is a content block that is being assembled. piece is what the deltas add.
type block struct {
	wireBlock
	piece     []byte
	signature []byte
	call      int // its number, if it is a tool call
}

type wireEvent struct {
	Type         string       `json:"type"`
	Index        int          `json:"index"`
	Message      *wireMessage `json:"message"`
	ContentBlock *wireBlock   `json:"content_block"`
	Delta        struct {
		Text        string       `json:"text"`
		Thinking    string       `json:"thinking"`
		Signature   string       `json:"signature"`
		PartialJSON string       `json:"partial_json"`
		StopReason  string       `json:"stop_reason"`
		StopDetails *stopDetails `json:"stop_details"`
	} `json:"delta"`
	Usage *wireUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// Event adds an event.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	if string(e.Name) == "ping" {
		return false, nil
	}
	w, err := body.Decode[wireEvent](e.Data)
	if err != nil {
		if e.Done() { // some gateways send it
			return true, nil
		}
		return false, fault.Malformed("an event of the stream is not in the messages format", err)
	}
	if w.Usage != nil {
		a.tokens.add(w.Usage)
	}
	if w.Type == "error" || !body.IsNull(w.Error) {
		return false, fault.Classify(0, nil, e.Data)
	}
	switch w.Type {
	case "message_start":
		if w.Message != nil {
			a.begin(w.Message)
		}
	case "content_block_start":
		if len(a.blocks) == maxBlocks || w.ContentBlock == nil {
			return false, fault.Malformed("a block of the stream has no content, or there are too many blocks", nil)
		}
		a.start(w.ContentBlock)
	case "content_block_delta":
		return false, a.add(w)
	case "message_delta":
		if w.Delta.StopReason != "" {
			a.stop, a.details = w.Delta.StopReason, w.Delta.StopDetails
		}
	case "message_stop":
		a.done = true
		return true, nil
	}
	return false, nil
}

func (a *Assembler) begin(w *wireMessage) {
	a.r.ID, a.r.Model = w.ID, w.Model
	a.tokens.add(&w.Usage)
	a.r.Tier = w.Usage.ServiceTier
}

// start begins a block.
func (a *Assembler) start(b *wireBlock) {
	a.blocks = append(a.blocks, block{wireBlock: *b, call: a.calls})
	d := openai.Delta{Text: b.Text, Thought: b.Thinking}
	if b.Type == "tool_use" {
		d = openai.Delta{Call: a.calls, ID: b.ID, Name: b.Name}
		a.calls++
	}
	if a.each != nil && !d.IsEmpty() {
		a.each(d)
	}
}

// add adds a piece to its block. Blocks are numbered from 0 in their order.
func (a *Assembler) add(w *wireEvent) error {
	if w.Index < 0 || w.Index >= len(a.blocks) {
		return fault.Malformed("a delta of the stream belongs to no block", nil)
	}
	b := &a.blocks[w.Index]
	d := &w.Delta
	b.piece = append(b.piece, d.Text...)
	b.piece = append(b.piece, d.Thinking...)
	b.piece = append(b.piece, d.PartialJSON...)
	b.signature = append(b.signature, d.Signature...)
	if a.each != nil {
		step := openai.Delta{Text: d.Text, Thought: d.Thinking, Signature: d.Signature, Call: b.call, Arguments: d.PartialJSON}
		if !step.IsEmpty() {
			a.each(step)
		}
	}
	return nil
}

// Received returns the number of bytes received.
func (a *Assembler) Received() int {
	n := 0
	for i := range a.blocks {
		b := &a.blocks[i]
		n += len(b.Text) + len(b.Thinking) + len(b.Name) + len(b.piece)
	}
	return n
}

// Response returns the answer, or an error if the stream is incomplete.
func (a *Assembler) Response() (*llm.Response, error) {
	switch {
	case !a.done:
		return nil, fault.Malformed("the stream ended without message_stop: the answer is incomplete", nil)
	case a.stop == "" && len(a.blocks) == 0:
		return nil, fault.Malformed("the answer is empty and has no stop reason", nil)
	}
	r := &a.r
	var text strings.Builder
	for i := range a.blocks {
		b := &a.blocks[i]
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
			text.Write(b.piece)
		case "thinking":
			r.Thoughts = append(r.Thoughts, llm.Thought{Text: b.Thinking + string(b.piece), Signature: b.Signature + string(b.signature)})
		case "redacted_thinking":
			r.Thoughts = append(r.Thoughts, llm.Thought{Opaque: b.Data})
		case "tool_use":
			args := string(b.piece)
			if args == "" {
				args = arguments(b.Input)
			}
			r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: args})
		}
	}
	r.Text = text.String()
	r.Usage = a.tokens.highest
	r.Finish = finishOf(a.stop)
	if r.Finish == llm.FinishRefused {
		r.Refusal = refusal(r.Text, a.details)
	}
	return r, nil
}

// refusal returns the text of a refusal: the provider's explanation, or the model's text.
func refusal(text string, d *stopDetails) string {
	switch {
	case d != nil && d.Explanation != "":
		return d.Explanation
	case text != "":
		return text
	case d != nil && d.Category != "":
		return "refused: " + d.Category
	}
	return "refused"
}
