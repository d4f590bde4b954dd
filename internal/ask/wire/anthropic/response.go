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
	Content     json.RawMessage `json:"content"` // a list of wireBlock
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
	if err := a.Decode(w.Content, "in the messages format", readBlock); err != nil {
		return nil, err
	}
	a.stop, a.details, a.done = w.StopReason, w.StopDetails, true
	return a.Response()
}

func readBlock(raw []byte) (openai.Block, error) {
	one, err := blocksDecoder.Decode(raw)
	return one.block(), err
}

// block returns the block. Those of tools that the provider runs are no part of the answer.
func (b *wireBlock) block() openai.Block {
	switch b.Type {
	case "text":
		return openai.Block{Kind: openai.TextBlock, Text: b.Text}
	case "thinking":
		return openai.Block{Kind: openai.ThoughtBlock, Text: b.Thinking, Signature: b.Signature}
	case "redacted_thinking":
		return openai.Block{Kind: openai.ThoughtBlock, Opaque: b.Data}
	case "tool_use":
		return openai.Block{Kind: openai.CallBlock, ID: b.ID, Name: b.Name, Text: arguments(b.Input)}
	}
	return openai.Block{}
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

// Assembler assembles an answer from its events.
type Assembler struct {
	openai.Blocks
	r       llm.Response
	tokens  count
	stop    string
	details *stopDetails
	done    bool // after message_stop, or if the answer was not streamed
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
		if w.ContentBlock == nil {
			return false, fault.Malformed("a block of the stream has no content", nil)
		}
		return false, a.Begin(w.ContentBlock.block())
	case "content_block_delta":
		d := &w.Delta
		return false, a.Add(w.Index, openai.Delta{Text: d.Text, Thought: d.Thinking, Signature: d.Signature, Arguments: d.PartialJSON}, "")
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

// Response returns the answer, or an error if the stream is incomplete.
func (a *Assembler) Response() (*llm.Response, error) {
	switch {
	case !a.done:
		return nil, fault.Malformed("the stream ended without message_stop: the answer is incomplete", nil)
	case a.stop == "" && a.Len() == 0:
		return nil, fault.Malformed("the answer is empty and has no stop reason", nil)
	}
	r := &a.r
	a.Fill(r)
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
