// Package llm holds the vocabulary for asking a model: requests (Request, Message, Tool, Schema), answers (Response,
// Usage), and failures (Error, Kind).
//
// Everything that answers is a Model: a wire format that talks to a provider, the simulated provider, and each layer of
// dispatch around them. Model is the only interface here, so layers nest:
// budget(cache(coalesce(retry(limit(dialect))))).
//
// What it promises: values of these types are plain data, safe to share between goroutines as long as nobody writes to
// them; a Model never changes a Request; an error from a Model is always an *Error.
//
// The package opens no connection, reads no clock and no environment, and imports only the standard library.
package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Model answers requests.
//
// Ask may be called from any number of goroutines at once. It blocks until the answer is complete, and returns soon after
// ctx is done. If it fails, the error is an *Error and the Response is nil. Neither side writes to the Request after
// the call.
type Model interface {
	Ask(ctx context.Context, req *Request) (*Response, error)
}

// Func is a function that implements Model.
type Func func(ctx context.Context, req *Request) (*Response, error)

// Ask calls f.
func (f Func) Ask(ctx context.Context, req *Request) (*Response, error) { return f(ctx, req) }

// Request is one question to one model. Only Model and Messages are required; every other zero value means the
// provider's default.
//
// The fields up to Extra change the answer and are part of Digest. The fields below say how to serve the request and are
// not.
type Request struct {
	// Model is written provider/model; the provider is not sent.
	Model    string    `json:"model,omitempty"`
	Messages []Message `json:"messages"`

	Tools      []Tool `json:"tools,omitempty"`
	ToolChoice string `json:"tool_choice,omitempty"` // auto, none, required, or a tool's name. Default: auto.
	// OneTool asks for at most one tool call in an answer.
	OneTool bool `json:"one_tool,omitempty"`

	// Schema asks for an answer that is a JSON value of this schema.
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

	// Logprobs asks for the log probability of each output token, and TopLogprobs for that many alternatives. TokenIDs
	// asks a server that can (vLLM, SGLang) for the exact token ids of prompt and answer.
	Logprobs    bool `json:"logprobs,omitempty"`
	TopLogprobs int  `json:"top_logprobs,omitempty"`
	TokenIDs    bool `json:"token_ids,omitempty"`

	// Tier is the provider's service tier (flex, priority, …), by its own name.
	Tier string `json:"tier,omitempty"`

	// Sample distinguishes equal questions: sample 0 and sample 1 are two draws, and a cache never answers one with the
	// other. It is not sent.
	Sample int `json:"sample,omitempty"`

	// Extra is added to the wire body unchanged, for fields that this type does not have.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`

	// Prefix is the number of leading messages that many requests share. A prompt-cache breakpoint goes there, and prefix
	// warming compares it.
	Prefix int `json:"-"`
	// Session keeps the requests of one conversation on one replica, if there are several.
	Session string `json:"-"`
	// Order is the position in the queue: lower is served first, and equal orders in order of arrival.
	Order int64 `json:"-"`
	// Deadline limits the whole call, including queueing and retries. Default: dispatch's own.
	Deadline time.Duration `json:"-"`
	// MaxCost limits the cost of the whole call, including retries and repairs. An attempt that might exceed it is not
	// made, and the call fails with ErrMaxCost. Default: no limit.
	MaxCost Money `json:"-"`
	// Begun is the beginning of the answer, which a server wrote before it cut it off: the model continues it. Only a dialect
	// that can do that exactly gets it.
	Begun *Response `json:"-"`
	// Refers means that the request refers to something that the provider stores or fetches, such as a file by its id, so
	// its size does not bound the input.
	Refers bool `json:"-"`
	// Fallbacks are models (provider/model) to ask in turn if this one cannot answer.
	Fallbacks []string `json:"-"`
	// Headers are sent with the request, in addition to the headers of its provider, which they replace if the name is the same. They are
	// neither recorded nor part of the digest. A batch does not send them.
	Headers map[string]string `json:"-"`
}

// Effort is how long a reasoning model may think, in the providers' common words.
type Effort string

// The efforts that providers know. A dialect maps an effort that a model does not know to the nearest one.
const (
	EffortNone    Effort = "none"
	EffortMinimal Effort = "minimal"
	EffortLow     Effort = "low"
	EffortMedium  Effort = "medium"
	EffortHigh    Effort = "high"
	EffortXHigh   Effort = "xhigh"
	EffortMax     Effort = "max"
)

// Efforts lists every Effort, the lowest first.
func Efforts() []Effort {
	return []Effort{EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax}
}

// Tool is a function that the model may ask to call.
type Tool struct {
	Name        string          `json:"name"` // at most 64 of [A-Za-z0-9_-]
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema of type object
	Strict      bool            `json:"strict,omitempty"`     // arguments must follow Parameters exactly
}

// UnmarshalJSON reads a tool in the form of this type, or in that of OpenAI's chat completions:
// {"type":"function","function":{"name":…}}. Any other key is an error.
func (t *Tool) UnmarshalJSON(b []byte) error {
	type flat Tool
	var w struct {
		Type     string `json:"type"`
		Function *flat  `json:"function"`
		flat
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf(`tools: unknown key %.60s; want one of description, name, parameters, strict, or OpenAI's form {"type": "function", "function": {…}}`, key)
		}
		return err
	}
	switch {
	case w.Type != "" && w.Type != "function":
		return fmt.Errorf("tools: type %.60q: want function", w.Type)
	case w.Function == nil:
		*t = Tool(w.flat)
	case w.Name != "" || w.Description != "" || w.Parameters != nil || w.Strict:
		return errors.New("tools: a tool has function and other keys beside it: write them inside function")
	default:
		*t = Tool(*w.Function)
	}
	return nil
}

// Schema is the form that an answer must have.
type Schema struct {
	Name        string          `json:"name"` // at most 64 of [A-Za-z0-9_-]
	Description string          `json:"description,omitempty"`
	JSON        json.RawMessage `json:"schema"` // a JSON Schema
}

// Check refuses settings that no provider can use, before they cost anything.
func (r *Request) Check() error {
	if r.Effort != "" && !slices.Contains(Efforts(), r.Effort) {
		return fmt.Errorf("unknown effort %.60q; want one of %v", r.Effort, Efforts())
	}
	if r.MaxTokens < 0 {
		return fmt.Errorf("max_tokens %d: use a number above zero", r.MaxTokens)
	}
	if t := r.Temperature; t != nil && !(*t >= 0 && *t <= 2) { // as in a plan
		return fmt.Errorf("temperature %v: use 0 to 2", *t)
	}
	if p := r.TopP; p != nil && !(*p >= 0 && *p <= 1) {
		return fmt.Errorf("top_p %v: use 0 to 1", *p)
	}
	for i, t := range r.Tools {
		if t.Name == "" {
			return fmt.Errorf(`tools[%d]: name is missing: write {"name": "price", "description": …, "parameters": …}`, i)
		}
		if err := CheckSchema(t.Parameters); err != nil {
			return fmt.Errorf("tools[%d] %.60q: parameters: %w", i, t.Name, err)
		}
	}
	return nil
}

// SplitModel splits provider/model at the first slash. A name without one has no provider.
func SplitModel(name string) (provider, model string) {
	if provider, model, ok := strings.Cut(name, "/"); ok {
		return provider, model
	}
	return "", name
}

type beganKey struct{}

// OnBegan returns a context under which a Model calls began when the answer begins to arrive: at the first event of a
// stream, or with the complete answer otherwise. began may be called more than once, and from another goroutine.
func OnBegan(ctx context.Context, began func()) context.Context {
	return context.WithValue(ctx, beganKey{}, began)
}

// Began reports that the answer to the call under ctx has begun to arrive.
func Began(ctx context.Context) {
	if f, ok := ctx.Value(beganKey{}).(func()); ok {
		f()
	}
}

// WantsBegan reports whether a caller waits for Began under ctx, so that a dialect can choose to stream.
func WantsBegan(ctx context.Context) bool {
	_, ok := ctx.Value(beganKey{}).(func())
	return ok
}
