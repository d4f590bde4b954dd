package dispatch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/llm"
)

// gpu is a model server in memory: it answers so many requests at once, and queues the others.
type gpu struct {
	places chan struct{}
	mu     sync.Mutex
	in     int
	peak   int
}

// gpuTime is how long an answer takes. It differs from the time between two reports, which would
// otherwise always see the moment when all end.
const gpuTime = 1300 * time.Millisecond

func (g *gpu) Ask(_ context.Context, _ *llm.Request) (*llm.Response, error) {
	g.mu.Lock()
	g.in++
	g.peak = max(g.peak, g.in)
	g.mu.Unlock()
	g.places <- struct{}{}
	time.Sleep(gpuTime)
	<-g.places
	g.mu.Lock()
	g.in--
	g.mu.Unlock()
	return &llm.Response{Finish: llm.FinishStop}, nil
}

func (g *gpu) Alive(context.Context) error             { return nil }
func (g *gpu) End(context.Context, string, bool) error { return nil }
func (g *gpu) Load(context.Context) (replica.Load, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	running := len(g.places)
	return replica.Load{Running: float64(running), Waiting: float64(g.in - running), Cache: float64(running) / float64(2*cap(g.places))}, nil
}

// TestSteeredByMetrics: a server that reports its load is kept busy with a short queue. Without
// reports, its queue grows far longer.
func TestSteeredByMetrics(t *testing.T) {
	t.Parallel()
	queue := map[string]int{}
	for _, page := range []string{"", "/metrics"} {
		synctest.Test(t, func(t *testing.T) {
			g := &gpu{places: make(chan struct{}, 100)}
			p := provider.Provider{Name: "lab", Dialect: "openai", Metrics: page}
			d, err := New(Config{Lanes: []Lane{{Provider: p, Replicas: []Replica{{Name: "gpu", Model: g, Server: g}}}}})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for _, r := range d.All(t.Context(), asked(5000, 10, 1)) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			if took, least := time.Since(start), 50*gpuTime; took > least*5/4 {
				t.Errorf("page %q: 5,000 calls took %v; kept busy from the start it takes %v", page, took, least)
			}
			queue[page] = g.peak - cap(g.places)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if queue["/metrics"] > 64 || queue[""] < 2*queue["/metrics"] {
		t.Errorf("at most %d waited in the server, and %d when nobody looked", queue["/metrics"], queue[""])
	}
}

// TestLimitsOfEachServer: each server has its own limits, and sessions spread over all.
func TestLimitsOfEachServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gpus := []*gpu{{places: make(chan struct{}, 100)}, {places: make(chan struct{}, 100)}}
		var members []Replica
		for i, g := range gpus {
			members = append(members, Replica{Name: fmt.Sprint(i), Model: g, Server: g})
		}
		p := provider.Provider{Name: "lab", Dialect: "openai", Limits: provider.Limits{Concurrency: 5}}
		d, err := New(Config{Lanes: []Lane{{Provider: p, Replicas: members}}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		reqs := asked(100, 10, 1)
		for i, r := range reqs {
			r.Session = fmt.Sprint(i)
		}
		d.All(t.Context(), reqs)
		if took := time.Since(start); took != 10*gpuTime || gpus[0].peak != 5 || gpus[1].peak != 5 {
			t.Errorf("100 calls took %v, at most %d and %d at once", took, gpus[0].peak, gpus[1].peak)
		}
		for i := range reqs {
			d.Release(fmt.Sprint(i), true)
		}
		for _, s := range d.Servers() {
			if s.Sessions != 0 || s.Calls != 0 {
				t.Errorf("%+v", s)
			}
		}
		d.Drain()
		if _, err := d.Ask(t.Context(), reqs[0]); llm.KindOf(err) != llm.KindCanceled {
			t.Errorf("asked after draining: %v", err)
		}
	})
}

// TestQueueMoves: calls that wait for a server that stalls move to the other.
func TestQueueMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stalls := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			time.Sleep(time.Minute)
			return nil, &llm.Error{Kind: llm.KindTimeout, Uncertain: true}
		})
		g := &gpu{places: make(chan struct{}, 100)}
		p := provider.Provider{Name: "lab", Dialect: "openai", Limits: provider.Limits{Concurrency: 3}}
		d, err := New(Config{Lanes: []Lane{{Provider: p, Replicas: []Replica{{Name: "stalls", Model: stalls}, {Name: "works", Model: g, Server: g}}}}})
		if err != nil {
			t.Fatal(err)
		}
		reqs := asked(60, 10, 1)
		for i, r := range reqs {
			r.Session = fmt.Sprint(i)
		}
		start := time.Now()
		for i, r := range d.All(t.Context(), reqs) {
			if r.Err != nil {
				t.Errorf("%d: %v", i, r.Err)
			}
		}
		// A minute until it is known to stall, a little for all of its calls on the other, and
		// another minute for the one call that tries it again.
		if took := time.Since(start); took > 3*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// TestAborted: an answer that the server cut off is asked for again, does not count as a failure,
// and its usage is counted.
func TestAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asks := 0
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			if asks++; asks <= 20 {
				return &llm.Response{Text: "ha", Finish: llm.FinishAborted, WeightVersion: "1", Usage: llm.Usage{Input: 10, Output: 2}}, nil
			}
			return &llm.Response{Text: "whole", Finish: llm.FinishStop, WeightVersion: "2", Usage: llm.Usage{Input: 10, Output: 5}}, nil
		})
		d := dispatcher(t, m, provider.Provider{})
		req := asked(1, 10, 1)[0]
		req.Fallbacks = []string{"lab/other"}
		resp, err := d.Ask(t.Context(), req)
		if err != nil || resp.Text != "whole" || resp.WeightVersion != "2" || resp.Metadata.Attempts != 21 {
			t.Fatalf("%+v, %v", resp, err)
		}
		if u := d.Stats().Usage; u.Output != 45 {
			t.Errorf("counted %+v", u)
		}
	})
}

// TestAbortedForEver ends with the call's deadline and the reason.
func TestAbortedForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			return &llm.Response{Finish: llm.FinishAborted}, nil
		})
		d := dispatcher(t, m, provider.Provider{})
		_, err := d.Ask(t.Context(), asked(1, 10, 1)[0])
		if llm.KindOf(err) != llm.KindTimeout || !strings.Contains(err.Error(), "cut the answer off") {
			t.Errorf("%v", err)
		}
	})
}
