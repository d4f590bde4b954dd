package engine

import (
	"math"
	"slices"
	"sync"

	"parley/internal/ask/settings"
	"parley/internal/kit/queue"
	"parley/internal/run/planner"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// scheduler decides which strand continues, which call is sent and which episode begins. The oldest
// episode comes first, after the first turns of those that begin. No two strands of an episode are played at once. No more
// episodes have begun and not ended than the settings allow, and none begins while those keep every provider busy. Once the
// run has stopped, nothing more is given out.
type scheduler struct {
	bounds
	stop   *stopper
	staged func(st *journal.Staged, recorded bool) // a stage begins; called with the lock held

	mu         sync.Mutex
	wake       *sync.Cond // something below has changed, or the run stops
	agenda     *agenda
	ready      queue.Queue[*strand]      // may continue
	providers  map[string]*providerQueue // by provider
	live       map[*episode]struct{}     // have begun and not ended
	starts     int                       // episodes that a player is about to begin
	busy       int                       // players playing
	queued     int                       // asks in all providers
	flying     int                       // asks in flight
	saving     int                       // replies to asks, and outcomes, that are not durable yet
	acting     int                       // acts in flight, or not durable yet
	open       int                       // questions to people and programs that have no answer, or not a durable one
	working    int                       // those to programs
	made       journal.Spending          // what was recorded of calls that were made: see Result
	owing      int                       // calls without a reply of which an attempt before a pause has cost something
	held       bool                      // the run is paused: no call is sent
	until      int                       // the first episode that must not begin yet
	quieted    []chan struct{}           // closed when no ask is in flight and all replies are durable
	heldOthers []*call                   // acts and questions to people and programs that wait for the end of the pause
}

// bounds limit what happens at once: see Config.
type bounds struct {
	settings     *settings.Settings
	room         func() int
	onWave       func(calls int) // it is sent next
	unsaved      func(n int)
	needEpisodes func()
	unreachable  func(provider string) bool
}

// step is what a player does next: it continues a strand, or begins an episode.
type step struct {
	strand *strand // for an episode that begins: its first strand, or nil if it could not be made

	begins bool
	number int
	spec   world.Spec
	draw   planner.Draw
}

func newScheduler(b bounds, a *agenda, agents []world.Agent, stop *stopper) *scheduler {
	s := &scheduler{bounds: b, stop: stop, until: math.MaxInt, agenda: a, providers: map[string]*providerQueue{}, live: map[*episode]struct{}{}}
	s.wake = sync.NewCond(&s.mu)
	for _, a := range agents {
		if provider, _ := llm.SplitModel(a.Model); a.Model != "" && !a.Human() && a.Program == nil && s.providers[provider] == nil {
			s.providers[provider] = &providerQueue{provider: provider, sent: map[int]*call{}}
		}
	}
	return s
}

// wakeAll wakes everything that waits.
func (s *scheduler) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake.Broadcast()
}

// next notes what a player has done and waits for its next step. It returns false when the run is
// over.
func (s *scheduler) next(done step) (step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(done)
	for !s.over() {
		switch {
		case s.stop.stopped.Load():
			s.wake.Wait()
		case s.ready.Len() > 0 && !s.shouldBegin():
			if st := s.ready.Pop(); s.occupy(st) {
				return step{strand: st}, true
			}
		case s.mayBegin():
			st, ok, err := s.agenda.take()
			if err != nil {
				s.stop.fail(err)
				s.wake.Broadcast()
			}
			if ok {
				s.busy++
				s.starts++
				return st, true
			}
		case s.agenda.done() && s.busy == 0:
			s.advance()
		case s.stop.closed.Load() && len(s.live) == 0 && s.busy == 0:
			s.stop.stopClosed()
			s.wake.Broadcast()
		case s.mayWave():
			n := s.queued
			s.busy++ // no other player begins the wave
			s.mu.Unlock()
			s.onWave(n) // a watcher may steer the run
			s.mu.Lock()
			s.busy--
			for _, q := range s.providers {
				q.asks, q.next = q.next, q.asks
			}
			s.wake.Broadcast()
		default:
			if s.needEpisodes != nil && !s.agenda.more() && s.wants() {
				s.needEpisodes()
			}
			s.wake.Wait()
		}
	}
	s.wake.Broadcast()
	return step{}, false
}

// idle reports whether nothing is in flight, and everything is durable.
func (s *scheduler) idle() bool {
	return s.flying == 0 && s.acting == 0 && s.open == 0 && s.saving == 0
}

// over reports whether the run has stopped and nothing is in flight.
func (s *scheduler) over() bool {
	return s.stop.stopped.Load() && s.idle() && s.busy == 0
}

// occupy reserves st for a player, unless its episode has ended or another player plays it.
func (s *scheduler) occupy(st *strand) bool {
	switch ep := st.episode; {
	case ep.strands == nil: // the episode ended without it
		return false
	case ep.busy:
		ep.parked = append(ep.parked, st)
		return false
	default:
		ep.busy = true
		s.busy++
		return true
	}
}

// finish notes what a player has done.
func (s *scheduler) finish(done step) {
	st := done.strand
	switch {
	case done.begins && st == nil: // it could not be made
		s.busy--
		s.starts--
		s.wake.Broadcast()
	case done.begins:
		s.busy--
		s.starts--
		s.live[st.episode] = struct{}{}
		s.ready.Push(st, math.MinInt64+int64(done.number)) // before those that have begun to play
		s.wake.Signal()
	case st != nil:
		s.busy--
		ep := st.episode
		ep.busy = false
		if len(ep.parked) > 0 { // one of them can continue; when it is done, the next
			s.ready.Push(ep.parked[0], int64(ep.number))
			ep.parked[0], ep.parked = nil, ep.parked[1:]
		}
		s.wake.Broadcast()
	}
}

// advance begins the next stage, or ends the run. The plan runs under the lock: nothing else
// happens meanwhile.
func (s *scheduler) advance() {
	st, recorded, err := s.agenda.advance()
	switch {
	case err != nil:
		s.stop.fail(err)
	case st == nil:
		s.stop.stop(ending{state: journal.Complete})
	}
	if st != nil {
		s.staged(st, recorded)
	}
	s.wake.Broadcast()
}

// maxQueued is how many asks may wait before no more episodes begin just to keep an idle provider
// busy.
const maxQueued = 4096

// roomFor reports whether the actor has room for so many live episodes, with so many acts in flight. If it does not
// say, acts are bounded: otherwise episodes that begin with an act would all be live at once.
func (b bounds) roomFor(live, acts int) bool {
	room, calls := 0, b.settings.Limits.Concurrency
	if b.room != nil {
		room = b.room()
	}
	switch {
	case room > 0 && live > room, calls > 0 && acts >= max(16, calls):
		return false
	default:
		return room > 0 || calls > 0 || acts < 256
	}
}

// mayBegin reports whether another episode should begin: only while the live ones do not keep the
// providers and the actor busy.
func (s *scheduler) mayBegin() bool {
	return s.agenda.more() && s.agenda.number() < s.until && s.wants()
}

// shouldBegin reports whether an episode should begin before the live ones continue. Most of these wait for answers then, and the run
// is over sooner if the others wait beside them: otherwise, while all cores are busy, the last episodes begin seconds after the first.
func (s *scheduler) shouldBegin() bool {
	return s.flying > 2*s.ready.Len() && s.mayBegin()
}

// wants reports whether another episode should begin, if there is one.
func (s *scheduler) wants() bool {
	if limit := s.settings.Limits.Live; limit > 0 && len(s.live)+s.starts >= limit || s.stop.closed.Load() || s.held {
		return false
	}
	if s.settings.Waves() {
		return s.flying == 0 && s.saving == 0 // a wave takes all that can be live
	}
	if s.queued >= maxQueued || !s.roomFor(len(s.live)+s.starts+1, s.acting+s.working) {
		return false
	}
	for _, q := range s.providers {
		if q.asks.Len() == 0 {
			return true
		}
	}
	return len(s.providers) == 0
}

// mayWave reports whether every live strand waits for a call of the next wave.
func (s *scheduler) mayWave() bool {
	if !s.settings.Waves() || s.held || s.queued == 0 || !s.idle() || s.busy > 0 {
		return false
	}
	for _, q := range s.providers {
		if q.asks.Len() > 0 {
			return false // of the current wave
		}
	}
	return true
}

// resume makes a strand ready, unless it is nil.
func (s *scheduler) resume(st *strand) {
	if st != nil {
		s.ready.Push(st, int64(st.episode.number))
	}
	s.wake.Broadcast()
}

// fork makes the strands of a fork ready; st waits for them.
func (s *scheduler) fork(st *strand, forks []*world.Strand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.missing = len(forks)
	st.forks = make([]journal.Digest, len(forks))
	children := make([]*strand, len(forks))
	for i, f := range forks {
		children[i] = &strand{Strand: f, episode: st.episode, parent: st, number: i}
		st.episode.strands[children[i]] = struct{}{}
		s.ready.Push(children[i], int64(st.episode.number))
	}
	st.divide(children)
	s.wake.Broadcast()
}

// join notes that a forked strand is done.
func (s *scheduler) join(st *strand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(st.episode.strands, st)
	st.parent.left += st.left
	st.parent.add(&st.fingerprint, st.number)
	s.resume(st.parent.arrive())
}

// block notes that a strand cannot afford its next call.
func (s *scheduler) block(st *strand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resume(st.block())
}

// retire ends all strands of an episode and returns them, for the caller to stop. An outcome is
// not durable until ended is called.
func (s *scheduler) retire(ep *episode, outcome bool) []*strand {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*strand, 0, len(ep.strands))
	for st := range ep.strands {
		all = append(all, st)
	}
	ep.strands = nil
	if outcome {
		s.save(1)
	} else {
		delete(s.live, ep)
	}
	return all
}

// ended adds a durable outcome with its line in the digest; nil means that it could not be recorded.
func (s *scheduler) ended(ep *episode, e *journal.Ended, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved(1)
	delete(s.live, ep)
	if e != nil {
		s.agenda.count(e, line)
	}
	s.wake.Broadcast()
}

// drain stops new episodes. If the live ones are to be played to their end, it returns how many of
// them have a reply; otherwise it stops the run.
func (s *scheduler) drain(e ending, toTheEnd bool) (begun int, continues bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake.Broadcast()
	if !toTheEnd || len(s.live) == 0 || s.stop.stopped.Load() {
		s.stop.stop(e)
		return 0, false
	}
	s.stop.close(e.reason)
	for ep := range s.live {
		if ep.hasReply {
			begun++
		}
	}
	return begun, true
}

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
		if c.act == nil && c.answerer == nil {
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
		return
	}
	s.open++
	if c.answerer.Program != nil {
		s.working++
	}
}

// count counts the durable reply to a call that was made.
func (s *scheduler) count(reply *journal.Replied) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made.Add(reply)
}

// enqueue queues an ask of a model.
func (s *scheduler) enqueue(c *call) {
	provider, _ := llm.SplitModel(c.req.Model)
	q, episode := s.providers[provider], int64(c.at.Episode)
	s.queued++
	if s.settings.Waves() {
		q.next.Push(c, episode)
	} else {
		q.asks.Push(c, episode)
	}
}

// pull waits for an ask of q that may be sent, and returns it. It returns nil when the run stops.
func (s *scheduler) pull(q *providerQueue) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stop.stopped.Load() && !s.maySend(q) {
		s.wake.Wait()
	}
	if s.stop.stopped.Load() {
		return nil
	}
	c := q.asks.Pop()
	q.sent[q.pulled] = c
	q.pulled++
	s.queued--
	s.flying++
	if q.asks.Len() == 0 {
		s.wake.Broadcast() // maybe another episode can begin
	}
	return c
}

// untaken notes that the last ask that was pulled was not taken, because its context ended first.
func (s *scheduler) untaken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
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
		for _, q := range s.providers {
			for q.asks.Len() > 0 && !s.held {
				calls = append(calls, q.asks.Pop())
			}
		}
		if len(calls) == 0 {
			s.wake.Wait()
		}
	}
	slices.SortStableFunc(calls, func(a, b *call) int { return a.at.Episode - b.at.Episode })
	s.queued -= len(calls)
	s.flying += len(calls)
	return calls
}

// maySend reports whether an ask of q may be sent.
func (s *scheduler) maySend(q *providerQueue) bool {
	return q.asks.Len() > 0 && !s.held && (!s.full(0) || !s.full(s.stuck(q)))
}

// full reports whether no more asks may be in flight, of which some do not count: a killed process must not owe more replies than the settings
// allow, so those that are not durable yet count too.
func (s *scheduler) full(uncounted int) bool {
	limit := s.settings.Limits.Concurrency
	return limit > 0 && s.flying+s.saving-uncounted >= limit
}

// stuck counts the calls to other providers that cannot be reached: they do not hold back an ask of
// q.
func (s *scheduler) stuck(q *providerQueue) (n int) {
	if s.unreachable == nil || s.unreachable(q.provider) {
		return 0
	}
	for name, other := range s.providers {
		if other != q && len(other.sent) > 0 && s.unreachable(name) {
			n += len(other.sent)
		}
	}
	return n
}

// answered returns the call that was pulled from q as number i, and notes that it has landed.
func (s *scheduler) answered(q *providerQueue, i int) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := q.sent[i]
	delete(q.sent, i)
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
	s.save(1)
	s.wake.Broadcast()
}

// save adds to what is not durable yet.
func (s *scheduler) save(n int) {
	s.saving += n
	if s.unsaved != nil && n != 0 {
		s.unsaved(n)
	}
}

// done notes that the reply to a call is durable, or will not be recorded.
func (s *scheduler) done(c *call) {
	switch {
	case c.act != nil:
		s.acting--
	case c.answerer != nil:
		s.open--
		if c.answerer.Program != nil {
			s.working--
		}
	default:
		s.saved(1)
	}
}

// withdraw takes back a call that was not made.
func (s *scheduler) withdraw(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done(c)
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
	s.made.Add(reply)
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
