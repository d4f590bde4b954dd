package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// outside carries out acts, each in a second. It has room for some episodes; the others wait until
// the run stops.
type outside struct {
	room    int // 0: any number
	fail    error
	stopped chan struct{}
	once    sync.Once

	mu         sync.Mutex
	open, peak int
}

func newOutside() *outside { return &outside{stopped: make(chan struct{})} }

func (o *outside) Drain() { o.once.Do(func() { close(o.stopped) }) }

func (o *outside) Act(ctx context.Context, _ journal.Turn, _ int, _ string, act world.Act) (*llm.Response, error) {
	if act.Name == "open" && !o.enter() {
		select {
		case <-o.stopped:
			return nil, &llm.Error{Kind: llm.KindCanceled, Message: "no room"}
		case <-ctx.Done():
			return nil, llm.ContextError(ctx)
		}
	}
	time.Sleep(time.Second) // of the bubble's clock
	if act.Name == "close" {
		o.mu.Lock()
		o.open--
		o.mu.Unlock()
	}
	return &llm.Response{}, o.fail
}

func (o *outside) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room > 0 && o.open == o.room {
		return false
	}
	o.open++
	o.peak = max(o.peak, o.open)
	return true
}

// abroad is a run whose episodes open something outside, ask, and close it.
func abroad(m Models, o *outside, j journal.Journal, episodes int) Config {
	c := config(m, j, episodes)
	c.Actor = o
	act := func(name string) world.Call { return world.Call{Seat: "a", Act: &world.Act{Name: name}} }
	k := crowd()
	k.Play = func(_ *turns, t *world.Table) world.Outcome {
		t.One(act("open"))
		for range 3 {
			t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}})
		}
		t.One(act("close"))
		return world.Outcome{}
	}
	c.Kind = world.Define(external{k})
	return c
}

// TestFewAreOpenOutside: episodes that begin with an act begin no faster than those that begin with
// an ask.
func TestFewAreOpenOutside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ calls, width, limit int }{{4, 4, 40}, {100, 100, 250}, {0, 4, 300}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutside()
			c := abroad(&models{width: tt.width, pause: 10 * time.Second}, o, &journal.Memory{}, 600)
			c.Calls = tt.calls
			if res, err := Run(t.Context(), c); err != nil || res.State != journal.Complete || o.peak > tt.limit || o.peak < tt.width {
				t.Errorf("%d calls at once: %d were open; %+v, %v", tt.calls, o.peak, res, err)
			}
		})
	}
}

// TestRoomOutside: an actor that says how many episodes it has room for gets so many, and more when its room grows.
func TestRoomOutside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ calls, first, grown, peak int }{{0, 2, 2, 2}, {0, 2, 400, 400}, {8, 400, 400, 40}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutside()
			c := abroad(&models{width: 600, pause: time.Minute}, o, &journal.Memory{}, 600)
			began := time.Now()
			c.Calls, c.Capacity = tt.calls, func() int {
				if time.Since(began) > time.Minute {
					return tt.grown
				}
				return tt.first
			}
			res, err := Run(t.Context(), c)
			if err != nil || res.State != journal.Complete || o.peak > tt.peak || o.peak < tt.peak/4 {
				t.Errorf("%+v: %d were open; %+v, %v", tt, o.peak, res, err)
			}
			if tt.calls == 0 && o.peak != tt.peak {
				t.Errorf("%+v: %d were open", tt, o.peak)
			}
		})
	}
}

// TestDrainLeavesWhatWaits: on a drain, episodes that have begun outside are played to their end.
// Those that still wait are left at once, for the next process.
func TestDrainLeavesWhatWaits(t *testing.T) {
	t.Parallel()
	for _, room := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			j, o := &journal.Memory{}, newOutside()
			o.room = room
			c := abroad(&models{width: 8, pause: time.Minute}, o, j, 10)
			drain, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("enough"))
			defer cancel()
			c.Drain = drain
			closing := 0
			c.Watch = func(e Event) { closing += e.Closing }
			res, err := Run(t.Context(), c)
			if err != nil || res.State != journal.Stopped || res.Reason != (journal.Reason{Kind: journal.ByUser, Detail: "enough"}) || res.Ended != room || closing != room || res.Asked != 3*room || res.Acted != 2*room {
				t.Fatalf("room for %d, %d reported as playing to their end: %+v, %v", room, closing, res, err)
			}
			res, err = Run(t.Context(), abroad(&models{width: 8}, newOutside(), j, 10))
			if err != nil || res.State != journal.Complete || res.Ended != 10 || res.Asked != 3*(10-room) || res.Acted != 2*(10-room) {
				t.Errorf("resumed: %+v, %v", res, err)
			}
		})
	}
}

// TestFailedActsCount: every recorded failure is counted, those of asks and of acts apart.
func TestFailedActsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside()
		o.fail = &llm.Error{Kind: llm.KindServer, Status: 500, Message: "oh"}
		m := &models{width: 4, fail: func(*llm.Request) error { return &llm.Error{Kind: llm.KindServer, Status: 500} }}
		if res, err := Run(t.Context(), abroad(m, o, &journal.Memory{}, 6)); err != nil || res.FailedCalls != 6*3 || res.FailedActs != 6*2 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// waiting is an outside whose acts wait until it is drained.
type waiting struct {
	began, drained chan struct{}
	first, second  sync.Once
}

func (w *waiting) Drain() { w.second.Do(func() { close(w.drained) }) }

func (w *waiting) Act(context.Context, journal.Turn, int, string, world.Act) (*llm.Response, error) {
	w.first.Do(func() { close(w.began) })
	<-w.drained
	return nil, &llm.Error{Kind: llm.KindCanceled, Message: "no room"}
}

// TestGivenUpBesideAStrand: an act is canceled while another strand of its episode is played. The
// race detector checks that both may look at the episode.
func TestGivenUpBesideAStrand(t *testing.T) {
	t.Parallel()
	c := config(&models{width: 4}, &journal.Memory{}, 8)
	o := &waiting{began: make(chan struct{}), drained: make(chan struct{})}
	c.Actor = o
	k := crowd()
	k.Play = func(_ *turns, t *world.Table) world.Outcome {
		t.Fork(2, func(i int, t *world.Table) {
			if i == 0 {
				t.One(world.Call{Seat: "a", Act: &world.Act{Name: "wait"}})
				return
			}
			for range 2000 {
				t.One(world.Call{Seat: "bot", Label: "w", Ask: llm.Request{Messages: []llm.Message{llm.User("x")}}})
			}
		})
		return world.Outcome{}
	}
	c.Kind = world.Define(external{k})
	drain, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	c.Drain = drain
	go func() {
		<-o.began
		stop(errors.New("enough"))
	}()
	if res, err := Run(t.Context(), c); err != nil || res.State != journal.Stopped {
		t.Errorf("%+v, %v", res, err)
	}
}
