//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outlasts is longer than every lease of a run with --lease 2s: those of lots, of shares of limits and of the budget, and of workers themselves.
const outlasts = 6 * time.Second

// signal sends a signal to a process that runs.
func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if p.over() {
		p.t.Fatalf("the process has ended: %s%s", p.out, p.err)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// TestStoppedCluster stops a worker, then also the coordinator, for longer than every lease, and lets both continue. The outcomes are
// those of a single process, with every reply once. The provider answers no more calls twice than were in flight.
func TestStoppedCluster(t *testing.T) {
	t.Parallel()
	direct, _ := provider(t)
	const episodes = "episodes=80"
	want, _ := program(t, 0, "run", plan(t, direct), "--set", episodes, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	for _, c := range []struct {
		name  string
		nodes int // 0: in the coordinator
	}{{"in the coordinator", 0}, {"one node", 1}, {"three nodes", 3}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.nodes == 1 && os.Getenv("PARLEY_SWEEP") == "" {
				t.Skip("TestTakenWhilePaused and TestKilledRepeats have a hub of one node") // .ci/run kills plays it
			}
			url, server, quick := slowed(t)
			args := []string{"run", plan(t, url), "--out", filepath.Join(t.TempDir(), "run.parley"), "--json", "--quiet", "--lease", "2s", "--set", episodes}
			var address string
			if c.nodes == 0 {
				listen := freePorts(t, 1)[0]
				address = "nats://" + listen
				args = append(args, "--listen", listen)
			} else {
				_, address = hubOf(t, c.nodes)
				args = append(args, "--cluster", address)
			}
			run := start(t, "secret-secret-secret", args...)
			var workers []*process
			for range 2 {
				workers = append(workers, start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet"))
			}
			answered := func(n int64) { run.until(func() bool { return server.Stats().OK >= n }) }
			answered(int64(want.Calls.Total / 10))
			workers[0].signal(syscall.SIGSTOP)
			time.Sleep(outlasts)
			answered(server.Stats().OK + 2*planCalls) // the other goes on
			run.signal(syscall.SIGSTOP)
			time.Sleep(outlasts)
			run.signal(syscall.SIGCONT)
			workers[0].signal(syscall.SIGCONT)
			quick()
			var got summary
			if err := errors.Join(run.wait(), json.Unmarshal(run.out.Bytes(), &got)); err != nil || got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
				t.Errorf("%v: %+v, want %+v: %s", err, got, want, run.err)
			}
			twice := int(server.Stats().OK) - want.Calls.Total
			if twice < 0 || twice > 2*planCalls {
				t.Errorf("%d calls were answered more than once, want at most the %d that were in flight at two stops", twice, 2*planCalls)
			}
			t.Logf("%d calls were answered more than once", twice)
		})
	}
}

// TestTakenWhilePaused stops a coordinator, and lets another play a copy of its run file on the same hub. When the first continues, while
// the other plays or after it has finished, it ends and says why, and asks nothing again.
func TestTakenWhilePaused(t *testing.T) {
	t.Parallel()
	for _, finished := range []bool{false, true} {
		t.Run(fmt.Sprintf("finished %t", finished), func(t *testing.T) {
			t.Parallel()
			url, server, quick := slowed(t)
			_, address := hubOf(t, 1)
			folder := t.TempDir()
			first := start(t, "secret-secret-secret", "run", plan(t, url), "--set", long, "--out", filepath.Join(folder, "run.parley"), "--quiet", "--cluster", address)
			start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet")
			first.until(func() bool { return server.Stats().OK >= planCalls })
			first.signal(syscall.SIGSTOP)
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			second := start(t, "secret-secret-secret", "run", filepath.Join(copied, "run.parley"), "--json", "--quiet", "--cluster", address)
			before := server.Stats().OK
			second.until(func() bool { return server.Stats().OK >= before+2*planCalls }) // it plays
			if finished {
				quick()
				_ = second.wait()
			}
			asked := server.Stats().Requests
			first.signal(syscall.SIGCONT)
			first.until(func() bool { return finished && server.Stats().Requests > asked })
			if first.kill() || !strings.Contains(first.err.String(), "another coordinator took this run") {
				t.Errorf("it asks again, or says nothing: %s", first.err)
			}
			if !finished {
				quick()
			} else if again := server.Stats().Requests - asked; again != 0 {
				t.Errorf("%d requests after the run was over", again)
			}
			var got summary
			if err := errors.Join(second.wait(), json.Unmarshal(second.out.Bytes(), &got)); err != nil || got.State != "complete" {
				t.Errorf("%v: %+v: %s", err, got, second.err)
			}
		})
	}
}
