package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules/protocol"
)

// Lease is an environment that one episode has for itself. It is used by one goroutine at
// a time.
type Lease struct {
	Session
	// Info is what the environment said when it was reset.
	Info json.RawMessage
	// Waited is how long whoever leased it waited before it was begun to be made.
	Waited time.Duration

	pool  *Pool
	host  *host
	id    string
	steps int
	began time.Time // to be made
	gone  bool      // given back; under the pool's lock
}

// Host is the name of where it is.
func (l *Lease) Host() string { return l.host.Name() }

// Prompt asks the environment what is to be done.
func (l *Lease) Prompt(ctx context.Context) (p protocol.Prompt, err error) {
	err = l.within(ctx, func(ctx context.Context) error {
		p, err = l.Session.Prompt(ctx)
		return err
	})
	l.pool.report(ctx, l.host, err)
	return p, err
}

// Step sends an action, once.
func (l *Lease) Step(ctx context.Context, a protocol.Action) (r protocol.Result, err error) {
	l.steps++
	err = l.within(ctx, func(ctx context.Context) error {
		r, err = l.Session.Step(ctx, fmt.Sprintf("%s-%d", l.id, l.steps), a)
		return err
	})
	l.pool.report(ctx, l.host, err)
	return r, err
}

func (l *Lease) reset(ctx context.Context, seed int64) (info json.RawMessage, err error) {
	err = l.within(ctx, func(ctx context.Context) error {
		info, err = l.Session.Reset(ctx, seed)
		return err
	})
	return info, err
}

// within gives f as long as the host may take.
func (l *Lease) within(ctx context.Context, f func(ctx context.Context) error) error {
	limit := l.pool.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &llm.Error{
		Kind: llm.KindTimeout, Uncertain: true, Message: fmt.Sprintf("%s: no answer within %s", l.host.Name(), limit),
	})
	defer cancel()
	return f(ctx)
}

// Release gives the environment back. It is closed in the background; the host has room
// for another once that is done.
func (l *Lease) Release(ctx context.Context) { l.pool.drop(ctx, l) }

// closeTime is how long a host may take to close a session, if it may take that long for anything.
const closeTime = 10 * time.Second

// drop closes a session and frees its place. One that cannot be closed is forgotten, and
// found again by Check.
func (p *Pool) drop(ctx context.Context, l *Lease) {
	p.mu.Lock()
	if l.gone {
		p.mu.Unlock()
		return
	}
	l.gone = true
	delete(p.leases, l)
	p.mu.Unlock()
	p.work.Go(func() {
		// Who gives back may be stopping: the environment is to be freed all the same.
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), min(closeTime, p.Timeout), &llm.Error{
			Kind: llm.KindTimeout, Message: l.host.Name() + ": closing took too long",
		})
		defer cancel()
		_ = l.Session.Close(ctx) // what is left behind is found by Check
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.known, l.id)
		l.host.load--
		p.serve()
	})
}

// class is what spares are kept by: whatever an environment is made with.
func class(o protocol.Opening) string { return o.Env + " " + string(o.Params) }

// takeSpare resets a spare for an episode. Spares that have died meanwhile are dropped.
func (p *Pool) takeSpare(ctx context.Context, o protocol.Opening) *Lease {
	for {
		p.mu.Lock()
		all := p.spares[class(o)]
		if len(all) == 0 || p.shut != nil {
			p.mu.Unlock()
			return nil
		}
		l := all[len(all)-1]
		p.spares[class(o)] = all[:len(all)-1]
		p.mu.Unlock()
		info, err := l.reset(ctx, o.Seed)
		p.report(ctx, l.host, err)
		if err == nil {
			l.Info = info
			p.refill(ctx, o)
			return l
		}
		p.drop(ctx, l)
	}
}

// refill makes spares, while there is room that nobody waits for.
func (p *Pool) refill(ctx context.Context, o protocol.Opening) {
	c := class(o)
	for {
		p.mu.Lock()
		h := p.free()
		if p.shut != nil || h == nil || p.queue.Len() > 0 || len(p.spares[c])+p.filling[c] >= p.Warm {
			p.mu.Unlock()
			return
		}
		p.claim(h)
		p.filling[c]++
		p.named++
		id := fmt.Sprintf("%s-spare%d", p.Owner, p.named)
		p.mu.Unlock()
		p.background(ctx, func(ctx context.Context) {
			l, err := p.open(ctx, h, id, o)
			p.mu.Lock()
			p.filling[c]--
			keep := err == nil && p.shut == nil
			if keep {
				p.spares[c] = append(p.spares[c], l)
				p.evict(ctx)
			}
			p.mu.Unlock()
			if err == nil && !keep {
				p.drop(ctx, l)
			}
		})
	}
}

// evict gives up a spare of any sort, where somebody waits for its place.
func (p *Pool) evict(ctx context.Context) {
	if p.queue.Len() == 0 || p.free() != nil {
		return
	}
	for c, all := range p.spares {
		if len(all) > 0 {
			l := all[len(all)-1]
			p.spares[c] = all[:len(all)-1]
			p.work.Go(func() { p.drop(ctx, l) }) // without the lock
			return
		}
	}
}
