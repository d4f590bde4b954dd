package coordinator

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
	"go.uber.org/goleak"

	"parley/engine"
	"parley/internal/cluster/chain"
	"parley/internal/cluster/hub"
	"parley/internal/cluster/subject"
	"parley/internal/cluster/wire"
	"parley/journal"
	"parley/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// episodes is how many a run has. Its lots have two each.
const episodes = 64

// toy is a kind of world that asks nothing.
type toy struct{}

func (toy) About() world.About                { return world.About{Name: "toy", Version: 1, Doc: "Nothing."} }
func (toy) Defaults() *struct{}               { return &struct{}{} }
func (toy) Seats(*struct{}) ([]string, error) { return []string{"nobody"}, nil }
func (toy) World(*struct{}, world.Lineup) (world.World, error) {
	return world.Func(func(*world.Table) world.Outcome { return world.Outcome{Data: "played"} }), nil
}

// lab is a hub, and a run that a coordinator plays on it. The test is its worker.
type lab struct {
	*testing.T
	hub     *hub.Hub
	conn    *nats.Conn
	js      jetstream.JetStream
	beats   *nats.Subscription
	journal *disk
	steer   *engine.Steering
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
	h, err := hub.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	l := &lab{T: t, hub: h, journal: &disk{ended: map[int]int{}}}
	l.conn = l.connect()
	if l.js, err = jetstream.New(l.conn); err != nil {
		t.Fatal(err)
	}
	if l.beats, err = l.conn.SubscribeSync(subject.Beat("toy1")); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) connect() *nats.Conn {
	l.Helper()
	nc, err := nats.Connect(l.hub.URL(), nats.Token(l.hub.Token()))
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(nc.Close)
	return nc
}

// play begins or resumes the run.
func (l *lab) play() {
	l.Helper()
	l.done = make(chan engine.Result, 1)
	conn, steered := l.connect(), make(chan *engine.Steering, 1)
	spec := world.Spec{Kind: "toy", Params: []byte("{}"), Lineup: map[string]string{"nobody": "me"}}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		res, err := engine.Run(ctx, engine.Config{
			Journal: l.journal, Kind: world.Define(toy{}), Plan: world.Repeat(spec, episodes),
			Begun:  journal.Begun{Version: journal.Version, Run: "toy1", Kind: "toy", KindVersion: 1, Agents: []world.Agent{{Name: "me", Bot: "none"}}},
			Steer:  func(s *engine.Steering) { steered <- s },
			Remote: &Coordinator{Conn: conn, Build: "build", AckWait: lease, Alone: true},
		})
		l.err = err
		l.done <- res
	})
	l.Cleanup(func() { cancel(); wg.Wait() })
	l.steer = <-steered
}

// lease is how long a worker of a lab may keep a lot without a sign of life.
const lease = 300 * time.Millisecond

// beat returns the next beat that is ok.
func (l *lab) beat(ok func(subject.Beating) bool) (b subject.Beating) {
	l.Helper()
	for {
		m, err := l.beats.NextMsgWithContext(l.Context())
		if err != nil {
			l.Fatal(err)
		}
		b = subject.Beating{}
		if err := json.Unmarshal(m.Data, &b); err != nil {
			l.Fatal(err)
		}
		if ok(b) {
			return b
		}
	}
}

func (l *lab) name() subject.Log {
	l.Helper()
	return subject.Log{Run: "toy1", Number: l.beat(func(b subject.Beating) bool { return !b.Ended }).Log}
}

// lot is a lot that the test has claimed.
type lot struct {
	*chain.Chain
	msg      jetstream.Msg
	from, to int
}

// take takes the next lot of the queue that is not done, and claims it.
func (l *lab) take(name subject.Log) *lot {
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
func (l *lab) tryTake(name subject.Log) (*lot, error) {
	stream, err := l.js.Stream(l.Context(), name.Stream())
	if err != nil {
		return nil, err
	}
	queue, err := l.js.Consumer(l.Context(), name.Lots(), subject.Workers)
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
	from, to, _ := subject.Episodes(msg.Subject())
	c, past, err := chain.Open(l.Context(), chain.Config{JetStream: l.js, Stream: stream, Subject: name.Chain(from, to), Session: rand.Text()})
	if err != nil || past.Done {
		return nil, errors.Join(err, msg.Ack())
	}
	return &lot{c, msg, from, to}, nil
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
		if err := x.Append(l.Context(), &journal.Ended{Episode: n, Outcome: world.Outcome{Data: []byte(`"played"`)}}); err != nil {
			return err
		}
	}
	return x.Put(l.Context(), &wire.Done{})
}

// finish plays everything that is left. Every episode must have ended once.
func (l *lab) finish() {
	l.Helper()
	for name := l.name(); len(l.done) == 0; {
		x, err := l.tryTake(name)
		if x != nil {
			err = l.end(x)
		}
		if err != nil {
			break // the run is over
		}
		if x != nil {
			_ = x.msg.Ack()
		}
	}
	res := <-l.done
	for n := range episodes {
		if l.journal.ended[n] != 1 {
			l.Errorf("episode %d ended %d times", n, l.journal.ended[n])
		}
	}
	if res.State != journal.Complete || res.Ended != episodes || l.err != nil {
		l.Errorf("%+v %v", res, l.err)
	}
}

// TestSlow: a lot whose worker gives no sign of life is given to another. The first one can write nothing any more.
func TestSlow(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	slow := l.take(name)
	if err := slow.Append(t.Context(), &journal.Ended{Episode: slow.from, Outcome: world.Outcome{Data: []byte(`"played"`)}}); err != nil {
		t.Fatal(err)
	}
	for {
		x := l.take(name)
		if err := l.end(x); err != nil {
			t.Fatal(err)
		}
		_ = x.msg.Ack()
		if x.from == slow.from {
			break
		}
	}
	if err := l.end(slow); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the slow worker: %v, want it fenced", err)
	}
	l.finish()
}

// TestDiskFull: the run stops and says why. When there is room, it continues, with what workers recorded meanwhile.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	l.journal.full.Store(true)
	first := l.take(name)
	if err := l.end(first); err != nil { // the hub has it
		t.Fatal(err)
	}
	res := <-l.done
	if !errors.Is(l.err, errFull) {
		t.Errorf("%+v %v, want it to say that the disk is full", res, l.err)
	}
	l.journal.full.Store(false)
	l.play()
	if got := l.name(); got != name {
		t.Errorf("the log is %+v, want %+v: what is in it must be collected", got, name)
	}
	l.finish()
}

// TestHubLost: when the hub has lost everything, a new log begins with what the journal has. Nobody can write to the old one.
func TestHubLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	done, half := l.take(name), l.take(name)
	if err := l.end(done); err != nil {
		t.Fatal(err)
	}
	if err := half.Append(t.Context(), &journal.Ended{Episode: half.from, Outcome: world.Outcome{Data: []byte(`"played"`)}}); err != nil {
		t.Fatal(err)
	}
	l.beat(func(b subject.Beating) bool { return b.Episodes == done.to-done.from+1 })
	for _, stream := range []string{name.Lots(), name.Stream()} {
		if err := l.js.DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	again := subject.Log{Run: "toy1", Number: l.beat(func(b subject.Beating) bool { return b.Log != name.Number }).Log}
	if err := l.end(half); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a worker with the old log: %v, want it fenced", err)
	}
	if got := l.name(); got != again {
		t.Errorf("%+v, want %+v", got, again)
	}
	l.finish()
}

// TestHubFull: while the hub has no room, everybody waits. Then the run continues.
func TestHubFull(t *testing.T) {
	t.Parallel()
	const room = 1 << 20
	l := newLab(t, hub.Config{MaxMemory: room})
	filler, err := l.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FILLER", Subjects: []string{"filler"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	fill := func() {
		for err = error(nil); err == nil; {
			_, err = l.js.Publish(t.Context(), "filler", make([]byte, room/64))
		}
		if api := (*jetstream.APIError)(nil); !errors.As(err, &api) {
			t.Fatal(err)
		}
	}
	l.play()
	name := l.name()
	x := l.take(name)
	fill()
	ended := make(chan error)
	go func() { ended <- l.end(x) }()
	fill() // if there was room for a message
	if err := filler.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	_ = x.msg.Ack()
	l.finish()
}

// TestPause: workers are told that the run is paused, resumed and drained.
func TestPause(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	for _, paused := range []bool{true, false} {
		l.steer.Hold(paused)
		l.beat(func(b subject.Beating) bool { return b.Paused == paused })
	}
	x := l.take(name)
	if err := x.Append(t.Context(), &journal.Ended{Episode: x.from, Outcome: world.Outcome{Data: []byte(`"played"`)}}); err != nil {
		t.Fatal(err)
	}
	l.steer.Finish("drained")
	l.beat(func(b subject.Beating) bool { return b.Draining })
	if err := x.Put(t.Context(), &wire.Released{}); err != nil {
		t.Fatal(err)
	}
	l.beat(func(b subject.Beating) bool { return b.Ended })
	if res := <-l.done; res.State != journal.Stopped || res.Ended != 1 || l.err != nil {
		t.Errorf("%+v %v, want it stopped, with what was played", res, l.err)
	}
	if _, err := l.js.Stream(t.Context(), name.Stream()); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the log: %v, want it removed", err)
	}
	l.play()
	l.finish()
}

// TestAloneBetween: what a process without workers plays is not played by the next one with workers, whatever an old log has.
func TestAloneBetween(t *testing.T) {
	t.Parallel()
	l := newLab(t, hub.Config{})
	l.play()
	name := l.name()
	l.journal.full.Store(true)
	x := l.take(name)
	if err := l.end(x); err != nil {
		t.Fatal(err)
	}
	<-l.done
	l.journal.full.Store(false)
	spec := world.Spec{Kind: "toy", Params: []byte("{}"), Lineup: map[string]string{"nobody": "me"}}
	if res, err := engine.Run(t.Context(), engine.Config{
		Journal: l.journal, Kind: world.Define(toy{}), Plan: world.Repeat(spec, episodes),
		Begun: journal.Begun{Version: journal.Version, Run: "toy1", Kind: "toy", KindVersion: 1, Agents: []world.Agent{{Name: "me", Bot: "none"}}},
	}); err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	l.play()
	if res := <-l.done; res.State != journal.Complete || l.err != nil {
		t.Errorf("%+v %v", res, l.err)
	}
	for n := range episodes {
		if l.journal.ended[n] != 1 {
			t.Errorf("episode %d ended %d times", n, l.journal.ended[n])
		}
	}
}
