package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
	"parley/internal/run/cluster/hub"
)

// TestHubWatch: a hub is tried again while its nodes are asked what is wrong, which is told once. If they refuse the token, the
// delay grows.
func TestHubWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		answers := make(chan error)
		w := &hubWatch{tell: func(text string) { lines = append(lines, text) }, why: func() error { return <-answers }, cancel: func() {}, limit: connectTimeout}
		fail := func() (delay time.Duration) {
			w.onAllFailed(1)
			time.Sleep(silentTime)
			return w.onAllFailed(2) // it does not wait for answers
		}
		wantLines := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(lines, want) {
				t.Errorf("told %q, want %q", lines, want)
			}
			lines = nil
		}
		if d := fail(); d < retryDelay || d > 2*retryDelay {
			t.Errorf("waits %v", d)
		}
		answers <- errors.New("no node")
		wantLines("no node. This process waits up to 30s")
		w.onConnect(nil)
		wantLines("the hub answers again")

		fail()
		w.onConnect(nil) // before anything was found out
		answers <- errors.New("no node")
		wantLines()

		fail()
		answers <- &hub.UnreachableError{Nodes: []string{"h: it refuses the token"}, Refused: true}
		wantLines("h: it refuses the token. This process waits until one can be used")
		last := retryDelay
		for range 20 {
			d := w.onAllFailed(1)
			if d < min(last, maxRetryDelay) || d > 2*maxRetryDelay {
				t.Errorf("waits %v after %v", d, last)
			}
			last = d
		}
		if last < maxRetryDelay {
			t.Errorf("waits only %v", last)
		}
		w.onConnect(nil)
		wantLines("the hub answers again")
		if d := w.onAllFailed(1); d > 2*retryDelay {
			t.Errorf("waits %v", d)
		}
		w.stop()
		time.Sleep(silentTime)
		w.onAllFailed(2) // would wait for an answer
		w.search.Wait()
	})
}

// TestClusterPassword: what stands before an @ in --cluster is refused, and printed nowhere.
func TestClusterPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"nats://me:hunt%zzer2@127.0.0.1:1", "nats://me:hunter2@127.0.0.1:port", "nats://me:hunter2@127.0.0.1: 1", "nats://me:p@hunter2/x@127.0.0.1:1"} {
		for _, verb := range []string{"worker", "cluster"} {
			got := parley(t, State{}, verb, "--cluster", url).want(t, exit.Misuse).wantErr(t, "--cluster: an address must not have a user or a password")
			if strings.Contains(got.stdout+got.stderr, "hunt") {
				t.Error(got.stderr)
			}
		}
	}
}
