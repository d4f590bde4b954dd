package llm

import (
	"encoding/json"
	"time"
)

// Response is a whole answer.
type Response struct {
	Text      string     `json:"text"`
	Refusal   string     `json:"refusal,omitempty"` // the model's words for not answering
	Thoughts  []Thought  `json:"thoughts,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Finish    Finish     `json:"finish"`
	Usage     Usage      `json:"usage"`

	// JSON is the answer to a request with a Schema, validated; nil otherwise.
	JSON json.RawMessage `json:"json,omitempty"`

	// Model is the model that answered, as the server names it; Provider is ours.
	Model     string `json:"model,omitempty"`
	Provider  string `json:"provider,omitempty"`
	ID        string `json:"id,omitempty"`         // of the answer
	RequestID string `json:"request_id,omitempty"` // of the exchange, for the provider's support
	Tier      string `json:"tier,omitempty"`       // the service tier that was used

	Logprobs       []Logprob `json:"logprobs,omitempty"`
	TokenIDs       []int     `json:"token_ids,omitempty"`        // of the answer, where the server gives them
	PromptTokenIDs []int     `json:"prompt_token_ids,omitempty"` // of the prompt, where the server gives them
	WeightVersion  string    `json:"weight_version,omitempty"`   // of the model's weights, where the server gives it

	// Dropped names request parameters that were not sent since this model refuses them.
	Dropped []string `json:"dropped,omitempty"`

	// Rate is what the server said of its limits, or nil.
	Rate *Rate `json:"-"`
	// Metadata says how the answer was come by.
	Metadata Metadata `json:"trail"`
}

// Finish is why the model stopped.
type Finish string

// The reasons to stop. A provider's own other reasons are mapped to the nearest.
const (
	FinishStop    Finish = "stop"       // it was done, or met a stop sequence
	FinishLength  Finish = "length"     // MaxTokens or the context window was reached
	FinishTools   Finish = "tool_calls" // it wants tools called
	FinishRefused Finish = "refused"    // it would not answer, or a filter cut it off
	FinishAborted Finish = "aborted"    // the server cut it off (a weight update, a pause)
)

// Usage counts tokens. Input is all of the prompt: Cached and the two CacheWrite
// counts are parts of it. Output is all that was produced: Reasoning is a part of it.
type Usage struct {
	Input          int `json:"input"`
	Cached         int `json:"cached,omitempty"`           // read from the provider's prompt cache
	CacheWrite     int `json:"cache_write,omitempty"`      // written to it for minutes
	CacheWriteLong int `json:"cache_write_long,omitempty"` // written to it for an hour
	Output         int `json:"output"`
	Reasoning      int `json:"reasoning,omitempty"`
}

// Plus returns the sum of u and v. Like every sum of AddTokens it never wraps around.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: AddTokens(u.Input, v.Input), Cached: AddTokens(u.Cached, v.Cached),
		CacheWrite: AddTokens(u.CacheWrite, v.CacheWrite), CacheWriteLong: AddTokens(u.CacheWriteLong, v.CacheWriteLong),
		Output: AddTokens(u.Output, v.Output), Reasoning: AddTokens(u.Reasoning, v.Reasoning),
	}
}

// Max returns what u and v report at most: the larger prompt with its parts, and the larger
// answer. Where one of them has a count below zero it is that one.
func (u Usage) Max(v Usage) Usage {
	switch {
	case u.negative():
		return u
	case v.negative():
		return v
	}
	out := u
	if v.Input >= u.Input {
		out = v
	}
	out.Output, out.Reasoning = max(u.Output, v.Output), max(u.Reasoning, v.Reasoning)
	return out
}

func (u Usage) negative() bool {
	return min(u.Input, u.Cached, u.CacheWrite, u.CacheWriteLong, u.Output, u.Reasoning) < 0
}

// Total returns the tokens of input and output together.
func (u Usage) Total() int { return AddTokens(u.Input, u.Output) }

// Logprob is an output token with its log probability.
type Logprob struct {
	Token   string    `json:"token"`
	ID      int       `json:"id,omitempty"` // where the server gives it
	Logprob float64   `json:"logprob"`
	Top     []Logprob `json:"top,omitempty"`
}

// Metadata is how an answer was come by. Dispatch writes it; a dialect writes only the times.
type Metadata struct {
	Attempts  int    `json:"attempts,omitempty"`  // tries it took, repairs and hedges included
	Cached    bool   `json:"cached,omitempty"`    // answered from our own cache: nothing was paid
	Coalesced bool   `json:"coalesced,omitempty"` // shared the answer of an equal call in flight: nothing was paid
	Hedged    bool   `json:"hedged,omitempty"`    // a second try overtook the first
	Parsed    string `json:"parsed,omitempty"`    // how the structured answer was read: native, tolerant, repaired

	Cost      Money         `json:"cost,omitempty"`       // of every try together
	Estimated bool          `json:"estimated,omitempty"`  // some of Cost is an estimate: the provider reported no usage
	FirstByte time.Duration `json:"first_byte,omitempty"` // from sending the last try to its first event or byte
	Latency   time.Duration `json:"latency,omitempty"`    // of the last try, sent to whole
	Waited    time.Duration `json:"waited,omitempty"`     // in queues and pauses, over all tries
}

// Rate is what a server said of its limits in the headers of an answer or error.
// A zero Window was not mentioned.
type Rate struct {
	Requests, Tokens, Input, Output Window
}

// Window is one limit: how much it allows in all, how much is left, and how long
// until all of it is back.
type Window struct {
	Limit, Remaining float64
	Reset            time.Duration
	Known            bool
}

// Result is a Response or an error, for many at once.
type Result struct {
	Response *Response
	Err      error
}
