package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/ask/dispatch/limiter"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/engine"
	"parley/journal"
)

const (
	fenced = "it could not record the lot"
	played = "it recorded the lot"
)

// slow returns the hooks of a worker that waits before it plays its first lot, the run's first, and says how that ended.
func slow(wait func(), say func(string)) hooks {
	var first, last sync.Once
	return hooks{
		before: func(context.Context, journal.Journal, engine.Lot) { first.Do(wait) },
		after: func(lot engine.Lot, err error) {
			if lot.First > 0 { // it plays others meanwhile
				return
			}
			last.Do(func() {
				if errors.Is(err, journal.ErrFenced) {
					say(fenced)
				} else {
					say(fmt.Sprintf("%s: %v", played, err))
				}
			})
		},
	}
}

// takeover plays a run. Its first lot goes to a slow worker; playing waits for that, and makes the worker silent. Another worker then
// takes the lot over. Once it has, back lets the slow one continue, and returns what that says. Only then does the run end.
func takeover(t *testing.T, h *hub.Hub, playing func(), back func() string) {
	t.Helper()
	const episodes = 300
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(t.Context())
	taken, done := make(chan struct{}), make(chan struct{})
	have := sync.OnceFunc(func() { close(taken) })
	wg.Go(func() {
		if res, head := run(t, h, episodes, nil); res.State != journal.Complete || head.Ended.Len() != episodes {
			t.Errorf("%+v", res)
		}
	})
	playing()
	var other sync.WaitGroup
	other.Go(func() {
		_ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", hooks{before: func(_ context.Context, _ journal.Journal, lot engine.Lot) {
			if lot.First == 0 {
				have()
			}
			if lot.First+lot.Specs.Len() == episodes {
				<-done
			}
		}})
	})
	<-taken
	if said := back(); said != fenced {
		t.Errorf("the slow worker says %q, want %q", said, fenced)
	}
	close(done)
	wg.Wait()
	cancel(errors.New("done"))
	other.Wait()
}

// granted notes the shares of a worker.
type granted struct {
	mu    sync.Mutex
	until time.Time
	more  chan struct{} // has one if there was another grant
}

func (*granted) Demands() map[string]limiter.Demand {
	return map[string]limiter.Demand{"lab": {Waiting: 1}}
}
func (g *granted) Share(parts map[string]limiter.Part) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = parts["lab"].Until
	kick(g.more)
}

// next waits for the next grant.
func (g *granted) next() {
	select {
	case <-g.more:
	default:
	}
	<-g.more
}

// TestCutOff: a worker that is cut off from the hub has no share after lease.Lease, and loses its lots to others. When it is back, it can
// record nothing of them, and plays others.
func TestCutOff(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	c := clustertest.NewCable(t, strings.TrimPrefix(h.URL(), "nats://"))
	g := &granted{more: make(chan struct{}, 1)}
	playing, back, said := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	hook := slow(func() { close(playing); <-back }, func(text string) { said <- text })
	hook.limits = g
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = serve(ctx, context.Background(), "nats://"+c.Addr().String(), h.Token(), "build", hook) })
	var cut time.Time
	takeover(t, h, func() {
		<-playing
		g.next()
		c.Cut.Lock()
		cut = time.Now()
	}, func() string {
		g.mu.Lock()
		if last := cut.Add(lease.Lease); g.until.After(last) {
			t.Errorf("its share is valid until %v, want at most %v", g.until, last)
		}
		g.mu.Unlock()
		c.Cut.Unlock()
		g.next()
		close(back)
		return <-said
	})
	cancel(errors.New("done"))
	wg.Wait()
}

// TestHold: workers hear that the run is paused and resumed.
func TestHold(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	var held []bool
	var steering *engine.Steering
	steer, resumed := make(chan *engine.Steering, 1), make(chan struct{})
	pause := sync.OnceFunc(func() {
		steering = <-steer
		steering.Hold(true)
		<-resumed
	})
	hook := hooks{
		before: func(context.Context, journal.Journal, engine.Lot) { pause() },
		hold: func(on bool) {
			if held = append(held, on); on {
				steering.Hold(false)
			} else {
				close(resumed)
			}
		},
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", hook) })
	res, _ := run(t, h, 100, nil, func(c *engine.Config) { c.Steer = func(s *engine.Steering) { steer <- s } })
	cancel(errors.New("done"))
	wg.Wait()
	if want := []bool{true, false}; res.State != journal.Complete || !slices.Equal(held, want) {
		t.Errorf("%+v; held %v, want %v", res, held, want)
	}
}

// TestHubWithoutJetStream: a NATS server that keeps no messages ends a run with the reason, and not with a wait for workers.
func TestHubWithoutJetStream(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	c := Coordinator{Conn: nc}
	if err := c.checkHub(t.Context(), js, func() bool { return false }, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("got %v", err)
	}
}
