//go:build unix

package cluster

import (
	"fmt"
	"syscall"
	"testing"

	"parley/internal/kit/testkit"
	"parley/internal/run/cluster/clustertest"
	"parley/internal/run/cluster/hub"
)

// TestStopped: a worker that is stopped for longer than its lease, and continues, can record nothing of its lot.
func TestStopped(t *testing.T) {
	t.Parallel()
	h := clustertest.Hub(t, hub.Config{})
	p := testkit.Start(t, h.URL()+" "+h.Token()+" slow")
	t.Cleanup(func() { p.Kill(); p.Wait() })
	takeover(t, h, func() {
		p.Line(t) // it plays
		p.Signal(t, syscall.SIGSTOP)
	}, func() string {
		p.Signal(t, syscall.SIGCONT)
		fmt.Fprintln(p.In)
		return p.Line(t)
	})
}
