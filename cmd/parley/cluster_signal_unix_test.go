//go:build unix

package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestCoordinatorObeysSignals: a coordinator that waits for a hub or for workers ends with the first signal, whatever it waits for. Without a hub
// nobody can say when calls in flight are recorded, so it does not wait for them.
func TestCoordinatorObeysSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for name, begin := range map[string]func(t *testing.T) (run *process){
			"no hub": func(t *testing.T) *process {
				run := waitingRun(t, "http://127.0.0.1:9/v1", "--cluster", "nats://"+freePorts(t, 1)[0])
				run.until(func() bool { return strings.Contains(run.err.String(), "no node of the hub can be used") })
				return run
			},
			"no workers": func(t *testing.T) *process {
				run := waitingRun(t, "http://127.0.0.1:9/v1", "--listen", freePorts(t, 1)[0])
				run.until(func() bool { return strings.Contains(run.err.String(), "waiting for workers") })
				return run
			},
			"no JetStream": func(t *testing.T) *process {
				clients := make(chan struct{}, 1)
				run := waitingRun(t, "http://127.0.0.1:9/v1", "--cluster", bareHub(t, clients))
				<-clients
				return run
			},
			"hub gone": func(t *testing.T) *process {
				provider, server, _ := slowed(t)
				hubs, address := hubOf(t, 1)
				start(t, "secret-secret-secret", "worker", "--cluster", address, "--quiet")
				run := waitingRun(t, provider, "--cluster", address)
				run.until(func() bool { return server.Stats().Requests > 0 })
				hubs[0].kill()
				run.until(func() bool { return strings.Contains(run.err.String(), "no node of the hub can be used") })
				return run
			},
		} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				run := begin(t)
				run.signal(sig)
				select {
				case err := <-run.done:
					run.done <- err
					if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 4 {
						t.Errorf("%v, want exit code 4: %s", err, run.err)
					}
				case <-time.After(2 * time.Minute):
					t.Errorf("it does not end: %s", run.err)
				}
			})
		}
	}
}

// waitingRun starts a run that other processes are to play.
func waitingRun(t *testing.T, provider string, more ...string) *process {
	t.Helper()
	return start(t, "secret-secret-secret", append([]string{"run", plan(t, provider), "--out", filepath.Join(t.TempDir(), "run.parley")}, more...)...)
}

// bareHub starts a NATS server without JetStream, and returns its address. Clients gets something when one is connected.
func bareHub(t *testing.T, clients chan<- struct{}) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: "secret-secret-secret", NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	go func() { // ends with the client, or the test
		for s.NumClients() == 0 && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		clients <- struct{}{}
	}()
	return s.ClientURL()
}
