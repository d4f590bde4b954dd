package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/sim/simhttp"
)

// finished is what a process of the program has printed, and its exit code.
type finished struct {
	code        int
	out, errors string
}

// command runs the program to its end.
func command(t *testing.T, args ...string) (f finished) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), beParley+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if _, ok := errors.AsType[*exec.ExitError](cmd.Run()); !ok && cmd.ProcessState == nil {
		t.Fatal(args, stderr.String())
	}
	return finished{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (f finished) want(t *testing.T, code int, texts ...string) finished {
	t.Helper()
	if f.code != code {
		t.Errorf("exit code %d, want %d: %s%s", f.code, code, f.out, f.errors)
	}
	for _, text := range texts {
		if !strings.Contains(f.out+f.errors, text) {
			t.Errorf("no %q in %s%s", text, f.out, f.errors)
		}
	}
	return f
}

// detached is the line that --detach prints.
type detached struct {
	File, Log string
	PID       int
}

// background plays a plan with --detach.
func background(t *testing.T, args ...string) (d detached) {
	t.Helper()
	f := command(t, args...).want(t, 0)
	if err := json.Unmarshal([]byte(f.out), &d); err != nil || d.PID == 0 {
		t.Fatal(f, err)
	}
	return d
}

// held serves the simulated provider. The n-th request waits for so long, or until release is called, so that a run does not end
// before something is done to it.
func held(t *testing.T, wait func(n int64) time.Duration) (address string, server *simhttp.Server, release func()) {
	t.Helper()
	server, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	open := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // or the server does not notice that the client is gone
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-time.After(wait(asked.Add(1))):
		case <-open:
		case <-r.Context().Done():
			return
		}
		server.ServeHTTP(w, r)
	}))
	release = sync.OnceFunc(func() { close(open) })
	t.Cleanup(func() { release(); s.Close() })
	return s.URL + "/v1", server, release
}

// gated answers only a few requests before release is called.
func gated(t *testing.T) (address string, release func()) {
	t.Helper()
	address, _, release = held(t, func(n int64) time.Duration {
		if n <= 10 {
			return 0
		}
		return time.Hour
	})
	return address, release
}

// slowed takes 350 ms for an answer until quick is called.
func slowed(t *testing.T) (address string, server *simhttp.Server, quick func()) {
	t.Helper()
	return held(t, func(int64) time.Duration { return 350 * time.Millisecond })
}

// TestSteerAndKill pauses a run in the background by two commands at once, kills it with kill -9 while it is paused,
// resumes it, and wants the outcomes of an undisturbed run. A killed run cannot be steered.
func TestSteerAndKill(t *testing.T) {
	t.Parallel()
	often(t)
	address, release := gated(t)
	direct, _ := provider(t)
	file, out := plan(t, address), filepath.Join(t.TempDir(), "run.parley")
	want, _ := program(t, 0, "run", plan(t, direct), "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	d := background(t, "run", file, "--out", out, "--detach", "--json")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { command(t, "ctl", out, "pause").want(t, 0, "paused: no call is sent") })
	}
	both.Wait()
	command(t, "run", file, "--out", out).want(t, 2, "is being played by another process")
	command(t, "ctl", out, "set", "seed=4").want(t, 2, "cannot be set while a run is played")
	command(t, "ctl", out, "set", "concurrency=0").want(t, 2, "concurrency")
	command(t, "ctl", out, "set", "budget=").want(t, 2, "budget= has no number")
	command(t, "ctl", out, "set", "concurrency=null").want(t, 2, "has no number")
	command(t, "ctl", out, "set", "concurrency=3", "--json").want(t, 0, `"state":"paused"`, `"concurrency":3`)
	command(t, "ctl", out, "wait", "--timeout", "1ms").want(t, 1, "still played after 1ms")
	p, err := os.FindProcess(d.PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	release()
	command(t, "ctl", out, "wait").want(t, 1, "cut off")
	command(t, "ctl", out, "resume").want(t, 2, "no process plays this run", "parley run")
	got, _ := program(t, 0, "run", out, "--json", "--quiet")
	if got.State != "complete" || got.Digest != want.Digest {
		t.Errorf("%+v, want %+v", got, want)
	}
	command(t, "show", out).want(t, 0, "pause by ctl", "set concurrency 24 → 3 by ctl")
}

// TestDetachAndWait plays in the background, pauses and resumes, and waits for the end, which the log shows.
func TestDetachAndWait(t *testing.T) {
	t.Parallel()
	address, release := gated(t)
	file, out := plan(t, address), filepath.Join(t.TempDir(), "run.parley")
	d := background(t, "run", file, "--out", out, "--detach=1", "--set", "episodes=30")
	command(t, "ctl", out, "pause").want(t, 0)
	release()
	command(t, "ctl", out, "resume").want(t, 0, "playing")
	command(t, "ctl", out, "wait").want(t, 0, "complete: 30 of 30 episodes ended")
	command(t, "ctl", out, "wait", "--json").want(t, 0, `"state":"complete"`, `"exit_code":0`)
	if log, err := os.ReadFile(d.Log); err != nil || d.File != out || !strings.Contains(string(log), "complete") {
		t.Errorf("%+v: %s, %v", d, log, err)
	}
	command(t, "run", file, "--out", out, "--detach", "--seed", "9").want(t, 2, "was recorded with another plan")
	command(t, "run", filepath.Join(t.TempDir(), "none.yaml"), "--detach").want(t, 2, "no such file")
	command(t, "ctl", file, "wait").want(t, 2)
}

// TestDrainAndStopByCommand: both end the run as an interrupted one, which can be resumed.
func TestDrainAndStopByCommand(t *testing.T) {
	t.Parallel()
	often(t)
	for _, verb := range []string{"drain", "stop"} {
		address, release := gated(t)
		file, out := plan(t, address), filepath.Join(t.TempDir(), verb+".parley")
		background(t, "run", file, "--out", out, "--detach", "--quiet", "--set", "limits.live=2")
		command(t, "ctl", out, verb).want(t, 0)
		release()
		command(t, "ctl", out, "wait").want(t, 4, "stopped", "by ctl")
		background(t, "run", out, "--detach", "--quiet", "--set", "limits.live=200")
		command(t, "ctl", out, "wait").want(t, 0, "complete")
	}
}
