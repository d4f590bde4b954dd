package anthropic

import (
	"encoding/json"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

var (
	messagesDecoder = request.NewDecoder[wireMessage]()
	blocksDecoder   = request.NewDecoder[wireBlock]()
	eventsDecoder   = request.NewDecoder[wireEvent]()
)

type wireMessage struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Model       string          `json:"model"`
	Content     json.RawMessage `json:"content"` // a list of wireBlock, which must not be decoded at once: see maxBlocks
	StopReason  string          `json:"stop_reason"`
	StopDetails *stopDetails    `json:"stop_details"`
	Usage       wireUsage       `json:"usage"`
	Error       json.RawMessage `json:"error"`
}

type stopDetails struct {
	Explanation string `json:"explanation"`
	Category    string `json:"category"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// wireUsage has pointers for the numbers that an event may omit. Omitted numbers do not change.
type wireUsage struct {
	Input         *int             `json:"input_tokens"`
	CacheCreation *int             `json:"cache_creation_input_tokens"`
	CacheRead     *int             `json:"cache_read_input_tokens"`
	Output        *int             `json:"output_tokens"`
	ServiceTier   string           `json:"service_tier"`
	ByTTL         *wireTTL         `json:"cache_creation"`
	OutputDetails *wireOutputParts `json:"output_tokens_details"`
}

type wireTTL struct {
	Hour int `json:"ephemeral_1h_input_tokens"`
}

type wireOutputParts struct {
	Thinking int `json:"thinking_tokens"`
}

// DecodeResponse reads a whole answer. If the body reports an error with status 200, it returns
// that error.
func DecodeResponse(b []byte) (*llm.Response, error) {
	w, err := messagesDecoder.Decode(b)
	if err != nil {
		return nil, fault.Malformed("the answer is not in the messages format", err)
	}
	if w.Type == "error" || !body.IsNull(w.Error) {
		return nil, fault.Classify(0, nil, b)
	}
	if w.Type != "message" && body.IsNull(w.Content) {
		return nil, fault.Malformed("the answer is not a message", nil)
	}
	var a Assembler
	a.begin(w)
	if err := a.decode(w.Content); err != nil {
		return nil, err
	}
	a.stop, a.details, a.done = w.StopReason, w.StopDetails, true
	return a.Response()
}

// decode adds the blocks of a whole answer.
func (a *Assembler) decode(content json.RawMessage) error {
	if body.IsNull(content) {
		return nil
	}
	var failed error
	whole := body.Elements(content, func(raw []byte) bool {
		if len(a.blocks) == maxBlocks {
			failed = fault.Malformed("the answer has too many blocks", nil)
			return false
		}
		one, err := blocksDecoder.Decode(raw)
		if err != nil {
			failed = fault.Malformed("the content of the answer is not in the messages format", err)
			return false
		}
		a.blocks = append(a.blocks, block{wireBlock: *one})
		return true
	})
	if failed == nil && !whole {
		failed = fault.Malformed("the content of the answer is not in the messages format", nil)
	}
	return failed
}

// count is the running total of an answer's tokens.
type count struct {
	uncached, created, hour, read, output, thinking int

	highest llm.Usage // reported so far
}

func (c *count) add(u *wireUsage) {
	set := func(dst *int, n *int) {
		if n != nil {
			*dst = *n
		}
	}
	set(&c.uncached, u.Input)
	set(&c.created, u.CacheCreation)
	set(&c.read, u.CacheRead)
	set(&c.output, u.Output)
	if u.ByTTL != nil {
		c.hour = u.ByTTL.Hour
	}
	if u.OutputDetails != nil {
		c.thinking = u.OutputDetails.Thinking
	}
	c.highest = c.highest.Max(c.usage())
}

// usage returns the counts as llm.Usage has them. The format's input_tokens does not include cached
// tokens.
func (c *count) usage() llm.Usage {
	hour := min(c.hour, c.created)
	if least := min(c.uncached, c.created, c.read); least < 0 {
		return llm.Usage{Input: least}
	}
	return llm.Usage{
		Input:  llm.AddTokens(c.uncached, llm.AddTokens(c.created, c.read)),
		Cached: c.read, CacheWrite: c.created - hour, CacheWriteLong: hour,
		Output: c.output, Reasoning: c.thinking,
	}
}

func finishOf(reason string) llm.Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "tool_use":
		return llm.FinishTools
	case "refusal":
		return llm.FinishRefused
	}
	return llm.FinishStop
}

// arguments returns the input of a tool call as text.
func arguments(raw json.RawMessage) string {
	if s := strings.TrimSpace(string(raw)); s != "" && s != "null" {
		return s
	}
	return "{}"
}

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
	w, err := eventsDecoder.Decode(e.Data)
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
