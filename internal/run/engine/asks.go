package engine

import (
	"slices"

	"parley/internal/kit/queue"
	"parley/journal"
	"parley/llm"
)

// providerQueue holds the asks of one provider. A busy provider must not make others wait.
type providerQueue struct {
	provider string
	asks     queue.Queue[*call] // may be sent
	next     queue.Queue[*call] // for the next wave
	sent     map[int]*call      // by position in the requests of Models
	pulled   int
}

// submit queues the asks of models among calls, which st waits for, and returns the acts and the
// questions to people, for the caller to carry out. If the run has stopped, it returns none.
func (s *scheduler) submit(st *strand, calls []*call) (others []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.missing = len(calls)
	others = calls[:0]
	for _, c := range calls {
		if c.act == nil && c.person == nil {
			s.enqueue(c)
			continue
		}
		switch {
		case s.stop.stopped.Load():
		case s.held:
			s.heldOthers = append(s.heldOthers, c)
		default:
			s.begin(c)
			others = append(others, c)
		}
	}
	s.wake.Broadcast()
	return others
}

// begin notes that an act is carried out, or a person is asked.
func (s *scheduler) begin(c *call) {
	if c.act != nil {
		s.acting++
		s.acted++
		return
	}
	s.open++
	s.asked++
}

// unmade notes that a call was not made after all.
func (s *scheduler) unmade(c *call) {
	if c.act != nil {
		s.acted--
		return
	}
	s.asked--
}

// failed notes that a call ended as a failure.
func (s *scheduler) failed(act bool) {
	if act {
		s.actFails++
		return
	}
	s.fails++
}

// enqueue queues an ask of a model.
func (s *scheduler) enqueue(c *call) {
	provider, _ := llm.SplitModel(c.req.Model)
	l, episode := s.providers[provider], int64(c.at.Episode)
	s.queued++
	if s.wave {
		l.next.Push(c, episode)
	} else {
		l.asks.Push(c, episode)
	}
}

// pull waits for an ask of l that may be sent, and returns it. It returns nil when the run stops.
func (s *scheduler) pull(l *providerQueue) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stop.stopped.Load() && !s.maySend(l) {
		s.wake.Wait()
	}
	if s.stop.stopped.Load() {
		return nil
	}
	c := l.asks.Pop()
	l.sent[l.pulled] = c
	l.pulled++
	s.queued--
	s.flying++
	s.asked++
	if l.asks.Len() == 0 {
		s.wake.Broadcast() // maybe another episode can begin
	}
	return c
}

// untaken notes that the last ask that was pulled was not taken, because its context ended first.
func (s *scheduler) untaken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	s.asked--
	s.wake.Broadcast()
}

// pullWave waits for a wave and returns all of its calls, oldest first. It returns nil when the run
// stops.
func (s *scheduler) pullWave() (calls []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(calls) == 0 {
		if s.stop.stopped.Load() {
			return nil
		}
		for _, l := range s.providers {
			for l.asks.Len() > 0 && !s.held {
				calls = append(calls, l.asks.Pop())
			}
		}
		if len(calls) == 0 {
			s.wake.Wait()
		}
	}
	slices.SortStableFunc(calls, func(a, b *call) int { return a.at.Episode - b.at.Episode })
	s.queued -= len(calls)
	s.flying += len(calls)
	s.asked += len(calls)
	return calls
}

// maySend reports whether an ask of l may be sent: a killed process must not owe more than maxCalls replies, so those
// that are not durable yet count too.
func (s *scheduler) maySend(l *providerQueue) bool {
	owed := s.flying + s.saving
	return l.asks.Len() > 0 && !s.held && (s.maxCalls <= 0 || owed < s.maxCalls || owed-s.stuck(l) < s.maxCalls)
}

// stuck counts the calls to other providers that cannot be reached: they do not hold back an ask of
// l.
func (s *scheduler) stuck(l *providerQueue) (n int) {
	if s.unreachable == nil || s.unreachable(l.provider) {
		return 0
	}
	for name, other := range s.providers {
		if other != l && len(other.sent) > 0 && s.unreachable(name) {
			n += len(other.sent)
		}
	}
	return n
}

// answered returns the call that was pulled from l as number i, and notes that it has landed.
func (s *scheduler) answered(l *providerQueue, i int) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := l.sent[i]
	delete(l.sent, i)
	s.land()
	return c
}

// landed notes that an ask is not in flight any more. Its reply is not durable yet.
func (s *scheduler) landed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.land()
}

func (s *scheduler) land() {
	s.flying--
	s.saving++
	s.wake.Broadcast()
}

// done notes that the reply to a call is durable, or will not be recorded.
func (s *scheduler) done(c *call) {
	switch {
	case c.act != nil:
		s.acting--
	case c.person != nil:
		s.open--
	default:
		s.saved(1)
	}
}

// withdraw takes back a call that was not made.
func (s *scheduler) withdraw(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done(c)
	s.unmade(c)
	s.wake.Broadcast()
}

// giveUp takes back an act that was canceled because the run is closing, and gives up its episode.
// It returns false if the run is not closing, or has stopped.
func (s *scheduler) giveUp(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stop.closed.Load() || s.stop.stopped.Load() {
		return false
	}
	s.done(c)
	s.unmade(c)
	c.strand.episode.givenUp.Store(true)
	s.resume(c.strand) // the next player ends it; another strand may be playing
	return true
}

// deliver gives a strand the durable reply to a call. Nil means that it could not be recorded.
func (s *scheduler) deliver(c *call, reply *journal.Replied, arrival bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake.Broadcast()
	s.done(c)
	if reply == nil {
		return
	}
	if reply.Error != nil {
		s.failed(c.act != nil)
	}
	st := c.strand
	if st.episode.strands == nil {
		return
	}
	i := c.index
	if arrival {
		i = len(st.replies) - st.missing
	}
	st.replies[i] = reply.Reply()
	st.episode.hasReply = true
	if st.missing--; st.missing == 0 {
		s.ready.Push(st, int64(st.episode.number))
	}
}
