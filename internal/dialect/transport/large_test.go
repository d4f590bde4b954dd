package transport

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"parley/internal/dialect/transport/large"
	"parley/internal/provider"
	"parley/internal/wire/sse"
)

// TestEndlessAnswers: a server that sends answers without an end gets few of them far at once, and every call ends.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]bool{"whole": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { endless(t, stream) })
		})
	}
}

func endless(t *testing.T, stream bool) {
	t.Helper()
	line := ": " + strings.Repeat("x", 64<<10) + "\n"
	far, kind := large.MinWhole+1<<20, "application/json"
	if stream {
		far, kind = large.MinStream+1<<20, "text/event-stream"
	}
	var there atomic.Int64
	gate := make(chan struct{})
	cl := piped(t, provider.Provider{}, func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: "+kind+"\r\n\r\n")
		sent := 0
		for sent <= far {
			n, err := io.WriteString(c, line)
			if sent += n; err != nil {
				return
			}
		}
		there.Add(1)
		<-gate
		for range far / len(line) {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	defer cl.Close()
	cl.maxBody = int64(far) * 3 / 2
	var wg sync.WaitGroup
	for range 3 * cap(cl.places) {
		wg.Go(func() {
			a, err := cl.Do(t.Context(), Request{Path: "/x", Body: []byte("{}")})
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			if stream {
				_ = a.Events(t.Context(), func(sse.Event) (bool, error) { return false, nil })
			} else if _, err := a.Bytes(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than") {
				t.Error(err)
			}
		})
	}
	synctest.Wait()
	if n := there.Load(); n != int64(cap(cl.places)) {
		t.Errorf("%d answers are far at once, want %d", n, cap(cl.places))
	}
	close(gate)
	wg.Wait()
	if len(cl.places) > 0 {
		t.Errorf("%d places are taken", len(cl.places))
	}
}
