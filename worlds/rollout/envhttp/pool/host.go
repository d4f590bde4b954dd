package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"parley/llm"
)

// host is a Host and what is known of it. All of it is under the pool's lock.
type host struct {
	Host
	load    int // sessions there, or being made
	opening int // of them being made
	made    int
	failed  int
	trips   int

	recent  []verdict // the last of what was asked of it
	inRow   int       // failures since the last success
	why     string    // the last of them
	down    bool      // left alone
	trial   bool      // back, and to be tried by one session first
	full    bool      // it said so, for now
	pause   time.Duration
	checked time.Time
	check   bool // one is going on
}

type verdict string

const (
	well    verdict = "well"
	failing verdict = "failing"
	silent  verdict = "silent" // timeouts
)

// When a host is left alone: after so many failures in a row or, of the last ones, such a
// share of failures or of timeouts.
const (
	mostInRow    = 5
	window       = 50
	leastSamples = 20
	failShare    = 0.8
	silentShare  = 0.5
)

// How long it is left alone, at first and at most, and how often one that is well is looked at.
const (
	firstPause = time.Second
	mostPause  = time.Minute
	fullPause  = time.Second
	checkEvery = time.Minute
	checkTime  = 10 * time.Second
)

// judge sorts what came of a request. ok is false for what says nothing about the host.
func judge(err error) (v verdict, ok bool) {
	switch llm.KindOf(err) {
	case "":
		return well, true
	case llm.KindTimeout:
		return silent, true
	case llm.KindTransport, llm.KindServer, llm.KindMalformed:
		return failing, true
	default:
		return "", false
	}
}

// note takes in a verdict and says whether the host is to be left alone.
func (h *host) note(v verdict) bool {
	if h.recent = append(h.recent, v); len(h.recent) > window {
		h.recent = h.recent[1:]
	}
	if v == well {
		h.inRow, h.trial = 0, false
		return false
	}
	h.failed++
	h.inRow++
	fails, silents := 0.0, 0.0
	for _, r := range h.recent {
		if r != well {
			fails++
		}
		if r == silent {
			silents++
		}
	}
	n := float64(len(h.recent))
	return h.trial || h.inRow >= mostInRow || n >= leastSamples && (fails >= failShare*n || silents >= silentShare*n)
}

// report takes in what came of a request to a host.
func (p *Pool) report(ctx context.Context, h *host, err error) {
	if ctx.Err() != nil && err != nil {
		return // it was called off: that says nothing
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if llm.KindOf(err) == llm.KindOverloaded && !h.full && p.shut == nil {
		h.full = true
		p.look()
		p.later(ctx, func(ctx context.Context) { p.rest(ctx, h) })
		return
	}
	v, ok := judge(err)
	if !ok {
		return
	}
	h.why = ""
	if v != well {
		h.why = reason(err)
	}
	if h.note(v) && !h.down && p.shut == nil {
		h.down, h.pause, h.trips = true, firstPause, h.trips+1
		p.look()
		p.later(ctx, func(ctx context.Context) { p.nurse(ctx, h) })
	}
	p.serve()
}

// reason is why something failed: the system's own words, without how it came to say them,
// or else the host's.
func reason(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return llm.AsError(err).Message
}

// later runs f in the background; the lock is held.
func (p *Pool) later(ctx context.Context, f func(ctx context.Context)) {
	p.mu.Unlock()
	defer p.mu.Lock()
	p.background(ctx, f)
}

// look notes since when no host is well.
func (p *Pool) look() {
	for _, h := range p.hosts {
		if !h.down && !h.full {
			p.dark = time.Time{}
			return
		}
	}
	if p.dark.IsZero() {
		p.dark = time.Now()
	}
}

// rest leaves a host that is full alone for a little while.
func (p *Pool) rest(ctx context.Context, h *host) {
	_ = sleep(ctx, p.between(fullPause/2, fullPause)) // over or called off: it may be tried again
	p.mu.Lock()
	defer p.mu.Unlock()
	h.full = false
	p.look()
	p.serve()
}

// nurse looks at a host that is left alone, less and less often, until it is well again.
func (p *Pool) nurse(ctx context.Context, h *host) {
	for {
		p.mu.Lock()
		pause := h.pause
		h.pause = min(2*h.pause, mostPause, p.Patience/4) // a host that is well again is found while somebody is patient
		p.mu.Unlock()
		if sleep(ctx, p.between(pause/2, pause)) != nil {
			return
		}
		if p.well(ctx, h) {
			p.mu.Lock()
			defer p.mu.Unlock()
			h.down, h.trial, h.recent, h.inRow = false, true, nil, 0
			p.look()
			p.serve()
			return
		}
	}
}

// well checks a host.
func (p *Pool) well(ctx context.Context, h *host) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, min(p.Timeout, checkTime), &llm.Error{Kind: llm.KindTimeout, Message: h.Name() + ": no answer to a check"})
	defer cancel()
	return h.Check(ctx, p.stray) == nil
}

// inspect looks at a host from time to time, for sessions that were left behind; the lock
// is held.
func (p *Pool) inspect(ctx context.Context, h *host) {
	if h.check || !h.checked.IsZero() && time.Since(h.checked) < checkEvery {
		return
	}
	h.check = true
	p.later(ctx, func(ctx context.Context) {
		_ = p.well(ctx, h) // what is asked of it next will tell
		p.mu.Lock()
		defer p.mu.Unlock()
		h.check, h.checked = false, time.Now()
	})
}

// free is the host with the fewest sessions of those that have room.
func (p *Pool) free() *host {
	var best *host
	for _, h := range p.hosts {
		if h.down || h.full || h.load >= p.PerHost || h.trial && h.opening > 0 {
			continue
		}
		if best == nil || h.load < best.load {
			best = h
		}
	}
	return best
}

// claim takes a place on a host.
func (p *Pool) claim(h *host) { h.load++; h.opening++ }

// take waits for a place on a host.
func (p *Pool) take(ctx context.Context, order int) (*host, error) {
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
			if err := p.lost(w); err != nil {
				return nil, p.leave(w, err)
			}
		}
	}
}

func (p *Pool) taken(ctx context.Context, h *host, ok bool) (*host, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		return nil, p.shut
	}
	p.inspect(ctx, h)
	return h, nil
}

// leave takes a waiter out of the queue, and gives back what it may have got meanwhile.
func (p *Pool) leave(w *waiter, err error) error {
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

// patience is how long a waiter waits before it looks round.
func (p *Pool) patience(w *waiter) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Millisecond, p.Patience-p.inTheDark(w))
}

// inTheDark is for how long a waiter has waited while no host was well.
func (p *Pool) inTheDark(w *waiter) time.Duration {
	if p.dark.IsZero() {
		return 0
	}
	return min(time.Since(p.dark), time.Since(w.since))
}

// lost says that no host has been well for too long, if it is so. Nothing was asked of
// any, so whoever plays can stop and play on later.
func (p *Pool) lost(w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inTheDark(w) < p.Patience {
		return nil
	}
	var names []string
	for _, h := range p.hosts {
		names = append(names, h.Name())
	}
	return &llm.Error{Kind: llm.KindTransport, Message: fmt.Sprintf("envhttp: no environment server could be used for %s: %s", p.Patience, strings.Join(names, ", "))}
}

// serve gives places to who waits.
func (p *Pool) serve() {
	for p.queue.Len() > 0 {
		h := p.free()
		if h == nil {
			return
		}
		p.claim(h)
		p.queue.Pop().got <- h
	}
}

// waiter waits for a place.
type waiter struct {
	index int // in the queue; -1 when it has left
	since time.Time
	got   chan *host // closed: there will be none
}
