package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// Lease is an environment of one episode. It is used by one goroutine at a time.
type Lease struct {
	Session
	// Info is the info of its reset.
	Info json.RawMessage
	// Waited is how long Lease waited before it began to make the environment.
	Waited time.Duration

	pool  *envPool
	host  *host
	id    string
	steps int
	began time.Time // when making it began
	gone  bool      // released; guarded by Pool.mu
}

// Prompt asks the environment what the agents are to do.
func (l *Lease) Prompt(ctx context.Context) (p rules.Prompt, err error) {
	err = l.timed(ctx, func(ctx context.Context) error {
		p, err = l.Session.Prompt(ctx)
		return err
	})
	return p, err
}

// Step sends an action, once.
func (l *Lease) Step(ctx context.Context, a rules.Action) (r rules.Result, err error) {
	l.steps++
	err = l.timed(ctx, func(ctx context.Context) error {
		r, err = l.Session.Step(ctx, fmt.Sprintf("%s-%d", l.id, l.steps), a)
		return err
	})
	return r, err
}

func (l *Lease) reset(ctx context.Context, seed int64) (info json.RawMessage, err error) {
	err = l.within(ctx, func(ctx context.Context) error {
		info, err = l.Session.Reset(ctx, seed)
		return err
	})
	return info, err
}

// timed runs a request of a session that exists, and notes how the host handled it.
func (l *Lease) timed(ctx context.Context, f func(ctx context.Context) error) error {
	l.pool.acts(l.host)
	began := time.Now()
	err := l.within(ctx, f)
	l.pool.acted(l.host, time.Since(began), err)
	l.pool.report(ctx, l.host, err)
	return err
}

// within runs f within the time that the host may take.
func (l *Lease) within(ctx context.Context, f func(ctx context.Context) error) error {
	limit := l.pool.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &llm.Error{
		Kind: llm.KindTimeout, Uncertain: true, Message: fmt.Sprintf("%s: no answer within %s", l.host.Name(), limit),
	})
	defer cancel()
	return f(ctx)
}

// Release closes the environment in the background. Then its slot is free.
func (l *Lease) Release(ctx context.Context) { l.pool.drop(ctx, l) }

// closeTime is how long a host may take to close a session, if Timeout is not shorter.
const closeTime = 10 * time.Second

// drop closes a session in the background and frees its slot.
func (p *envPool) drop(ctx context.Context, l *Lease) {
	p.mu.Lock()
	if l.gone {
		p.mu.Unlock()
		return
	}
	l.gone = true
	delete(p.leases, l)
	p.mu.Unlock()
	p.work.Go(func() {
		// The caller may be stopping: the environment is closed anyway.
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), min(closeTime, p.Timeout), &llm.Error{
			Kind: llm.KindTimeout, Message: l.host.Name() + ": closing took too long",
		})
		defer cancel()
		_ = l.Session.Close(ctx) // Check finds a session that was left behind
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.known, l.id)
		l.host.load--
		p.serve()
	})
}

// class is the key of spares: everything an environment is made with.
func class(o rules.Opening) string { return o.Env + " " + string(o.Params) }

// takeSpare resets a spare for an episode, and drops spares that fail.
func (p *envPool) takeSpare(ctx context.Context, o rules.Opening) *Lease {
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

// refill makes spares while there is room that nobody waits for.
func (p *envPool) refill(ctx context.Context, o rules.Opening) {
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
		p.spared++
		id := fmt.Sprintf("%s-spare%d", p.Owner, p.spared)
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

// evict drops a spare of any class if somebody waits for its slot. Pool.mu is held.
func (p *envPool) evict(ctx context.Context) {
	if p.queue.Len() == 0 || p.free() != nil {
		return
	}
	for c, all := range p.spares {
		if len(all) > 0 {
			l := all[len(all)-1]
			p.spares[c] = all[:len(all)-1]
			p.work.Go(func() { p.drop(ctx, l) }) // needs Pool.mu
			return
		}
	}
}
