package llm

import (
	"encoding/json"
	"time"
)

// Response is a complete answer.
type Response struct {
	Text      string     `json:"text"`
	Refusal   string     `json:"refusal,omitempty"` // the model's explanation for not answering
	Thoughts  []Thought  `json:"thoughts,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Finish    Finish     `json:"finish"`
	Usage     Usage      `json:"usage"`

	// JSON is the validated answer to a request with a Schema; nil otherwise.
	JSON json.RawMessage `json:"json,omitempty"`

	// Model is the model that answered, as the server names it. Provider is our name.
	Model     string `json:"model,omitempty"`
	Provider  string `json:"provider,omitempty"`
	ID        string `json:"id,omitempty"`         // of the answer
	RequestID string `json:"request_id,omitempty"` // of the exchange, for the provider's support
	Tier      string `json:"tier,omitempty"`       // the service tier that was used

	Logprobs       []Logprob `json:"logprobs,omitempty"`
	TokenIDs       []int     `json:"token_ids,omitempty"`        // of the answer, if the server reports them
	PromptTokenIDs []int     `json:"prompt_token_ids,omitempty"` // of the prompt, if the server reports them
	WeightVersion  string    `json:"weight_version,omitempty"`   // of the model's weights, if the server reports it

	// Spans are the parts of an answer that was cut off and continued. WeightVersion is that of the first. Nil: it has one part.
	Spans []Span `json:"spans,omitempty"`

	// Dropped names request parameters that were not sent, since this model refuses them.
	Dropped []string `json:"dropped,omitempty"`

	// Rate is what the server reported about its limits, or nil.
	Rate *Rate `json:"-"`
	// Metadata says how the answer was obtained.
	Metadata Metadata `json:"metadata"`
}

// Span is a part of an answer: successive tokens that the same weights wrote.
type Span struct {
	Tokens        int    `json:"tokens"`
	WeightVersion string `json:"weight_version,omitempty"`
}

// Finish is why the model stopped.
type Finish string

// The reasons to stop. Other reasons of a provider are mapped to the nearest.
const (
	FinishStop    Finish = "stop"       // the model was done, or reached a stop sequence
	FinishLength  Finish = "length"     // MaxTokens or the context window was reached
	FinishTools   Finish = "tool_calls" // the model wants to call tools
	FinishRefused Finish = "refused"    // the model would not answer, or a filter cut the answer off
	FinishAborted Finish = "aborted"    // the server cut the answer off (a weight update, a pause)
)

// Usage counts tokens. Input is the whole prompt, including Audio, Cached and the two CacheWrite counts. Output is the
// whole answer, including Reasoning.
type Usage struct {
	Input          int `json:"input"`
	Audio          int `json:"audio,omitempty"`            // of recordings, if the provider counts them separately
	Cached         int `json:"cached,omitempty"`           // read from the provider's prompt cache
	CacheWrite     int `json:"cache_write,omitempty"`      // written to it for minutes
	CacheWriteLong int `json:"cache_write_long,omitempty"` // written to it for an hour
	Output         int `json:"output"`
	Reasoning      int `json:"reasoning,omitempty"`
}

// Plus returns the sum of u and v. Like AddTokens it never wraps around.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: AddTokens(u.Input, v.Input), Audio: AddTokens(u.Audio, v.Audio), Cached: AddTokens(u.Cached, v.Cached),
		CacheWrite: AddTokens(u.CacheWrite, v.CacheWrite), CacheWriteLong: AddTokens(u.CacheWriteLong, v.CacheWriteLong),
		Output: AddTokens(u.Output, v.Output), Reasoning: AddTokens(u.Reasoning, v.Reasoning),
	}
}

// Max returns the larger prompt with its parts, and the larger answer, of u and v. If one of them has a negative count, it
// returns that one.
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
	return min(u.Input, u.Audio, u.Cached, u.CacheWrite, u.CacheWriteLong, u.Output, u.Reasoning) < 0
}

// Total returns the tokens of input and output together.
func (u Usage) Total() int { return AddTokens(u.Input, u.Output) }

// Logprob is an output token with its log probability.
type Logprob struct {
	Token   string    `json:"token"`
	ID      int       `json:"id,omitempty"` // if the server reports it
	Logprob float64   `json:"logprob"`
	Top     []Logprob `json:"top,omitempty"`
}

// Metadata says how an answer was obtained. Dispatch sets it; a dialect sets only the times.
type Metadata struct {
	Attempts  int    `json:"attempts,omitempty"`  // that reached a provider: retries, repairs and second attempts included
	Cached    bool   `json:"cached,omitempty"`    // from our own cache: nothing was paid
	Coalesced bool   `json:"coalesced,omitempty"` // shared with an equal call in flight: nothing was paid
	Parsed    string `json:"parsed,omitempty"`    // how the structured answer was read: native, tolerant, repaired

	Cost      Money         `json:"cost,omitempty"`       // of all attempts together
	Estimated bool          `json:"estimated,omitempty"`  // a part of Cost is an estimate: the provider reported no usage
	FirstByte time.Duration `json:"first_byte,omitempty"` // from sending the last attempt to its first event or byte
	Latency   time.Duration `json:"latency,omitempty"`    // of the last attempt, until its end
	Waited    time.Duration `json:"waited,omitempty"`     // for room in the budget, in queues and in pauses, over all attempts
}

// Rate is what a server reported about its limits in the headers of an answer or error.
type Rate struct {
	Requests, Tokens, Input, Output Window
}

// Window is one limit: its size, what is left of it, and the time until it is fully available again.
type Window struct {
	Limit, Remaining float64
	Reset            time.Duration
	Known            bool // the server reported it
}

// Result is a Response or an error.
type Result struct {
	Response *Response
	Err      error
}
