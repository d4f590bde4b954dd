package limiter

import (
	"math"
	"time"

	"parley/internal/ask/dispatch/replica"
)

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
		a.lower(adaptCut)
	case a.queued >= steerQueue && inFlight <= int(a.limit):
		a.lower(1 - (1-adaptCut)/2)
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
