package limiter

import (
	"math"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// bucket models one limit of a server: so many units a minute, refilled continuously. It is a
// plain value of time and counts, without a lock or a clock.
//
// The user's configuration gives the rate. The server's headers give the rate where the user has
// configured none, and how much is left. So a bucket that is shared with others, or a wrong
// estimate of tokens, is corrected with every call.
type bucket struct {
	configured float64 // units a minute; 0: not configured
	whole      float64 // units a second that the account has; 0: no limit known
	share      float64 // of the account that is ours: the rest of the fields are about this part of it
	rate       float64 // units a second in force: share of whole
	level      float64 // units that may be spent now; negative is debt
	max        float64 // what level may grow to
	last       time.Time
	sum        float64   // all that was ever taken
	used       float64   // taken by calls still in flight
	charged    float64   // what calls that ended really cost
	asOf       time.Time // when the call was sent whose answer was learned from last
	// late means that the server charges at the end of a call (output tokens as they are produced)
	// and not at its arrival.
	late bool
	// fine means that the server has been seen to count exactly. Some round what is left to the
	// nearest thousand.
	fine bool
	// held is the most that the server was ever seen to have left, for the whole account: it can have
	// that again.
	held float64
	// margin is how many seconds' worth of units are left untouched, for the jitter between the
	// server's clock and ours. A refusal widens it for a while.
	margin float64
}

const (
	burstSeconds  = 0.1  // what may be sent at once when only the rate is known
	minMargin     = 0.25 // seconds
	maxMargin     = 1.0  // seconds
	marginShare   = 0.25 // of what the server holds: the margin is never more
	marginDecay   = 0.99 // per call, back to the minimum
	marginWidened = 1.5  // by a refusal
	lateCredit    = 0.75 // of the refill while calls come in: they may all come in at once
	rounding      = 1000 // units that a coarse server may have rounded up by
)

// newBucket returns a bucket with a configured rate; 0: none.
func newBucket(perMinute float64, late bool, now time.Time) bucket {
	b := bucket{configured: perMinute, share: 1, late: late, margin: minMargin, last: now}
	b.setRate(perSecond(perMinute))
	b.level = b.max
	return b
}

// perSecond converts a rate. One that is not 0 stays so, however small it is: 0 is no limit.
func perSecond(perMinute float64) float64 {
	if perMinute <= 0 {
		return 0
	}
	return math.Max(perMinute/60, math.SmallestNonzeroFloat64)
}

// setRate sets the rate of the whole account.
func (b *bucket) setRate(perSecond float64) {
	if b.whole != perSecond {
		b.whole, b.rate = perSecond, perSecond*b.share
		b.max = b.burst()
	}
}

// burst returns what may be sent at once when only the rate is known.
func (b *bucket) burst() float64 { return math.Max(1, b.whole*burstSeconds) * b.share }

// refill brings the level up to now. Only time that passes unused is lost above max: what calls give
// back was paid for.
func (b *bucket) refill(now time.Time) {
	if d := now.Sub(b.last).Seconds(); d > 0 && b.level < b.max {
		b.level = math.Min(b.max, b.level+b.rate*d)
	}
	b.last = now
}

// wait returns how long until need may be taken. A need that is larger than the bucket is let
// through when the bucket is full, and leaves a debt.
func (b *bucket) wait(need float64) time.Duration {
	if b.whole <= 0 || need <= 0 {
		return 0
	}
	short := math.Min(need, b.max) - b.level
	switch {
	case short <= 0:
		return 0
	case b.rate <= 0:
		return forever
	}
	wait := math.Ceil(short / b.rate * float64(time.Second))
	if wait >= float64(forever) {
		return forever // a Duration of more would be negative
	}
	return time.Duration(wait)
}

// take spends need.
func (b *bucket) take(need float64) {
	b.sum += need
	b.used += need
	if b.whole > 0 {
		b.level -= need
	}
}

// settle ends a call that took need and really cost real.
func (b *bucket) settle(need, real float64) {
	b.used = math.Max(0, b.used-need)
	b.charged += real
	if b.whole > 0 {
		b.level += need - real
	}
}

// learn corrects the bucket with the server's figures in the answer to a call that took need and
// was sent at sent, when sum was sumThen.
//
// The server's figure is of the moment the call arrived. Since then the bucket was refilled at the
// rate, and what we sent later was taken. A bucket that is charged at the end is known as of now,
// but owes what is in flight, and is refilled while that comes in.
func (b *bucket) learn(w llm.Window, need float64, sent time.Time, sumThen float64, now time.Time) {
	if !w.Known || w.Limit <= 0 {
		return
	}
	old := !b.late && sent.Before(b.asOf) // older than what is known
	if !old {
		b.asOf = sent
	}
	allowed := w.Limit / window(w).Seconds()
	whole := allowed
	if b.configured > 0 {
		whole = math.Min(whole, perSecond(b.configured))
	}
	b.setRate(whole)
	b.held = math.Max(b.held, w.Remaining)
	b.margin = math.Max(minMargin, b.margin*marginDecay)
	margin := (math.Min(whole*b.margin, b.held*marginShare) + b.coarse(w.Remaining)) * b.share
	left := w.Remaining*b.share - margin
	since := b.rate * now.Sub(sent).Seconds()
	if b.late {
		left += since*lateCredit - b.used
	} else {
		left += since - (b.sum - sumThen)
	}
	if whole < allowed {
		// The user allows less than the server does, so only bad news counts.
		b.level = math.Min(b.level, left)
		return
	}
	b.max = math.Max(b.rate*burstSeconds, b.held*b.share-margin)
	// Calls that were sent at the same time may arrive in another order than they were counted in.
	// Then the figure of one of them is too good. So the level falls at once, but one answer raises
	// it by two calls at most.
	left = math.Min(left, b.level+2*need)
	if old {
		left = math.Max(left, b.level) // it may raise the level, but not lower it
	}
	b.level = math.Min(b.max, left)
}

// coarse returns how much less than reported a server that rounds may have left: never less than
// nothing.
func (b *bucket) coarse(remaining float64) float64 {
	if b.fine = b.fine || math.Mod(remaining, rounding) != 0; b.fine {
		return 0
	}
	return math.Min(rounding, remaining)
}

// window returns the time over which a limit counts: a minute, unless the time until it is reset
// shows that it is an hour or a day.
func window(w llm.Window) time.Duration {
	gone := w.Limit - w.Remaining
	if gone < 1 || w.Reset <= 0 {
		return time.Minute
	}
	switch full := w.Reset.Seconds() * w.Limit / gone; {
	case full > 12_000:
		return 24 * time.Hour
	case full > 900:
		return time.Hour
	default:
		return time.Minute
	}
}

// refused notes that the server refused a call although the bucket had room.
func (b *bucket) refused() {
	if b.whole <= 0 {
		return
	}
	b.level = math.Min(b.level, 0)
	b.margin = math.Min(maxMargin, b.margin*marginWidened)
}

// need is what a call takes from each bucket.
type need [buckets]float64

// The buckets of a limiter, in the order of need.
const (
	requests = iota
	tokens   // input and output together
	inputs
	outputs
	buckets
)

// needOf returns what the server will charge for a call, by its way of counting.
func needOf(c provider.Counting, maxTokens int, input, output float64) need {
	all := input + output
	if c != provider.CountUsed {
		all = math.Max(float64(maxTokens), input)
	}
	return need{requests: 1, tokens: all, inputs: input, outputs: output}
}

// chargedFor returns what a call with usage u was charged in the end, given what was taken for it.
func chargedFor(c provider.Counting, taken need, u llm.Usage) need {
	real := need{requests: 1, tokens: taken[tokens], inputs: float64(u.Input), outputs: float64(u.Output)}
	if c == provider.CountUsed {
		real[inputs] = float64(u.Input - u.Cached)
		real[tokens] = real[inputs] + real[outputs]
	}
	return real
}
