package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// run is one sitting at a run.
type run struct {
	Config
	head     *journal.Head
	agents   map[string]world.Agent
	rec      *recorder
	replayed atomic.Int64
	acts     sync.WaitGroup
	todo     chan *call // acts, for goroutines that have nothing to do
	watching sync.Mutex
	recalled recalled
	scratch  sync.Pool // *[]byte, for digests

	mu   sync.Mutex
	wake *sync.Cond // something below changed

	ready  queue[*strand]   // may be played on
	lanes  map[string]*lane // by provider
	queued int              // asks in all lanes
	flying int              // asks with Models or Batches
	acting int              // acts with Actor
	asked  int
	fails  int // of them, that ended as failures

	stage   world.Specs
	first   int // number of the stage's first episode
	next    int // in the stage: to be begun next
	live    map[*episode]struct{}
	busy    int // workers playing
	played  []world.Played
	ended   int // of the stage
	stages  int
	draws   *draws
	outcome []journal.Ended        // of the run, by episode
	plays   map[journal.Digest]int // numbers the plays that would be copies if they came again

	closing  *journal.Reason // why no episode is begun any more, though those that are live go on
	stopping bool
	state    journal.State
	reason   journal.Reason
	cause    *journal.Replied // see Result
	err      error
}

func newRun(ctx context.Context, c Config) (*run, error) {
	if c.Live <= 0 {
		c.Live = 20_000
	}
	if c.Drain == nil {
		c.Drain = context.Background()
	}
	if c.Watch == nil {
		c.Watch = func(Event) {}
	}
	if c.EpisodeBudget > 0 && c.Prices == nil {
		return nil, errors.New("engine: a budget for each episode: there are no prices")
	}
	head, err := c.Journal.Head(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{Config: c, head: head, rec: newRecorder(c.Journal), todo: make(chan *call), lanes: map[string]*lane{}, live: map[*episode]struct{}{}, agents: map[string]world.Agent{}, plays: map[journal.Digest]int{}, draws: newDraws(c.Kind)}
	r.wake = sync.NewCond(&r.mu)
	r.recalled.have, r.recalled.parts = map[int]recorded{}, make(chan map[int]recorded)
	if head.Begun != nil {
		r.Begun = *head.Begun
		if r.Begun.Kind != c.Kind.Name || r.Begun.KindVersion != c.Kind.Version {
			return nil, fmt.Errorf("engine: the run was recorded with %s version %d, and this is %s version %d", r.Begun.Kind, r.Begun.KindVersion, c.Kind.Name, c.Kind.Version)
		}
	}
	for _, a := range r.Begun.Agents {
		r.agents[a.Name] = a
		if provider, _ := llm.SplitModel(a.Model); a.Model != "" && r.lanes[provider] == nil {
			r.lanes[provider] = &lane{provider: provider, sent: map[int]*call{}}
		}
	}
	if c.Wakes != nil {
		c.Wakes(r.nudge)
	}
	return r, nil
}

// sit opens a sitting, plays, and closes it.
func (r *run) sit(ctx context.Context) (Result, error) {
	if r.head.Begun == nil {
		begun := r.Begun
		r.rec.write(&begun, nil)
	}
	opened := &journal.Opened{At: time.Now()}
	if r.head.Cut {
		opened.Lost, opened.Cost = r.head.Lost, r.head.Owed
	}
	known := make(chan struct{})
	r.rec.write(opened, func(bool) { close(known) })

	var wg sync.WaitGroup
	recCtx := context.WithoutCancel(ctx) // what was paid for is kept, even when the run is aborted
	wg.Go(func() { r.rec.run(recCtx, r.fail) })
	<-known // what is opened outside bears the run's name: it must be found again
	if r.Ledger != nil {
		r.Ledger(r.keep)
	}
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	if !r.Kind.External() {
		wg.Go(func() { r.readAhead(reading) })
	}
	var players sync.WaitGroup
	if r.Drain.Err() != nil { // already: nothing is begun at all
		r.stop(journal.Stopped, causeOf(r.Drain)) //nolint:contextcheck // a signal of its own
	}
	stopWatching := context.AfterFunc(r.Drain, func() { r.drain(causeOf(r.Drain)) }) //nolint:contextcheck // a signal of its own
	stopAbort := context.AfterFunc(ctx, func() { r.stop(journal.Stopped, causeOf(ctx)) })
	r.serve(ctx, &players)
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() { r.work(ctx) })
	}
	players.Wait()
	close(r.todo)
	r.acts.Wait()
	stopReading()
	stopWatching()
	stopAbort()
	r.abandon()
	for ep := range r.live {
		for s := range ep.strands {
			s.Stop()
		}
	}
	if r.err == nil {
		r.rec.write(&journal.Closed{At: time.Now(), State: r.state, Reason: r.reason}, nil)
	}
	recErr := r.rec.close()
	wg.Wait()
	return r.result(), errors.Join(r.err, notTwice(recErr, r.err))
}

// keep makes an entry of somebody else's durable.
func (r *run) keep(e journal.Entry) error {
	kept := make(chan bool, 1)
	r.rec.write(e, func(ok bool) { kept <- ok })
	if !<-kept {
		return errors.New("engine: nothing more can be recorded")
	}
	return nil
}

// serve makes the asks: by itself for each provider, or wave by wave.
func (r *run) serve(ctx context.Context, wg *sync.WaitGroup) {
	if r.Wave && r.Batches != nil {
		wg.Go(func() { r.waves(ctx) })
		return
	}
	for _, l := range r.lanes {
		wg.Go(func() {
			r.Models.Each(ctx, func(yield func(*llm.Request) bool) { r.requests(l, yield) },
				func(i int, res llm.Result) { r.answered(ctx, l, i, res) })
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

// work plays whatever is ready until the run is over.
func (r *run) work(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.over() {
		switch {
		case r.stopping:
			r.wake.Wait()
		case r.ready.len() > 0:
			s := r.ready.pop()
			if s.episode.strands == nil {
				continue // the episode ended without it
			}
			if s.episode.busy {
				s.episode.parked = append(s.episode.parked, s)
				continue
			}
			r.occupy(s.episode, func() error { return r.play(ctx, s) })
		case r.mayBegin():
			n := r.first + r.next
			spec := r.stage.At(r.next)
			r.next++
			d := r.draws.of(spec)
			if e, ok := r.head.Ended[n]; ok {
				r.count(e)
				continue
			}
			r.start(ctx, n, spec, d)
		case r.next == r.stage.Len() && r.ended == r.stage.Len() && r.busy == 0:
			r.advance()
		case r.closing != nil && len(r.live) == 0 && r.busy == 0:
			r.stopLocked(journal.Stopped, *r.closing)
		case r.mayWave():
			for _, l := range r.lanes {
				l.asks, l.next = l.next, l.asks
			}
			r.wake.Broadcast()
		default:
			r.wake.Wait()
		}
	}
	r.wake.Broadcast()
}

// over says whether a worker may go home: the run stops and nothing is in flight.
func (r *run) over() bool { return r.stopping && r.flying == 0 && r.acting == 0 && r.busy == 0 }

// mostQueued is how many asks may wait before no more episodes are begun for the sake of
// a provider that has nothing to do.
const mostQueued = 4096

// mostActing is how many acts may be in flight before no more episodes are begun: nothing
// else holds those back that begin with an act, and all of a run would be live at once.
func (r *run) mostActing() int {
	if r.Calls > 0 {
		return max(16, r.Calls)
	}
	return 256
}

// mayBegin says whether another episode should begin: only while what is live does not
// keep the providers busy, nor those who carry out acts.
func (r *run) mayBegin() bool {
	if r.next == r.stage.Len() || len(r.live) >= r.Live || r.closing != nil {
		return false
	}
	if r.Wave {
		return r.flying == 0 // a wave takes along all that can be live
	}
	if r.queued >= mostQueued || r.acting >= r.mostActing() {
		return false
	}
	for _, l := range r.lanes {
		if l.asks.len() == 0 {
			return true
		}
	}
	return len(r.lanes) == 0
}

// mayWave says whether every live strand waits for a call of the next wave.
func (r *run) mayWave() bool {
	if !r.Wave || r.queued == 0 || r.flying > 0 || r.acting > 0 || r.busy > 0 {
		return false
	}
	for _, l := range r.lanes {
		if l.asks.len() > 0 {
			return false // of the wave that is on
		}
	}
	return true
}

// occupy runs f without the lock, as the only one at ep.
func (r *run) occupy(ep *episode, f func() error) {
	ep.busy = true
	r.busy++
	r.mu.Unlock()
	err := f()
	if err != nil {
		r.fail(err)
	}
	r.mu.Lock()
	r.busy--
	ep.busy = false
	for _, s := range ep.parked {
		r.ready.push(s, s.episode.number)
	}
	ep.parked = nil
	r.wake.Broadcast()
}

// start begins an episode and plays it until it first waits.
func (r *run) start(ctx context.Context, n int, spec world.Spec, d draw) {
	r.busy++
	r.mu.Unlock()
	s, err := r.begin(ctx, n, spec, d)
	r.mu.Lock()
	r.busy--
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		r.stopLocked(journal.Failed, errorOf(err))
		return
	}
	r.live[s.episode] = struct{}{}
	r.ready.push(s, n)
	r.wake.Signal()
}

// fork makes the strands of a fork ready; s waits for them.
func (r *run) fork(s *strand, forks []*world.Strand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.missing = len(forks)
	s.forks = make([]journal.Digest, len(forks))
	children := make([]*strand, len(forks))
	for i, f := range forks {
		children[i] = &strand{Strand: f, episode: s.episode, parent: s, number: i}
		s.episode.strands[children[i]] = struct{}{}
		r.ready.push(children[i], s.episode.number)
	}
	s.divide(children)
	r.wake.Broadcast()
}

// joined notes that a forked strand is done.
func (r *run) joined(s *strand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(s.episode.strands, s)
	s.parent.left += s.left
	s.parent.add(&s.fingerprint, s.number)
	r.arrived(s.parent)
	r.wake.Broadcast()
}
