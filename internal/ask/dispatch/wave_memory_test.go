package dispatch_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/llm"
)

// fakeAPI is a batch API that answers everything at once, and calls seen while all calls wait.
type fakeAPI struct {
	seen   func()
	answer func(*llm.Request) string // nil: yes
	keep   bool                      // results can be read again

	mu      sync.Mutex
	created int
	batches map[string][]batch.Result
}

func (d *fakeAPI) Weigh(*llm.Request) (batch.Weight, error) { return batch.Weight{Bytes: 1000}, nil }

func (d *fakeAPI) Create(_ context.Context, draft *batch.Draft, _ func(context.Context, string) error) (string, error) {
	d.seen()
	results := make([]batch.Result, len(draft.Requests))
	for i, l := range draft.Requests {
		text := "yes"
		if d.answer != nil {
			text = d.answer(l.Request)
		}
		results[i] = batch.Result{CustomID: batch.CustomID(draft.Key, l.ID), Response: &llm.Response{Text: text, Finish: llm.FinishStop}}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.created++
	d.batches[draft.Key] = results
	return draft.Key, nil
}

func (d *fakeAPI) Find(context.Context, *batch.Open, func(string) bool) (batch.Found, error) {
	return batch.Found{}, nil
}

func (d *fakeAPI) Cancel(context.Context, string) error { return nil }

func (d *fakeAPI) State(context.Context, string) (batch.State, error) {
	return batch.State{Phase: batch.Ended}, nil
}

func (d *fakeAPI) Results(_ context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		d.mu.Lock()
		results := d.batches[id]
		if !d.keep {
			delete(d.batches, id)
		}
		d.mu.Unlock()
		for _, r := range results {
			c := *r.Response
			if r.Response = &c; !yield(r, nil) {
				return
			}
		}
	}
}

// inUse returns the memory in use for values and stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// inBatches makes waves of n calls, and returns the memory of a waiting call and what remains of
// it.
func inBatches(t testing.TB, n, waves int) (batched, left float64) {
	t.Helper()
	api := &fakeAPI{seen: func() {}, batches: map[string][]batch.Result{}}
	p := provider.Provider{Name: "lab", Dialect: "openai", Batch: &provider.Batch{Requests: 100_000}}
	never := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: "asked live"}
	})
	d, err := dispatch.New(dispatch.Config{Lanes: []dispatch.Lane{{Provider: p, Model: never, BatchAPI: api}}, Settings: quickly(), Prices: table(t)})
	if err != nil {
		t.Fatal(err)
	}
	reqs := questions(n)
	play := func() {
		d.Wave(t.Context(), reqs, func(_ int, r llm.Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	play() // what is kept for the next is not counted
	before, during := inUse(), int64(0)
	api.seen = func() { during = inUse() }
	for range waves {
		play()
	}
	return float64(during-before) / float64(n), float64(inUse()-before) / float64(n)
}

// TestWaveMemory sends many calls in batches, wave after wave: no memory remains in use.
func TestWaveMemory(t *testing.T) { // not parallel: it measures the whole process
	batched, left := inBatches(t, 5000, 4)
	if left > 200 || batched > 64<<10 {
		t.Errorf("a call that waits costs %.0f bytes, and %.0f when it is over", batched, left)
	}
}

func BenchmarkParked(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var batched, left float64
			for b.Loop() {
				batched, left = inBatches(b, n, 1)
			}
			b.ReportMetric(batched, "bytes/queued")
			b.ReportMetric(left, "bytes/left")
		})
	}
}
