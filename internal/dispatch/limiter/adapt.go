package limiter

import (
	"math"
	"time"
)

// adapt finds out how many calls a server can handle at once. It is a plain value of events and
// times.
//
// It starts low and doubles every round trip until the server objects, or until more calls no
// longer bring more answers. Then it grows by a twentieth a round. A refusal cuts it by a fifth,
// once for all calls that were in flight at the time. It grows only while the limit is used.
type adapt struct {
	limit    float64
	max      float64
	doubling bool
	cut      time.Time // time of the last cut: calls sent before it cannot cause another
	hold     time.Time // no growth before
	roundEnd float64   // successes left in this round trip
	roundSum float64   // of latencies in this round, in seconds
	roundN   float64
	best     float64 // lowest mean latency of any round, in seconds
	mean     float64 // recent latency, in seconds
	steering
}

// A provider without a configured limit begins with FirstConcurrency calls in flight. That doubles
// each round while the server can handle it, up to MaxConcurrency.
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

// newAdapt returns a controller. A limit that the user has chosen is where it starts, and its
// maximum.
func newAdapt(chosen int) adapt {
	a := adapt{limit: FirstConcurrency, max: MaxConcurrency, doubling: true, roundEnd: FirstConcurrency}
	if chosen > 0 {
		a.limit, a.max, a.doubling = float64(chosen), float64(chosen), false
	}
	return a
}

// allows reports whether one more call may be sent. Where the rates are known, pace is how many
// calls must be in flight to reach them. That many are always allowed, unless the server has
// refused calls for another reason than its rates.
func (a *adapt) allows(inFlight int, pace float64) bool {
	limit := math.Max(1, a.limit)
	if a.cut.IsZero() && a.reported.IsZero() {
		limit = math.Max(limit, math.Min(pace, a.max))
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
	if a.doubling {
		step = 1
	}
	a.limit = math.Min(a.max, a.limit+step)
}

// endRound stops the doubling when answers take several times as long as with few calls.
func (a *adapt) endRound() {
	mean := a.roundSum / a.roundN
	a.roundEnd, a.roundSum, a.roundN = math.Max(FirstConcurrency, a.limit), 0, 0
	if a.best == 0 || mean < a.best {
		a.best = mean
	}
	if a.doubling && mean > adaptCrowded*a.best {
		a.doubling = false
	}
}

// refused notes that the server refused a call sent at sent, for no rate that is known, or did not
// answer it in time.
func (a *adapt) refused(sent, now time.Time) {
	if sent.Before(a.cut) {
		return
	}
	a.cut = now
	a.doubling = false
	a.limit = math.Max(1, a.limit*adaptCut)
}

// overloaded notes that the server is short of capacity: the limit stays, and does not grow for a
// while.
func (a *adapt) overloaded(now time.Time) { a.hold = now.Add(adaptHold) }
