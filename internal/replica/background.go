package replica

import (
	"context"
	"errors"
	"time"
)

const (
	checkTime = 5 * time.Second  // a server may take to say that it is there
	lookTime  = 5 * time.Second  // and to say how busy it is
	endTime   = 10 * time.Second // and to end a session
)

// checkDue looks after servers that have rested long enough. Set.mu is held.
func (s *Set) checkDue(now time.Time) {
	for _, m := range s.members {
		switch {
		case !m.due(now) || s.closed:
		case m.Server == nil:
			m.checked(true, now) // the trial will show
		default:
			m.checking = true
			s.background.Go(func() { s.check(m) })
		}
	}
}

// within bounds a look or a check in time, and has Close end it.
func (s *Set) within(most time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeout(context.Background(), most)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stop()
	}
	s.begun++
	n := s.begun
	s.stops[n] = stop
	return ctx, func() {
		stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stops, n)
	}
}

// check looks whether a server is back.
func (s *Set) check(m *member) {
	ctx, cancel := s.within(checkTime)
	defer cancel()
	err := m.Server.Alive(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.checked(err == nil, time.Now())
}

// end tells a server that a session is over. It is done even when the set is closed
// meanwhile, since nobody else would. Set.mu is held.
func (s *Set) end(m *member, session string, whole bool) {
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		_ = m.Server.End(ctx, session, whole) // a server that was not told ends it by itself some day
	})
}

// look begins to ask the servers how busy they are, if that is wanted: with the first call,
// since a set that is only opened must touch nothing.
func (s *Set) look() {
	if s.config.Look <= 0 {
		return
	}
	s.looking.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.members {
			if m.Server != nil && m.Steer != nil && !s.closed {
				s.background.Go(func() { s.lookAt(m) })
			}
		}
	})
}

// lookAt asks a server how busy it is, again and again. A server that does not say is
// limited as any other, until it does.
func (s *Set) lookAt(m *member) {
	for {
		ctx, cancel := s.within(lookTime)
		if load, err := m.Server.Load(ctx); err == nil {
			m.Steer(load)
		}
		cancel()
		ctx, cancel = s.within(s.config.Look)
		<-ctx.Done()
		ended := errors.Is(ctx.Err(), context.Canceled)
		cancel()
		if ended {
			return
		}
	}
}

// Close ends what the set does beside answering and waits for it: sessions that are being
// ended are, for as long as that may take. No call may be in flight.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, stop := range s.stops {
		stop()
	}
	s.mu.Unlock()
	s.background.Wait()
	return nil
}
