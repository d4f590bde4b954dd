package simhttp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/sim"
)

// TestAnswersAtAnyConcurrency compares the answers with 1 and with 64 requests in flight.
func TestAnswersAtAnyConcurrency(t *testing.T) {
	t.Parallel()
	ask := func(width int) []string {
		url, _ := serve(t, Config{Sim: sim.Config{Seed: 9}})
		c := client(t)
		out := make([]string, 256)
		var wg sync.WaitGroup
		for w := range width {
			wg.Go(func() {
				for i := w; i < len(out); i += width {
					path, body, at := chatPath, chatBody, "choices.0.message.content"
					if i%2 == 0 {
						path, body, at = messagesPath, messagesBody, "content.0.text"
					}
					a, err := post(t, c, url+path, strings.Replace(body, "river", fmt.Sprint("river ", i), 1))
					if err != nil {
						t.Error(err)
						return
					}
					out[i] = a.at(t, at).(string)
				}
			})
		}
		wg.Wait()
		return out
	}
	if one, many := ask(1), ask(64); !reflect.DeepEqual(one, many) {
		t.Error("answers at 1 and 64 in flight differ")
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, Config{})
	tr := &http.Transport{Protocols: &http.Protocols{}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	resp, err := (&http.Client{Transport: tr}).Post(url+chatPath, "application/json", strings.NewReader(chatBody))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
}

func TestHTTP2Faults(t *testing.T) {
	t.Parallel()
	for _, f := range []sim.Fault{sim.FaultReset, sim.FaultCut} {
		url, _ := serve(t, faulty(f))
		tr := &http.Transport{Protocols: &http.Protocols{}}
		tr.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(tr.CloseIdleConnections)
		a, err := post(t, &http.Client{Transport: tr}, url+chatPath, with(chatBody, `"stream":true`))
		if err == nil {
			t.Errorf("%s: %v %d", f, err, a.status)
		}
	}
}

// TestRunStops checks that requests in flight finish, and that those that take too long end.
func TestRunStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		latency time.Duration
		grace   time.Duration
		answers bool
	}{
		{"finishes", 20 * time.Millisecond, time.Minute, true},
		{"gives up", time.Hour, 20 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, Config{Grace: c.grace, Sim: sim.Config{Latency: sim.Fixed(c.latency)}})
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan error, 1)
			go func() { stopped <- s.Run(ctx, ln) }()
			answer := make(chan error, 1)
			go func() {
				_, err := post(t, client(t), "http://"+ln.Addr().String()+chatPath, chatBody)
				answer <- err
			}()
			for s.Stats().InFlightMax == 0 { // InFlight may be 0 again
				runtime.Gosched() // until it has arrived
			}
			cancel()
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if err := <-answer; (err == nil) != c.answers {
				t.Errorf("answered: %v", err)
			}
		})
	}
}

func TestNewRefusesBadConfig(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Sim: sim.Config{Faults: sim.Faults{"nonsense": 1}}}); err == nil {
		t.Error("no error")
	}
}

func TestStreamPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Sim: sim.Config{Latency: sim.Fixed(9 * time.Second)}})
		start := time.Now()
		call(t, s, http.MethodPost, chatPath, with(chatBody, `"stream":true`))
		if took := time.Since(start); took < 8*time.Second || took > 9*time.Second {
			t.Errorf("took %v, want about 9s", took)
		}
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	call(t, s, http.MethodPost, chatPath, chatBody)
	call(t, s, http.MethodPost, chatPath, "{")
	a := call(t, s, http.MethodGet, "/stats", "")
	for path, want := range map[string]any{
		"requests": 2.0, "ok": 1.0, "rate_limited": 0.0, "in_flight": 0.0, "in_flight_max": 1.0, "tokens.cached": 0.0,
		"batches.created": 0.0, "batches.completed": 0.0, "endpoints.POST /v1/chat/completions": 2.0, "errors.400": 1.0,
	} {
		if got := a.at(t, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if a.at(t, "tokens.input") == 0.0 || a.at(t, "tokens.output") == 0.0 {
		t.Errorf("%s", a.body)
	}
}
