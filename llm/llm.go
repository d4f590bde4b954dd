// Package llm holds the words for asking a model: what is asked (Request,
// Message, Tool, Schema), what comes back (Response, Usage), and how it fails
// (Error, Kind).
//
// Everything that answers is a Model: a wire format speaking to a provider, the
// simulated provider, and each layer of dispatch around them. Model is the only
// interface here, so layers nest: budget(cache(coalesce(retry(limit(dialect))))).
//
// What it promises: values of these types are plain data, safe to share between
// goroutines as long as nobody writes to them; a Request is never changed by a
// Model it was handed to. An error from a Model is always an *Error.
//
// What it is not for: it opens no connection, reads no clock and no environment,
// and imports nothing but the standard library.
package llm

import (
	"context"
	"encoding/json"
	"time"
)

// Model answers requests.
//
// Ask may be called from any number of goroutines at once and blocks until the
// whole answer is there. A failure is an *Error and the Response is then nil. It
// returns soon after ctx is done. Neither side writes to the Request after the call.
type Model interface {
	Ask(ctx context.Context, req *Request) (*Response, error)
}

// Func makes a Model of a function.
type Func func(ctx context.Context, req *Request) (*Response, error)

// Ask calls f.
func (f Func) Ask(ctx context.Context, req *Request) (*Response, error) { return f(ctx, req) }

// Request is one question to one model. Only Model and Messages are needed; every
// zero value means "as the provider does by default".
//
// The fields up to Extra change the answer and are part of Digest. Those below
// say how to serve the request and are not.
type Request struct {
	// Model is written provider/model; the provider part is dropped on the wire.
	Model    string    `json:"model,omitempty"`
	Messages []Message `json:"messages"`

	Tools      []Tool `json:"tools,omitempty"`
	ToolChoice string `json:"tool_choice,omitempty"` // auto, none, required, or a tool's name. Default: auto.
	// OneTool asks for at most one tool call in an answer.
	OneTool bool `json:"one_tool,omitempty"`

	// Schema asks for an answer that is a JSON value of this form.
	Schema *Schema `json:"schema,omitempty"`
	// Effort is how long to think: none, minimal, low, medium, high, xhigh, max.
	Effort Effort `json:"effort,omitempty"`

	MaxTokens        int      `json:"max_tokens,omitempty"` // of output, reasoning included
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	Seed             *int64   `json:"seed,omitempty"`
	Stop             []string `json:"stop,omitempty"`

	// Logprobs asks for the log probability of each output token, and TopLogprobs
	// for that many alternatives beside it. TokenIDs asks a server that can (vLLM,
	// SGLang) for the exact token ids of prompt and answer.
	Logprobs    bool `json:"logprobs,omitempty"`
	TopLogprobs int  `json:"top_logprobs,omitempty"`
	TokenIDs    bool `json:"token_ids,omitempty"`

	// Tier is the provider's service tier (flex, priority, …), by its own name.
	Tier string `json:"tier,omitempty"`

	// Sample tells equal questions apart: sample 0 and sample 1 are two draws, and a
	// cache never answers one with the other. It is not sent.
	Sample int `json:"sample,omitempty"`

	// Extra is added to the wire body as it stands, for what this type has no word for.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`

	// Prefix is the number of leading messages that many requests have in common. It
	// is where a prompt-cache breakpoint goes, and what prefix warming compares.
	Prefix int `json:"-"`
	// Session keeps requests of one conversation on one replica, where there are several.
	Session string `json:"-"`
	// Order is the place in the queue: lower is served first. Equal orders are served
	// in order of arrival.
	Order int64 `json:"-"`
	// Deadline bounds the whole call, queueing and retries included. Default: dispatch's own.
	Deadline time.Duration `json:"-"`
	// MaxCost is the most that the call may cost in all, retries and repairs included: what would
	// go beyond it is not tried, and the call fails with ErrMaxCost. Default: no limit.
	MaxCost Money `json:"-"`
	// Refers says that the request refers to something that the provider stores or fetches, such
	// as a file by its id, so that the size of the request does not bound the input.
	Refers bool `json:"-"`
	// Fallbacks are models (provider/model) asked in turn when this one cannot answer.
	Fallbacks []string `json:"-"`
}

// Effort is how long a reasoning model may think, in the providers' common words.
type Effort string

// The efforts that providers know. A dialect maps one that a model does not know
// to the nearest it does.
const (
	EffortNone    Effort = "none"
	EffortMinimal Effort = "minimal"
	EffortLow     Effort = "low"
	EffortMedium  Effort = "medium"
	EffortHigh    Effort = "high"
	EffortXHigh   Effort = "xhigh"
	EffortMax     Effort = "max"
)

// Efforts lists every Effort from least to most.
func Efforts() []Effort {
	return []Effort{EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax}
}

// Tool is a function the model may ask to have called.
type Tool struct {
	Name        string          `json:"name"` // at most 64 of [A-Za-z0-9_-]
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema of type object
	Strict      bool            `json:"strict,omitempty"`     // arguments must follow Parameters exactly
}

// Schema is the form an answer must have.
type Schema struct {
	Name        string          `json:"name"` // at most 64 of [A-Za-z0-9_-]
	Description string          `json:"description,omitempty"`
	JSON        json.RawMessage `json:"schema"` // a JSON Schema
}

// SplitModel splits provider/model at the first slash. A name without one has no provider.
func SplitModel(name string) (provider, model string) {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i], name[i+1:]
		}
	}
	return "", name
}

type beganKey struct{}

// OnBegan returns a context under which a Model calls began once the answer has
// begun to arrive: at the first event of a stream, or with the whole answer where
// there is none. It may be called more than once, and from another goroutine.
func OnBegan(ctx context.Context, began func()) context.Context {
	return context.WithValue(ctx, beganKey{}, began)
}

// Began reports that the answer to the call running under ctx has begun to arrive.
func Began(ctx context.Context) {
	if f, ok := ctx.Value(beganKey{}).(func()); ok {
		f()
	}
}

// WantsBegan says whether somebody waits for Began under ctx, so that a dialect
// can choose to stream.
func WantsBegan(ctx context.Context) bool {
	_, ok := ctx.Value(beganKey{}).(func())
	return ok
}
