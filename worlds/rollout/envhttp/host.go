package envhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/internal/kit/health"
	"parley/llm"
)

// host is a Host and its state. envPool.mu guards all of it.
type host struct {
	Host
	health.Health
	limit   adaptiveLimit // for sessions
	load    int           // sessions there or being made
	opening int           // of those, sessions being made
	acting  int           // requests of sessions in flight, other than those that make them
	made    int
	failed  int
	trips   int       // how often it went down
	why     string    // its last failure; empty after a success
	full    bool      // it has no room for now
	share   float64   // the part of it that is ours; 1: nobody else plays the run
	until   time.Time // the share ends then; zero: never
	checked time.Time
	check   bool // a check is running
}

// policy says when a host goes down. Its pauses are short enough that a host that is back is found while
// somebody still waits.
func policy(patience time.Duration) *health.Policy {
	return &health.Policy{
		Failures: 5, First: time.Second, Max: min(time.Minute, patience/4),
		Window: 50, MinSamples: 20, FailedShare: 0.8, SilentShare: 0.5,
	}
}

const (
	fullPause  = time.Second      // before a full host is tried again
	checkEvery = time.Minute      // how often a host that is up is checked for sessions that were left behind
	checkTime  = 10 * time.Second // how long a check may take
)

// hostResult returns what the end of a request says about the host. known is false if it says nothing.
func hostResult(err error) (r health.Result, known bool) {
	switch llm.KindOf(err) {
	case "":
		return health.OK, true
	case llm.KindTimeout:
		return health.Silent, true
	case llm.KindTransport, llm.KindServer, llm.KindMalformed, llm.KindInvalid:
		return health.Failed, true
	default:
		return health.OK, false
	}
}

// report records the result of a request to a host.
func (p *envPool) report(ctx context.Context, h *host, err error) {
	if ctx.Err() != nil && err != nil {
		return // it was canceled, which says nothing about the host
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if llm.KindOf(err) == llm.KindOverloaded && !h.full && p.shut == nil {
		h.full = true
		h.limit.refused(h.load - h.opening)
		p.updateCapacity()
		p.noteAllDown()
		p.later(ctx, func(ctx context.Context) { p.pauseFull(ctx, h) })
		return
	}
	r, known := hostResult(err)
	if !known {
		return
	}
	h.why = ""
	if r != health.OK {
		h.failed++
		h.why = failureReason(err)
	}
	if k := llm.KindOf(err); (k == llm.KindMalformed || k == llm.KindInvalid) && !p.othersUp(h) {
		p.serveWaiters()
		return // it answers, and a pause would not change its answers
	}
	if !h.Down() && h.Record(p.policy, r, time.Now()) {
		h.trips++
		h.limit.restart()
		p.updateCapacity()
		p.noteAllDown()
		if p.shut == nil {
			p.later(ctx, func(ctx context.Context) { p.probeUntilUp(ctx, h) })
		}
	}
	p.serveWaiters()
}

// othersUp reports whether a host other than h can be used. envPool.mu is held.
func (p *envPool) othersUp(h *host) bool {
	return slices.ContainsFunc(p.hosts, func(o *host) bool { return o != h && !o.Down() })
}

// failureReason returns why a request failed: the system's error if there is one, otherwise the message.
func failureReason(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return llm.AsError(err).Message
}

// later runs f in the background. envPool.mu is held.
func (p *envPool) later(ctx context.Context, f func(ctx context.Context)) {
	p.mu.Unlock()
	defer p.mu.Lock()
	p.background(ctx, f)
}

// noteAllDown updates since when no host can be used. envPool.mu is held.
func (p *envPool) noteAllDown() {
	if slices.ContainsFunc(p.hosts, func(h *host) bool { return !h.Down() && !h.full }) {
		p.allDownSince = time.Time{}
	} else if p.allDownSince.IsZero() {
		p.allDownSince = time.Now()
	}
}

// pauseFull waits a moment before a full host is used again.
func (p *envPool) pauseFull(ctx context.Context, h *host) {
	_ = p.pause(ctx, p.between(fullPause/2, fullPause)) // in both cases it may be tried again
	p.mu.Lock()
	defer p.mu.Unlock()
	h.full = false
	h.limit.raise()
	p.updateCapacity()
	p.noteAllDown()
	p.serveWaiters()
}

// probeUntilUp probes a host that is down after each pause, until it answers.
func (p *envPool) probeUntilUp(ctx context.Context, h *host) {
	for up := false; !up; {
		p.mu.Lock()
		pause := time.Until(h.Until())
		p.mu.Unlock()
		if p.pause(ctx, p.between(pause/2, pause)) != nil {
			return
		}
		up = p.probe(ctx, h)
		p.mu.Lock()
		h.Probed(p.policy, up, time.Now())
		p.noteAllDown()
		p.serveWaiters()
		p.mu.Unlock()
	}
}

// probe reports whether a host answers.
func (p *envPool) probe(ctx context.Context, h *host) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, min(p.Timeout, checkTime), &llm.Error{Kind: llm.KindTimeout, Message: h.Name() + ": no answer to a check"})
	defer cancel()
	return h.Check(ctx, p.stray) == nil
}

// checkStrays checks a host from time to time for sessions that were left behind. envPool.mu is held.
func (p *envPool) checkStrays(ctx context.Context, h *host) {
	if h.check || !h.checked.IsZero() && time.Since(h.checked) < checkEvery {
		return
	}
	h.check = true
	p.later(ctx, func(ctx context.Context) {
		_ = p.probe(ctx, h) // a failure shows with the next request
		p.mu.Lock()
		defer p.mu.Unlock()
		h.check, h.checked = false, time.Now()
	})
}

// freeHost returns the host with the fewest sessions of those that have room, or nil.
func (p *envPool) freeHost() *host {
	now := time.Now()
	room := func(h *host) bool { return !h.full && h.load < h.slots(p.PerHost, now) && h.Accepts(h.opening) }
	if best := health.Least(p.hosts, room, func(a, b *host) int { return cmp.Compare(a.load, b.load) }); room(best) {
		return best
	}
	return nil
}

// claim takes a slot on a host.
func (p *envPool) claim(h *host) { h.load++; h.opening++ }

// takeSlot waits for a slot on a host. Lower orders go first.
func (p *envPool) takeSlot(ctx context.Context, order int) (*host, error) {
	p.mu.Lock()
	if p.shut != nil {
		defer p.mu.Unlock()
		return nil, p.shut
	}
	w := &waiter{since: time.Now(), got: make(chan *host, 1)}
	p.queue.Push(w, int64(order))
	p.serveWaiters()
	p.evict(ctx)
	p.mu.Unlock()
	for {
		wait := time.NewTimer(p.downTimeoutLeft(w))
		select {
		case h, ok := <-w.got:
			wait.Stop()
			return p.slotTaken(ctx, h, ok)
		case <-ctx.Done():
			wait.Stop()
			return nil, p.leave(w, llm.ContextError(ctx))
		case <-wait.C:
			if err := p.allDownError(w); err != nil {
				return nil, p.leave(w, err)
			}
		}
	}
}

// slotTaken ends a wait that was served, or that ended with the pool.
func (p *envPool) slotTaken(ctx context.Context, h *host, ok bool) (*host, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		return nil, p.shut
	}
	p.checkStrays(ctx, h)
	return h, nil
}

// leave removes a waiter from the queue, and gives back a slot that it was given meanwhile.
func (p *envPool) leave(w *waiter, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.index >= 0 {
		p.queue.Remove(w.index)
	}
	select {
	case h, ok := <-w.got:
		if ok {
			h.load--
			h.opening--
			p.serveWaiters()
		}
	default:
	}
	return err
}

// downTimeoutLeft returns how long a waiter waits before it checks whether all hosts are down.
func (p *envPool) downTimeoutLeft(w *waiter) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Millisecond, p.DownTimeout-p.downFor(w))
}

// downFor returns how long a waiter has waited while no host could be used.
func (p *envPool) downFor(w *waiter) time.Duration {
	if p.allDownSince.IsZero() {
		return 0
	}
	return min(time.Since(p.allDownSince), time.Since(w.since))
}

// allDownError returns an error if no host could be used for too long. Nothing was sent, so the run can stop and be
// resumed.
func (p *envPool) allDownError(w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.downFor(w) < p.DownTimeout {
		return nil
	}
	var names []string
	for _, h := range p.hosts {
		names = append(names, h.Name())
	}
	return &llm.Error{Kind: llm.KindTransport, Message: fmt.Sprintf("no environment server could be used for %s: %s", p.DownTimeout, strings.Join(names, ", "))}
}

// serveWaiters gives slots to waiters. envPool.mu is held.
func (p *envPool) serveWaiters() {
	for p.queue.Len() > 0 {
		h := p.freeHost()
		if h == nil {
			return
		}
		p.claim(h)
		p.queue.Pop().got <- h
	}
}

// waiter waits for a slot.
type waiter struct {
	index int // in the queue; -1 when it has left
	since time.Time
	got   chan *host // closed when the pool ends
}

// adaptiveLimit is how many things a host has at a time: sessions, or sessions being made. It is a plain value.
//
// If the user has chosen a number, that is the room. Otherwise it is found by trying: while more are wanted, every
// answer adds one, as long as the host keeps up. A host that says it is full sets the room to what it has, and a few
// more are tried a little later.
type adaptiveLimit struct {
	now, first, max int
	mean, lowest    float64 // latency of its answers, in seconds
}

const (
	firstStartup = 16
	maxLimit     = 10_000 // if the user has chosen nothing
	meanStep     = 0.05
	keepsUp      = 2 // times the lowest mean latency: answers that take longer wait for each other
	tryShare     = 8 // a full host is tried with an eighth more
)

func newLimit(chosen, first int) adaptiveLimit {
	if chosen > 0 {
		return adaptiveLimit{now: chosen, first: chosen, max: chosen}
	}
	return adaptiveLimit{now: first, first: first, max: max(first, maxLimit)}
}

// answered notes the latency of an answer. If more are wanted, and things spend little of their time waiting for the
// host or the host does not slow down, it adds one.
func (r *adaptiveLimit) answered(latency time.Duration, wanted, spare bool) (grown bool) {
	s := math.Max(latency.Seconds(), 1e-6)
	if r.mean == 0 {
		r.mean, r.lowest = s, s
	}
	r.mean += meanStep * (s - r.mean)
	r.lowest = math.Min(r.lowest, r.mean)
	if !wanted || r.now >= r.max || !spare && r.mean > keepsUp*r.lowest {
		return false
	}
	r.now++
	return true
}

// refused notes that the host has so many and refused another.
func (r *adaptiveLimit) refused(has int) { r.now = max(1, min(r.now, has)) }

// raise adds some after a refusal.
func (r *adaptiveLimit) raise() { r.now = min(r.max, r.now+max(1, r.now/tryShare)) }

// restart begins again as at first: the host went down, maybe because it had too much to do.
func (r *adaptiveLimit) restart() { r.now = min(r.now, r.first) }

// requestBegan notes that a session of h sends a request.
func (p *envPool) requestBegan(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.acting++
}

// requestEnded notes how a request of a session of h ended. More sessions are worth having if they wait for h less than half of
// their time: then they wait for the models.
func (p *envPool) requestEnded(h *host, latency time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && h.limit.answered(latency, p.queue.Len() > 0 && h.load >= h.limit.now, 2*h.acting <= h.load) {
		p.updateCapacity()
		p.serveWaiters()
	}
	h.acting--
}

// sessionStarted notes how the making of a session ended, and lets another begin, or two.
func (p *envPool) sessionStarted(latency time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if llm.KindOf(err) == "" && p.startup.answered(latency, len(p.places) == 0, false) {
		p.places <- struct{}{}
	}
	p.places <- struct{}{}
}

// updateCapacity updates Capacity. envPool.mu is held.
func (p *envPool) updateCapacity() {
	sum := 0
	for _, h := range p.hosts {
		r := h.limit
		sum += min(r.max, r.now+max(firstStartup, r.now/tryShare))
	}
	p.capacity.Store(int64(sum))
}

// Capacity returns how many episodes can be played at the moment: as many as the hosts have room for, and where that may grow
// some that wait, which shows whether more room is wanted.
func (p *envPool) Capacity() int { return int(p.capacity.Load()) }
