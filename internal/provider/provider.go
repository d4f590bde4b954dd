// Package provider describes accounts at model endpoints as data: which dialect
// they speak, where, with which key, under which limits, and what their models
// refuse. The presets and the capability table are tables to be read; everything
// in them can be overridden by a plan file or a flag.
//
// It promises that a key's value is never part of a Provider: only the name of
// the environment variable that holds it.
//
// It is not for speaking to a provider (package dialect) or for keeping its
// limits (package dispatch).
package provider

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Provider is an account at an endpoint.
type Provider struct {
	// Name is the first half of a model's name: lab in lab/any.
	Name string `json:"name,omitempty"`
	// Dialect is the wire format: openai (chat completions), responses, anthropic, sim; or go, for models that the
	// Go program brings as values.
	Dialect string `json:"dialect"`
	// BaseURL is everything before /chat/completions, /responses or /messages: it
	// ends in /v1 for most.
	BaseURL string `json:"base_url,omitempty"`
	// BaseURLs are those of several servers that serve the same models, in the place of
	// BaseURL. Limits hold for each of them.
	BaseURLs []string `json:"base_urls,omitempty"`
	// Session is how a server is told which requests belong together. Default: not at all.
	Session Session `json:"session,omitempty"`
	// CloseSession is whether it is told when a session is over: by a POST to
	// BaseURL/SESSION/close. Default: false.
	CloseSession bool `json:"close_session,omitempty"`
	// Metrics is the path, from the server's root, of a page for Prometheus as vLLM and
	// SGLang have it, by which the number of calls in flight is steered. Default: none.
	Metrics string `json:"metrics,omitempty"`
	// KeyEnv names the environment variable that holds the key. Empty: no key is sent.
	KeyEnv string `json:"key_env,omitempty"`
	// Headers are sent with every request.
	Headers map[string]string `json:"headers,omitempty"`
	// Limits are what the account allows. Zero fields are learned from the server.
	Limits Limits `json:"limits,omitzero"`
	// ModelLimits gives models of their own limits, by pattern (gpt-5*); the models
	// that match one pattern share it. All other models share Limits.
	ModelLimits map[string]Limits `json:"model_limits,omitempty"`
	// Counting is how the server counts tokens against its limits: see Counting.
	// Default: by dialect.
	Counting Counting `json:"counting,omitempty"`
	// Stream is auto, always or never. Default: auto, which streams long answers.
	Stream string `json:"stream,omitempty"`
	// HTTP2 is whether to multiplex over HTTP/2 where the server offers it. Default: false
	// means HTTP/1.1 with one connection a call in flight, which is as fast and
	// simpler up to some thousands of calls.
	HTTP2 bool `json:"http2,omitempty"`
	// Timeout bounds one attempt: to the header of the answer, and from there to its end, or
	// between two lines of a stream. Default: 10 minutes.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Warm is whether equal long prefixes are sent once before they fan out, since the
	// provider's prompt cache can be read only after the first response began.
	Warm bool `json:"warm,omitempty"`
	// Batch says that the account has a batch API, and what that allows; nil: there is none.
	// Default: as the preset has it.
	Batch *Batch `json:"batch,omitempty"`
	// Capabilities override the table of what models refuse, first match first.
	Capabilities []Capability `json:"capabilities,omitempty"`
}

// Limits are what an account allows. Zero means not known: learned from the
// server's headers, or not limited.
type Limits struct {
	RPM  float64 `json:"rpm,omitempty"`  // requests a minute
	TPM  float64 `json:"tpm,omitempty"`  // tokens a minute, input and output together
	ITPM float64 `json:"itpm,omitempty"` // input tokens a minute
	OTPM float64 `json:"otpm,omitempty"` // output tokens a minute
	// Concurrency is the most calls in flight. Default: found by trying, from 16 up.
	Concurrency int `json:"concurrency,omitempty"`
}

// Batch is what a batch API allows. Zero means the usual limit of the dialect.
type Batch struct {
	Requests int   `json:"requests,omitempty"` // of one batch. Default: 50,000, and 100,000 in the anthropic dialect
	Bytes    int64 `json:"bytes,omitempty"`    // of one batch. Default: 200 MB, and 256 MB in the anthropic dialect
	PerHour  int   `json:"per_hour,omitempty"` // batches created in an hour. Default: 2,000
	Tokens   int   `json:"tokens,omitempty"`   // prompt tokens of one model that may wait. Default: learned when a batch is refused
}

// BatchLimits returns what the batch API of p allows, and false where there is none.
func (p Provider) BatchLimits() (Batch, bool) {
	if p.Batch == nil || p.InProcess() {
		return Batch{}, false
	}
	b, usual := *p.Batch, Batch{Requests: 50_000, Bytes: 200_000_000, PerHour: 2000}
	if p.Dialect == "anthropic" {
		usual = Batch{Requests: 100_000, Bytes: 256_000_000, PerHour: 2000}
	}
	b.Requests, b.Bytes, b.PerHour = cmp.Or(b.Requests, usual.Requests), cmp.Or(b.Bytes, usual.Bytes), cmp.Or(b.PerHour, usual.PerHour)
	return b, true
}

// Session is how a server is told which requests belong together, as those of an episode.
type Session string

const (
	// SessionNone tells the server nothing.
	SessionNone Session = "none"
	// SessionHeader sends the session's name in the header X-Session-Id, and as the key of
	// the prompt cache to models that know one.
	SessionHeader Session = "header"
	// SessionPath puts it into the address: BaseURL/SESSION/chat/completions.
	SessionPath Session = "path"
)

// Servers returns p once for each of its servers, each with a BaseURL of its own.
func (p Provider) Servers() []Provider {
	if len(p.BaseURLs) == 0 {
		return []Provider{p}
	}
	out := make([]Provider, len(p.BaseURLs))
	for i, u := range p.BaseURLs {
		one := p
		one.BaseURL, one.BaseURLs = u, nil
		out[i] = one
	}
	return out
}

// KeepsLimits says whether the servers of p are known to stop an answer at the limit on output
// tokens of its request. Of servers at an address that is no preset's nobody knows, whatever
// they speak: some have never heard of the limit.
func (p Provider) KeepsLimits() bool { return p.Dialect != "go" && p.atPreset() }

// atPreset says whether all servers of p are those of presets.
func (p Provider) atPreset() bool {
	for _, one := range p.Servers() {
		if !slices.ContainsFunc(Presets(), func(known Provider) bool { return known.BaseURL == strings.TrimRight(one.BaseURL, "/") }) {
			return false
		}
	}
	return true
}

// HasSessions says whether it matters to p which requests belong together.
func (p Provider) HasSessions() bool {
	return len(p.BaseURLs) > 1 || p.Session == SessionHeader || p.Session == SessionPath
}

// Counting is how a server charges tokens against its limits.
type Counting string

const (
	// CountMax charges max(max_tokens, estimate) when a request arrives, as OpenAI does.
	CountMax Counting = "max"
	// CountUsed charges input without cache reads when a request arrives, and output
	// as it is produced, as Anthropic does.
	CountUsed Counting = "used"
)

// Counts is how p charges tokens, whether Counting says so or its dialect implies it.
func (p Provider) Counts() Counting {
	switch {
	case p.Counting != "":
		return p.Counting
	case p.Dialect == "anthropic":
		return CountUsed
	default:
		return CountMax
	}
}

// LimitPatterns returns the patterns of ModelLimits in the order they are tried: the longest is
// the most specific, so it comes first.
func (p Provider) LimitPatterns() []string {
	return slices.SortedFunc(maps.Keys(p.ModelLimits), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
}
