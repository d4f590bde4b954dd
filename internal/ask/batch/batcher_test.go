package batch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/journal"
	"parley/llm"
)

// TestEndings makes everything happen to a batch that can, and counts the results of a hundred
// calls: answered by it, asked live, or failed.
func TestEndings(t *testing.T) {
	t.Parallel()
	fail := func(e llm.Error) func(int) *llm.Error { return func(int) *llm.Error { return &e } }
	first := func(e llm.Error) func(int) *llm.Error {
		return func(n int) *llm.Error {
			if n > 1 {
				return nil
			}
			return &e
		}
	}
	auto := func(c *Config, _ *provider.Batch) { c.Route, c.Min = Auto, 2 }
	for _, c := range []struct {
		name                   string
		api                    *fake
		change                 func(*Config, *provider.Batch)
		answered, live, failed int
		created                int
		asked                  int           // creations; 0: any number
		shortest, longest      time.Duration // that it takes
	}{
		{name: "well", api: &fake{takes: time.Hour}, answered: 100, created: 1, shortest: time.Hour, longest: 62 * time.Minute},
		{name: "cut to requests", api: &fake{takes: time.Hour}, answered: 100, created: 4, longest: 62 * time.Minute,
			change: func(_ *Config, l *provider.Batch) { l.Requests = 30 }},
		{name: "cut to bytes", api: &fake{takes: time.Hour}, answered: 100, created: 5, longest: 62 * time.Minute,
			change: func(_ *Config, l *provider.Batch) { l.Bytes = 1024 + 20*(100+lineBytes) }},
		{name: "one line is too large", api: &fake{}, live: 100,
			change: func(_ *Config, l *provider.Batch) { l.Bytes = 1024 + 50 }},
		{name: "creations an hour", api: &fake{takes: time.Minute}, answered: 100, created: 10, shortest: 3 * time.Hour, longest: 3*time.Hour + 5*time.Minute,
			change: func(_ *Config, l *provider.Batch) { l.Requests, l.PerHour = 10, 3 }},
		{name: "tokens that wait, known", api: &fake{takes: time.Hour, tokens: 40}, answered: 100, created: 3, shortest: 3 * time.Hour, longest: 4 * time.Hour,
			change: func(_ *Config, l *provider.Batch) { l.Tokens = 40 }},
		{name: "tokens that wait, learned", api: &fake{takes: time.Hour, tokens: 40}, answered: 100, created: 4, longest: 4 * time.Hour},
		{name: "refused for a while", api: &fake{takes: time.Hour, refuse: first(llm.Error{Kind: llm.KindRateLimited, Status: 429, RetryAfter: 10 * time.Minute})},
			answered: 100, created: 1, shortest: 70 * time.Minute, longest: 75 * time.Minute},
		{name: "refused for ever", api: &fake{refuse: fail(llm.Error{Kind: llm.KindRateLimited, Status: 429, RetryAfter: 10 * time.Minute})},
			live: 100, shortest: time.Hour, longest: 80 * time.Minute},
		{name: "created, and the answer lost", api: &fake{takes: time.Hour, refuse: first(llm.Error{Kind: llm.KindTransport, Uncertain: true})},
			answered: 100, created: 1, longest: 65 * time.Minute},
		{name: "created, the answer lost, and listed late", api: &fake{takes: time.Hour, lag: 20 * time.Second, refuse: first(llm.Error{Kind: llm.KindTransport, Uncertain: true})},
			answered: 100, created: 1, longest: 65 * time.Minute},
		{name: "created, the answer lost, and blind", api: &fake{takes: time.Hour, blind: true, refuse: first(llm.Error{Kind: llm.KindTransport, Uncertain: true})},
			answered: 100, created: 1, longest: 65 * time.Minute},
		{name: "perhaps created, and was not", api: &fake{takes: time.Hour, refuse: first(llm.Error{Kind: llm.KindServer, Uncertain: true, Code: "not done"})},
			answered: 100, created: 1, shortest: time.Hour + 30*time.Second, longest: 65 * time.Minute},
		{name: "no batch API", api: &fake{refuse: fail(llm.Error{Kind: llm.KindBadRequest, Status: 404})}, live: 100},
		{name: "no key", api: &fake{refuse: fail(llm.Error{Kind: llm.KindAuth, Status: 401})}, failed: 100},
		{name: "a line is refused, which one is said", api: &fake{takes: time.Hour, poison: "question 42", where: true}, answered: 99, failed: 1, created: 2, longest: 65 * time.Minute},
		{name: "lines that failed go out together", api: &fake{takes: time.Hour, expire: 1, slow: time.Second}, answered: 100, created: 2, shortest: 2 * time.Hour, longest: 130 * time.Minute},
		{name: "lines fail for ever", api: &fake{takes: time.Hour, expire: 9}, live: 100, created: 3, longest: 4 * time.Hour},
		{name: "it vanishes", api: &fake{takes: time.Hour, vanish: true}, live: 100, created: 3, longest: 5 * time.Minute},
		{name: "it never ends", api: &fake{takes: 1000 * time.Hour}, live: 100, created: 3, shortest: 3 * 25 * time.Hour, longest: 76 * time.Hour},
		{name: "the deadline passes", api: &fake{takes: 10 * time.Hour}, answered: 50, live: 50, created: 1, shortest: time.Hour, longest: 65 * time.Minute,
			change: func(c *Config, _ *provider.Batch) { c.Deadline = time.Hour }},
		{name: "the deadline passes, and it cannot be cancelled at once", api: &fake{takes: 10 * time.Hour, deaf: 3}, answered: 50, live: 50, created: 1, shortest: time.Hour, longest: 70 * time.Minute,
			change: func(c *Config, _ *provider.Batch) { c.Deadline = time.Hour }},
		{name: "auto, and too few", api: &fake{}, live: 100, change: func(c *Config, _ *provider.Batch) { c.Route, c.Min = Auto, 101 }},
		{name: "auto, and enough", api: &fake{takes: time.Hour}, answered: 100, created: 1, longest: 65 * time.Minute, change: func(c *Config, _ *provider.Batch) { c.Route = Auto }},
		{name: "auto, and no time", api: &fake{}, live: 100, change: func(c *Config, _ *provider.Batch) { c.Route, c.Deadline = Auto, time.Minute }},
		{name: "auto, and it vanishes", api: &fake{takes: time.Hour, vanish: true}, live: 100, created: 1, longest: 5 * time.Minute, change: func(c *Config, _ *provider.Batch) { c.Route = Auto }},
		{name: "auto, and 403", api: &fake{refuse: fail(llm.Error{Kind: llm.KindAuth, Status: 403})}, live: 100, asked: 1, change: auto},
		{name: "auto, and 401", api: &fake{refuse: fail(llm.Error{Kind: llm.KindAuth, Status: 401})}, failed: 100, asked: 1, change: auto},
		{name: "auto, and 400", api: &fake{refuse: fail(llm.Error{Kind: llm.KindBadRequest, Status: 400})}, live: 100, asked: 7, change: auto},
		{name: "auto, and 500 for an upload", api: &fake{refuse: fail(llm.Error{Kind: llm.KindServer, Status: 500})}, live: 100, asked: 4, longest: time.Minute, change: auto},
		{name: "auto, and 500 for a creation", api: &fake{refuse: fail(llm.Error{Kind: llm.KindServer, Status: 500, Uncertain: true, Code: "not done"})}, live: 100, asked: 4, longest: 5 * time.Minute, change: auto},
		{name: "auto, and no connection", api: &fake{refuse: fail(llm.Error{Kind: llm.KindTransport})}, live: 100, asked: 4, longest: time.Minute, change: auto},
		{name: "auto, and a dropped connection", api: &fake{refuse: fail(llm.Error{Kind: llm.KindTransport, Uncertain: true, Code: "not done"})}, live: 100, asked: 4, longest: 5 * time.Minute, change: auto},
		{name: "auto, and 500 for everything", api: &fake{refuse: fail(llm.Error{Kind: llm.KindServer, Status: 500, Uncertain: true, Code: "not done"}), list: &llm.Error{Kind: llm.KindServer, Status: 500}},
			live: 100, asked: 1, longest: time.Minute, change: auto},
		{name: "auto, 502 for a creation, and no list", api: &fake{refuse: fail(llm.Error{Kind: llm.KindServer, Status: 502, Uncertain: true, Code: "not done"}), list: &llm.Error{Kind: llm.KindBadRequest, Status: 404}},
			live: 100, asked: 1, change: auto},
		{name: "no connection", api: &fake{refuse: fail(llm.Error{Kind: llm.KindTransport})}, failed: 100, asked: 4, longest: time.Minute},
		{name: "live", api: &fake{}, live: 100, change: func(c *Config, _ *provider.Batch) { c.Route = Live }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if c.change == nil {
					c.change = func(*Config, *provider.Batch) {}
				}
				b, reqs, start := newBench(t, c.api, c.change), ask(100), time.Now()
				got := b.wave(t.Context(), reqs)
				took := time.Since(start)
				answered, live, failed := tally(t, reqs, got)
				if answered != c.answered || live != c.live || failed != c.failed || len(c.api.order) != c.created {
					t.Errorf("%d answered, %d live, %d failed, of %d batches; want %d, %d, %d of %d", answered, live, failed, len(c.api.order), c.answered, c.live, c.failed, c.created)
				}
				if took < c.shortest || took > max(c.longest, time.Second) {
					t.Errorf("it took %v", took)
				}
				if c.asked > 0 && c.api.n != c.asked {
					t.Errorf("%d creations, want %d", c.api.n, c.asked)
				}
				// No failure here leaves a batch, since none was accepted.
				if p := b.Progress(); len(p.Open) != 0 || len(b.open()) != 0 || p.Queued != 0 {
					t.Errorf("left: %+v, %+v", p, b.open())
				}
			})
		})
	}
}

// TestPoison has a line that makes every batch fail, without a report which line it is: it is found
// by halving, and nearly all others are answered in batches.
func TestPoison(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Hour, poison: "question 42"}
		reqs := ask(200)
		got := newBench(t, f).wave(t.Context(), reqs)
		if answered, live, _ := tally(t, reqs, got); !got[42].live || live > 10 || answered != 200-live || f.answered() != answered {
			t.Errorf("%d answered, %d live, of %d batches", answered, live, len(f.order))
		}
	})
}

// TestLimitsAreKept checks the two limits that are about time.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: 10 * time.Minute, tokens: 25}
		b := newBench(t, f, func(_ *Config, l *provider.Batch) { l.Requests, l.PerHour, l.Tokens = 10, 5, 25 })
		reqs := ask(200)
		if answered, _, _ := tally(t, reqs, b.wave(t.Context(), reqs)); answered != 200 {
			t.Errorf("%d answered", answered)
		}
		if f.peakTokens > 25 || f.peakTokens < 20 {
			t.Errorf("%d tokens waited at once", f.peakTokens)
		}
		for i := 5; i < len(f.creates); i++ {
			if d := f.creates[i].Sub(f.creates[i-5]); d < time.Hour {
				t.Errorf("six were created within %v", d)
			}
		}
	})
}

// TestPolling: few requests about a batch that takes long, and an early one about a batch that does
// not.
func TestPolling(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{3 * time.Second, time.Minute, 20 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{takes: takes}
			start := time.Now()
			newBench(t, f).wave(t.Context(), ask(10))
			late := time.Since(start) - takes
			if late > max(takes, 4*time.Second) || late > 72*time.Second {
				t.Errorf("%v: seen %v after its end", takes, late)
			}
			if limit := 12 + int(takes/(48*time.Second)); len(f.looks) > limit {
				t.Errorf("%v: %d looks, want at most %d", takes, len(f.looks), limit)
			}
		})
	}
}

// TestDrainBeforeCreation: a batch that no server accepted is not left open.
func TestDrainBeforeCreation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{refuse: func(int) *llm.Error { return &llm.Error{Kind: llm.KindRateLimited, Status: 429} }}
		b, reqs := newBench(t, f), ask(20)
		time.AfterFunc(10*time.Minute, b.Drain)
		got := b.wave(t.Context(), reqs)
		if _, _, failed := tally(t, reqs, got); failed != 20 || got[0].err.Kind != llm.KindCanceled || len(b.open()) != 0 || len(b.Progress().Open) != 0 {
			t.Errorf("%d failed: %v; open: %+v", failed, got[0].err, b.open())
		}
		if last := b.events[len(b.events)-1]; last.Step != journal.BatchClosed || !strings.Contains(last.Why, "not created") {
			t.Errorf("%+v", last)
		}
	})
}

// TestDrain leaves batches that can be found again, and waits for those that cannot.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{takes: time.Hour}
			b := newBench(t, f, func(c *Config, _ *provider.Batch) {
				if !durable {
					c.Record = nil
				}
			})
			reqs, start := ask(20), time.Now()
			time.AfterFunc(10*time.Minute, b.Drain)
			got := b.wave(t.Context(), reqs)
			answered, _, failed := tally(t, reqs, got)
			switch took := time.Since(start); {
			case durable && (failed != 20 || took > 11*time.Minute || got[0].err.Kind != llm.KindCanceled || len(b.open()) != 1):
				t.Errorf("%d failed after %v: %v", failed, took, got[0].err)
			case !durable && answered != 20:
				t.Errorf("%d answered", answered)
			}
			if _, _, failed := tally(t, reqs, b.wave(t.Context(), reqs)); failed != 20 {
				t.Errorf("%d of a wave after the drain were refused", failed)
			}
			if !durable {
				return
			}
			next := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open = b.open() })
			if answered, _, _ := tally(t, reqs, next.wave(t.Context(), reqs)); answered != 20 || len(f.order) != 1 {
				t.Errorf("%d answered, of %d batches", answered, len(f.order))
			}
		})
	}
}

// TestTwins has equal calls, which differ only in their number: each has its own line, and finds it
// again.
func TestTwins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Hour}
		b, reqs := newBench(t, f), slices.Repeat(ask(1), 50)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		b.wave(ctx, reqs)
		next := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open = b.open() })
		if answered, _, _ := tally(t, reqs, next.wave(t.Context(), reqs)); answered != 50 || len(f.order) != 1 || len(f.order[0].lines) != 50 {
			t.Errorf("%d answered, of %d batches", answered, len(f.order))
		}
		// One of them is answered: the answers of the others are kept.
		var l Log
		for _, m := range b.events {
			l.Add(m)
		}
		l.Replied(reqs[0])
		last := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open = l.Open() })
		if answered, _, _ := tally(t, reqs[1:], last.wave(t.Context(), reqs[1:])); answered != 49 || len(f.order) != 1 || len(last.Progress().Open) != 0 {
			t.Errorf("%d answered, of %d batches; %+v", answered, len(f.order), last.Progress())
		}
	})
}

// TestTwoWavesShareABatch ends one of the waves: the other continues with the batch.
func TestTwoWavesShareABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Hour}
		first := newBench(t, f)
		reqs := ask(40)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		first.wave(ctx, reqs)
		b := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open = first.open() })
		short, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Minute, stop)
		done := make(chan []callResult)
		go func() { done <- b.wave(short, reqs[:20]) }()
		synctest.Wait()
		if answered, _, _ := tally(t, reqs[20:], b.wave(t.Context(), reqs[20:])); answered != 20 {
			t.Errorf("%d answered", answered)
		}
		if _, _, failed := tally(t, reqs[:20], <-done); failed != 20 || len(f.order) != 1 {
			t.Errorf("%d failed, of %d batches", failed, len(f.order))
		}
		if answered, _, _ := tally(t, reqs[:20], b.wave(t.Context(), reqs[:20])); answered != 20 || len(f.order) != 1 || len(b.Progress().Open) != 0 {
			t.Errorf("%d answered later, of %d batches", answered, len(f.order))
		}
	})
}

// TestRisk: the amount at risk is released as calls account for it, and no sooner.
func TestRisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Hour}
		first, reqs := newBench(t, f), ask(10)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		first.wave(ctx, reqs)
		open := first.open()
		if len(open) != 1 || open[0].AtRisk() != 100 || open[0].ID != "b0" {
			t.Fatalf("%+v", open)
		}
		released := llm.Money(0)
		b := newBench(t, f, func(c *Config, _ *provider.Batch) {
			c.Open, c.Release = open, func(m llm.Money) { released += m }
		})
		w := b.Begin(reqs[:4])
		for i, req := range reqs[:4] {
			s := w.Call(req)
			if m, ok := s.Adopt(10); m != 10 || !ok {
				t.Errorf("call %d: %v, %v", i, m, ok)
			}
			if m, ok := s.Adopt(10); m != 0 || ok {
				t.Errorf("call %d again: %v, %v", i, m, ok)
			}
			s.End(t.Context(), false)
		}
		w.Serve(t.Context())
		if released != 0 {
			t.Errorf("%v released", released)
		}
		var l Log
		for _, m := range first.events {
			l.Add(m)
		}
		for _, r := range reqs[:7] {
			l.Replied(r)
		}
		if o := l.Open(); o[0].AtRisk() != 30 {
			t.Errorf("%v at risk with three lines", o[0].AtRisk())
		}
	})
}

// TestEventsComeFirst: nothing is sent before the event of the previous step is recorded.
func TestEventsComeFirst(t *testing.T) {
	t.Parallel()
	for k, sent := range []int{0, 0, 1, 1, 1} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, kept := &fake{takes: time.Hour}, 0
				b := newBench(t, f, func(c *Config, _ *provider.Batch) {
					c.Record = func(context.Context, *journal.Batched) error {
						f.mu.Lock()
						defer f.mu.Unlock()
						if kept == k {
							return errDisk
						}
						kept++
						return nil
					}
				})
				reqs := ask(10)
				got := b.wave(t.Context(), reqs)
				answered, _, failed := tally(t, reqs, got)
				if len(f.order) != sent || (k < 3 && (failed != 10 || got[0].err.Kind != llm.KindCanceled)) || (k >= 3 && answered != 10) {
					t.Errorf("%d batches; %d answered, %d failed", len(f.order), answered, failed)
				}
			})
		})
	}
}

// TestCancel asks the provider once for each open batch.
func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: 10 * time.Hour}
		b := newBench(t, f, func(_ *Config, l *provider.Batch) { l.Requests = 10 })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		reqs := ask(30)
		b.wave(ctx, reqs)
		if err := b.Cancel(t.Context(), func(string) (API, error) { return f, nil }); err != nil || f.cancels != 3 {
			t.Errorf("%d cancelled: %v", f.cancels, err)
		}
		next := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open, c.Route = b.open(), Live })
		answered, live, _ := tally(t, reqs, next.wave(t.Context(), reqs))
		if answered != 15 || live != 15 {
			t.Errorf("%d answered by then, %d live", answered, live)
		}
	})
}

// TestHold holds calls back while batches are out, wait for room, are refused, or have lines that failed: no batch is
// created meanwhile. Later every call is answered, no line is asked twice, and nothing is left open.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		api             *fake
		after           time.Duration // from when on calls are held
		answered, lines int           // before, and in all
	}{
		{"out", &fake{takes: time.Hour}, 10 * time.Minute, 20, 40},
		{"refused", &fake{takes: time.Hour, refuse: func(n int) *llm.Error {
			if n <= 8 {
				return &llm.Error{Kind: llm.KindRateLimited, Status: 429, RetryAfter: time.Minute}
			}
			return nil
		}}, 30 * time.Second, 0, 40},
		{"expired", &fake{takes: time.Hour, expire: 2}, 10 * time.Minute, 0, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.api, func(_ *Config, l *provider.Batch) { l.Requests, l.Tokens = 10, 25 })
				reqs, held := ask(40), &llm.Error{Kind: llm.KindCanceled, Message: "held"}
				from := time.Now().Add(c.after)
				time.AfterFunc(c.after, func() { b.Hold(held) })
				first := b.wave(t.Context(), reqs)
				answered, live, failed := tally(t, reqs, first)
				if answered != c.answered || live > 0 || failed != 40-c.answered || slices.ContainsFunc(c.api.creates, from.Before) {
					t.Errorf("%d answered, %d live, %d held; created at %v", answered, live, failed, c.api.creates)
				}
				b.Hold(nil)
				var rest []*llm.Request
				for i := range first {
					if first[i].err != nil {
						rest = append(rest, reqs[i])
					}
				}
				if answered, _, _ := tally(t, rest, b.wave(t.Context(), rest)); answered != len(rest) || c.api.answered() != c.lines || len(b.open()) > 0 {
					t.Errorf("%d of %d answered, %d lines were asked, want %d; left open: %+v", answered, len(rest), c.api.answered(), c.lines, b.open())
				}
			})
		})
	}
}
