package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

// undisturbed is the result of a run with one call at a time and no failures.
func undisturbed(t *testing.T, faults int, sizes ...int) Result {
	t.Helper()
	r, err := Run(t.Context(), config(&models{width: 1, faults: faults}, &journal.Memory{}, sizes...))
	if err != nil || r.State != journal.Complete {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// TestSameAtAnyConcurrency is the first promise: the outcomes do not depend on how many calls are
// in flight, or on the order of their replies.
func TestSameAtAnyConcurrency(t *testing.T) {
	t.Parallel()
	for _, faults := range []int{0, 3, 20} {
		if testing.Short() && faults != 3 {
			continue
		}
		want := undisturbed(t, faults, 20, 30)
		for _, width := range []int{3, 64, 1000} {
			for i, live := range []int{1, 7, 0, 0, 0, 7} {
				wave, batches := i >= 3, i >= 4
				t.Run(fmt.Sprintf("faults %d, %d wide, %d live, wave %v, batches %v", faults, width, live, wave, batches), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						c := config(&models{width: width, faults: faults, pause: time.Second}, &journal.Memory{}, 20, 30)
						c.Settings.Limits.Live, c.Settings.Pace = live, paceOf(wave)
						if batches {
							c.Batches = c.Models.(Batches)
						}
						got, err := Run(t.Context(), c)
						if err != nil || got.Digest != want.Digest || got.Episodes != 50 || got.Made.Calls != want.Made.Calls {
							t.Errorf("%+v, %v; want %+v", got, err, want)
						}
					})
				})
			}
		}
	}
}

// TestArrivalOrderIsCaught makes the mistake that the test above must catch.
func TestArrivalOrderIsCaught(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 20)
	synctest.Test(t, func(t *testing.T) {
		c := config(&models{width: 64, pause: time.Second}, &journal.Memory{}, 20)
		c.arrival = true
		if got, err := Run(t.Context(), c); err != nil || got.Digest == want.Digest {
			t.Errorf("replies in the order of arrival went unnoticed: %+v, %v", got, err)
		}
	})
}

// TestCutAtAnyMoment kills a run after every possible number of entries and resumes it. The
// outcomes must be those of an undisturbed run, and no recorded reply may be asked for again: at
// free pace and in waves, with one call in flight or many, and when that changes in between.
func TestCutAtAnyMoment(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		cutAnywhere(t, pace{width: 64}, pace{width: 3})
		return
	}
	for _, first := range []pace{{width: 1}, {width: 4}, {width: 64}, {width: 4, wave: true}} {
		for _, second := range []pace{{width: 3}, {width: 1000, wave: true}} {
			t.Run(fmt.Sprintf("%+v %+v", first, second), func(t *testing.T) {
				t.Parallel()
				cutAnywhere(t, first, second)
			})
		}
	}
}

// pace is how a run is played.
type pace struct {
	width int // calls in flight
	wave  bool
}

// stride is the distance of two cuts: a short test, as the race detector's, needs no cut after every entry.
func stride() int {
	if testing.Short() {
		return 4
	}
	return 1
}

func cutAnywhere(t *testing.T, before, after pace) {
	t.Helper()
	want := undisturbed(t, 5, 2, 3)
	whole := &journal.Memory{}
	if _, err := Run(t.Context(), config(&models{width: 1, faults: 5}, whole, 2, 3)); err != nil {
		t.Fatal(err)
	}
	entries := 0
	_ = whole.Read(t.Context(), journal.Whole(), func(journal.Entry) error { entries++; return nil })
	for cut := range entries {
		synctest.Test(t, func(t *testing.T) {
			j := &cutJournal{left: cut}
			c := config(&models{width: before.width, faults: 5, pause: time.Second}, j, 2, 3)
			c.Settings.Pace = paceOf(before.wave)
			if _, err := Run(t.Context(), c); !errors.Is(err, errCut) {
				return // it needs fewer commits than there were entries
			}
			recorded := map[string]bool{}
			_ = j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
				if r, ok := e.(*journal.Replied); ok && r.Request != nil {
					d := r.Request.Digest()
					recorded[string(d[:])] = true
				}
				return nil
			})
			second := &models{width: after.width, faults: 5, pause: time.Second}
			c = config(second, &j.Memory, 2, 3)
			c.Settings.Pace = paceOf(after.wave)
			if after.wave {
				c.Batches = second
			}
			got, err := Run(t.Context(), c)
			if err != nil || got.Digest != want.Digest {
				t.Fatalf("cut after %d entries: %+v, %v", cut, got, err)
			}
			for d := range maps.Keys(recorded) {
				if second.asked[d] > 0 {
					t.Fatalf("cut after %d entries: a recorded reply was asked for again", cut)
				}
			}
			if got.Made.Calls+len(recorded) != want.Made.Calls {
				t.Fatalf("cut after %d entries: asked %d beside %d recorded, want %d in all", cut, got.Made.Calls, len(recorded), want.Made.Calls)
			}
		})
	}
}

func TestDrainKeepsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 10)
	synctest.Test(t, func(t *testing.T) {
		j := &journal.Memory{}
		asked := 0
		for process := 0; ; process++ {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("enough for today"))
			m := &models{width: 3, pause: time.Second}
			c := config(m, j, 10)
			c.Drain = ctx
			got, err := Run(t.Context(), c)
			cancel()
			asked += got.Made.Calls
			if err != nil {
				t.Fatal(err)
			}
			if got.State == journal.Complete {
				if got.Digest != want.Digest || asked != want.Made.Calls || process == 0 {
					t.Errorf("after %d processes: asked %d, want %d; digest %s, want %s", process, asked, want.Made.Calls, got.Digest, want.Digest)
				}
				return
			}
			if got.State != journal.Stopped || got.Reason != (journal.Reason{Kind: journal.ByUser, Detail: "enough for today"}) || got.Lost != 0 {
				t.Fatalf("%+v", got)
			}
		}
	})
}

func TestAbortLosesOnlyWhatIsInFlight(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, 0, 10)
	synctest.Test(t, func(t *testing.T) {
		j := &journal.Memory{}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("now"))
		defer cancel()
		got, err := Run(ctx, config(&models{width: 5, pause: time.Minute}, j, 10))
		if err != nil || got.State != journal.Stopped {
			t.Fatalf("%+v, %v", got, err)
		}
		got, err = Run(t.Context(), config(&models{width: 50}, j, 10))
		if err != nil || got.Digest != want.Digest {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestStops distinguishes failures of a call, which its world sees, from those of the run, which
// must not become replies.
func TestStops(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err    llm.Error
		state  journal.State
		failed bool
	}{
		{llm.Error{Kind: llm.KindServer, Status: 500}, journal.Complete, false},
		{llm.Error{Kind: llm.KindRefused, Status: 400}, journal.Complete, false},
		{llm.Error{Kind: llm.KindBadRequest, Status: 400}, journal.Complete, false},
		{llm.Error{Kind: llm.KindInvalid}, journal.Complete, false},
		{llm.Error{Kind: llm.KindBudget, Message: "it is spent"}, journal.Stopped, false},
		{llm.Error{Kind: llm.KindQuota, Status: 429}, journal.Stopped, false},
		{llm.Error{Kind: llm.KindAuth, Status: 401}, journal.Stopped, false},
		{llm.Error{Kind: llm.KindTransport, Message: "connection refused"}, journal.Stopped, false},
		{llm.Error{Kind: llm.KindTransport, Message: "cut off", Uncertain: true}, journal.Complete, false},
		{llm.Error{Kind: llm.KindBadRequest, Message: "no provider"}, journal.Failed, true},
	}
	for _, tt := range tests {
		t.Run(tt.err.Error(), func(t *testing.T) {
			t.Parallel()
			j := &journal.Memory{}
			var n atomic.Int64
			m := &models{width: 2, fail: func(*llm.Request) error {
				if n.Add(1) == 5 {
					return &tt.err
				}
				return nil
			}}
			got, err := Run(t.Context(), config(m, j, 3))
			if got.State != tt.state || (err != nil) != tt.failed {
				t.Fatalf("%+v, %v", got, err)
			}
			_ = j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
				if r, ok := e.(*journal.Replied); ok && r.Error != nil && tt.state != journal.Complete {
					t.Errorf("%s was recorded as a reply", tt.err.Kind)
				}
				return nil
			})
			if tt.state == journal.Complete {
				return
			}
			got, err = Run(t.Context(), config(&models{width: 2}, j, 3))
			if err != nil || got.Digest != undisturbed(t, 0, 3).Digest {
				t.Errorf("resumed: %+v, %v", got, err)
			}
		})
	}
}

// TestScoresStayInRange checks that an episode whose score is outside of its declared range fails, and says where and how.
func TestScoresStayInRange(t *testing.T) {
	t.Parallel()
	for value, failed := range map[float64]string{
		0.5: "", 1 + 1e-12: "", math.NaN(): "",
		1.5:    "episode 0: the score share of a is 1.5, and its declared range is 0 to 1: correct the world or the range",
		-1e300: "episode 0: the score share of a is -1e+300, and its declared range is 0 to 1: correct the world or the range",
	} {
		k := crowd()
		k.Scores = []world.Measure{{Name: "share", Seats: []string{"a"}, Bounds: world.Share()}, {Name: "any", Bounds: world.Anything()}}
		k.Play = func(*turns, *world.Table) world.Outcome {
			return world.Outcome{Scores: []world.Score{{Name: "any", Value: 1e300}, {Name: "undeclared", Value: -1}, {Seat: "a", Name: "share", Value: value}}}
		}
		j := &journal.Memory{}
		c := config(&models{width: 2}, j, 1)
		c.Kind = world.Define(k)
		if got, err := Run(t.Context(), c); err != nil || got.Ended != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if o := journaltest.Ends(t, j)[0].Outcome; o.Failed != failed || (len(o.Scores) == 0) != (failed != "") {
			t.Errorf("%v: %+v", value, o)
		}
	}
}

func TestPanicEndsItsEpisodeOnly(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	c := config(&models{width: 2}, j, 5)
	var n atomic.Int64
	c.Kind = world.Define(making{crowd(), func(world.Lineup) world.World {
		if n.Add(1) != 3 {
			return nil
		}
		return world.Func(func(t *world.Table) world.Outcome {
			t.Fork(2, func(i int, t *world.Table) {
				t.One(world.Call{Seat: "a"})
				if i == 1 {
					panic("no such province")
				}
				t.One(world.Call{Seat: "a"})
			})
			return world.Outcome{}
		})
	}})
	got, err := Run(t.Context(), c)
	if err != nil || got.State != journal.Complete || got.Ended != 5 || got.Failed != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	bad := 0
	for _, e := range journaltest.Ends(t, j) {
		if e.Outcome.Failed == "panic: no such province" && strings.Contains(e.Stack, "TestPanicEndsItsEpisodeOnly") {
			bad++
		}
	}
	if bad != 1 {
		t.Errorf("%d episodes say why they failed and where", bad)
	}
}

func TestDivergence(t *testing.T) {
	t.Parallel()
	change := func(f func(*Config)) error {
		j := &cutJournal{left: 40}
		c := config(&models{width: 1}, j, 4)
		c.Begun.Code = []journal.Code{{Name: "crowd.py:Crowd", Language: "python 3.11.7"}}
		_, _ = Run(t.Context(), c)
		c = config(&models{width: 1}, &j.Memory, 4)
		f(&c)
		_, err := Run(t.Context(), c)
		return err
	}
	if err := change(func(*Config) {}); err != nil {
		t.Fatalf("without a change: %v", err)
	}
	err := change(func(c *Config) {
		c.Kind = world.Define(making{crowd(), func(world.Lineup) world.World {
			return world.Func(func(t *world.Table) world.Outcome {
				t.One(world.Call{Seat: "a", Label: "word", Ask: llm.Request{Messages: []llm.Message{llm.System("Be brief."), llm.User("0")}}})
				return world.Outcome{}
			})
		}})
	})
	if !errors.Is(err, ErrDiverged) || !strings.Contains(fmt.Sprint(err), "asks something else: in 2 messages, and was in 1. The world has changed, or it depends on more than its replies, "+
		"such as the clock, chance of its own, or files (parley.testing.exercise finds such code): resume it with") {
		t.Errorf("another prompt: %v", err)
	}
	err = change(func(c *Config) { p := stages{5}; c.Plan = &p })
	if !errors.Is(err, ErrDiverged) || !strings.Contains(fmt.Sprint(err), "asks for 5 episodes from 0 on, and asked for 4") {
		t.Errorf("another plan: %v", err)
	}
	err = change(func(c *Config) { c.Kind.Version = 2 })
	if !errors.Is(err, ErrDiverged) || !strings.Contains(fmt.Sprint(err), "recorded with crowd version 1, and this is crowd version 2: resume it with") {
		t.Errorf("another version: %v", err)
	}
}

// TestFewEpisodesAreLive: no more episodes begin than keep a slow provider busy.
func TestFewEpisodesAreLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := config(&models{width: 4, pause: time.Second}, &journal.Memory{}, 500)
		var mu sync.Mutex
		begun, ended, peak := 0, 0, 0
		c.Settings.Limits.Live = 1000
		c.Kind = world.Define(making{crowd(), func(world.Lineup) world.World {
			mu.Lock()
			defer mu.Unlock()
			begun++
			peak = max(peak, begun-ended)
			return nil
		}})
		c.Watch = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Ended != nil {
				ended++
			}
		}
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if peak > 20 {
			t.Errorf("%d episodes were live for four calls in flight", peak)
		}
	})
}

// TestWaves: nothing is sent while any strand can still continue, and there are few waves.
func TestWaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &models{width: 10_000, pause: time.Second}
		c := config(m, &journal.Memory{}, 100)
		c.Settings.Pace = "wave"
		start := time.Now()
		got, err := Run(t.Context(), c)
		if err != nil || got.State != journal.Complete {
			t.Fatalf("%+v, %v", got, err)
		}
		// Each wave takes at most the longest pause, a second; a world has eight turns in a row.
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("a hundred episodes of eight turns took %v in waves", took)
		}
	})
}

// TestWaveWaitsForAll: no call of the next wave is made before all of this one are answered, even
// if few can be in flight and older episodes would be first.
func TestWaveWaitsForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &models{width: 2, pause: time.Second}
		c := config(m, &journal.Memory{}, 6)
		c.Settings.Pace = "wave"
		c.Kind = playing(func(t *world.Table) world.Outcome {
			for i := range 4 {
				t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User(fmt.Sprint(i))}}})
			}
			return world.Outcome{}
		})
		var turns []string
		m.fail = func(r *llm.Request) error {
			turns = append(turns, r.Messages[len(r.Messages)-1].Text())
			return nil
		}
		if _, err := Run(t.Context(), c); err != nil || len(turns) != 24 || !slices.IsSorted(turns) {
			t.Errorf("asked for turns %v, %v", turns, err)
		}
	})
}

func paceOf(wave bool) string {
	if wave {
		return "wave"
	}
	return "free"
}
