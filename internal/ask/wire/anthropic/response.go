package anthropic

import (
	"encoding/json"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/llm"
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
	w, err := body.Decode[wireMessage](b)
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
		one, err := body.Decode[wireBlock](raw)
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
