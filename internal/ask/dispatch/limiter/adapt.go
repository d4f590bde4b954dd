package limiter

import (
	"math"
	"time"

	"parley/internal/ask/dispatch/replica"
)

// adapt finds out how many calls a server can handle at once. It is a plain value of events and
// times.
//
// A refusal is back in milliseconds, an answer takes seconds. So silence is a good sign, and the
// limit grows with time while nothing objects, and only while it is used. What may be sent in the
// time that a refusal takes is bounded by firstStep, or 3% of the limit if that is more: a
// provider that allows few calls refuses about that many, once. Until there are answers, the limit
// stays below a bound too, because a server may queue calls instead of refusing them: see latencies.
//
// The first refusals end this: see refusals. After that, the limit grows only as often as
// refusals can be afforded.
type adapt struct {
	limit    float64
	max      float64
	chosen   float64       // by the user, for all that share the account; 0: nobody has
	share    float64       // of the account that is ours: see scale
	doubling bool          // nothing has objected yet
	reports  bool          // the server reports its load, so the limit grows with answers only
	settles  time.Duration // a call that was not refused by then is accepted
	grew     time.Time     // growth up to then is done
	hold     time.Time     // no growth before
	peak     int           // the most calls in flight that were answered
	mean     float64       // recent latency, in seconds
	latencies
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
	firstStep    = 32                     // calls more in the time a refusal takes
	stepShare    = 0.03                   // of the limit: calls more in that time, if that is more
	nearSettle   = 10 * time.Millisecond  // the time a refusal takes on this machine
	farSettle    = 200 * time.Millisecond // and elsewhere, where it may need a new connection
	maxSettle    = time.Second
	growths      = 8 // in the time a refusal takes
	answerStep   = 0.05
	cutFactor    = 0.8
	overloadHold = 15 * time.Second
)

// Start is what is known about a server before the first call.
type Start struct {
	// Near means that the server is on this machine, where a refusal is back sooner.
	Near bool
	// Reports means that the server reports its load: see Steer.
	Reports bool
}

// newAdapt returns a controller. A limit that the user has chosen is where it starts, and its
// maximum.
func newAdapt(chosen int, s Start) adapt {
	a := adapt{
		limit: FirstConcurrency, max: MaxConcurrency, share: 1, doubling: true, reports: s.Reports, settles: farSettle,
	}
	a.room, a.roundEnd, a.tried = firstRoom, FirstConcurrency, true
	if s.Near {
		a.settles = nearSettle
	}
	if chosen > 0 {
		a.setConcurrency(chosen)
	}
	return a
}

// setConcurrency sets the limit that the user has chosen.
func (a *adapt) setConcurrency(n int) {
	a.limit, a.max, a.doubling, a.tried, a.ceiling = float64(n), float64(n), false, false, 0
	a.chosen = a.max
}

// bound returns what the limit may grow to by time alone.
func (a *adapt) bound() float64 { return math.Min(a.max, a.room) }

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
		step := math.Min(a.limit*math.Ln2, math.Max(firstStep, stepShare*a.limit))
		a.limit = math.Min(top, a.limit+step*passed.Seconds()/a.settles.Seconds())
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
		a.limit += math.Min(a.limit*math.Ln2, math.Max(firstStep, stepShare*a.limit))
	}
	if n > firstRoom {
		d = max(d, latency)
	}
	return d
}

// latencies is what adapt knows of a server's latency. Only comparable calls are compared: the first
// ones show the latency of a server with little to do, and those sent before these were answered
// show whether it has slowed down. Later calls may be longer, so they cannot shrink the limit.
type latencies struct {
	firstSum    float64 // of the latencies of the first calls that were answered, in seconds
	firstN      float64
	firstEnded  int
	base        float64   // their mean, once all have ended
	known       time.Time // when base was known
	began       time.Time // when the first call was sent
	answered    float64
	slow, quick int     // of the calls sent before known, in this window
	room        float64 // what the limit may grow to by time alone: more when answers are quick
	full        int     // quick answers to calls that took nearly all the room
	shrunk      bool    // the server queued calls, and the limit was lowered
	roundEnd    float64 // answers left in this round trip
	roundSum    float64 // of latencies in this round, in seconds
	roundN      float64
	lowest      float64 // lowest mean latency of a round, in seconds
}

const (
	firstRoom   = 1024 // so many calls in flight are presumed harmless
	quickRoom   = 4    // times the calls in flight of a quick answer: the room
	fullRoom    = 16   // the same, if that took nearly all the room that there was: the server has not begun to queue
	nearlyAll   = 0.9
	fullAnswers = 64  // so many of those calls must be answered quickly
	quickTime   = 1.5 // times base: an answer within it is quick
	slowTime    = 2   // times base: one after it is slow
	slowWindow  = 2 * FirstConcurrency
	crowdedTime = 4 // times the lowest mean latency of a round: the server only queues
	slackTime   = 3 // times the lowest mean latency: no growth
	lowestDrift = 1.005
	minShare    = 0.001
	slotSpare   = 2 // times the calls that a queueing server works on: its limit
)

// judge learns from the latency of an answer.
func (a *adapt) judge(p *Permit, latency time.Duration, now time.Time) {
	s := latency.Seconds()
	if a.began.IsZero() || p.sent.Before(a.began) {
		a.began = p.sent
	}
	a.answered++
	a.firstDone(p, s, now)
	if a.base == 0 || s <= quickTime*a.base {
		a.makeRoom(p)
	}
	switch {
	case a.reports, a.base > 0 && !p.sent.Before(a.known):
		a.round(s)
	case a.base > 0 && a.doubling && p.level > FirstConcurrency:
		a.compare(s, now)
	}
}

// makeRoom raises the room after a quick answer. Where a server queues, a few short answers are quick too. So the large step needs
// many of them.
func (a *adapt) makeRoom(p *Permit) {
	level, factor := float64(p.level)/math.Max(a.scale(), minShare), float64(quickRoom)
	if a.base > 0 && level >= nearlyAll*p.room {
		if a.full++; a.full >= fullAnswers {
			factor = fullRoom
		}
	}
	a.room = math.Max(a.room, factor*level)
}

// firstDone notes that one of the first calls has ended; seconds is 0 if it failed.
func (a *adapt) firstDone(p *Permit, seconds float64, now time.Time) {
	if a.base > 0 || p.level > FirstConcurrency {
		return
	}
	a.firstEnded++
	if seconds > 0 {
		a.firstSum += seconds
		a.firstN++
	}
	if a.firstEnded >= FirstConcurrency && a.firstN > 0 {
		a.base, a.known = a.firstSum/a.firstN, now
		a.lowest = a.base
		mean := time.Duration(a.base * float64(time.Second))
		a.settles = max(min(a.settles, mean), nearSettle) // a refusal is back before an answer
	}
}

// compare judges a call that was sent while nothing was known. If most of them are slow, the server
// queues them, and the limit becomes about what it works on at once.
func (a *adapt) compare(s float64, now time.Time) {
	if s > slowTime*a.base {
		a.slow++
	} else {
		a.quick++
	}
	if a.slow+a.quick < slowWindow {
		return
	}
	if a.slow > a.quick {
		perSecond := a.answered / math.Max(now.Sub(a.began).Seconds(), 1e-3)
		a.stopDoubling()
		a.shrunk = true
		a.limit = math.Min(a.limit, math.Max(FirstConcurrency, slotSpare*perSecond*a.base))
	}
	a.slow, a.quick = 0, 0
}

// round counts an answer, and at the end of a round trip stops the doubling if answers take several
// times as long as with few calls.
func (a *adapt) round(s float64) {
	a.roundSum += s
	a.roundN++
	if a.roundEnd--; a.roundEnd > 0 {
		return
	}
	mean := a.roundSum / a.roundN
	a.roundEnd, a.roundSum, a.roundN = math.Max(FirstConcurrency, a.limit), 0, 0
	if a.lowest *= lowestDrift; a.lowest == 0 || mean < a.lowest {
		a.lowest = mean
	}
	if a.doubling && mean > crowdedTime*a.lowest {
		a.stopDoubling()
		a.shrunk = true
	}
}

// slowed reports whether answers take much longer than they did.
func (a *adapt) slowed() bool { return a.lowest > 0 && a.mean > slackTime*a.lowest }

const (
	steerFor   = 15 * time.Second // how long a server's report of its load counts
	steerEmpty = 0.3              // of the cache: there is plenty of room
	steerRoom  = 0.6              // below this much of the cache in use, the limit may grow
	steerFull  = 0.9              // from this much on, it must shrink
	steerStep  = 1.25             // growth, once a limit was found
	steerWait  = 5 * time.Second  // between two steps without a round of answers
	steerQueue = 6                // consecutive reports of a long queue before the limit shrinks
)

// steering is what adapt knows of a server that reports its load.
type steering struct {
	reported  time.Time // when it last did
	preempted float64   // in the last report
	queued    int       // consecutive reports of a long queue
	answers   int       // since the limit last grew
	grown     time.Time
}

// steered reports whether the limit follows the server's reports.
func (a *adapt) steered(now time.Time) bool {
	return !a.reported.IsZero() && now.Sub(a.reported) < steerFor
}

// steer sets the limit from the load that the server reports. used is the largest number of our
// calls in flight since the last report, inFlight the number now.
//
// The limit doubles, and later grows by a quarter, one round of answers at a time, while it is
// used, nothing waits in the server and its cache has room. A cache that overflows cuts it by a
// fifth, and a queue that stays long by a tenth; a second cut waits until the first has worked.
func (a *adapt) steer(load replica.Load, used, inFlight int, now time.Time) {
	first := a.reported.IsZero()
	overflows := load.Cache >= steerFull || (!first && load.Preempted > a.preempted)
	a.reported, a.preempted = now, load.Preempted
	if load.Waiting > math.Max(1, load.Running/2) {
		a.queued++
	} else {
		a.queued = 0
	}
	if overflows || load.Waiting > 0 {
		a.stopDoubling()
	}
	switch {
	case overflows && inFlight <= int(a.limit):
		a.lower(cutFactor)
	case a.queued >= steerQueue && inFlight <= int(a.limit):
		a.lower(1 - (1-cutFactor)/2)
	case overflows || load.Waiting > 0 || load.Cache >= steerRoom || !a.used(used):
	case a.answers >= used || (load.Cache < steerEmpty && now.Sub(a.grown) >= steerWait):
		step := steerStep
		if a.doubling {
			step = 2
		}
		a.limit = math.Min(a.max, math.Max(a.limit+1, a.limit*step))
		a.answers, a.grown = 0, now
	}
}

func (a *adapt) lower(by float64) {
	a.limit, a.queued = math.Max(1, a.limit*by), 0
}
