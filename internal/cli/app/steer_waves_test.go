package app

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/journal"
	"parley/worlds"
)

// steeredWaves is a run over batch APIs that a test steers while it is played.
type steeredWaves struct {
	*testing.T
	Opened
	server *simhttp.Server
	stop   context.CancelCauseFunc // as a signal does
}

func (r *steeredWaves) do(verb journal.SteerVerb, sets ...string) {
	r.Helper()
	if _, err := r.Steering.Do(verb, "a test", sets); err != nil {
		r.Errorf("%s %v: %v", verb, sets, err)
	}
}

// until waits until something is so.
func (r *steeredWaves) until(what string, is func() bool) {
	r.Helper()
	for !is() {
		select {
		case <-r.Context().Done():
			r.Error("the test ended before " + what)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// out reports whether a batch is at a provider.
func (r *steeredWaves) out() bool {
	p := r.App.Batches()
	return len(p.Open) > 0 && p.Open[0].ID != ""
}

// pauseOften pauses and resumes the run many times while it is played.
func pauseOften(r *steeredWaves) {
	r.until("the run plays", func() bool { _, err := r.Steering.Do(journal.SteerResume, "a test", nil); return err == nil })
	for i := range 25 {
		for _, verb := range []journal.SteerVerb{journal.SteerPause, journal.SteerResume} {
			if _, err := r.Steering.Do(verb, "a test", nil); err != nil {
				if !strings.Contains(err.Error(), "the run has ended") || i == 0 {
					r.Error(err)
				}
				return
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
	}
}

// TestSteeredBatches steers a run while its batches are at the providers: whatever is done, they are kept and collected,
// every call is asked once, and the outcomes and the cost are those of a run that nobody steers.
func TestSteeredBatches(t *testing.T) {
	t.Parallel()
	small := []string{"episodes=40", "limits.live=20"}
	quietURL, quiet := batchServer(t)
	want := playWaves(t, Play{Kinds: worlds.Standard(), Plan: batchPlan(t, quietURL, small...)})
	latency, err := sim.ParseDelay("30ms")
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]struct {
		steer func(*steeredWaves)
		ends  journal.State
		fault sim.Fault
	}{
		"paused and resumed": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerPause)
			before := r.server.Stats().Batches.Created
			r.until("it is collected", func() bool { return len(r.App.Batches().Open) == 0 })
			if n := r.server.Stats().Batches.Created; n != before {
				r.Errorf("%d batches were sent while the run was paused", n-before)
			}
			r.do(journal.SteerResume)
		}, journal.Complete, ""},
		"paused and resumed at once, often": {pauseOften, journal.Complete, ""},
		"paused and stopped": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerPause)
			r.do(journal.SteerStop)
			r.stop(errors.New("stopped by a test"))
		}, journal.Stopped, ""},
		"stopped": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerStop)
			r.stop(errors.New("stopped by a test"))
		}, journal.Stopped, ""},
		"drained": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerDrain)
		}, journal.Stopped, ""},
		"drained while it is paused": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerPause)
			r.do(journal.SteerDrain)
			r.until("it is collected", func() bool { return len(r.App.Batches().Open) == 0 })
			r.do(journal.SteerResume)
		}, journal.Stopped, ""},
		"given a budget": {func(r *steeredWaves) {
			r.until("a batch is out", r.out)
			r.do(journal.SteerSet, "budget=5", "concurrency=40")
		}, journal.Complete, ""},
		"paused while lines fail":       {pauseOften, journal.Complete, "line_errored"},
		"paused while lines expire":     {pauseOften, journal.Complete, "line_expired"},
		"paused while batches fail":     {pauseOften, journal.Complete, "batch_fails"},
		"paused while they are refused": {pauseOften, journal.Complete, "batch_429"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := func(c *simhttp.Config) {
				if c.Batch.Latency = latency; with.fault != "" {
					c.Sim.Faults, c.Batch.RetryAfter = sim.Faults{with.fault: 0.2}, time.Nanosecond
				}
			}
			url, server := batchServer(t, slow)
			drain, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			var wg sync.WaitGroup
			p := Play{Kinds: worlds.Standard(), Plan: batchPlan(t, url, small...), File: filepath.Join(t.TempDir(), "run.parley"), Opened: func(o Opened) {
				wg.Go(func() { with.steer(&steeredWaves{t, o, server, stop}) })
			}}
			sum, err := p.Run(t.Context(), drain)
			wg.Wait()
			if err != nil || sum.State != with.ends {
				t.Fatalf("%+v, %v", sum, err)
			}
			p.Opened = nil
			if sum.State != journal.Complete {
				sum = playWaves(t, p)
			}
			head := headOf(t, p.File)
			if len(head.Batches) > 0 {
				t.Errorf("batches %v are left open", head.Batches)
			}
			if sum.Digest != want.Digest || with.fault == "" && *sum.Cost != *want.Cost || sum.Calls.Failed > 0 {
				t.Errorf("%s, %v, %d calls failed; want %s, %v", sum.Digest, *sum.Cost, sum.Calls.Failed, want.Digest, *want.Cost)
			}
			asked := func(s *simhttp.Server) int {
				st := s.Stats()
				return int(st.Batches.Requests) + int(st.Endpoints["POST /v1/chat/completions"]) + int(st.Endpoints["POST /v1/messages"])
			}
			if a, b := asked(server), asked(quiet); with.fault == "" && a != b {
				t.Errorf("%d requests were asked, %d were needed; %+v", a, b, server.Stats().Batches)
			}
		})
	}
}
