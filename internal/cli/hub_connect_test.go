package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
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
		var usable atomic.Bool
		answers := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		c := &hubConn{why: func() error { return <-answers }, cancel: cancel}
		c.watching.Go(func() { c.watch(ctx, usable.Load, connectTimeout, func(text string) { lines = append(lines, text) }) })
		fail := func() (delay time.Duration) {
			usable.Store(false)
			time.Sleep(silentTime + 2*retryDelay)
			return c.delay(2) // it does not wait for answers
		}
		again := func() {
			usable.Store(true)
			time.Sleep(2 * retryDelay)
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
		again()
		wantLines("the hub answers again")

		fail()
		again() // before anything was found out
		answers <- errors.New("no node")
		wantLines()

		again()
		fail()
		answers <- &hub.UnreachableError{Nodes: []string{"h: it refuses the token"}, Refused: true}
		wantLines("h: it refuses the token. This process waits until one can be used")
		last := retryDelay
		for range 20 {
			d := c.delay(1)
			if d < min(last, maxRetryDelay) || d > 2*maxRetryDelay {
				t.Errorf("waits %v after %v", d, last)
			}
			last = d
		}
		if last < maxRetryDelay {
			t.Errorf("waits only %v", last)
		}
		again()
		wantLines("the hub answers again")
		if d := c.delay(1); d > 2*retryDelay {
			t.Errorf("waits %v", d)
		}
		c.cancel()
		usable.Store(false)
		time.Sleep(2 * silentTime) // would wait for an answer
		c.watching.Wait()
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
