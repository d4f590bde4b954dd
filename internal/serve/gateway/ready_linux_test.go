package gateway

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestWaits checks that a stream whose client sends nothing needs no goroutine for its watch. It runs alone, so that no other test
// watches.
func TestWaits(t *testing.T) {
	const n = 20
	begun, end := make(chan struct{}), make(chan struct{})
	h := openStreams(t, func(h *streamServer, w http.ResponseWriter, _ bool) {
		pieces(h, w, true)
		begun <- struct{}{}
		<-end
	})
	defer close(end)
	h.gone = make(chan struct{}, n)
	for range n {
		c, _ := dial(t, h)
		fmt.Fprint(c, rawRequest("HTTP/1.1", ""))
		<-begun
	}
	all := make([]byte, 1<<20)
	if watching := strings.Count(string(all[:runtime.Stack(all, true)]), "readAhead("); watching > 0 {
		t.Errorf("%d goroutines watch %d streams", watching, n)
	}
}

// TestWaitsAfterClose checks that there is no wait for a connection that is closed.
func TestWaitsAfterClose(t *testing.T) {
	t.Parallel()
	h := openStreams(t, pieces)
	c, _ := dial(t, h)
	c.Close()
	var r readiness
	defer r.end()
	if r.wait(&clientConn{Conn: c}) != 0 {
		t.Error("it waits")
	}
	if len(r.waits) > 0 {
		t.Errorf("%d waits are left", len(r.waits))
	}
}

// TestWaitsAgain checks that a connection can wait again after a wait that is over, and that nothing waits after the end.
func TestWaitsAgain(t *testing.T) {
	t.Parallel()
	h := openStreams(t, pieces)
	c, _ := dial(t, h)
	k := &clientConn{Conn: c}
	var r readiness
	first := r.wait(k)
	r.mu.Lock()
	delete(r.waits, first) // as next does
	r.mu.Unlock()
	if second := r.wait(k); first == 0 || second == 0 {
		t.Errorf("the waits are %d and %d", first, second)
	}
	r.end()
	if r.wait(k) != 0 || r.epoll != nil {
		t.Error("it waits after the end")
	}
}
