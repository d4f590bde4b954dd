package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/chain"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// episodes is how many a run has. Its lots have two each.
const episodes = 64

// lab is a hub, and a run that a coordinator plays on it. The test is its worker.
type lab struct {
	*testing.T
	hub     *hub.Hub
	conn    *nats.Conn
	js      jetstream.JetStream
	beats   *nats.Subscription
	journal *disk
	steer   *engine.Steering
	abort   context.CancelFunc
	retain  bool
	idle    func(engine.Idle) // of the coordinator
	chains  *chain.Room       // of the test
	budget  llm.Money
	session string // of the next lots, which does not report; "": each has its own
	done    chan engine.Result
	err     error // of the run, when done was read
}

// disk is a journal that can be full, and counts ends.
type disk struct {
	journal.Memory
	full  atomic.Bool
	mu    sync.Mutex
	ended map[int]int
}

func (d *disk) Append(ctx context.Context, entries ...journal.Entry) error {
	if d.full.Load() {
		return errFull
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		if e, ok := e.(*journal.Ended); ok {
			d.ended[e.Episode]++
		}
	}
	return d.Memory.Append(ctx, entries...)
}

var errFull = errors.New("no space left on device")

func newLab(t *testing.T, c hub.Config) *lab {
	t.Helper()
	l := &lab{T: t, hub: clustertest.Hub(t, c), journal: &disk{ended: map[int]int{}}}
	l.conn = clustertest.Connect(t, l.hub)
	var err error
	if l.js, err = jetstream.New(l.conn); err != nil {
		t.Fatal(err)
	}
	if l.beats, err = l.conn.SubscribeSync(hub.BeatSubject(clustertest.Run)); err != nil {
		t.Fatal(err)
	}
	return l
}

// config returns the run, without workers.
func (l *lab) config() engine.Config { return clustertest.Config(l.journal, episodes) }

// play begins or resumes the run.
func (l *lab) play() {
	l.Helper()
	l.done = make(chan engine.Result, 1)
	conn, steered := clustertest.Connect(l.T, l.hub), make(chan *engine.Steering, 1)
	c := l.config()
	c.Steer = func(s *engine.Steering) { steered <- s }
	c.Watch = func(e engine.Event) {
		if e.Idle != nil && l.idle != nil {
			l.idle(*e.Idle)
		}
	}
	remote := &Coordinator{Conn: conn, Build: "build", AckWait: ackWait, Retain: l.retain, Alone: true}
	if l.budget > 0 {
		remote.Divide(func() llm.Money { return l.budget }, nil, nil, nil)
	}
	c.Remote = remote
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		res, err := engine.Run(ctx, c)
		l.err = err
		l.done <- res
	})
	l.abort = cancel
	l.Cleanup(func() { cancel(); wg.Wait() })
	l.steer = <-steered
}

// ackWait is how long a worker of a lab may keep a lot without a sign of life.
const ackWait = 300 * time.Millisecond

// beat returns the next beat that is ok.
func (l *lab) beat(ok func(hub.Beating) bool) (b hub.Beating) {
	l.Helper()
	for {
		m, err := l.beats.NextMsgWithContext(l.Context())
		if err != nil {
			l.Fatal(err)
		}
		b = hub.Beating{}
		if err := json.Unmarshal(m.Data, &b); err != nil {
			l.Fatal(err)
		}
		if ok(b) {
			return b
		}
	}
}

func (l *lab) name() hub.Log {
	l.Helper()
	return hub.Log{Run: clustertest.Run, Number: l.beat(func(b hub.Beating) bool { return !b.Ended }).Log}
}

// status returns a function that waits for a status that is ok.
func (l *lab) status(name hub.Log) func(ok func(Status) bool) Status {
	return func(ok func(Status) bool) Status {
		l.Helper()
		for {
			m, err := l.conn.RequestWithContext(l.Context(), hub.StatusSubject(name.Run), nil)
			var s Status
			if err == nil {
				err = json.Unmarshal(m.Data, &s)
			}
			if err != nil {
				l.Fatal(err)
			}
			if ok(s) {
				return s
			}
			time.Sleep(5 * time.Millisecond) // or the test takes a core while it waits
		}
	}
}

// lot is a lot that the test has claimed.
type lot struct {
	*chain.Chain
	msg      jetstream.Msg
	from, to int
}

// take takes the next lot of the queue that is not done, and claims it.
func (l *lab) take(name hub.Log) *lot {
	l.Helper()
	for {
		if x, err := l.tryTake(name); err != nil {
			l.Fatal(err)
		} else if x != nil {
			return x
		}
	}
}

// tryTake takes a lot, if there is one.
func (l *lab) tryTake(name hub.Log) (*lot, error) {
	stream, err := l.js.Stream(l.Context(), name.Stream())
	if err != nil {
		return nil, err
	}
	queue, err := l.js.Consumer(l.Context(), name.Lots(), hub.Workers)
	if err != nil {
		return nil, err
	}
	msg, err := queue.Next(jetstream.FetchMaxWait(time.Second))
	if err != nil {
		if errors.Is(err, nats.ErrTimeout) {
			err = nil
		}
		return nil, err
	}
	from, to, _ := hub.EpisodesOf(msg.Subject())
	session := l.session
	if session == "" {
		session = rand.Text()
		l.report(session)
	}
	c, past, err := chain.Open(l.Context(), chain.Config{JetStream: l.js, Stream: stream, Subject: name.Chain(from, to), Session: session, Room: l.chains})
	if err != nil {
		return nil, err
	}
	if past.Done {
		return nil, msg.Ack()
	}
	return &lot{c, msg, from, to}, nil
}

// report says once a second that a worker is there, until the test ends.
func (l *lab) report(session string) {
	l.Helper()
	data, err := json.Marshal(hub.Working{Worker: session, Session: session, Run: clustertest.Run})
	if err != nil {
		l.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ok := true; ok; ok = sleep(l.Context(), hub.BeatInterval) {
			_ = l.conn.Publish(hub.StatsSubject(clustertest.Run), data)
		}
	})
	l.Cleanup(wg.Wait)
}

// play records that an episode has ended.
func (x *lot) play(ctx context.Context, n int) error {
	return x.Append(ctx, &journal.Ended{Episode: n, Outcome: world.Outcome{Data: []byte(`"played"`)}})
}

// end records that the episodes of a lot which have not ended have.
func (l *lab) end(x *lot) error {
	l.Helper()
	head, err := x.Head(l.Context())
	if err != nil {
		return err
	}
	for n := x.from; n < x.to; n++ {
		if head.Ended.Has(n) {
			continue
		}
		if err := x.play(l.Context(), n); err != nil {
			return err
		}
	}
	return x.Put(l.Context(), &chain.Done{})
}

// fillDisk plays a lot, and another when the disk is full. It returns when the run has stopped.
func (l *lab) fillDisk(name hub.Log) {
	l.Helper()
	for range 2 {
		x := l.take(name)
		if err := l.end(x); err != nil { // the hub has it
			l.Fatal(err)
		}
		_ = x.msg.Ack()
		if !l.journal.full.Load() {
			l.status(name)(func(s Status) bool { return s.Ended == x.to-x.from }) // so the stage is recorded
			l.journal.full.Store(true)
		}
	}
	if res := <-l.done; !errors.Is(l.err, errFull) {
		l.Errorf("%+v %v, want it to say that the disk is full", res, l.err)
	}
	l.journal.full.Store(false)
}

// finish plays everything that is left.
func (l *lab) finish() {
	l.Helper()
	for name := l.name(); len(l.done) == 0; {
		x, err := l.tryTake(name)
		if x != nil {
			err = l.end(x)
		}
		if err != nil { // the run is over, or that beat was of an earlier log
			if m, err := l.beats.NextMsg(100 * time.Millisecond); err == nil {
				var b hub.Beating
				if err := json.Unmarshal(m.Data, &b); err != nil {
					l.Fatal(err)
				}
				name.Number = b.Log
			}
		} else if x != nil {
			_ = x.msg.Ack()
		}
	}
	l.complete()
}

// complete waits for the end of the run. Every episode must have ended once.
func (l *lab) complete() {
	l.Helper()
	if res := <-l.done; res.State != journal.Complete || res.Ended != episodes || l.err != nil {
		l.Errorf("%+v %v", res, l.err)
	}
	for n := range episodes {
		if l.journal.ended[n] != 1 {
			l.Errorf("episode %d ended %d times", n, l.journal.ended[n])
		}
	}
}
