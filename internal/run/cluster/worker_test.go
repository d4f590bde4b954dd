package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/dispatch"
	"parley/internal/kit/testkit"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/journal"
)

// poison is the deal of the episodes that end the process that plays them. It is not the first of its lot.
const poison = 7

// hooks are what a test does to a worker.
type hooks struct {
	before func(ctx context.Context, j journal.Journal, lot engine.Lot) // a lot is played
	after  func(lot engine.Lot, err error)                              // it was played, or not
	hold   func(on bool)
	full   func() bool
	beside func(needEpisodes func()) // a lot is played, and another could be
	limits lease.Limits
	calls  func() tally.Report
}

// player plays lots of toy.
type player struct {
	begun *journal.Begun
	hooks
}

func (p *player) Play(ctx, drain context.Context, j journal.Journal, lot engine.Lot, needEpisodes func()) (engine.Result, error) {
	if p.beside != nil {
		p.beside(needEpisodes)
	}
	if p.before != nil {
		p.before(ctx, j, lot)
	}
	res, err := engine.Run(ctx, engine.Config{Journal: j, Begun: *p.begun, Kind: clustertest.Kind(), Plan: lot.Plan(), Lot: &lot, Drain: drain, NeedEpisodes: needEpisodes})
	if p.after != nil {
		p.after(lot, err)
	}
	return res, err
}

func (p *player) Hold(on bool) {
	if p.hold != nil {
		p.hold(on)
	}
}
func (*player) Drain()                      {}
func (*player) Close(context.Context) error { return nil }

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // most tests wait; go test -parallel sets another number
	testkit.Main(m, func(arg string) error {
		words := strings.Fields(arg)
		h := hooks{before: poisoned(words[2] == "late")}
		switch words[2] {
		case "greedy":
			h = hooks{beside: greedy()}
		case "slow":
			h = slow(func() { fmt.Println("playing"); _, _ = fmt.Scanln() }, func(text string) { fmt.Println(text) })
		}
		return serve(context.Background(), context.Background(), words[0], words[1], "build", h)
	})
}

// poisoned ends the process at a lot with the poison. If it is late, the poison has come to its first call before, and another episode
// of the lot ends each time. It says how it plays the lot when it is not all played together.
func poisoned(late bool) func(ctx context.Context, j journal.Journal, lot engine.Lot) {
	return func(ctx context.Context, j journal.Journal, lot engine.Lot) {
		head, err := j.Head(ctx)
		at := poison - lot.First
		if err != nil || at < 0 || at >= lot.Specs.Len() || lot.Specs.At(at).Deal != poison || head.Ended.Has(poison) {
			return
		}
		open, skipped := 0, 0
		for i := range lot.Specs.Len() {
			if n := lot.First + i; lot.Skip(n) {
				skipped++
			} else if !head.Ended.Has(n) {
				open++
			}
		}
		if skipped > 0 {
			fmt.Printf("poison %t, skipped %d, ended %d, open %d\n", !lot.Skip(poison), skipped, head.Ended.Len(), open)
		}
		if lot.Skip(poison) {
			return
		}
		if _, begun := head.Playing[poison]; late && !begun {
			err = j.Append(ctx, &journal.Turned{Turn: journal.Turn{Episode: poison}, Calls: 1})
		}
		for i := range lot.Specs.Len() {
			if n := lot.First + i; late && n != poison && !head.Ended.Has(n) {
				err = errors.Join(err, j.Append(ctx, &journal.Ended{Episode: n}))
				break
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(3)
	}
}

// greedy takes all lots of a run, and then ends the process, as one that has no memory left.
func greedy() func(needEpisodes func()) {
	var lots atomic.Int64
	return func(needEpisodes func()) {
		if lots.Add(1) == 60 {
			os.Exit(3)
		}
		needEpisodes()
		select {}
	}
}

// serve is a worker.
func serve(ctx, drain context.Context, url, token, build string, h hooks) error {
	nc, err := nats.Connect(url, nats.Token(token))
	if err != nil {
		return err
	}
	defer nc.Close()
	w := Worker{Conn: nc, Build: build, Log: slog.New(slog.DiscardHandler)}
	w.Open = func(_ context.Context, _ string, b *journal.Begun) (Opened, error) {
		return Opened{Player: &player{b, h}, Full: h.full, Limits: h.limits, Calls: h.calls}, nil
	}
	return w.Serve(ctx, drain)
}

// run plays episodes with the workers of a hub, and returns the ends.
func run(t *testing.T, h *hub.Hub, episodes int, heard func(hub.Working), more ...func(*engine.Config)) (engine.Result, *journal.Head) {
	t.Helper()
	nc := clustertest.Connect(t, h)
	j := &journal.Memory{}
	c := clustertest.Config(j, episodes)
	c.Remote = &Coordinator{Conn: nc, Build: "build", AckWait: 300 * time.Millisecond, Alone: true}
	for _, set := range more {
		set(&c)
	}
	if heard != nil {
		_, err := nc.Subscribe(hub.StatsSubject(clustertest.Run), func(m *nats.Msg) {
			var w hub.Working
			if err := json.Unmarshal(m.Data, &w); err != nil {
				t.Error(err)
			}
			heard(w)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	res, err := engine.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res, head
}

// TestPoison: an episode that kills every worker fails by itself after as many deaths as the documentation says. All others are played.
func TestPoison(t *testing.T) {
	t.Parallel()
	const halved = 3 // with 10 episodes, 5 and 2
	poisonedRun(t, "poisoned", suspectAfter+halved+failedAfter)
}

// TestLatePoison: deaths at an episode count also if other episodes of its lot get on. Those are played together, before it is tried.
func TestLatePoison(t *testing.T) {
	t.Parallel()
	const first = 1 // the worker that recorded where the episode is
	said := poisonedRun(t, "late", first+suspectAfter+failedAfter)
	want := []string{"poison false, skipped 1, ended 3, open 6"}
	for range failedAfter {
		want = append(want, "poison true, skipped 9, ended 9, open 1")
	}
	if said = slices.DeleteFunc(said, func(s string) bool { return strings.HasSuffix(s, "open 0") }); !slices.Equal(said, want) {
		t.Errorf("the lot was played so: %q, want %q", said, want)
	}
}

// poisonedRun plays a run with workers that die so, one after another, and returns what they said.
func poisonedRun(t *testing.T, kind string, want int) (said []string) {
	t.Helper()
	h := clustertest.Hub(t, hub.Config{})
	var wg sync.WaitGroup
	over, deaths := make(chan struct{}), 0
	wg.Go(func() {
		for ; ; deaths++ {
			p := testkit.Start(t, h.URL()+" "+h.Token()+" "+kind)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for p.Lines.Scan() { // until it ends
					said = append(said, p.Lines.Text())
				}
			}()
			select {
			case <-ended:
				p.Wait()
			case <-over:
				p.Kill()
				<-ended
				p.Wait()
				return
			}
		}
	})
	res, head := run(t, h, 600, nil) // in lots of ten
	close(over)
	wg.Wait()
	if deaths != want {
		t.Errorf("%d workers died, want %d", deaths, want)
	}
	end, _ := head.Ended.Of(poison)
	if res.State != journal.Complete || res.Ended != 600 || res.Failed != 1 || !strings.Contains(end.Outcome.Failed, "died 3 times") {
		t.Errorf("%+v; the poison: %+v", res, end)
	}
	return said
}

// TestDieTogether: workers that die with everything that they play are no evidence against each episode. The next worker plays one lot
// after another, each at once, and says how many episodes wait for that. No episode fails.
func TestDieTogether(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan struct{})
	say := sync.OnceFunc(func() { close(said) })
	var mu sync.Mutex
	playing, together, tries := 0, 0, 0
	wg.Go(func() {
		for range suspectAfter {
			p := testkit.Start(t, h.URL()+" "+h.Token()+" greedy")
			p.Wait()
		}
		_ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", hooks{
			calls: func() tally.Report { return tally.Report{} },
			before: func(context.Context, journal.Journal, engine.Lot) {
				mu.Lock()
				tries++
				playing++
				together = max(together, playing)
				mu.Unlock()
				<-said
			},
			after: func(engine.Lot, error) { mu.Lock(); playing--; mu.Unlock() },
		})
	})
	res, _ := run(t, h, 600, func(w hub.Working) { // in lots of ten
		if slices.ContainsFunc(w.Waits, func(s string) bool {
			return strings.Contains(s, "10 episodes wait to be played with nothing beside them")
		}) {
			say()
		}
	})
	cancel()
	wg.Wait()
	if res.State != journal.Complete || res.Ended != 600 || res.Failed != 0 || together != 1 || tries != 60 {
		t.Errorf("%+v; %d tries, %d lots at once; want 60, 1", res, tries, together)
	}
}

// TestCallsAreCounted: when the run ends, the coordinator has counted the calls of all workers.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	var made atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		var own atomic.Int64
		count := hooks{
			before: func(context.Context, journal.Journal, engine.Lot) { own.Add(3); made.Add(3) },
			calls: func() tally.Report {
				return tally.Report{Snapshot: dispatch.Snapshot{Models: map[string]dispatch.ModelStats{"lab/a": {Attempts: own.Load()}}}}
			},
		}
		wg.Go(func() { _ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", count) })
	}
	var counted tally.Tally
	run(t, h, 200, nil, func(c *engine.Config) { c.Remote.(*Coordinator).Divide(nil, &counted, nil, nil) })
	cancel()
	wg.Wait()
	if got, want := counted.Stats().Attempts, made.Load(); got != want || want == 0 {
		t.Errorf("%d attempts were counted, and %d made", got, want)
	}
}

// TestFull: a worker that is full takes no lot, although one that it plays could be joined by another.
func TestFull(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	var mu sync.Mutex
	began, asked := false, 0
	room := make(chan struct{}) // closed when it is not full any more
	hooks := hooks{
		full: func() bool {
			mu.Lock()
			defer mu.Unlock()
			if !began || asked == 3 {
				return false
			}
			if asked++; asked == 3 {
				close(room)
			}
			return true
		},
		beside: func(needEpisodes func()) {
			mu.Lock()
			if began && asked < 3 {
				t.Error("a full worker takes a lot")
				asked = 3
				close(room)
			}
			began = true
			mu.Unlock()
			needEpisodes()
			<-room
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", hooks) })
	res, _ := run(t, h, 200, nil)
	cancel()
	wg.Wait()
	if res.State != journal.Complete || res.Ended != 200 {
		t.Errorf("%+v", res)
	}
}

// TestOtherBuild: a worker of another build plays nothing, and says why.
func TestOtherBuild(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	refused := make(chan struct{})
	var once sync.Once
	wg.Go(func() { _ = serve(ctx, context.Background(), h.URL(), h.Token(), "other", hooks{}) })
	wg.Go(func() {
		<-refused // only then is there a worker that can play
		_ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", hooks{})
	})
	res, _ := run(t, h, 10, nil, func(c *engine.Config) {
		c.Watch = func(e engine.Event) {
			if e.Idle != nil && e.Idle.Worker != "" && strings.Contains(e.Idle.Why, "another build") {
				once.Do(func() { close(refused) })
			}
		}
	})
	cancel(errors.New("done"))
	wg.Wait()
	if res.State != journal.Complete || res.Ended != 10 {
		t.Errorf("%+v", res)
	}
}

// TestDrain: a worker that drains gives its lots back, and the next one plays them.
func TestDrain(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(t.Context())
	drain, stop := context.WithCancelCause(t.Context())
	joined := make(chan struct{})
	var once sync.Once
	wg.Go(func() {
		if err := serve(ctx, drain, h.URL(), h.Token(), "build", hooks{}); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		<-joined
		stop(errors.New("drained"))
		_ = serve(ctx, context.Background(), h.URL(), h.Token(), "build", hooks{})
	})
	res, head := run(t, h, 2000, func(hub.Working) { once.Do(func() { close(joined) }) })
	cancel(errors.New("done"))
	wg.Wait()
	if res.State != journal.Complete || res.Ended != 2000 || head.Ended.Len() != 2000 {
		t.Errorf("%+v", res)
	}
}
