package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// relayed reads an answer as the gateway does.
func relayed(ctx context.Context, a *Answer) (err error) {
	all, p := 0, make([]byte, 32<<10)
	for err == nil {
		var n int
		n, err = a.Read(ctx, p)
		if all += n; err == nil {
			err = a.Keep(ctx, all)
		}
	}
	return err
}

// TestEndlessAnswers: of a server whose answers have no end, few are read far at the same time, and every call ends.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(context.Context, *Answer) error{
		"relayed": relayed,
		"whole":   func(ctx context.Context, a *Answer) error { _, err := a.Bytes(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { endless(t, read) })
		})
	}
}

func endless(t *testing.T, read func(context.Context, *Answer) error) {
	t.Helper()
	line := strings.Repeat("x", 64<<10)
	var far atomic.Int64
	gate := make(chan struct{})
	cl := piped(t, provider.Provider{}, func(c net.Conn, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
		for range 2 * Min / len(line) {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
		far.Add(1)
		<-gate
		c.Close()
	})
	defer cl.Close()
	var wg sync.WaitGroup
	for range 3 * cap(cl.places) {
		wg.Go(func() {
			a, _, err := cl.Raw(t.Context(), Request{Path: "/x", Body: []byte("{}")})
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			if err := read(t.Context(), a); err == nil {
				t.Error("no error")
			}
		})
	}
	synctest.Wait()
	if n := far.Load(); n != int64(cap(cl.places)) {
		t.Errorf("%d answers are far at once, want %d", n, cap(cl.places))
	}
	close(gate)
	wg.Wait()
	if len(cl.places) > 0 {
		t.Errorf("%d places are taken", len(cl.places))
	}
}

// TestWaitForRoomIsNotSilence: an answer that waits for other large ones longer than the timeout arrives all the same. Small
// answers, and those that are read line by line, do not wait. A call that is given up stops waiting.
func TestWaitForRoomIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := piped(t, provider.Provider{Timeout: time.Minute}, func(c net.Conn, r *http.Request) {
			size := 2 * Min
			if strings.HasSuffix(r.URL.Path, "small") {
				size = Min / 2
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["+strings.Repeat("1,", size/2)+"1]")
			c.Close()
		})
		defer cl.Close()
		ask := func(ctx context.Context, path string) *Answer {
			a, err := cl.Do(ctx, Request{Path: path, Body: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		bytes := func(ctx context.Context, path string) (int, error) {
			a := ask(ctx, path)
			defer a.Close()
			b, err := a.Bytes(ctx)
			return len(b), err
		}
		var held []*Answer
		for range cap(cl.places) {
			a := ask(t.Context(), "/large")
			if err := a.Keep(t.Context(), Min); err != nil {
				t.Fatal(err)
			}
			held = append(held, a)
		}
		if n, err := bytes(t.Context(), "/small"); err != nil || n < Min/2 {
			t.Errorf("a small answer: %d bytes, %v", n, err)
		}
		lines := ask(t.Context(), "/large")
		if err := lines.Lines(t.Context(), func([]byte) error { return nil }); err != nil {
			t.Errorf("lines: %v", err)
		}
		lines.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if _, err := bytes(ctx, "/large"); llm.AsError(err).Kind != llm.KindTimeout || time.Until(deadline(ctx)) > 0 {
			t.Errorf("a call that ends: %v", err)
		}
		time.AfterFunc(5*time.Minute, func() {
			for _, a := range held {
				a.Close()
			}
		})
		if n, err := bytes(t.Context(), "/large"); err != nil || n < 2*Min {
			t.Errorf("a large answer: %d bytes, %v", n, err)
		}
	})
}

func deadline(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}
