package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/settings"
	"parley/internal/kit/groupcommit"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// run is one call of Run. It joins the parts that have state; each guards its own.
type run struct {
	Config
	head     *journal.Head
	agents   map[string]world.Agent
	rec      *groupcommit.Log[journal.Entry] // the recorder: a reply of a model or a person reaches its world once it is durable
	replay   *replay
	budgets  budgets
	stop     *stopper
	sched    *scheduler
	acts     actPool
	within   *Within
	cutOff   atomic.Int64 // calls of an aborted run that may be billed
	repeated atomic.Int64 // calls of programs that recorded ones answered
	lost     atomic.Int64 // calls that killed workers had in flight

	watching sync.Mutex // one event at a time
	scratch  sync.Pool  // *[]byte, for digests
}

func newRun(ctx context.Context, c Config) (*run, error) {
	if c.Settings == nil {
		c.Settings = settings.New(settings.Library)
	}
	if c.Drain == nil {
		c.Drain = context.Background()
	}
	if c.Watch == nil {
		c.Watch = func(Event) {}
	}
	if c.Settings.EpisodeBudget > 0 && c.Prices == nil {
		return nil, errors.New("a budget for each episode: there are no prices")
	}
	head, err := c.Journal.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Begun != nil {
		c.Begun = *head.Begun
		if err := SameKind(&c.Begun, c.Kind); err != nil {
			return nil, err
		}
	}
	r := &run{
		Config: c, head: head, agents: map[string]world.Agent{}, rec: groupcommit.New(c.Journal.Append),
		replay:  newReplay(c.Journal, head.Playing, c.Settings.EpisodeBudget > 0),
		budgets: budgets{each: c.Settings.EpisodeBudget, prices: c.Prices},
		stop:    &stopper{}, acts: actPool{todo: make(chan *call)},
	}
	r.within = &Within{run: r, open: map[callAt]*Asked{}}
	r.rec.Failed = r.fail
	r.stop.drains = append(r.stop.drains, r.stops)
	if c.Models != nil {
		r.stop.drains = append(r.stop.drains, c.Models.Drain)
	}
	if d, ok := c.Actor.(part.Drainer); ok {
		r.stop.drains = append(r.stop.drains, d.Drain)
	}
	for _, a := range []Answerer{c.People, c.Programs} {
		if a != nil {
			r.stop.drains = append(r.stop.drains, a.Drain)
		}
	}
	b := bounds{settings: c.Settings, room: c.Capacity, onWave: func(calls int) { r.watch(Event{Wave: calls}) }, unreachable: c.Unreachable, unsaved: c.Unsaved, needEpisodes: c.NeedEpisodes}
	readCtx := context.WithoutCancel(ctx) // an abort stops the run by itself
	read := func(from, to int, each func(*journal.Ended) error) error {
		return head.Ended.Outcomes(readCtx, c.Journal, from, to, each)
	}
	r.sched = newScheduler(b, newAgenda(c.Kind, c.Plan, c.Lot, head, read), c.Begun.Agents, r.stop)
	r.sched.staged = r.staged
	for _, a := range c.Begun.Agents {
		r.agents[a.Name] = a
	}
	return r, nil
}

// process records that a process opens the run, plays, and records its end.
func (r *run) process(ctx context.Context) (Result, error) {
	if r.head.Begun == nil {
		begun := r.Begun
		r.rec.Write(nil, &begun)
	}
	opened := &journal.Opened{At: time.Now()}
	if r.head.Cut {
		opened.Lost, opened.Cost = r.head.Lost, r.head.Owed
	} else {
		opened.Lost, opened.Cost = r.head.Last.Lost, r.head.Owed
	}
	known := make(chan struct{})
	entries := []journal.Entry{opened}
	if r.Remote == nil && r.head.Collected.Log != 0 {
		// The log of a killed coordinator may have entries of the episodes that are played here: it must not be collected any more.
		entries = append(entries, &journal.Collected{})
	}
	r.rec.Write(func(error) { close(known) }, entries[0], entries[1:]...)

	var wg sync.WaitGroup
	recCtx := context.WithoutCancel(ctx) // replies that were paid for are recorded, even when the run is aborted
	wg.Go(func() { r.rec.Run(recCtx) })
	<-known // things that are opened outside carry the run's name: it must be durable first
	steering := &Steering{run: r}
	if r.Steer != nil {
		r.Steer(steering)
	}
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	if r.Remote == nil && slices.ContainsFunc(r.Kind.All(), func(k world.Kind) bool { return !k.Restarts() }) {
		wg.Go(func() { r.replay.run(reading) })
	}
	r.playAll(ctx)
	stopReading()
	end := r.stop.wait()
	steering.end()
	r.abandon()
	for ep := range r.sched.live {
		for s := range ep.strands {
			s.Stop()
		}
	}
	if end.err != nil && end.state != journal.Failed { // an error after the run was stopped
		end.state, end.reason = journal.Failed, failedWith(end.err).reason
	}
	// If nothing can be written any more, this is not either, and the run counts as cut off.
	r.rec.Write(nil, &journal.Closed{At: time.Now(), State: end.state, Reason: end.reason, Lost: int(r.cutOff.Load()) + r.sched.owing})
	recErr := r.rec.Close()
	wg.Wait()
	end = r.stop.wait() // writing the end may have failed
	res, err := r.result(recCtx, end)
	return res, errors.Join(end.err, notTwice(recErr, end.err), err)
}

// playAll plays until the run stops and nothing is in flight.
func (r *run) playAll(ctx context.Context) {
	if r.Drain.Err() != nil { // nothing begins at all
		r.stop.stop(stoppedBy(r.Drain)) //nolint:contextcheck // a separate signal
	}
	endDrain := whenDone(r.Drain, r.drain) //nolint:contextcheck // a separate signal
	endAbort := whenDone(ctx, func() {
		r.stop.stop(stoppedBy(ctx))
		r.sched.wakeAll()
	})
	if r.Remote != nil {
		r.playRemote(ctx)
		endDrain()
		endAbort()
		return
	}
	r.acts.act = func(c *call) {
		if r.BeforeAct != nil {
			r.BeforeAct()
		}
		if c.answerer != nil {
			r.question(ctx, c)
		} else {
			r.act(ctx, c)
		}
	}
	var players sync.WaitGroup
	r.serve(ctx, &players)
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() { r.work(ctx, &players, step{}) })
	}
	players.Wait()
	r.acts.close()
	endDrain()
	endAbort()
}

// drain stops new episodes. Episodes with state outside are played to their end: otherwise they
// would have to begin again, and their calls would be lost.
func (r *run) drain() { r.finish(stoppedBy(r.Drain), r.Kind.Restarts()) }

// finish ends the run with e: when the live episodes are played to their end, or at once.
func (r *run) finish(e ending, toTheEnd bool) {
	begun, continues := r.sched.drain(e, toTheEnd)
	if !continues || !r.Kind.Restarts() {
		return
	}
	if d, ok := r.Actor.(part.Drainer); ok {
		d.Drain()
	}
	if begun > 0 {
		r.watch(Event{Closing: begun})
	}
}

// fail stops the run with an error.
func (r *run) fail(err error) {
	r.stop.fail(err)
	r.sched.wakeAll()
}

// keep makes entries of another package durable.
func (r *run) keep(first journal.Entry, more ...journal.Entry) error {
	kept := make(chan error, 1)
	r.write(kept, first, more...)
	if err := <-kept; err != nil {
		return fmt.Errorf("nothing more can be recorded: %w", err)
	}
	return nil
}

// write writes entries of another package, and tells of those that are durable.
func (r *run) write(kept chan<- error, first journal.Entry, more ...journal.Entry) {
	r.rec.Write(func(err error) {
		kept <- err // before anybody is told: who waits may have a lock
		if err != nil {
			return
		}
		for _, e := range append([]journal.Entry{first}, more...) {
			switch e := e.(type) {
			case *journal.Steered:
				r.watch(Event{Steered: e})
			case *journal.Batched:
				r.watch(Event{Batched: e})
			}
		}
	}, first, more...)
}

// stops tells that the run stops.
func (r *run) stops() {
	r.stop.mu.Lock()
	why := r.stop.end.reason
	r.stop.mu.Unlock()
	r.watch(Event{Stops: &why})
}

// serve makes the asks: for each provider, or wave by wave.
func (r *run) serve(ctx context.Context, wg *sync.WaitGroup) {
	if r.Settings.Waves() && r.Batches != nil {
		wg.Go(func() { r.waves(ctx) })
		return
	}
	for _, q := range r.sched.providers {
		wg.Go(func() {
			r.Models.Each(ctx, func(yield func(*llm.Request) bool) { r.requests(q, yield) },
				func(i int, res llm.Result) { r.onReply(ctx, r.sched.answered(q, i), res.Response, res.Err) })
		})
	}
}

func notTwice(err, other error) error {
	if errors.Is(other, err) {
		return nil
	}
	return err
}

func (r *run) watch(e Event) {
	r.watching.Lock()
	defer r.watching.Unlock()
	r.Watch(e)
}

// turned records a turn.
func (r *run) turned(t *journal.Turned) {
	r.rec.Write(nil, t)
	if len(t.Notes) > 0 {
		r.watch(Event{Noted: t})
	}
}

// staged records a stage, unless it is already recorded.
func (r *run) staged(st *journal.Staged, recorded bool) {
	if !recorded {
		r.rec.Write(nil, st)
	}
	r.watch(Event{Staged: st})
}

// work plays whatever is ready until the run is over. done is what the player did last. If a kind
// ends the goroutine, another one continues.
func (r *run) work(ctx context.Context, players *sync.WaitGroup, done step) {
	for {
		next, ok := r.sched.next(done)
		if !ok {
			return
		}
		var err error
		if next.begins {
			next.strand, err = r.begin(ctx, next, players)
		} else {
			err = r.play(ctx, next.strand)
		}
		if err != nil {
			r.fail(err)
		}
		done = next
	}
}

// lostBefore returns how many calls the last process left in flight, if it was killed, as far as the journal tells.
func (r *run) lostBefore() int {
	if !r.head.Cut {
		return 0
	}
	return r.head.Lost
}

// result returns the result of the run when Run ends.
func (r *run) result(ctx context.Context, end ending) (Result, error) {
	res := Result{
		State: end.state, Reason: end.reason, Cause: end.cause,
		Made: r.sched.made, Replayed: int(r.replay.replies.Load()), Copied: int(r.replay.copies.Load()),
	}
	res.Repeated = int(r.repeated.Load())
	res.Lost = int(r.lost.Load())
	if r.Remote == nil {
		res.Lost += r.lostBefore()
	}
	a := r.sched.agenda
	res.Episodes, res.Ended, res.Failed = a.first+a.stage.Len(), a.outcomes.ended, a.outcomes.failed
	var err error
	res.Digest, err = a.outcomes.sum(ctx, r.Journal)
	return res, err
}

// session returns the name of an attempt at an episode, unique among all runs. Its requests share
// it, for servers that keep state between requests. It is empty if Released is not set.
func (r *run) session(episode, attempt int) string {
	if r.Released == nil {
		return ""
	}
	return fmt.Sprintf("%s-%d-%d", r.Begun.Run, episode, attempt)
}

// release reports that an attempt at an episode makes no more requests.
func (r *run) release(episode, attempt int, whole bool) {
	if r.Released != nil {
		r.Released(r.session(episode, attempt), whole)
	}
}

// abandon releases the live episodes that the next process must begin again. All others continue
// with their sessions.
func (r *run) abandon() {
	for ep := range r.sched.live {
		if ep.kind.Restarts() {
			r.release(ep.number, ep.attempt, false)
		}
	}
}

// stopper knows whether the run stops, and why. The first ending counts and never changes. Unless
// the run is complete, each of drains is then called once, and wait waits for all of them.
type stopper struct {
	drains   []func()
	draining sync.WaitGroup

	stopped atomic.Bool // nothing more is played, begun or sent
	closed  atomic.Bool // no more episodes begin
	mu      sync.Mutex
	closing journal.Reason // where closed
	end     ending         // where stopped
}

// ending is how Run ends.
type ending struct {
	state  journal.State
	reason journal.Reason
	cause  *journal.Replied // see Result
	err    error
}

// stoppedBy returns the ending of a run whose caller ended ctx.
func stoppedBy(ctx context.Context) ending {
	return ending{state: journal.Stopped, reason: journal.Reason{Kind: journal.ByUser, Detail: context.Cause(ctx).Error()}}
}

// failedWith returns the ending of a run that cannot continue.
func failedWith(err error) ending {
	return ending{state: journal.Failed, reason: journal.Reason{Kind: journal.ByError, Detail: err.Error()}, err: err}
}

// stop ends the run, unless it has ended.
func (s *stopper) stop(e ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return
	}
	s.end = e
	var drains []func()
	if e.state != journal.Complete {
		drains = s.drains
	}
	s.draining.Add(len(drains)) // before the stop is visible to wait
	s.stopped.Store(true)
	for _, drain := range drains {
		go func() { // it returns at once, but takes locks that our caller may hold
			defer s.draining.Done()
			drain()
		}()
	}
}

// fail ends the run with an error. If the run has ended without one, the error is added.
func (s *stopper) fail(err error) {
	s.stop(failedWith(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.err == nil {
		s.end.err = err
	}
}

// close stops new episodes, for a reason that ends the run when the live ones have ended.
func (s *stopper) close(why journal.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = why
	s.closed.Store(true)
}

// stopClosed ends a run that was closed.
func (s *stopper) stopClosed() {
	s.mu.Lock()
	why := s.closing
	s.mu.Unlock()
	s.stop(ending{state: journal.Stopped, reason: why})
}

// wait waits for the drains, and returns how the run ended. Afterwards only fail may be called, and
// only until the last entry is written.
func (s *stopper) wait() ending {
	s.draining.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// whenDone calls f once ctx is done. The caller must call end: afterwards f does not begin, and end
// waits for an f that has begun.
func whenDone(ctx context.Context, f func()) (end func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		f()
	})
	return func() {
		if !stop() {
			<-over
		}
	}
}
