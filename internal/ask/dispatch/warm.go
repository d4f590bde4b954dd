package dispatch

import (
	"context"
	"sync"
	"time"

	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

// warm sends one call of a long prefix first, and the others with the same prefix once its answer
// has begun: only then can they read the prefix from the provider's prompt cache, at a fraction of
// the price. Calls that wait here hold no permit.
type warm struct {
	next  layer
	stats *counters

	mu       sync.Mutex
	prefixes map[[32]byte]*prefix
}

// prefix is warm until a time, or is being warmed by one call.
type prefix struct {
	until time.Time
	begun chan struct{} // closed when the warming call is being answered, or has failed
}

const (
	minWarmBytes = 4096            // bytes of a prefix that is worth waiting for: about 1,024 tokens
	warmFor      = 4 * time.Minute // the shortest prompt caches last five minutes
	maxPrefixes  = 4096            // prefixes remembered
)

func newWarm(next layer, on bool, s *counters) layer {
	if !on {
		return next
	}
	return &warm{next: next, stats: s, prefixes: map[[32]byte]*prefix{}}
}

// ask asks, after the prefix of the request is warm.
func (w *warm) ask(ctx context.Context, c *call) (*llm.Response, error) {
	key, ok := prefixKey(c.req)
	if !ok {
		return w.next.ask(ctx, c)
	}
	for waited := false; ; {
		p, lead := w.enter(key)
		if lead {
			return w.lead(ctx, c, p)
		}
		if p == nil {
			return w.next.ask(ctx, c)
		}
		if !waited {
			waited = true
			w.stats.count(c.req.Model, func(m *ModelStats) { m.Warmed++ })
		}
		began := time.Now()
		select {
		case <-p.begun:
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		}
		c.waitedSince(began)
	}
}

// enter returns nil for a warm prefix, one to wait for, or one to warm.
func (w *warm) enter(key [32]byte) (p *prefix, lead bool) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	p = w.prefixes[key]
	switch {
	case p != nil && now.Before(p.until):
		p.until = now.Add(warmFor) // every use renews it at the provider too
		return nil, false
	case p != nil && p.until.IsZero():
		return p, false
	}
	if len(w.prefixes) >= maxPrefixes {
		w.forget(now)
	}
	p = &prefix{begun: make(chan struct{})}
	w.prefixes[key] = p
	return p, true
}

// forget removes cold prefixes; if none is cold, all that are not being warmed.
func (w *warm) forget(now time.Time) {
	for _, all := range []bool{false, true} {
		for k, p := range w.prefixes {
			if !p.until.IsZero() && (all || now.After(p.until)) {
				delete(w.prefixes, k)
			}
		}
		if len(w.prefixes) < maxPrefixes {
			return
		}
	}
}

func (w *warm) lead(ctx context.Context, c *call, p *prefix) (*llm.Response, error) {
	var once sync.Once
	settle := func(until time.Time) {
		once.Do(func() {
			w.mu.Lock()
			p.until = until
			w.mu.Unlock()
			close(p.begun)
		})
	}
	// A call that ended without beginning has failed, and the next one leads.
	defer settle(time.Unix(0, 0))
	resp, err := w.next.ask(llm.OnBegan(ctx, func() { settle(time.Now().Add(warmFor)); llm.Began(ctx) }), c)
	if err == nil {
		settle(time.Now().Add(warmFor))
	}
	return resp, err
}

// prefixKey returns a key for calls with the same prefix, if the prefix is worth caching.
func prefixKey(req *llm.Request) (key [32]byte, ok bool) {
	if req.Prefix <= 0 || req.Prefix > len(req.Messages) {
		return key, false
	}
	head := llm.Request{Model: req.Model, Messages: req.Messages[:req.Prefix], Tools: req.Tools, Schema: req.Schema}
	if tokens.SizeOf(&head).Bytes < minWarmBytes {
		return key, false
	}
	return head.Digest(), true
}
