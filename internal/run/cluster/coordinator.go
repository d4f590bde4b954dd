// Package cluster plays a run with workers in other processes. A Coordinator gives out lots of episodes, and collects what workers
// record into the run's journal. A Worker plays lots. They meet at a hub.
//
// A Coordinator promises: an entry is collected once, whoever is killed when, since the journal records in the same
// commit how far the log is collected; a lot is played by one worker at a time; when Play returns, everything
// that workers recorded is in the journal, and the log is deleted. If it returns an error, is aborted, or the process is killed,
// the next one continues with the log. If the log is gone, a new one begins with what the journal has.
//
// Of the coordinator, coordinator.go has a whole run, log.go the streams of the hub and the queue of lots, collect.go what is
// read from the log, and coordinator_workers.go what is known of workers and shared among them. Of the worker, worker.go has
// the process, member.go its part in one run, and lot.go one lot.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/ask/cache"
	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
)

// Coordinator plays runs with the workers of a hub. It implements engine.Remote.
type Coordinator struct {
	// Conn is a connection to the hub.
	Conn *nats.Conn
	// Build identifies the program: workers of another build are refused.
	Build string
	// Replicas is how many nodes of the hub keep each message. Default: 1, in memory.
	Replicas int
	// AckWait is how long a worker may keep a lot without a sign of life. Default: 15 s.
	AckWait time.Duration
	// Retain keeps everything in the log until the run is over, so that Rebuild can make a lost journal again. It is for logs that
	// begin with the run.
	Retain bool
	// Strict means that a worker that refuses the run ends it: no other can do better.
	Strict bool
	// Alone means that no worker can be left from before: the hub is new.
	Alone bool

	budget func() llm.Money // nil: there is none
	tally  *tally.Tally
	prices map[string]json.RawMessage // what calls cost, by model
	cache  *cache.Store               // nil: there is none

	current atomic.Pointer[play] // nil: no run is divided yet
}

const (
	lotSize        = 32 // episodes of a lot at most
	defaultAckWait = 15 * time.Second
	maxWaiting     = 4096 // lots for workers
)

// errGone says that the hub has lost the log: a new one must begin.
var errGone = errors.New("the log of the run is gone")

// errTaken says that another process plays the same run on the same hub. It comes from a copy of the run file: the file itself is locked.
var errTaken = errors.New("another coordinator took this run: it plays a copy of this run file on the same hub. Let it finish, and use its file; or stop it, and resume this file")

// Play plays run with workers.
func (c *Coordinator) Play(ctx context.Context, run *engine.RemoteRun) error {
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return err
	}
	whole := ctx
	ctx, end := c.unlessAway(ctx, js, run)
	defer end()
	if err := c.checkHub(ctx, js, run.Stopped, hubStarts); err != nil || run.Stopped() {
		return err
	}
	p := &play{Coordinator: c, js: js, run: run, lots: make(chan engine.Lot), open: map[int]engine.Lot{}, reports: map[string]reported{}, records: map[string]*record{}, workers: map[string]time.Time{}, idle: map[string]bool{}}
	p.setDefaults()
	var cutting sync.WaitGroup
	over := make(chan struct{})
	cutting.Go(func() { p.cut(over) })
	for err = errGone; errors.Is(err, errGone); {
		p.forked = errors.Is(err, chain.ErrForked)
		err = p.playLog(ctx)
	}
	if ctx.Err() != nil && whole.Err() == nil {
		err = nil // the run was to stop, and what workers recorded meanwhile is for the next process
	}
	if err != nil {
		run.Stop(journal.Failed, journal.Reason{Kind: journal.ByError, Detail: err.Error()}, err) // so that cut ends
	} else if ctx.Err() != nil {
		err = nil // the engine knows why
	}
	close(over)
	cutting.Wait()
	return err
}

// unlessAway returns a context that ends if the hub is away when the run is to stop: nobody can say when it is back. The caller must call end.
func (c *Coordinator) unlessAway(ctx context.Context, js jetstream.JetStream, run *engine.RemoteRun) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-run.Drain().Done():
		}
		for {
			try, cancelTry := context.WithTimeout(ctx, hub.Silent)
			away := !c.Conn.IsConnected()
			if !away {
				_, err := js.AccountInfo(try)
				away = err != nil
			}
			cancelTry()
			if away {
				run.Drained()
				cancel(errors.New("the hub is away"))
			}
			if !sleep(ctx, hub.BeatInterval/4) {
				return
			}
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		wg.Wait()
	}
}

// hubStarts is how long a hub may take until it keeps messages.
const hubStarts = 30 * time.Second

// checkHub returns an error if the hub cannot keep messages: a NATS server that is not ours may have no JetStream.
func (c *Coordinator) checkHub(ctx context.Context, js jetstream.JetStream, stopped func() bool, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	for {
		try, cancel := context.WithTimeout(ctx, within/10)
		_, err := js.AccountInfo(try)
		cancel()
		if err == nil || stopped() {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !sleep(ctx, within/100) {
			return fmt.Errorf("the hub keeps no messages: %w. Runs need JetStream there: start it with parley hub, or enable JetStream in your NATS server", last)
		}
	}
}

// cut passes on lots until there are no more.
func (p *play) cut(over <-chan struct{}) {
	defer close(p.lots)
	for {
		lot, ok := p.run.Next(lotSize)
		if !ok {
			return
		}
		select {
		case p.lots <- lot:
		case <-over:
			return
		}
	}
}

// play is one call of Play.
type play struct {
	*Coordinator
	js  jetstream.JetStream
	run *engine.RemoteRun

	lots chan engine.Lot // the next ones

	mu      sync.Mutex
	changed *sync.Cond
	open    map[int]engine.Lot   // lots that were given out and are not done, by first episode
	claimed map[int]holding      // who plays which lots, by first episode
	waits   map[int]time.Time    // since when each open lot that nobody plays waits, by first episode
	deaths  map[int]int          // how many workers did not finish a lot, and did not give it back, by first episode
	reports map[string]reported  // what each worker last reported, by name of the process
	records map[string]*record   // what the log shows of the calls of workers, by session
	workers map[string]time.Time // when each worker last said something, by session
	idle    map[string]bool      // why workers do not play, as far as it was told
	taken   uint64               // the message up to which everything is in the journal
	read    uint64               // the last message that was read
	pending int                  // batches that are not taken yet
	epoch   uint64               // of the keepers
	shares  *lease.LimitsKeeper
	money   *lease.MoneyKeeper // nil: there is no budget
	spent   llm.Money          // as far as it is recorded
	stopped bool               // there are no more lots
	ended   int                // episodes
	done    int                // lots
	last    uint64             // the last message of the log, when it was last asked for
	err     error              // why this log ended
	hubRoom *chain.Room
	stats   *nats.Subscription // of what workers report; nil: none yet
	answers *answers           // nil: there is no cache
	forked  bool               // the log before cannot be read to its end
}

func (p *play) setDefaults() {
	if p.Replicas == 0 {
		p.Replicas = 1
	}
	if p.AckWait == 0 {
		p.AckWait = defaultAckWait
	}
	if p.tally == nil {
		p.tally = &tally.Tally{}
	}
	p.changed = sync.NewCond(&p.mu)
	if p.cache != nil {
		p.answers = &answers{p.cache}
	}
	p.hubRoom = &chain.Room{Tell: p.tellRoom}
}

// tellRoom says that the hub is full, or has room again.
func (p *play) tellRoom(full error) {
	idle := engine.Idle{}
	if full != nil {
		idle.Why = full.Error()
	}
	p.run.Tell(idle)
}

// playLog plays with one log, until the run is over or the log is gone.
func (p *play) playLog(ctx context.Context) error {
	head := p.run.Head()
	if p.epoch > 0 { // it is old
		var err error
		if head, err = p.run.Journal().Head(ctx); err != nil {
			return err
		}
	}
	l, err := p.begin(ctx, head)
	if err != nil {
		return err
	}
	if head.Collected.Log != l.name.Number {
		p.run.Lost(p.leftInLog(head))
	} else {
		l.since = uint64(head.Collected.Through)
		l.cursor = l.since
	}
	claimed, err := l.claimRun(ctx)
	if err != nil {
		return asGone(err)
	}
	p.mu.Lock()
	p.taken, p.read, p.err, p.records = l.since, 0, nil, map[string]*record{}
	p.claimed, p.waits, p.deaths = map[int]holding{}, map[int]time.Time{}, map[int]int{} // the log has them again
	p.mu.Unlock()
	if err := p.record(&journal.Collected{Log: l.name.Number, Through: int64(l.since)}); err != nil {
		return err
	}
	aborted := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(ctx, p.wake)()
	var wg sync.WaitGroup
	end := func(err error) {
		if err != nil {
			p.fail(err)
		}
	}
	wg.Go(func() { end(l.collect(ctx)) })
	_ = l.wait(ctx, func() bool { return l.read < claimed }) // what is spent and what is played must be known first
	wg.Go(func() { end(l.beats(ctx)) })
	wg.Go(func() { end(l.give(ctx)) })
	err = l.finish(ctx)
	cancel(errors.New("the run is over"))
	wg.Wait()
	p.settle()
	if err != nil && !errors.Is(err, errBroken) || aborted.Err() != nil {
		return err // the next process collects what is left in the log
	}
	removing, cancelRemoving := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancelRemoving()
	if l.other {
		_ = l.markOver(removing) // it is a precaution
	}
	_ = l.remove(removing) // the next process removes what is left
	return err
}

// settle waits until everything that was collected is in the journal, or will never be.
func (p *play) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.pending > 0 {
		p.changed.Wait()
	}
}

// claimRun claims the chain of the run, and makes the keepers. Their epoch is the number of the claim, so it is higher than those that
// workers know from coordinators before. It returns the sequence of a message that is not before the claim.
func (l *log) claimRun(ctx context.Context) (uint64, error) {
	own, past, err := chain.Open(ctx, chain.Config{JetStream: l.js, Stream: l.stream, Subject: l.name.Begun(), Session: rand.Text(), Number: l.epoch})
	if err != nil {
		return 0, err
	}
	if l.epoch == 0 {
		l.keep(l.run.Head(), past.Number)
		l.current.Store(l.play)
	}
	l.epoch, l.own = past.Number, own
	info, err := chain.Retry(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return l.stream.Info(ctx) })
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// fail ends this log.
func (p *play) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
}

func (p *play) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// record makes an entry durable.
func (p *play) record(e journal.Entry) error {
	done := make(chan error, 1)
	p.run.Record(func(err error) { done <- err }, e)
	return <-done
}

// Status is how a run is divided among its workers. All numbers are of the same moment.
type Status struct {
	Run string `json:"run"`
	// State is playing, paused or stopping.
	State string `json:"state"`
	// Ended is how many episodes have ended since this process began.
	Ended int  `json:"episodes_ended"`
	Lots  Lots `json:"lots"`
	// Workers are those that play the run, and those that refuse to, by name.
	Workers []hub.Working `json:"workers"`
	// Lag is how many messages of the log are not in the run file yet.
	Lag uint64 `json:"lag"`
	// Accounts is how the limits of each account are divided, by name.
	Accounts map[string]lease.Account `json:"accounts"`
	// Money is how the budget is divided. Nil: there is none.
	Money *lease.Sums `json:"money,omitempty"`
}

// Status returns how the run is divided; nil if none is yet.
func (c *Coordinator) Status() *Status {
	p := c.current.Load()
	if p == nil {
		return nil
	}
	s := p.status()
	return &s
}

// Playing counts the workers that play the run.
func (s *Status) Playing() (n int) {
	for _, w := range s.Workers {
		if w.Refused == "" {
			n++
		}
	}
	return n
}

// Lots counts lots: those that wait, for a worker or until their worker has played another with nothing beside it, those that one plays, and those that are done since this process began.
type Lots struct {
	Waiting int `json:"waiting"`
	Leased  int `json:"leased"`
	Done    int `json:"done"`
	// Open lists those that are not done, by first episode.
	Open []Lot `json:"open"`
}

// Lot is a lot that is not done.
type Lot struct {
	First int `json:"first"`
	Last  int `json:"last"`
	// Worker names the process that plays it, and Session its part in the run. Empty: nobody does, or its name is not known yet.
	Worker  string `json:"worker,omitempty"`
	Session string `json:"session,omitempty"`
	// Waits means that the worker plays another lot first, with nothing beside it, because workers died at that one.
	Waits bool `json:"waits,omitempty"`
	// Age is for how many seconds the worker has it or, if nobody has, it waits.
	Age float64 `json:"age_s"`
	// Deaths counts the workers that had it, and neither finished it nor gave it back.
	Deaths int `json:"deaths"`
}

// status returns how the run is divided.
func (p *play) status() Status {
	s := Status{Run: p.run.Begun().Run, State: "playing", Accounts: p.shares.Accounts(), Workers: []hub.Working{}}
	if p.money != nil {
		sums := p.money.Sums()
		s.Money = &sums
	}
	held := p.run.Held()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		s.State = "stopping"
	case held:
		s.State = "paused"
	}
	names, waiting := map[string]string{}, map[int]string{}
	for name, r := range p.reports {
		if p.isThere(r) {
			s.Workers = append(s.Workers, r.Working)
			names[r.Session] = name
			for _, first := range r.Waiting {
				waiting[first] = r.Session
			}
		}
	}
	s.Ended, s.Lots = p.ended, p.listLots(waiting)
	slices.SortFunc(s.Workers, func(a, b hub.Working) int { return strings.Compare(a.Worker, b.Worker) })
	for i := range s.Lots.Open {
		s.Lots.Open[i].Worker = names[s.Lots.Open[i].Session]
	}
	if p.last > p.taken {
		s.Lag = p.last - p.taken
	}
	return s
}

// listLots lists and counts the lots. Waiting are the sessions of those that have one and do not play it now, by first episode. The lock is held.
func (p *play) listLots(waiting map[int]string) Lots {
	all, open := Lots{Done: p.done, Open: []Lot{}}, map[int]Lot{}
	for first, lot := range p.open {
		open[first] = Lot{First: first, Last: first + lot.Specs.Len() - 1, Age: time.Since(p.waits[first]).Seconds()}
	}
	for first, c := range p.claimed {
		open[first] = Lot{First: first, Last: c.to - 1, Session: c.session, Age: time.Since(c.since).Seconds()}
	}
	for _, first := range slices.Sorted(maps.Keys(open)) {
		lot := open[first]
		lot.Deaths, lot.Waits = p.deaths[first], lot.Session != "" && lot.Session == waiting[first]
		if all.Open = append(all.Open, lot); lot.Session == "" || lot.Waits {
			all.Waiting++
		} else {
			all.Leased++
		}
	}
	return all
}
