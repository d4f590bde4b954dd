package worker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/world"
)

// TestLate: a worker has its time for each request, however many wait for it. One that takes too long for a request is ended
// once; the episode fails, and those that the worker played beside it do not.
func TestLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		takes           time.Duration // for the first step of an episode
		started, failed int
	}{
		{"slow", 50 * time.Second, 1, 0},
		{"stuck", 24 * time.Hour, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &served{kind: world.Define(game{})}
				defer time.Sleep(c.takes) // a worker that was ended notices it
				s.delay = func(r map[string]any) {
					if deal, _ := r["deal"].(float64); r["op"] == "begin" && (c.failed == 0 || deal == 0) {
						time.Sleep(c.takes)
					}
				}
				p, k := open(t, s, 1)
				j := &journal.Memory{}
				res := play(t, k, j, 4)
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				if res.Failed != c.failed || s.started != c.started {
					t.Errorf("%d episodes failed, %d workers were started; want %d and %d", res.Failed, s.started, c.failed, c.started)
				}
				head, err := j.Head(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if e, _ := head.Ended.Of(0); c.failed > 0 && !strings.Contains(e.Outcome.Failed, "a step took longer than 1m0s") {
					t.Errorf("failed with %q", e.Outcome.Failed)
				}
			})
		})
	}
}
