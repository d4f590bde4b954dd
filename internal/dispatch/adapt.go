package dispatch

import (
	"math"
	"time"
)

// adapt finds how many calls a server bears at once. It is a plain value of events
// and times.
//
// It starts low and doubles every round trip until the server objects or more calls
// no longer bring more answers, then grows by a twentieth a round. A refusal cuts it by
// a fifth, once for all calls that were in flight at the time. It grows only while the
// limit is really used.
type adapt struct {
	limit    float64
	most     float64
	slow     bool      // still doubling
	cut      time.Time // of the last cut: calls sent before it cannot cause another
	hold     time.Time // no growth before
	roundEnd float64   // successes left in this round trip
	roundSum float64   // of latencies in this round, seconds
	roundN   float64
	best     float64 // least mean latency of any round, seconds
	mean     float64 // latency of late, seconds
	steering
}

// How many calls are in flight at a provider whose limit nobody gives: FirstConcurrency to begin
// with, twice as many each round while the server bears it, and never more than MaxConcurrency.
const (
	FirstConcurrency = 16
	MaxConcurrency   = 10_000
)

const (
	adaptCut     = 0.8
	adaptStep    = 0.05
	adaptHold    = 15 * time.Second
	adaptCrowded = 4 // times the best mean latency: the server only queues
)

// newAdapt returns a controller. A limit chosen by the user is where it starts and
// the most it allows.
func newAdapt(chosen int) adapt {
	a := adapt{limit: FirstConcurrency, most: MaxConcurrency, slow: true, roundEnd: FirstConcurrency}
	if chosen > 0 {
		a.limit, a.most, a.slow = float64(chosen), float64(chosen), false
	}
	return a
}

// allows says whether one more call may go out. Where the rates are known, pace is how
// many calls in flight it takes to reach them, and so many are always allowed, unless
// the server refused calls for another reason than its rates.
func (a *adapt) allows(inFlight int, pace float64) bool {
	limit := math.Max(1, a.limit)
	if a.cut.IsZero() && a.told.IsZero() {
		limit = math.Max(limit, math.Min(pace, a.most))
	}
	return inFlight < int(limit)
}

// succeeded notes an answer after latency, with inFlight calls at the time, this one included.
func (a *adapt) succeeded(inFlight int, latency time.Duration, now time.Time) {
	if a.mean == 0 {
		a.mean = latency.Seconds()
	}
	a.mean += adaptStep * (latency.Seconds() - a.mean)
	a.roundSum += latency.Seconds()
	a.roundN++
	if a.roundEnd--; a.roundEnd <= 0 {
		a.endRound()
	}
	a.answers++
	if float64(inFlight) < 0.9*math.Floor(a.limit) || now.Before(a.hold) || a.steered(now) {
		return
	}
	step := math.Max(adaptStep, 1/a.limit)
	if a.slow {
		step = 1
	}
	a.limit = math.Min(a.most, a.limit+step)
}

// endRound looks at the round's mean latency: doubling goes on only while answers
// do not take several times as long as they did when there were few calls.
func (a *adapt) endRound() {
	mean := a.roundSum / a.roundN
	a.roundEnd, a.roundSum, a.roundN = math.Max(FirstConcurrency, a.limit), 0, 0
	if a.best == 0 || mean < a.best {
		a.best = mean
	}
	if a.slow && mean > adaptCrowded*a.best {
		a.slow = false
	}
}

// refused notes that the server refused a call sent at sent, for no rate that we know
// of, or that it did not answer in time.
func (a *adapt) refused(sent, now time.Time) {
	if sent.Before(a.cut) {
		return
	}
	a.cut = now
	a.slow = false
	a.limit = math.Max(1, a.limit*adaptCut)
}

// overloaded notes that the server is short of capacity: nothing of ours to shrink,
// but no time to grow.
func (a *adapt) overloaded(now time.Time) { a.hold = now.Add(adaptHold) }
