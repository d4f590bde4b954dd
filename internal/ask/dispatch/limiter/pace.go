package limiter

import (
	"math"
	"time"
)

// paces is what adapt knows of a server's latency. Only comparable calls are compared: the first
// ones show the latency of a server with little to do, and those sent before these were answered
// show whether it has slowed down. Later calls may be longer, so they cannot shrink the limit.
type paces struct {
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
