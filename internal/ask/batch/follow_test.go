package batch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

func notFound() *llm.Error {
	return &llm.Error{Kind: llm.KindBadRequest, Status: 404, Message: "No such File object"}
}

func badRequest() *llm.Error {
	return &llm.Error{Kind: llm.KindBadRequest, Status: 400, Message: "not ready"}
}

// TestReadAgain: results that are broken or incomplete for a while are read again, so that nothing is
// paid for twice. Only lines that never come are asked again.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	type reading = func(n int, all []Result) ([]Result, *llm.Error)
	first := func(times int, broken reading) reading {
		return func(n int, all []Result) ([]Result, *llm.Error) {
			if n > times {
				return all, nil
			}
			return broken(n, all)
		}
	}
	fails := func(e *llm.Error) reading {
		return func(int, []Result) ([]Result, *llm.Error) { return nil, e }
	}
	cut := func(_ int, all []Result) ([]Result, *llm.Error) { return all[:len(all)/2], nil }
	html := func(int, []Result) ([]Result, *llm.Error) { return []Result{{}}, nil }
	rest := func(_ int, all []Result) ([]Result, *llm.Error) {
		kept := all[:0]
		for _, r := range all {
			if r.Err == nil {
				kept = append(kept, r)
			}
		}
		return append(kept, Result{Rest: true, Err: CancelledError()}), nil
	}
	early := func(c *Config, _ *provider.Batch) { c.Deadline = time.Minute }
	for _, c := range []struct {
		name           string
		read           reading
		change         func(*Config, *provider.Batch)
		answered, live int
		created        int
		counts         Counts
	}{
		{name: "not found", read: first(3, fails(notFound())), answered: 100, created: 1},
		{name: "refused", read: first(3, fails(badRequest())), answered: 100, created: 1},
		{name: "empty", read: first(3, fails(nil)), answered: 100, created: 1},
		{name: "not results", read: first(3, html), answered: 100, created: 1},
		{name: "cut", read: first(3, cut), answered: 100, created: 1},
		{name: "the server fails for long", read: first(15, fails(&llm.Error{Kind: llm.KindServer, Status: 503})), answered: 100, created: 1},
		{name: "half never comes", read: cut, answered: 87, live: 13, created: 3, counts: Counts{Missing: 50 + 25 + 13}},
		{name: "not found for ever", read: fails(notFound()), live: 100, created: 3, counts: Counts{Lost: 3}},
		{name: "one cannot be read for ever", answered: 99, live: 1, created: 1, counts: Counts{Missing: 1, Unreadable: 1},
			change: func(c *Config, _ *provider.Batch) { c.Route = Auto },
			read: func(_ int, all []Result) ([]Result, *llm.Error) {
				return append([]Result{{}}, all[1:]...), nil
			}},
		{name: "cancelled, and the others are left out", read: rest, change: early, answered: 50, live: 50, created: 1},
		{name: "cancelled, and empty at first", change: early, answered: 50, live: 50, created: 1,
			read: first(2, func(int, []Result) ([]Result, *llm.Error) { return rest(0, nil) })},
		{name: "cancelled, and answers never come", change: early, live: 100, created: 1, counts: Counts{Missing: 100},
			read: func(int, []Result) ([]Result, *llm.Error) { return rest(0, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if c.change == nil {
					c.change = func(*Config, *provider.Batch) {}
				}
				f := &fake{takes: time.Hour, read: c.read}
				b, reqs := newBench(t, f, c.change), ask(100)
				answered, live, failed := tally(t, reqs, b.wave(t.Context(), reqs))
				if answered != c.answered || live != c.live || failed != 0 || len(f.order) != c.created {
					t.Errorf("%d answered, %d live, %d failed, of %d batches; want %d, %d of %d", answered, live, failed, len(f.order), c.answered, c.live, c.created)
				}
				c.counts.Created = c.created
				if p := b.Progress(); p.Counts != c.counts || len(p.Open) != 0 || len(b.open()) != 0 {
					t.Errorf("%+v, want %+v; open: %+v", p.Counts, c.counts, p.Open)
				}
			})
		})
	}
}

// TestRefusedLines: lines that were refused for the key, the credit or the model stop the process that sent them. They are not
// kept, and a later process that finds them nevertheless asks again.
func TestRefusedLines(t *testing.T) {
	t.Parallel()
	for _, e := range []llm.Error{
		{Kind: llm.KindQuota, Status: 429, Final: true}, {Kind: llm.KindAuth, Status: 401}, {Kind: llm.KindBadRequest, Status: 404},
	} {
		for _, killed := range []bool{false, true} {
			t.Run(string(e.Kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := &fake{takes: time.Hour}
					f.read = func(_ int, all []Result) ([]Result, *llm.Error) {
						if len(all) == 20 {
							for i := range all[:3] {
								fault := e
								all[i].Response, all[i].Err = nil, &fault
							}
						}
						return all, nil
					}
					b, reqs := newBench(t, f), ask(20)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if killed {
						time.AfterFunc(time.Minute, cancel)
					}
					answered, _, failed := tally(t, reqs, b.wave(ctx, reqs))
					if !killed {
						if answered != 17 || failed != 3 || len(b.open()) != 0 {
							t.Errorf("%d answered, %d failed; open: %+v", answered, failed, b.open())
						}
						return
					}
					next := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open = b.open() })
					if answered, _, _ := tally(t, reqs, next.wave(t.Context(), reqs)); answered != 20 || len(f.order) != 2 || len(f.order[1].lines) != 3 || len(next.Progress().Open) != 0 {
						t.Errorf("%d answered, of %d batches", answered, len(f.order))
					}
				})
			})
		}
	}
}

// TestUnasked: an error of asking about a batch, or of reading it, is never that of its calls. The batch
// stays open if it does not pass, and the next process collects it.
func TestUnasked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		e       llm.Error
		reading bool
		times   int // negative: for ever
		kind    llm.Kind
	}{
		{name: "400 once", e: *badRequest(), times: 1},
		{name: "a final error now and then", e: llm.Error{Kind: llm.KindServer, Status: 500, Final: true}, times: 10},
		{name: "400 for ever", e: *badRequest(), times: -1, kind: llm.KindTransport},
		{name: "500 for ever", e: llm.Error{Kind: llm.KindServer, Status: 500, Uncertain: true}, times: -1, kind: llm.KindTransport},
		{name: "500 for ever when it is read", reading: true, e: llm.Error{Kind: llm.KindServer, Status: 500, Uncertain: true}, times: -1, kind: llm.KindTransport},
		{name: "no key", e: llm.Error{Kind: llm.KindAuth, Status: 401}, times: -1, kind: llm.KindAuth},
		{name: "no key when it is read", reading: true, e: llm.Error{Kind: llm.KindAuth, Status: 401}, times: -1, kind: llm.KindAuth},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{takes: time.Hour}
				fails := func(n int) *llm.Error {
					if c.times >= 0 && n > c.times {
						return nil
					}
					e := c.e
					return &e
				}
				if f.poll = fails; c.reading {
					f.poll, f.read = nil, func(n int, all []Result) ([]Result, *llm.Error) { return nil, fails(n) }
				}
				b, reqs := newBench(t, f), ask(20)
				got := b.wave(t.Context(), reqs)
				answered, live, failed := tally(t, reqs, got)
				if c.kind == "" {
					if answered != 20 || len(f.order) != 1 {
						t.Errorf("%d answered, of %d batches: %v", answered, len(f.order), got[0].err)
					}
					return
				}
				if e := got[0].err; failed != 20 || live != 0 || e.Kind != c.kind || e.Code != CodeOpen || e.Uncertain || !e.Final {
					t.Fatalf("%d failed: %+v", failed, got[0])
				}
				if open := b.open(); len(open) != 1 || open[0].AtRisk() != 200 {
					t.Fatalf("open: %+v", open)
				}
				f.poll, f.read = nil, nil
				next := newBench(t, f, func(c *Config, _ *provider.Batch) { c.Open = b.open() })
				if answered, _, _ := tally(t, reqs, next.wave(t.Context(), reqs)); answered != 20 || len(f.order) != 1 {
					t.Errorf("%d answered later, of %d batches", answered, len(f.order))
				}
			})
		})
	}
}
