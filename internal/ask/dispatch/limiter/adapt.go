package limiter

import (
	"math"
	"time"
)

// adapt finds out how many calls a server can handle at once. It is a plain value of events and
// times.
//
// A refusal is back in milliseconds, an answer takes seconds. So silence is a good sign, and the
// limit grows with time while nothing objects, and only while it is used. What may be sent in the
// time that a refusal takes is bounded by firstStep, or 3% of the limit if that is more: a
// provider that allows few calls refuses about that many, once. Until there are answers, the limit
// stays below a bound too, because a server may queue calls instead of refusing them: see pace.go.
//
// The first refusals end this: see refusals.go. After that, the limit grows only as often as
// refusals can be afforded.
type adapt struct {
	limit    float64
	max      float64
	chosen   float64       // by the user, for all that share the account; 0: nobody has
	share    float64       // of the account that is ours: see scale
	doubling bool          // nothing has objected yet
	reports  bool          // the server reports its load, so the limit grows with answers only
	settles  time.Duration // a call that was not refused by then is accepted
	step     float64       // the least growth in that time
	grew     time.Time     // growth up to then is done
	hold     time.Time     // no growth before
	top      float64       // where an earlier run has stopped; 0: unknown, or reached
	peak     int           // the most calls in flight that were answered
	mean     float64       // recent latency, in seconds
	paces
	refusals
	steering
}

// A provider without a configured limit begins with FirstConcurrency calls in flight. More are
// allowed soon while it refuses none, up to MaxConcurrency.
const (
	FirstConcurrency = 16
	MaxConcurrency   = 10_000
)

const (
	firstStep  = 32                     // calls more in the time a refusal takes
	stepShare  = 0.03                   // of the limit: calls more in that time, if that is more
	knownShare = 0.25                   // of what an earlier run reached: the same
	nearSettle = 10 * time.Millisecond  // the time a refusal takes on this machine
	farSettle  = 200 * time.Millisecond // and elsewhere, where it may need a new connection
	maxSettle  = time.Second
	growths    = 8 // in the time a refusal takes
	answerStep = 0.05
	adaptCut   = 0.8
	adaptHold  = 15 * time.Second
)

// Start is what is known about a server before the first call.
type Start struct {
	// Near means that the server is on this machine, where a refusal is back sooner.
	Near bool
	// Reports means that the server reports its load: see Steer.
	Reports bool
	// Known is what an earlier run found out. Default: nothing.
	Known Level
}

// Level is how many calls a server has handled at once.
type Level struct {
	InFlight int
	// Limited means that it objected to more. Otherwise nobody tried.
	Limited bool
}

// newAdapt returns a controller. A limit that the user has chosen is where it starts, and its
// maximum.
func newAdapt(chosen int, s Start) adapt {
	a := adapt{
		limit: FirstConcurrency, max: MaxConcurrency, share: 1, doubling: true, reports: s.Reports, settles: farSettle,
		step: math.Max(firstStep, knownShare*float64(s.Known.InFlight)),
	}
	a.room, a.roundEnd, a.tried = math.Max(firstRoom, float64(s.Known.InFlight)), FirstConcurrency, true
	if s.Near {
		a.settles = nearSettle
	}
	switch known := float64(s.Known.InFlight); {
	case chosen > 0:
		a.choose(chosen)
	case s.Known.Limited && known > 0:
		// It may allow less now, so more than the first calls are not sent at once.
		a.top = math.Min(known, a.max)
		a.limit = math.Min(a.limit, a.top)
		a.atTop()
	}
	return a
}

// choose sets the limit that the user has chosen.
func (a *adapt) choose(n int) {
	a.limit, a.max, a.doubling, a.tried, a.ceiling = float64(n), float64(n), false, false, 0
	a.chosen = a.max
}

// atTop ends the growth at the level that an earlier run has found.
func (a *adapt) atTop() {
	if a.top > 0 && a.limit >= a.top {
		a.stopDoubling()
		a.ceiling, a.tried, a.owed, a.top = a.limit+1, false, answersForRefusal, 0
	}
}

// bound returns what the limit may grow to by time alone.
func (a *adapt) bound() float64 {
	b := math.Min(a.max, a.room)
	if a.top > 0 {
		b = math.Min(b, a.top)
	}
	return b
}

// allows reports whether one more call may be sent. Where the rates are known, pace is how many
// calls must be in flight to reach them. That many are always allowed, unless the server has
// refused calls for another reason than its rates.
func (a *adapt) allows(inFlight int, pace float64, now time.Time) bool {
	a.grow(inFlight, now)
	limit := math.Max(1, a.limit*a.scale())
	if a.cut.IsZero() && a.reported.IsZero() && a.ceiling == 0 {
		limit = math.Max(limit, math.Min(pace, a.max))
	}
	if a.chosen > 0 {
		limit = math.Min(limit, a.chosen*a.share+1e-6) // a share of 0.1 must allow one of ten
	}
	return inFlight < int(limit)
}

// grow raises the limit by the time that has passed while it was used and nothing objected.
func (a *adapt) grow(inFlight int, now time.Time) {
	if !a.doubling || a.reports {
		return
	}
	passed := min(now.Sub(a.grew), a.settles)
	if !a.used(inFlight) || a.grew.IsZero() || now.Before(a.hold) || a.slowed() {
		passed = 0
	}
	a.grew = now
	if top := a.bound(); a.limit < top && passed > 0 {
		step := math.Min(a.limit*math.Ln2, math.Max(a.step, stepShare*a.limit))
		a.limit = math.Min(top, a.limit+step*passed.Seconds()/a.settles.Seconds())
		a.atTop()
	}
}

// used reports whether so many calls in flight use the limit.
func (a *adapt) used(inFlight int) bool {
	return float64(inFlight) >= 0.9*math.Floor(math.Max(1, a.limit*a.scale()))
}

// scale returns how much of the limit is ours. While nothing has objected yet, the limit is that of all
// who share the account, so that together they try no more than one would. After that each has its own.
func (a *adapt) scale() float64 {
	if a.doubling && !a.reports && a.cut.IsZero() {
		return a.share
	}
	return 1
}

// stopDoubling ends the growth by time. The limit is our own from now on.
func (a *adapt) stopDoubling() {
	a.limit, a.doubling = a.limit*a.scale(), false
}

// next returns when the limit may have grown: forever if only answers can raise it.
func (a *adapt) next(now time.Time) time.Duration {
	if !a.doubling || a.reports || a.limit >= a.bound() {
		return forever
	}
	return max(a.settles/growths, a.hold.Sub(now))
}

// succeeded notes the answer to p, with inFlight calls at the time, this one included.
func (a *adapt) succeeded(p *Permit, inFlight int, now time.Time) {
	latency := now.Sub(p.sent)
	if a.mean == 0 {
		a.mean = latency.Seconds()
	}
	a.mean += answerStep * (latency.Seconds() - a.mean)
	if p.sent.After(a.cut) {
		a.peak = max(a.peak, p.level)
	}
	a.judge(p, latency, now)
	a.answers++
	a.recovered(p)
	a.accepted()
	if !a.used(inFlight) || now.Before(a.hold) || a.steered(now) {
		return
	}
	step := 0.0
	switch {
	case a.doubling && a.reports:
		step = 1
	case a.doubling, a.owed > 0, a.slowed():
	default:
		step = math.Max(answerStep, 1/a.limit)
	}
	if step > 0 && a.limit < a.max {
		a.limit, a.tried = math.Min(a.max, a.limit+step), true
	}
	if a.ceiling > 0 && a.limit > outgrown*a.ceiling && a.limit > FirstConcurrency {
		a.ceiling, a.doubling = 0, true // the server allows more than it did
	}
}

// RampTime returns about how long it takes until n calls are in flight at a distant server that
// accepts them all and answers after latency.
func RampTime(n float64, latency time.Duration) (d time.Duration) {
	a := newAdapt(0, Start{})
	for n = math.Min(n, MaxConcurrency); a.limit < n; d += a.settles {
		a.limit += math.Min(a.limit*math.Ln2, math.Max(a.step, stepShare*a.limit))
	}
	if n > firstRoom {
		d = max(d, latency)
	}
	return d
}

// level returns what a later run should know.
func (a *adapt) level() Level {
	if !a.doubling && (a.ceiling > 0 || a.shrunk) && a.peak > 0 {
		return Level{InFlight: max(1, int(a.limit)), Limited: true}
	}
	return Level{InFlight: a.peak}
}
