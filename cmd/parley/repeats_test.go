package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/run/cluster/clustertest"
)

// counting is a server of the standard library alone. It counts requests, and answers each after a while, always in the same way.
type counting struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	open     int // not answered yet
}

func newCounting(t *testing.T, delay time.Duration) *counting {
	t.Helper()
	c := &counting{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		sum := sha256.Sum256(body)
		c.mu.Lock()
		c.requests++
		c.open++
		c.mu.Unlock()
		time.Sleep(delay + delay*time.Duration(sum[0])/256) // a client that is gone may be billed all the same
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":"small","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"%x"}}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, sum[:8])
	}))
	t.Cleanup(c.Close)
	return c
}

// seen returns how many requests there were, and how many of them are open.
func (c *counting) seen() (requests, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests, c.open
}

// TestKilledRepeats kills, or cuts off, one part of a cluster again and again, and a server counts the requests. No more calls are made again than
// were in flight, none where workers and their log go on, and the summary says how many. docs/how-to/cluster.md has its figures.
func TestKilledRepeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes int
		limit int // calls that are made again after each failure
		fail  func(x *repeats)
	}{
		{"a hub of one node is killed", 1, planCalls, func(x *repeats) { x.hubs[0].kill(); x.hubs[0].start() }},
		{"a worker is cut off", 1, planCalls, func(x *repeats) {
			x.cable.Cut.Lock()
			time.Sleep(outlastsLot)
			x.cable.Cut.Unlock()
		}},
		{"the coordinator is killed", 1, 0, func(x *repeats) { x.run.kill(); x.run.start() }},
		{"a node of three is killed", 3, 0, func(x *repeats) {
			x.next = (x.next + 1) % 3
			x.hubs[x.next].kill()
			time.Sleep(outlastsLot) // the others go on
			x.hubs[x.next].start()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.nodes == 3 {
				often(t)
			}
			x := &repeats{server: newCounting(t, 300*time.Millisecond)}
			failures := enough(t, 1, 1)
			failures = max(failures/6, min(failures, 2)) // each takes ten seconds or more
			inFlight, extra, reported := x.play(t, c.nodes, failures, c.fail)
			t.Logf("| %s | %d | %d | %d | %d |", c.name, failures, inFlight, extra, reported)
			if extra < 0 || extra > failures*c.limit {
				t.Errorf("%d calls were made again, want at most the %d of each failure", extra, c.limit)
			}
			if off := max(extra-reported, reported-extra); off > failures*c.limit/2 { // of a worker's last second nobody knows
				t.Errorf("%d calls were made again, and the summary says %d", extra, reported)
			}
		})
	}
}

// outlastsLot is longer than a lot is kept for a worker that says nothing, in a run with --lease 2s.
const outlastsLot = 5 * time.Second

// repeats is a run of TestKilledRepeats.
type repeats struct {
	server *counting
	hubs   []*process
	run    *process
	cable  *clustertest.Cable // of the first worker; nil: it has none
	next   int                // the node that is killed next
}

// play plays a run in which something fails so often. It returns how many calls the server had not answered at the failures, how many it got more than the
// run recorded, and how many of them the summary reports.
func (x *repeats) play(t *testing.T, nodes, failures int, fail func(*repeats)) (inFlight, extra, reported int) {
	t.Helper()
	const episodes, each = 40, 12 // calls
	var address string
	x.hubs, address = hubOf(t, nodes)
	first := address
	if nodes == 1 {
		x.cable = clustertest.NewCable(t, strings.TrimPrefix(address, "nats://"))
		first = "nats://" + x.cable.Addr().String()
	}
	for _, at := range []string{first, address} {
		start(t, "secret-secret-secret", "worker", "--cluster", at, "--quiet")
	}
	x.run = start(t, "secret-secret-secret", "run", plan(t, x.server.URL+"/v1"), "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--quiet", "--lease", "2s", "--cluster", address,
		"--set", fmt.Sprint("episodes=", episodes*failures))
	for n := range failures {
		x.run.until(func() bool { seen, _ := x.server.seen(); return seen >= (n*episodes+episodes/4)*each })
		_, open := x.server.seen()
		inFlight += open
		fail(x)
	}
	var got summary
	if err := errors.Join(x.run.wait(), json.Unmarshal(x.run.out.Bytes(), &got)); err != nil || got.State != "complete" {
		t.Fatalf("%v: %+v: %s", err, got, x.run.err)
	}
	requests, _ := x.server.seen()
	return inFlight, requests - got.Calls.Total, got.Calls.Repeated
}
