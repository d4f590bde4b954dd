package dispatch

import (
	"math"
	"time"

	"parley/llm"
)

// bucket models one limit of a server: so many units a minute, refilled
// continuously. It is a plain value of time and counts: no lock, no clock of its own.
//
// Two sources feed it. What the user told gives the rate. What the server says in
// its headers gives the rate where the user told none, and how much is really left,
// so that a bucket shared with somebody else, or a wrong estimate of tokens, is
// corrected call by call.
type bucket struct {
	told  float64 // units a minute by configuration; 0: not told
	rate  float64 // units a second in force; 0: no limit known
	level float64 // units that may be spent now; negative is debt
	most  float64 // what level may grow to
	last  time.Time
	sum   float64   // all that was ever taken
	used  float64   // taken by calls still in flight
	asOf  time.Time // when the call was sent whose answer was learned from last
	// late is whether the server charges at the end of a call (output tokens as they
	// are produced) and not at its arrival.
	late bool
	// fine is whether the server was ever seen to count exactly: some round what is left to
	// the nearest thousand.
	fine bool
	// held is the most the server was ever seen to have left: it can have that again.
	held float64
	// margin is how many seconds' worth is left to the server untouched, for the
	// jitter between its clock and ours. A refusal widens it for a while.
	margin float64
}

const (
	burstSeconds  = 0.1  // what may be sent at once when only the rate is known
	marginSeconds = 0.25 // the least margin
	marginMost    = 1.0  // the widest
	marginShare   = 0.25 // of what the server holds: a margin is never more
	marginDecay   = 0.99 // a call, back to the least
	lateCredit    = 0.75 // of the refill while calls come in: they may all come in at once
)

// newBucket returns a bucket told perMinute (0: nothing).
func newBucket(perMinute float64, late bool, now time.Time) bucket {
	b := bucket{told: perMinute, late: late, margin: marginSeconds, last: now}
	b.setRate(perMinute / 60)
	b.level = b.most
	return b
}

func (b *bucket) setRate(perSecond float64) {
	if b.rate == perSecond {
		return
	}
	b.rate = perSecond
	b.most = math.Max(1, perSecond*burstSeconds)
}

// refill brings the level up to now.
func (b *bucket) refill(now time.Time) {
	if d := now.Sub(b.last).Seconds(); d > 0 {
		b.level = math.Min(b.most, b.level+b.rate*d)
	}
	b.last = now
}

// wait returns how long until need may be taken. A need larger than the bucket ever
// holds is let through when it is full, and leaves a debt.
func (b *bucket) wait(need float64) time.Duration {
	if b.rate <= 0 || need <= 0 {
		return 0
	}
	short := math.Min(need, b.most) - b.level
	if short <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(short / b.rate * float64(time.Second)))
}

// take spends need.
func (b *bucket) take(need float64) {
	b.sum += need
	b.used += need
	if b.rate > 0 {
		b.level -= need
	}
}

// settle ends a call that took need and really cost real.
func (b *bucket) settle(need, real float64) {
	b.used = math.Max(0, b.used-need)
	if b.rate > 0 {
		b.level = math.Min(b.most, b.level+need-real)
	}
}

// learn corrects the bucket by what the server said of it with the answer to a call
// that took need and was sent at time sent, when sum was sumThen.
//
// The server's figure is of the moment the call arrived; since then it refilled at
// the rate, and what we sent after it was taken. A bucket charged at the end is known
// as of now, but owes what is in flight, and refills while that comes in.
func (b *bucket) learn(w llm.Window, need float64, sent time.Time, sumThen float64, now time.Time) {
	if !w.Known || w.Limit <= 0 {
		return
	}
	old := !b.late && sent.Before(b.asOf) // older news than we have
	if !old {
		b.asOf = sent
	}
	allowed := w.Limit / window(w).Seconds()
	rate := allowed
	if b.told > 0 {
		rate = math.Min(rate, b.told/60)
	}
	b.setRate(rate)
	b.held = math.Max(b.held, w.Remaining)
	b.margin = math.Max(marginSeconds, b.margin*marginDecay)
	margin := math.Min(rate*b.margin, b.held*marginShare) + b.coarse(w.Remaining)
	left := w.Remaining - margin
	since := rate * now.Sub(sent).Seconds()
	if b.late {
		left += since*lateCredit - b.used
	} else {
		left += since - (b.sum - sumThen)
	}
	if rate < allowed {
		// The user allows less than the server does, so only bad news counts.
		b.level = math.Min(b.level, left)
		return
	}
	b.most = math.Max(rate*burstSeconds, b.held-margin)
	// Calls sent at one moment may arrive in another order than they were counted in, and
	// then the figure of one of them is too good: fall at once, but let no answer vouch for
	// more than two further calls.
	left = math.Min(left, b.level+2*need)
	if old {
		left = math.Max(left, b.level) // it may still vouch, but takes nothing back
	}
	b.level = math.Min(b.most, left)
}

// coarse returns how much less than it says a server may have left for rounding, to be sure.
func (b *bucket) coarse(remaining float64) float64 {
	if b.fine = b.fine || math.Mod(remaining, 1000) != 0; b.fine {
		return 0
	}
	return 1000
}

// window returns the time over which a limit counts: a minute, unless the time it
// takes to come back shows that it is an hour or a day.
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

// refused notes that the server said no although the bucket thought it had room.
func (b *bucket) refused() {
	if b.rate <= 0 {
		return
	}
	b.level = math.Min(b.level, 0)
	b.margin = math.Min(marginMost, b.margin*1.5)
}
