package dispatch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/provider"
	"parley/internal/replica"
	"parley/llm"
)

func TestSteer(t *testing.T) {
	t.Parallel()
	type look struct {
		load           replica.Load
		used, inFlight int
		answers        int           // since the look before
		after          time.Duration // the look before. Default: a second
		want           float64
	}
	busy := func(l replica.Load, want float64) look { return look{load: l, used: 1e6, answers: 1e6, want: want} }
	for _, c := range []struct {
		name   string
		chosen int
		looks  []look
	}{
		{"doubles while there is room", 0, []look{busy(replica.Load{}, 32), busy(replica.Load{Cache: 0.5}, 64)}},
		{"not beyond what was chosen", 40, []look{busy(replica.Load{}, 40)}},
		{"not while the limit is not used", 0, []look{{used: 3, answers: 1e6, want: 16}}},
		{"not without a round of answers", 0, []look{{used: 16, answers: 15, load: replica.Load{Cache: 0.4}, want: 16}, {used: 16, answers: 1, load: replica.Load{Cache: 0.4}, want: 32}}},
		{"or time, with the cache near empty", 0, []look{{used: 16, want: 32}, {used: 32, want: 32}, {used: 32, after: steerWait, want: 64}}},
		{"not when the cache fills", 0, []look{busy(replica.Load{Cache: 0.6}, 16)}},
		{"by a quarter once something waited", 0, []look{busy(replica.Load{Waiting: 1, Running: 16}, 16), busy(replica.Load{}, 20)}},
		{"a full cache", 0, []look{busy(replica.Load{Cache: 0.9}, 12.8)}},
		{"not twice before it worked", 0, []look{busy(replica.Load{Cache: 0.9}, 12.8), {load: replica.Load{Cache: 0.95}, inFlight: 16, want: 12.8}, {load: replica.Load{Cache: 0.95}, inFlight: 12, want: 10.24}}},
		{"a request that lost its place", 0, []look{busy(replica.Load{Preempted: 7, Cache: 0.7}, 16), busy(replica.Load{Preempted: 8, Cache: 0.7}, 12.8), busy(replica.Load{Preempted: 8, Cache: 0.7}, 12.8)}},
		{"a queue that is long once", 0, []look{busy(replica.Load{Waiting: 9, Running: 10}, 16), busy(replica.Load{Waiting: 1, Running: 10}, 16)}},
		{"a queue that stays long", 0, func() (looks []look) {
			for range steerQueue - 1 {
				looks = append(looks, busy(replica.Load{Waiting: 9, Running: 10}, 16))
			}
			return append(looks, busy(replica.Load{Waiting: 9, Running: 10}, 14.4), busy(replica.Load{Waiting: 9, Running: 10}, 14.4))
		}()},
		{"never below one", 1, []look{busy(replica.Load{Cache: 1}, 1), busy(replica.Load{Cache: 1}, 1)}},
	} {
		a, now := newAdapt(c.chosen), time.Unix(1000, 0)
		for i, l := range c.looks {
			now = now.Add(max(time.Second, l.after))
			a.answers += l.answers
			a.steer(l.load, l.used, l.inFlight, now)
			if d := a.limit - l.want; d > 0.001 || d < -0.001 {
				t.Errorf("%s: look %d: limit %v, want %v", c.name, i, a.limit, l.want)
			}
		}
	}
}

// TestSteeredLimitDoesNotGrowByItself, until the server has said nothing for a while.
func TestSteeredLimitDoesNotGrowByItself(t *testing.T) {
	t.Parallel()
	a, now := newAdapt(0), time.Unix(1000, 0)
	a.steer(replica.Load{Waiting: 1}, 16, 16, now)
	for range 100 {
		a.succeeded(1000, time.Second, now.Add(steerFor-1))
	}
	if a.limit != FirstConcurrency || a.allows(20, 1000) {
		t.Errorf("it grew to %v", a.limit)
	}
	a.succeeded(1000, time.Second, now.Add(steerFor))
	if a.limit <= FirstConcurrency {
		t.Error("it is stuck where a server that fell silent left it")
	}
}

// gpu is an engine in memory: it answers so many requests at once, and the others wait in it.
type gpu struct {
	places chan struct{}
	mu     sync.Mutex
	in     int
	most   int
}

// gpuTime is what an answer takes: not the time between two looks, which would then always
// see the moment at which all end.
const gpuTime = 1300 * time.Millisecond

func (g *gpu) Ask(_ context.Context, _ *llm.Request) (*llm.Response, error) {
	g.mu.Lock()
	g.in++
	g.most = max(g.most, g.in)
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

// TestSteeredByMetrics: a server that says how busy it is is kept busy, and its queue short;
// without looking, the queue in the server grows far beyond that.
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
			queue[page] = g.most - cap(g.places)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if queue["/metrics"] > 64 || queue[""] < 2*queue["/metrics"] {
		t.Errorf("at most %d waited in the server, and %d when nobody looked", queue["/metrics"], queue[""])
	}
}

// TestLimitsOfEachServer: limits hold for each, and sessions spread over all.
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
		if took := time.Since(start); took != 10*gpuTime || gpus[0].most != 5 || gpus[1].most != 5 {
			t.Errorf("100 calls took %v, at most %d and %d at once", took, gpus[0].most, gpus[1].most)
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

// TestQueueMoves: what waits for a server that stalls goes to the other when it rests.
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

// TestAborted: an answer that the server cut off is asked for again, is no failure however
// often, and what it used is counted.
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

// TestAbortedForEver ends with the call's deadline, and says why.
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
