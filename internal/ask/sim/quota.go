// Part quota simulates the providers' rate limits: token buckets that refill continuously, and are
// charged as OpenAI, Anthropic or Google does.
//
// It promises to read no clock (every method gets the time), and not to charge a request that it
// refuses. It may be used from several goroutines at once.
//
// It does not pace our own calls: package dispatch does.

package sim

import (
	"sync"
	"time"

	"parley/llm"
)

// Style is the vendor whose way of charging is used.
type Style string

const (
	// OpenAI charges a request and max(max_tokens, estimate) tokens on arrival.
	OpenAI Style = "openai"
	// Anthropic charges a request and its input on arrival. Later it refunds cached input and
	// charges the output.
	Anthropic Style = "anthropic"
	// Google charges a request and its input on arrival.
	Google Style = "google"
	// Amazon charges as OpenAI.
	Amazon Style = "amazon"
)

// Limits are the limits of an account. A zero field is no limit.
type Limits struct {
	RPM  float64 // requests a minute. Default: 0, no limit
	TPM  float64 // tokens a minute (OpenAI style). Default: 0, no limit
	ITPM float64 // input tokens a minute (Anthropic style). Default: 0, no limit
	OTPM float64 // output tokens a minute (Anthropic style). Default: 0, no limit
	// Burst is the time that a full bucket lasts. Default: 60 s
	Burst time.Duration
	// Concurrency is the maximum number of requests in flight. Default: 0, no limit
	Concurrency int
	// Queue makes requests above Concurrency wait instead of being refused. Default: false
	Queue bool
}

// Any reports whether l limits anything.
func (l Limits) Any() bool {
	return l.RPM > 0 || l.TPM > 0 || l.ITPM > 0 || l.OTPM > 0 || l.Concurrency > 0
}

// Quota holds the buckets of one account.
type Quota struct {
	style  Style
	limits Limits

	mu       sync.Mutex
	requests bucket
	tokens   bucket
	input    bucket
	output   bucket
}

// NewQuota returns full buckets. An empty style means OpenAI.
func NewQuota(l Limits, style Style, now time.Time) *Quota {
	if l.Burst <= 0 {
		l.Burst = time.Minute
	}
	q := &Quota{style: style, limits: l}
	q.requests = newBucket(l.RPM, l.Burst, now)
	if style == Anthropic {
		q.input = newBucket(l.ITPM, l.Burst, now)
		q.output = newBucket(l.OTPM, l.Burst, now)
	} else {
		q.tokens = newBucket(l.TPM, l.Burst, now)
	}
	return q
}

// Cost is the cost of a request, as known when it arrives.
type Cost struct {
	Input int // estimated tokens of the prompt
	Max   int // max_tokens, or 0
}

// Refusal describes the limit that a request exceeds.
type Refusal struct {
	// What is requests, tokens, input tokens, output tokens or concurrency.
	What  string
	Limit float64       // per minute, or requests in flight for concurrency
	Used  float64       // now
	Asked float64       // by this request
	After time.Duration // until the request would be admitted; 0 if unknown
	// TooLarge means that the request asks for more than the limit and is never admitted.
	TooLarge bool
}

// Admit charges a request, or returns why it refuses it.
func (q *Quota) Admit(now time.Time, c Cost) *Refusal {
	q.mu.Lock()
	defer q.mu.Unlock()
	tokens, input := float64(max(c.Max, c.Input)), float64(c.Input)
	if q.style == Google {
		tokens = input
	}
	if r := q.requests.refuse(now, "requests", 1); r != nil {
		return r
	}
	if r := q.tokens.refuse(now, "tokens", tokens); r != nil {
		return r
	}
	if r := q.input.refuse(now, "input tokens", input); r != nil {
		return r
	}
	if r := q.output.refuse(now, "output tokens", 1); r != nil {
		return r
	}
	q.requests.level--
	q.tokens.level -= tokens
	q.input.level -= input
	return nil
}

// Settle corrects the charge of an admitted request by its usage. OpenAI corrects nothing.
func (q *Quota) Settle(now time.Time, c Cost, used llm.Usage) {
	if q.style != Anthropic {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.input.refill(now)
	q.output.refill(now)
	q.input.level += float64(c.Input - (used.Input - used.Cached))
	q.output.level -= float64(used.Output)
}

// Rate returns the limits for the headers of an answer, or nil if there are none.
func (q *Quota) Rate(now time.Time) *llm.Rate {
	l := &q.limits
	if l.RPM <= 0 && l.TPM <= 0 && l.ITPM <= 0 && l.OTPM <= 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r := &llm.Rate{
		Requests: q.requests.window(now), Tokens: q.tokens.window(now),
		Input: q.input.window(now), Output: q.output.window(now),
	}
	if q.style == Anthropic { // tokens are input and output together
		switch {
		case r.Input.Known && r.Output.Known:
			r.Tokens = llm.Window{
				Limit: r.Input.Limit + r.Output.Limit, Remaining: r.Input.Remaining + r.Output.Remaining,
				Reset: max(r.Input.Reset, r.Output.Reset), Known: true,
			}
		case r.Input.Known:
			r.Tokens = r.Input
		case r.Output.Known:
			r.Tokens = r.Output
		}
	}
	return r
}
