package replica

import (
	"context"
	"time"
)

// How long a server may take to answer each request.
const (
	probeTime = 5 * time.Second
	lookTime  = 5 * time.Second
	endTime   = 10 * time.Second
)

// probeDue probes servers whose rest is over. Set.mu is held.
func (s *Set) probeDue(now time.Time) {
	for _, m := range s.members {
		switch {
		case s.closed || !m.StartProbe(now):
		case m.Server == nil:
			m.Probed(policy(), true, now) // the trial will show
		default:
			s.run(func(ctx context.Context) { s.probe(ctx, m) })
		}
	}
}

// probe finds out whether a server is back.
func (s *Set) probe(ctx context.Context, m *member) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := m.Server.Alive(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Probed(policy(), err == nil, time.Now())
}

// end tells a server that a session is over, even if the set is closed meanwhile. Set.mu is held.
func (s *Set) end(m *member, session string, whole bool) {
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		_ = m.Server.End(ctx, session, whole) // otherwise the session times out on the server
	})
}

// look starts asking the servers for their load, if that is wanted. The first call does it: a set that was
// only opened must not touch a server.
func (s *Set) look() {
	if s.config.Look <= 0 {
		return
	}
	s.looking.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.members {
			if m.Server != nil && m.Steer != nil && !s.closed {
				s.run(func(ctx context.Context) { s.lookAt(ctx, m) })
			}
		}
	})
}

// lookAt asks a server for its load until ctx is done. An answer without a load changes nothing.
func (s *Set) lookAt(ctx context.Context, m *member) {
	tick := time.NewTicker(s.config.Look)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, lookTime)
		if load, err := m.Server.Load(asking); err == nil {
			m.Steer(load)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Close stops looks and probes and waits for them, and for sessions that are being ended. No call may be
// in flight.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.background.Wait()
	return nil
}
