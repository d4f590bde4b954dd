package sim

import (
	"math"
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
}

// Quota is the rate limits of one account: token buckets that refill continuously, and are charged as a
// vendor does. It reads no clock, and does not charge a request that it refuses. It may be used from
// several goroutines at once.
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

// bucket is a token bucket. The zero bucket limits nothing.
type bucket struct {
	perMinute float64
	size      float64 // of a full bucket
	level     float64 // below zero after a request larger than the bucket
	at        time.Time
}

func newBucket(perMinute float64, burst time.Duration, now time.Time) bucket {
	if perMinute <= 0 {
		return bucket{}
	}
	size := math.Max(1, perMinute*burst.Minutes())
	return bucket{perMinute: perMinute, size: size, level: size, at: now}
}

func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.level = math.Min(b.size, b.level+b.perMinute*passed.Minutes())
		b.at = now
	}
}

// refuse returns why n cannot be taken now, or nil. A request larger than the bucket, but not than the
// limit, is admitted when the bucket is full and leaves a debt.
func (b *bucket) refuse(now time.Time, what string, n float64) *Refusal {
	if b.perMinute == 0 {
		return nil
	}
	b.refill(now)
	need := math.Min(n, b.size)
	large := n > math.Max(b.perMinute, b.size)
	if b.level >= need-1e-6 && !large {
		return nil
	}
	r := &Refusal{What: what, Limit: b.perMinute, Asked: n, TooLarge: large}
	if !large {
		r.After = b.until(need)
	}
	return r
}

// until returns the time until the bucket reaches level.
func (b *bucket) until(level float64) time.Duration {
	if b.level >= level {
		return 0
	}
	return time.Duration(math.Ceil((level - b.level) / b.perMinute * float64(time.Minute)))
}

func (b *bucket) window(now time.Time) llm.Window {
	if b.perMinute == 0 {
		return llm.Window{}
	}
	b.refill(now)
	return llm.Window{
		Limit: b.perMinute, Remaining: math.Max(0, math.Floor(b.level+1e-6)), Reset: b.until(b.size), Known: true,
	}
}

// Gate limits the number of requests in flight. A nil Gate has no limit.
type Gate struct{ places chan struct{} }

// NewGate returns the Gate of l, or nil if l does not limit requests in flight.
func NewGate(l Limits) *Gate {
	if l.Concurrency <= 0 {
		return nil
	}
	return &Gate{make(chan struct{}, l.Concurrency)}
}

// Enter admits a request, or returns a Refusal if the Gate is full. After an admission the caller must call Leave.
func (g *Gate) Enter() *Refusal {
	if g == nil {
		return nil
	}
	select {
	case g.places <- struct{}{}:
		return nil
	default:
		n := float64(cap(g.places))
		return &Refusal{What: "concurrency", Limit: n, Asked: 1}
	}
}

// Leave ends a request.
func (g *Gate) Leave() {
	if g != nil {
		<-g.places
	}
}
