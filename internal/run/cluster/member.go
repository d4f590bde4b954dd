package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/ask/dispatch"
	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/cluster/tally"
	"parley/journal"
)

// member is a worker in one run, with one log of it.
type member struct {
	*serving
	name     hub.Log
	first    hub.Beating // the one that it joined with
	began    time.Time
	begun    *journal.Begun
	stream   jetstream.Stream
	player   Player
	opened   Opened
	session  string // names this worker in the run
	taken    watermark
	room     chain.Room
	link     *link
	done     chan struct{} // closed when serve has returned
	wantsLot chan struct{} // has one if another lot could be played
	playing  sync.WaitGroup

	ctx      context.Context //nolint:containedctx // ends with the member: its lots are dropped
	cancel   context.CancelCauseFunc
	draining context.Context //nolint:containedctx // a signal beside ctx
	drain    context.CancelCauseFunc

	mu       sync.Mutex
	lots     int
	suspects map[int]int                              // by the first episode of a lot that it plays: how many wait to be played apart
	waiting  map[int]bool                             // lots, by first episode, that wait because one is played with nothing beside it
	chains   map[*chain.Chain]context.CancelCauseFunc // of the lots that it plays: how each is dropped
	paused   bool
	lastBeat time.Time
}

func newMember(ctx context.Context, s *serving, b hub.Beating) *member {
	m := &member{serving: s, name: hub.Log{Run: b.Run, Number: b.Log}, first: b, began: time.Now(), lastBeat: time.Now(), done: make(chan struct{}), wantsLot: make(chan struct{}, 1), session: rand.Text(), link: newLink(), chains: map[*chain.Chain]context.CancelCauseFunc{}, suspects: map[int]int{}, waiting: map[int]bool{}}
	m.taken.init()
	m.room.Tell = m.tellRoom
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	m.draining, m.drain = context.WithCancelCause(context.WithoutCancel(ctx))
	m.wantsLot <- struct{}{}
	return m
}

func (m *member) over() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// leave drops all lots: somebody else plays them, or nobody must.
func (m *member) leave() { m.cancel(errLeft) }

// receiveBeat applies what the coordinator says.
func (m *member) receiveBeat(b hub.Beating) {
	m.link.hear()
	m.taken.raise(b.Taken)
	switch {
	case b.Ended:
		m.leave()
	case b.Draining:
		m.drain(errors.New("the run stops"))
	}
	m.mu.Lock()
	m.lastBeat = time.Now()
	changed := m.paused != b.Paused && m.player != nil
	if changed {
		m.paused = b.Paused
	}
	m.mu.Unlock()
	if changed {
		m.player.Hold(b.Paused)
	}
}

// awaitBeat waits until the last beat of the coordinator is recent. It returns false when ctx is done.
func (m *member) awaitBeat(ctx context.Context) bool {
	for ctx.Err() == nil {
		m.mu.Lock()
		at := m.lastBeat
		m.mu.Unlock()
		if time.Since(at) < 3*hub.BeatInterval/2 {
			return true
		}
		sleep(ctx, hub.BeatInterval/4)
	}
	return false
}

// tellRoom says that the hub is full, or has room again.
func (m *member) tellRoom(full error) {
	if full != nil {
		m.Log.Error("the hub is full: waiting until it has room. It gets room as the coordinator records lots; give the hub more memory or disk if that takes long", "run", m.name.Run, "why", full)
		return
	}
	m.Log.Info("the hub has room again", "run", m.name.Run)
}

// serve plays lots until the member leaves or drains.
func (m *member) serve() {
	defer close(m.done)
	defer m.cancel(errLeft)
	err := m.join()
	if err != nil {
		m.Log.Error("cannot play the run", "run", m.name.Run, "why", err)
		m.report(m.session, m.name.Run, hub.Working{Refused: err.Error()})
		return
	}
	defer func() {
		if err := m.player.Close(context.WithoutCancel(m.ctx)); err != nil {
			m.Log.Error("closing", "run", m.name.Run, "why", err)
		}
	}()
	m.Log.Info("joined", "run", m.name.Run)
	var wg sync.WaitGroup
	reporting, stop := context.WithCancel(m.ctx)
	m.tell(false) // before it claims a lot
	wg.Go(func() { m.reports(reporting) })
	if m.opened.Limits != nil {
		wg.Go(func() { m.limits(reporting) })
	}
	if m.opened.Money != nil {
		wg.Go(func() { m.money(reporting) })
	}
	subs, err := subscribe(m.Conn, map[string]func(*nats.Msg){
		hub.TakenSubject(m.name.Run): func(msg *nats.Msg) {
			if n, ok := m.name.ReadTaken(msg.Data); ok {
				m.taken.raise(n)
			}
		},
		hub.PlaysSubject(m.name.Run, m.session): m.answerPlays,
	})
	if err == nil {
		err = m.pull()
	}
	if m.draining.Err() != nil {
		m.player.Drain()
	}
	m.playing.Wait() // lots may wait until the coordinator has taken what they recorded
	subs.end()
	stop()
	wg.Wait()
	m.tell(true)
	if err != nil && m.ctx.Err() == nil {
		m.Log.Error("left", "run", m.name.Run, "why", err)
	} else {
		m.Log.Info("left", "run", m.name.Run)
	}
}

// join reads how the run was set up, and prepares to play it.
func (m *member) join() (err error) {
	if m.first.Build != m.Build {
		return fmt.Errorf("worker: the run is played by another build (%s, and this is %s): start the worker with the same program", m.first.Build, m.Build)
	}
	m.stream, err = chain.Retry(m.ctx, func(ctx context.Context) (jetstream.Stream, error) { return m.js.Stream(ctx, m.name.Stream()) })
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	j, err := chain.Read(m.ctx, chain.Config{JetStream: m.js, Stream: m.stream, Subject: m.name.Begun()})
	if err != nil {
		return err
	}
	head, err := j.Head(m.ctx)
	if err != nil {
		return err
	}
	if m.begun = head.Begun; m.begun == nil {
		return errors.New("worker: the log does not say how the run was set up")
	}
	opened, err := m.Open(m.ctx, m.session, m.begun)
	m.mu.Lock()
	m.opened, m.player = opened, opened.Player
	m.mu.Unlock()
	if err == nil && opened.BeforeActs != nil {
		opened.BeforeActs(m.tellNow)
	}
	return err
}

// tellNow tells the coordinator what the worker does, and waits for a moment until the hub has it: whoever calls it may die at once.
func (m *member) tellNow() {
	m.tell(false)
	ctx, cancel := context.WithTimeout(m.ctx, 2*hub.BeatInterval)
	defer cancel()
	_ = m.Conn.FlushWithContext(ctx) // without a hub nothing can be recorded, so the act is made again anyway
}

// reports tells the coordinator that the worker is there.
func (m *member) reports(ctx context.Context) {
	tick := time.NewTicker(hub.BeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.tell(false)
		}
	}
}

// tell tells the coordinator what the worker does, or that it leaves.
func (m *member) tell(leaves bool) {
	m.mu.Lock()
	w := hub.Working{Lots: m.lots, Leaves: leaves, Waiting: slices.Sorted(maps.Keys(m.waiting))}
	suspects := 0
	for _, n := range m.suspects {
		suspects += n
	}
	m.mu.Unlock()
	w.HubFull = m.room.Full()
	w.Owes = leaves && m.opened.Money != nil && m.opened.Money.Budget().Stake().Owed > 0
	if m.opened.Calls != nil {
		r := m.opened.Calls()
		r.Suspects = suspects
		w.Waits = dispatch.WaitTexts(append(tally.WaitOfSuspects(suspects), r.Waits...))
		if data, err := json.Marshal(r); err == nil { // without it, the rest is told
			w.Calls = data
		}
	}
	m.report(m.session, m.name.Run, w)
}

// pull takes lots from the queue as they are needed, until the member leaves or drains.
func (m *member) pull() error {
	queue, err := chain.Retry(m.ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return m.js.Consumer(ctx, m.name.Lots(), hub.Workers)
	})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	stop, cancel := context.WithCancel(m.ctx)
	defer cancel()
	defer context.AfterFunc(m.draining, cancel)()
	for {
		select {
		case <-stop.Done():
			return nil
		case <-m.wantsLot:
		}
		for !m.take(stop, queue) {
			if stop.Err() != nil {
				return nil
			}
		}
	}
}

const (
	fetchWait = 2 * time.Second       // how long a request for a lot waits at the hub
	fullWait  = 50 * time.Millisecond // after which a worker that is full looks again
)

// take takes a lot, and plays it in the background. It returns false if there was none.
func (m *member) take(stop context.Context, queue jetstream.Consumer) bool {
	m.mu.Lock()
	full, paused := m.lots >= maxLots, m.paused
	m.mu.Unlock()
	if full {
		return true // wantMore is called when a lot ends
	}
	m.alone.RLock()   // wait for a lot that is played alone
	m.alone.RUnlock() //nolint:staticcheck // nothing is guarded
	if paused {
		sleep(stop, hub.BeatInterval)
		return false
	}
	if m.opened.Full != nil && m.opened.Full() {
		sleep(stop, fullWait)
		return false
	}
	ctx, cancel := context.WithTimeout(stop, fetchWait+time.Second)
	defer cancel()
	batch, err := queue.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		sleep(stop, hub.BeatInterval)
		return false
	}
	var got jetstream.Msg
	for msg := range batch.Messages() {
		got = msg
	}
	if got == nil {
		if batch.Error() != nil && !errors.Is(batch.Error(), context.DeadlineExceeded) {
			sleep(stop, hub.BeatInterval)
		}
		return false
	}
	if stop.Err() != nil {
		_ = got.Nak()
		return true
	}
	m.mu.Lock()
	m.lots++
	m.mu.Unlock()
	m.playing.Go(func() { //nolint:contextcheck // the lot ends with the member
		m.lot(got)
		m.mu.Lock()
		m.lots--
		m.mu.Unlock()
		m.wantMore()
	})
	return true
}

// wantMore says that another lot could be played.
func (m *member) wantMore() {
	select {
	case m.wantsLot <- struct{}{}:
	default:
	}
}

// watermark is a number that only grows, and that goroutines can wait for.
type watermark struct {
	mu   sync.Mutex
	at   uint64
	wake *sync.Cond
}

func (w *watermark) init() { w.wake = sync.NewCond(&w.mu) }

func (w *watermark) raise(to uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to > w.at {
		w.at = to
		w.wake.Broadcast()
	}
}

// wait waits until the number is at least n.
func (w *watermark) wait(ctx context.Context, n uint64) error {
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wake.Broadcast()
	})()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.at < n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.wake.Wait()
	}
	return nil
}

// answerTimeout is how long an answer may take before the next report.
const answerTimeout = lease.Interval

// limits keeps the limits of the worker within its shares, until ctx is done.
func (m *member) limits(ctx context.Context) {
	s := lease.NewLimitsMember(m.session, m.opened.Limits)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { m.watchLink(ctx, s) })
	keepLease(ctx, m, hub.Limits, nil, s.Apply, func(send func(any) (nobody bool)) {
		if s.Expired() > m.first.AckWait/2 && !m.checkLots(ctx) {
			return
		}
		if r := s.Report(); send(r) {
			s.Unanswered(r.Seq)
		}
	})
}

// checkLots drops the lots that others have claimed while the worker was stopped or cut off. It is called while the worker has no
// share, so nothing is asked for these lots meanwhile. It returns false if the hub does not answer.
func (m *member) checkLots(ctx context.Context) bool {
	if !m.dropFenced(ctx) {
		return false
	}
	sleep(ctx, lease.Interval) // the hub may have been away too: then others take lots over only now
	return m.dropFenced(ctx)
}

func (m *member) dropFenced(ctx context.Context) bool {
	m.mu.Lock()
	chains := maps.Clone(m.chains)
	m.mu.Unlock()
	for j, drop := range chains {
		try, cancel := context.WithTimeout(ctx, answerTimeout)
		err := j.Check(try)
		cancel()
		switch {
		case errors.Is(err, journal.ErrFenced):
			drop(err)
		case err != nil:
			return false
		}
	}
	return true
}

// money keeps the budget of the worker within its allotment, until ctx is done.
func (m *member) money(ctx context.Context) {
	s := m.opened.Money
	apply := func(g lease.MoneyGrant) bool {
		if g.Lost && g.Worker == m.session {
			m.leave() // its money counts as lost: another session gets other money
			return false
		}
		return s.Apply(g)
	}
	keepLease(ctx, m, hub.Money, s.Short(), apply, func(send func(any) bool) { send(s.Report()) })
}

// keepLease calls report every interval, when apply says so, and when something is sent to short. It calls apply with the grants that come, asked or not.
func keepLease[Grant any](ctx context.Context, m *member, what string, short <-chan struct{}, apply func(Grant) (again bool), report func(send func(any) (nobody bool))) {
	again := make(chan struct{}, 1)
	receive := func(data []byte) {
		var g Grant
		if json.Unmarshal(data, &g) == nil && apply(g) {
			kick(again)
		}
	}
	send := func(r any) bool { return m.ask(ctx, hub.LeaseSubject(m.name.Run, what), r, receive) }
	sub, err := m.Conn.Subscribe(hub.GrantSubject(m.name.Run, what, m.session), func(msg *nats.Msg) { receive(msg.Data) })
	if err != nil {
		m.Log.Error("subscribe", "run", m.name.Run, "why", err)
		m.leave()
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	tick := time.NewTicker(lease.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		report(send)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-again:
		case <-short:
		}
	}
}

// ask sends a report, and applies the answer. It reports whether nobody is there to answer.
func (m *member) ask(ctx context.Context, to string, say any, apply func([]byte)) (nobody bool) {
	data, err := json.Marshal(say)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	msg, err := m.Conn.RequestMsgWithContext(ctx, m.name.Ask(to, data))
	if nobody = errors.Is(err, nats.ErrNoResponders); nobody || err == nil {
		m.link.hear()
	}
	if err != nil {
		return nobody
	}
	apply(msg.Data)
	return false
}

func kick(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
