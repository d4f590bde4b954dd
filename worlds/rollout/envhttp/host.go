package envhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/internal/kit/health"
	"parley/llm"
)

// host is a Host and its state. Pool.mu guards all of it.
type host struct {
	Host
	health.Health
	room    room // for sessions
	load    int  // sessions there or being made
	opening int  // of those, sessions being made
	acting  int  // requests of sessions in flight, other than those that make them
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

// verdict returns what the end of a request says about the host. known is false if it says nothing.
func verdict(err error) (r health.Result, known bool) {
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
		h.room.refused(h.load - h.opening)
		p.countRoom()
		p.noteAllDown()
		p.later(ctx, func(ctx context.Context) { p.pauseFull(ctx, h) })
		return
	}
	r, known := verdict(err)
	if !known {
		return
	}
	h.why = ""
	if r != health.OK {
		h.failed++
		h.why = reason(err)
	}
	if k := llm.KindOf(err); (k == llm.KindMalformed || k == llm.KindInvalid) && !p.others(h) {
		p.serve()
		return // it answers, and a pause would not change its answers
	}
	if !h.Down() && h.Record(p.policy, r, time.Now()) {
		h.trips++
		h.room.restart()
		p.countRoom()
		p.noteAllDown()
		if p.shut == nil {
			p.later(ctx, func(ctx context.Context) { p.probeUntilUp(ctx, h) })
		}
	}
	p.serve()
}

// others reports whether a host other than h can be used. Pool.mu is held.
func (p *envPool) others(h *host) bool {
	return slices.ContainsFunc(p.hosts, func(o *host) bool { return o != h && !o.Down() })
}

// reason returns why a request failed: the system's error if there is one, otherwise the message.
func reason(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return llm.AsError(err).Message
}

// later runs f in the background. Pool.mu is held.
func (p *envPool) later(ctx context.Context, f func(ctx context.Context)) {
	p.mu.Unlock()
	defer p.mu.Lock()
	p.background(ctx, f)
}

// noteAllDown updates since when no host can be used. Pool.mu is held.
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
	h.room.try()
	p.countRoom()
	p.noteAllDown()
	p.serve()
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
		p.serve()
		p.mu.Unlock()
	}
}

// probe reports whether a host answers.
func (p *envPool) probe(ctx context.Context, h *host) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, min(p.Timeout, checkTime), &llm.Error{Kind: llm.KindTimeout, Message: h.Name() + ": no answer to a check"})
	defer cancel()
	return h.Check(ctx, p.stray) == nil
}

// checkStrays checks a host from time to time for sessions that were left behind. Pool.mu is held.
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

// free returns the host with the fewest sessions of those that have room, or nil.
func (p *envPool) free() *host {
	now := time.Now()
	room := func(h *host) bool { return !h.full && h.load < h.slots(p.PerHost, now) && h.Accepts(h.opening) }
	if best := health.Least(p.hosts, room, func(a, b *host) int { return cmp.Compare(a.load, b.load) }); room(best) {
		return best
	}
	return nil
}

// claim takes a slot on a host.
func (p *envPool) claim(h *host) { h.load++; h.opening++ }

// take waits for a slot on a host. Lower orders go first.
func (p *envPool) take(ctx context.Context, order int) (*host, error) {
	p.mu.Lock()
	if p.shut != nil {
		defer p.mu.Unlock()
		return nil, p.shut
	}
	w := &waiter{since: time.Now(), got: make(chan *host, 1)}
	p.queue.Push(w, int64(order))
	p.serve()
	p.evict(ctx)
	p.mu.Unlock()
	for {
		wait := time.NewTimer(p.patience(w))
		select {
		case h, ok := <-w.got:
			wait.Stop()
			return p.taken(ctx, h, ok)
		case <-ctx.Done():
			wait.Stop()
			return nil, p.leave(w, llm.ContextError(ctx))
		case <-wait.C:
			if err := p.allDown(w); err != nil {
				return nil, p.leave(w, err)
			}
		}
	}
}

// taken ends a wait that was served, or that ended with the pool.
func (p *envPool) taken(ctx context.Context, h *host, ok bool) (*host, error) {
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
			p.serve()
		}
	default:
	}
	return err
}

// patience returns how long a waiter waits before it checks whether all hosts are down.
func (p *envPool) patience(w *waiter) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Millisecond, p.Patience-p.downFor(w))
}

// downFor returns how long a waiter has waited while no host could be used.
func (p *envPool) downFor(w *waiter) time.Duration {
	if p.allDownSince.IsZero() {
		return 0
	}
	return min(time.Since(p.allDownSince), time.Since(w.since))
}

// allDown returns an error if no host could be used for too long. Nothing was sent, so the run can stop and be
// resumed.
func (p *envPool) allDown(w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.downFor(w) < p.Patience {
		return nil
	}
	var names []string
	for _, h := range p.hosts {
		names = append(names, h.Name())
	}
	return &llm.Error{Kind: llm.KindTransport, Message: fmt.Sprintf("envhttp: no environment server could be used for %s: %s", p.Patience, strings.Join(names, ", "))}
}

// serve gives slots to waiters. Pool.mu is held.
func (p *envPool) serve() {
	for p.queue.Len() > 0 {
		h := p.free()
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
