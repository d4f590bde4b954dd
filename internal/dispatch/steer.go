package dispatch

import (
	"math"
	"time"

	"parley/internal/replica"
	"parley/llm"
)

const (
	steerFor   = 15 * time.Second // what a server said of itself counts so long
	steerEmpty = 0.3              // of the cache: there is room for plenty
	steerRoom  = 0.6              // below this much of the cache in use, more calls may come
	steerFull  = 0.9              // from this much on, fewer must
	steerStep  = 1.25             // growth, once a limit was found
	steerWait  = 5 * time.Second  // between two steps without a round of answers
	steerQueue = 6                // looks in a row at a long queue before there are fewer
)

// steering is what adapt knows of a server that tells how busy it is.
type steering struct {
	told      time.Time // when it last did
	preempted float64   // as it last told
	queued    int       // looks in a row at a long queue
	answers   int       // since the limit last grew
	grown     time.Time
}

// steered says whether the limit follows what the server says of itself.
func (a *adapt) steered(now time.Time) bool {
	return !a.told.IsZero() && now.Sub(a.told) < steerFor
}

// steer sets the limit by what the server says of itself, with used the most calls of ours
// that were in flight since it last did, and inFlight those that are now. It doubles, and
// later grows by a quarter, a round of answers at a time, while the limit is used, nothing
// waits in the server and its cache has room. A cache that overflows cuts it by a fifth,
// and a queue that stays long by a tenth; not twice before the first cut has worked.
func (a *adapt) steer(load replica.Load, used, inFlight int, now time.Time) {
	first := a.told.IsZero()
	overflows := load.Cache >= steerFull || (!first && load.Preempted > a.preempted)
	a.told, a.preempted = now, load.Preempted
	if load.Waiting > math.Max(1, load.Running/2) {
		a.queued++
	} else {
		a.queued = 0
	}
	if overflows || load.Waiting > 0 {
		a.slow = false
	}
	switch {
	case overflows && inFlight <= int(a.limit):
		a.lower(adaptCut)
	case a.queued >= steerQueue && inFlight <= int(a.limit):
		a.lower(1 - (1-adaptCut)/2)
	case overflows || load.Waiting > 0 || load.Cache >= steerRoom || float64(used) < 0.9*math.Floor(a.limit):
	case a.answers >= used || (load.Cache < steerEmpty && now.Sub(a.grown) >= steerWait):
		step := steerStep
		if a.slow {
			step = 2
		}
		a.limit = math.Min(a.most, math.Max(a.limit+1, a.limit*step))
		a.answers, a.grown = 0, now
	}
}

func (a *adapt) lower(by float64) {
	a.limit, a.queued = math.Max(1, a.limit*by), 0
}

// steer takes how busy the server says it is.
func (l *limit) steer(load replica.Load) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapt.steer(load, l.peak, l.inFlight, now)
	l.peak = l.inFlight
	l.pump(now)
}

// recall makes all that waits fail with replica.ErrRecalled: another server may have room.
func (l *limit) recall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.Len() > 0 {
		p := l.queue.Head()
		p.err = &llm.Error{Kind: llm.KindOverloaded, Message: "its server is out of service", Err: replica.ErrRecalled}
		l.queue.Pop()
		close(p.ready)
	}
}
