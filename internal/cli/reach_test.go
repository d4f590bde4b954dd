package cli

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"parley/internal/cli/exit"
)

// trigger is a standard error that calls a function when a text is first written to it.
type trigger struct {
	text string
	then func()

	mu   sync.Mutex
	buf  bytes.Buffer
	done bool
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.text) {
		w.done = true
		w.then()
	}
	return len(p), nil
}

// deadURL is an address at which no server listens: systems give that port to nobody.
const deadURL = "http://127.0.0.1:1/v1"

// TestAskWaits checks that ask reports at once that a server is missing, and that a signal ends the wait.
func TestAskWaits(t *testing.T) {
	t.Parallel()
	const url = deadURL
	signals := make(chan os.Signal, 1)
	stderr := &trigger{text: "lab is unreachable: connection refused at " + url + "; waits up to 2m0s", then: func() { signals <- os.Interrupt }}
	code := mainWith(t.Context(), State{
		Args:   []string{"ask", "hello", "--model", "lab/any", "--base-url", url},
		Stdout: &bytes.Buffer{}, Stderr: stderr, Signals: signals,
	})
	if code != exit.Interrupted || !stderr.done {
		t.Errorf("exit code %d:\n%s", code, stderr.buf.String())
	}
}

// TestAskDoesNotWait checks that with 0 there are only the usual attempts, and then an error.
func TestAskDoesNotWait(t *testing.T) {
	t.Parallel()
	got := parley(t, State{}, "ask", "hello", "--model", "lab/any", "--base-url", deadURL, "--unreachable", "0", "--retries", "0")
	got.want(t, exit.Failed).wantErr(t, "connection refused")
	if strings.Contains(got.stderr, "waits up to") {
		t.Errorf("it waits:\n%s", got.stderr)
	}
	parley(t, State{}, "ask", "hello", "--unreachable", "-1s").want(t, exit.Misuse).wantErr(t, "--unreachable")
}
