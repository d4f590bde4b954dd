package bedrock

import (
	"encoding/json"
	"errors"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

var errImageURL = errors.New("an image with an address: Bedrock wants its bytes")

// wireResponse is a whole answer.
type wireResponse struct {
	Output struct {
		Message struct {
			Content json.RawMessage `json:"content"` // a list of wireBlock, which must not be decoded at once: see maxBlocks
		} `json:"message"`
	} `json:"output"`
	Stop  string     `json:"stopReason"`
	Usage *wireUsage `json:"usage"`
	Tier  wireTier   `json:"serviceTier"`
}

type wireTier struct {
	Type string `json:"type"`
}

type wireBlock struct {
	Text      string `json:"text"`
	Reasoning *struct {
		Text struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
		Redacted string `json:"redactedContent"`
	} `json:"reasoningContent"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
}

type wireUsage struct {
	Input  int `json:"inputTokens"`
	Output int `json:"outputTokens"`
	Read   int `json:"cacheReadInputTokens"`
	Write  int `json:"cacheWriteInputTokens"`
}

// usage returns the counts as llm.Usage has them. The format's input does not include what the cache read or wrote.
func (u *wireUsage) usage() llm.Usage {
	if least := min(u.Input, u.Output, u.Read, u.Write); least < 0 {
		return llm.Usage{Input: least}
	}
	return llm.Usage{Input: llm.AddTokens(u.Input, llm.AddTokens(u.Read, u.Write)), Cached: u.Read, CacheWrite: u.Write, Output: u.Output}
}

// wireEvent is the payload of any event.
type wireEvent struct {
	Index int `json:"contentBlockIndex"`
	Start struct {
		ToolUse *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text    string `json:"text"`
		ToolUse *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
			Redacted  string `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	Stop  string     `json:"stopReason"`
	Usage *wireUsage `json:"usage"`
	Tier  wireTier   `json:"serviceTier"`
}

// DecodeResponse reads a whole answer.
func DecodeResponse(b []byte) (*llm.Response, error) {
	var w wireResponse
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fault.Malformed("the answer is not one of Converse", err)
	}
	a := Assembler{stop: w.Stop, done: true}
	if err := a.decode(w.Output.Message.Content); err != nil {
		return nil, err
	}
	if w.Usage != nil {
		a.r.Usage = w.Usage.usage()
	}
	a.r.Tier = w.Tier.Type
	return a.Response()
}

// decode adds the blocks of a whole answer.
func (a *Assembler) decode(content json.RawMessage) error {
	if body.IsNull(content) {
		return nil
	}
	var failed error
	whole := body.Elements(content, func(raw []byte) bool {
		var c wireBlock
		if failed = json.Unmarshal(raw, &c); failed != nil || len(a.blocks) == maxBlocks {
			return false
		}
		a.blocks = append(a.blocks, c.block())
		return true
	})
	switch {
	case failed != nil || !whole && len(a.blocks) < maxBlocks:
		return fault.Malformed("the content of the answer is not that of Converse", failed)
	case !whole:
		return fault.Malformed("the answer has too many blocks", nil)
	}
	return nil
}

func (c *wireBlock) block() block {
	switch {
	case c.ToolUse != nil:
		one := block{kind: kindCall, id: c.ToolUse.ID, name: c.ToolUse.Name}
		if !body.IsNull(c.ToolUse.Input) {
			one.text = c.ToolUse.Input
		}
		return one
	case c.Reasoning != nil:
		t := &c.Reasoning.Text
		return block{kind: kindThought, text: []byte(t.Text), signature: []byte(t.Signature), opaque: []byte(c.Reasoning.Redacted)}
	}
	return block{kind: kindText, text: []byte(c.Text)}
}

// NewAssembler returns an Assembler of a stream.
func NewAssembler() *Assembler { return &Assembler{} }

// Assembler assembles an answer from its events.
type Assembler struct {
	r        llm.Response
	blocks   []block
	stop     string
	done     bool // the last event came, or the answer was not streamed
	received int
	calls    int                // blocks that are tool calls
	each     func(openai.Delta) // may be nil
}

// Each sets a function that is called with every step of the answer.
func (a *Assembler) Each(each func(openai.Delta)) { a.each = each }

const (
	kindText = iota
	kindThought
	kindCall
)

// block is a block of content that is being assembled.
type block struct {
	kind              int
	text              []byte // or the arguments of a tool call
	signature, opaque []byte
	id, name          string
	call              int // its number, if it is a tool call
}

// maxBlocks bounds the blocks of an answer.
const maxBlocks = 100_000

// Event adds an event.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	name := string(e.Name)
	if strings.HasSuffix(name, "Exception") {
		return false, exception(name, e.Data)
	}
	var w wireEvent
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return false, fault.Malformed("an event of the stream is not one of ConverseStream", err)
	}
	switch name {
	case "contentBlockStart", "contentBlockDelta":
		return false, a.add(&w)
	case "messageStop":
		a.stop = w.Stop
	case "metadata": // the last event
		if w.Usage != nil {
			a.r.Usage = a.r.Usage.Max(w.Usage.usage())
		}
		a.r.Tier, a.done = w.Tier.Type, true
		return true, nil
	}
	return false, nil
}

// exception returns the error that an exception describes.
func exception(name string, payload []byte) error {
	var w struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(payload, &w) != nil || w.Message == "" {
		w.Message = "the stream ended with an exception"
	}
	b := body.Str(body.Str([]byte{'{'}, "code", name), "message", w.Message)
	return fault.Classify(0, nil, append(b, '}'))
}

// add begins a block, or adds to it.
func (a *Assembler) add(w *wireEvent) error {
	if w.Index < 0 || w.Index > len(a.blocks) || w.Index == maxBlocks {
		return fault.Malformed("a part of the stream belongs to no block", nil)
	}
	if w.Index == len(a.blocks) {
		a.blocks = append(a.blocks, block{})
	}
	b, d := &a.blocks[w.Index], &w.Delta
	step := openai.Delta{Text: d.Text}
	switch {
	case w.Start.ToolUse != nil:
		if b.kind != kindCall {
			b.call = a.calls
			a.calls++
		}
		b.kind, b.id, b.name = kindCall, w.Start.ToolUse.ID, w.Start.ToolUse.Name
		step = openai.Delta{Call: b.call, ID: b.id, Name: b.name}
	case d.ToolUse != nil:
		b.text = append(b.text, d.ToolUse.Input...)
		step = openai.Delta{Call: b.call, Arguments: d.ToolUse.Input}
	case d.Reasoning != nil:
		step = openai.Delta{Thought: d.Reasoning.Text, Signature: d.Reasoning.Signature}
		b.kind = kindThought
		b.text = append(b.text, d.Reasoning.Text...)
		b.signature = append(b.signature, d.Reasoning.Signature...)
		b.opaque = append(b.opaque, d.Reasoning.Redacted...)
		a.received += len(d.Reasoning.Text)
	default:
		b.text = append(b.text, d.Text...)
	}
	a.received += len(d.Text)
	if d.ToolUse != nil {
		a.received += len(d.ToolUse.Input)
	}
	if a.each != nil && !step.IsEmpty() {
		a.each(step)
	}
	return nil
}

// Received returns the number of bytes received.
func (a *Assembler) Received() int { return a.received }

// Response returns the answer, or an error if it is incomplete.
func (a *Assembler) Response() (*llm.Response, error) {
	if a.stop == "" || !a.done {
		return nil, fault.Malformed("the answer ended without its stopReason or usage: it is incomplete", nil)
	}
	r := &a.r
	var text strings.Builder
	for i := range a.blocks {
		b := &a.blocks[i]
		switch b.kind {
		case kindCall:
			args := string(b.text)
			if args == "" {
				args = "{}"
			}
			r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: b.id, Name: b.name, Arguments: args})
		case kindThought:
			r.Thoughts = append(r.Thoughts, llm.Thought{Text: string(b.text), Signature: string(b.signature), Opaque: string(b.opaque)})
		default:
			text.Write(b.text)
		}
	}
	r.Text = text.String()
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		r.Finish = llm.FinishLength
	case "tool_use":
		r.Finish = llm.FinishTools
	case "guardrail_intervened", "content_filtered":
		r.Finish, r.Refusal = llm.FinishRefused, "the answer was blocked: "+a.stop
	case "malformed_tool_use", "malformed_model_output":
		return nil, fault.Malformed("the model's answer is not valid: "+a.stop, nil)
	default:
		r.Finish = llm.FinishStop
	}
	return r, nil
}
