package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/worlds"
)

// batchServer serves the simulated provider over HTTP for as long as the test runs.
func batchServer(t *testing.T, faults ...func(*simhttp.Config)) (url string, server *simhttp.Server) {
	t.Helper()
	latency, err := sim.ParseDelay("1ms..5ms")
	if err != nil {
		t.Fatal(err)
	}
	c := simhttp.Config{Batch: simhttp.BatchConfig{Latency: latency}}
	for _, f := range faults {
		f(&c)
	}
	server, err = simhttp.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Run(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return "http://" + l.Addr().String() + "/v1", server
}

// batchPlan is the example of a run over batches, with fewer conversations.
func batchPlan(t *testing.T, url string, sets ...string) *planfile.Plan {
	t.Helper()
	sets = append([]string{"episodes=120", "providers.lab.base_url=" + url, "providers.campus.base_url=" + url, "batch.poll=1ms"}, sets...)
	plan, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", "secrets-batch.yaml"), worlds.Standard(), sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func playWaves(t *testing.T, p Play) *Summary {
	t.Helper()
	if p.File == "" {
		p.File = filepath.Join(t.TempDir(), "run.parley")
	}
	sum, err := p.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete {
		t.Fatalf("%+v, %v", sum, err)
	}
	return sum
}

// TestWavesAreHalfThePrice: the example plays in four waves over both APIs, has the
// outcomes of free pace, and costs half.
func TestWavesAreHalfThePrice(t *testing.T) {
	t.Parallel()
	url, server := batchServer(t)
	waves := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url)})
	if b := server.Stats().Batches; b.Created != 4 || b.Requests != 480 || b.Completed != 4 {
		t.Errorf("four waves of 120 calls were %+v", b)
	}
	free := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, "pace=free")})
	if waves.Digest != free.Digest {
		t.Errorf("the digest in waves is %s, at free pace %s", waves.Digest, free.Digest)
	}
	if *waves.Cost == 0 || 2**waves.Cost != *free.Cost {
		t.Errorf("waves cost %v, free pace %v", *waves.Cost, *free.Cost)
	}
}

// TestWavesWithFaults: whatever goes wrong with batches, the outcomes are the same, nothing
// is left open, and a budget holds.
func TestWavesWithFaults(t *testing.T) {
	t.Parallel()
	url, _ := batchServer(t)
	want := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url)})
	for _, fault := range []string{"line_expired", "line_errored", "line_missing", "line_duplicate", "batch_429", "batch_fails", "batch_vanishes"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			url, _ := batchServer(t, func(c *simhttp.Config) {
				c.Sim.Faults = sim.Faults{sim.Fault(fault): 0.2}
				c.Batch.RetryAfter = 1 // nanosecond
			})
			file := filepath.Join(t.TempDir(), "run.parley")
			got := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url), File: file})
			if got.Digest != want.Digest || got.Calls.Failed > 0 {
				t.Errorf("%+v, want digest %s", got, want.Digest)
			}
			s, err := runfile.OpenRead(file)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if head, err := s.Head(t.Context()); err != nil || len(head.Batches) > 0 {
				t.Errorf("open batches: %v, %v", head.Batches, err)
			}
		})
	}
}

// TestAutoGoesLive: if a server refuses batches, or fails when it gets one, the route auto asks live, and no batch is left open that
// no server accepted.
func TestAutoGoesLive(t *testing.T) {
	t.Parallel()
	url, server := batchServer(t)
	free := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, "pace=free", "episodes=60")})
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"no batches here"}}`, status)
		}
	}
	drop := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	isFile := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/files") }
	isBatch := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/batches") }
	creates := func(r *http.Request) bool { return isBatch(r) && r.Method == http.MethodPost }
	either := func(r *http.Request) bool { return isFile(r) || isBatch(r) }
	for name, c := range map[string]struct {
		when func(*http.Request) bool
		does http.HandlerFunc
	}{
		"403":                        {either, answer(403)},
		"404":                        {either, answer(404)},
		"400":                        {either, answer(400)},
		"500":                        {either, answer(500)},
		"400 for the batch":          {creates, answer(400)},
		"500 for the batch":          {creates, answer(500)},
		"a dropped connection":       {creates, drop},
		"every connection dropped":   {either, drop},
		"500, and no list":           {isBatch, answer(500)},
		"dropped, and no connection": {isBatch, drop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.when(r) {
					c.does(w, r)
					return
				}
				server.ServeHTTP(w, r)
			}))
			defer front.Close()
			file := filepath.Join(t.TempDir(), "run.parley")
			sum := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, front.URL+"/v1", "batch.route=auto", "batch.min=2", "episodes=60"), File: file})
			if sum.Digest != free.Digest || sum.Batches != 0 || sum.Calls.Failed > 0 {
				t.Errorf("%+v, want digest %s", sum, free.Digest)
			}
			s, err := runfile.OpenRead(file)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if head, err := s.Head(t.Context()); err != nil || len(head.Batches) > 0 {
				t.Errorf("open batches: %v, %v", head.Batches, err)
			}
		})
	}
}

// TestOpenBatchesAreCollected: a run that is stopped while a batch is open cannot be resumed
// at free pace, which would pay for it twice. In waves its answers are collected, even if the run
// may not submit new batches.
func TestOpenBatchesAreCollected(t *testing.T) {
	t.Parallel()
	latency, err := sim.ParseDelay("2s")
	if err != nil {
		t.Fatal(err)
	}
	url, server := batchServer(t, func(c *simhttp.Config) { c.Batch.Latency = latency })
	file := filepath.Join(t.TempDir(), "run.parley")
	drain, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	plan := batchPlan(t, url)
	first := Play{Kinds: worlds.Standard(), Plan: plan, File: file, Events: whenOpened(func(o *Opened) {
		go func() { // as soon as a batch is out
			for drain.Err() == nil {
				if p := o.App.Batches(); len(p.Open) > 0 && p.Open[0].ID != "" {
					stop(errors.New("enough"))
				}
			}
		}()
	})}
	sum, err := first.Run(t.Context(), drain)
	if err != nil || sum.State != journal.Stopped || sum.Batches != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if _, err := (Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, "pace=free"), File: file}).Run(t.Context(), context.Background()); !IsUsage(err) || !strings.Contains(err.Error(), "--pace wave") {
		t.Errorf("resumed at free pace: %v", err)
	}
	playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, "batch.route=live"), File: file})
	st := server.Stats()
	if n := st.Batches.Requests + st.Endpoints["POST /v1/chat/completions"] + st.Endpoints["POST /v1/messages"]; n != 480 || st.Batches.Created != 1 {
		t.Errorf("%d requests were asked, 480 were needed; batches %+v", n, st.Batches)
	}
}

// TestCollectedBatchesAreClosed: a process may be killed after it recorded all answers of a batch, and before it recorded that the
// batch is closed. The next one closes it and asks for nothing.
func TestCollectedBatchesAreClosed(t *testing.T) {
	t.Parallel()
	url, server := batchServer(t)
	whole, cut := filepath.Join(t.TempDir(), "whole.parley"), filepath.Join(t.TempDir(), "cut.parley")
	want := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url), File: whole})
	killBeforeClosing(t, whole, cut)
	before := server.Stats().Requests
	got := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url), File: cut})
	if got.Digest != want.Digest || got.Batches != 0 || server.Stats().Requests != before {
		t.Errorf("%d batches are open, %d requests; digest %s, want %s", got.Batches, server.Stats().Requests-before, got.Digest, want.Digest)
	}
	free := filepath.Join(t.TempDir(), "free.parley")
	killBeforeClosing(t, whole, free)
	got, err := Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, "pace=free"), File: free}.Run(t.Context(), context.Background())
	if err != nil || got.Digest != want.Digest || got.Batches != 0 || server.Stats().Requests != before {
		t.Errorf("at free pace: %+v, %v", got, err)
	}
}

// killBeforeClosing writes a run file as a killed process leaves it: the ends of its batches and its own are missing.
func killBeforeClosing(t *testing.T, from, to string) {
	t.Helper()
	in, err := runfile.OpenRead(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := runfile.Open(t.Context(), to, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	err = in.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if b, ok := e.(*journal.Batched); ok && b.Step == journal.BatchClosed {
			return nil
		}
		if _, ok := e.(*journal.Closed); ok {
			return nil
		}
		return out.Append(t.Context(), e)
	})
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}
