package app

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/sim/simhttp"
	"parley/journal"
	"parley/worlds"
)

// TestServerRestarts kills the only server in the middle of a run and starts it again once the
// run has noticed: its outcomes are those of an undisturbed run, and no call fails.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	want, _ := playFarm(t, farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}))
	dies := newRig(t, simhttp.Config{}, after(6, killed))
	addr := dies.srv.Listener.Addr().String()
	again := newRig(t, simhttp.Config{}, nil)
	var mu sync.Mutex
	var outages []dispatch.Outage
	var started *http.Server
	play := Play{Kinds: worlds.Standard(), Plan: farmPlan(t, []*rig{dies}), File: t.TempDir() + "/run.parley", Events: func(e Event) {
		o := e.Ask.Outage
		if o == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		outages = append(outages, *o)
		if o.Back || started != nil {
			return
		}
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		started = &http.Server{Handler: again, ReadHeaderTimeout: time.Minute}
		go started.Serve(ln)
	}}
	sum, err := play.Run(t.Context(), context.Background())
	mu.Lock()
	defer mu.Unlock()
	if started != nil {
		defer started.Close()
	}
	if err != nil || sum.State != journal.Complete || sum.Digest != want.Digest || sum.Calls.Failed > 0 {
		t.Fatalf("%+v, want the digest %s; %v", sum, want.Digest, err)
	}
	if len(outages) < 2 || outages[0].Back || !outages[len(outages)-1].Back || outages[0].Provider != "lab" || !strings.Contains(outages[0].URL, addr) {
		t.Errorf("outages: %+v", outages)
	}
}

// TestServerStaysAway holds that the run stops when it has waited as long as it may, says where
// and what to do, and can be resumed.
func TestServerStaysAway(t *testing.T) {
	t.Parallel()
	dies := newRig(t, simhttp.Config{}, after(6, killed))
	plan := farmPlan(t, []*rig{dies}, "retry.unreachable=1ms")
	file := t.TempDir() + "/run.parley"
	sum, err := Play{Kinds: worlds.Standard(), Plan: plan, File: file}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Stopped || sum.Calls.Failed > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	for _, text := range []string{"lab is unreachable", " at " + dies.url(), "make sure that the server is running", "--unreachable"} {
		if !strings.Contains(sum.Reason.String(), text) {
			t.Errorf("the reason does not say %q: %s", text, sum.Reason)
		}
	}
	want, _ := playFarm(t, farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}))
	sum, err = Play{Kinds: worlds.Standard(), Plan: farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}), File: file}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Digest != want.Digest {
		t.Fatalf("%+v, %v", sum, err)
	}
}
