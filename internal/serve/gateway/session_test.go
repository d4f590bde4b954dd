package gateway

import (
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// ended reads the end of session s.
func endedAs(t *testing.T, file string) (journal.Ended, bool) {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	state, err := readLedger(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := state.Ended.Outcome(t.Context(), s, state.Sessions[Name{ID: "s"}][0])
	if err != nil {
		t.Fatal(err)
	}
	if e == nil {
		return journal.Ended{}, false
	}
	return *e, true
}

// TestClose checks that a closed session takes no calls.
func TestClose(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")))
	l.post("/v1/sessions/s", "").want(t, 404, "there is no session s")
	l.post(chatPath, chatOf("m", "hi")).want(t, 200)
	l.post("/v1/sessions/s/close", `{"scores":{"reward":1,"reward":2}}`).want(t, 400, "given twice")
	l.post("/v1/sessions/s/close", `{"completion_mode":"maybe"}`).want(t, 400, "complete, seal, abort")
	l.post("/v1/sessions/s/close", `{"reason":"solved","scores":{"reward":0.5}}`).want(t, 200, `"status":"closed"`, `"close_reason":"solved"`)
	l.post("/v1/sessions/s/close", `{"reason":"again"}`).want(t, 200, `"close_reason":"solved"`)
	l.post(chatPath, chatOf("m", "hi")).want(t, 409, "session s is closed: solved")
	l.post("/v1/sessions/s/v1/messages", messageOf("m", "hi")).want(t, 409, `"type":"error"`)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	e, ok := endedAs(t, l.file)
	if !ok || len(e.Outcome.Scores) != 1 || e.Outcome.Scores[0].Value != 0.5 || e.Outcome.Failed != "" {
		t.Errorf("%+v", e)
	}
	// It stays closed after a restart.
	again := startAt(t, Config{Upstreams: l.g.cfg.Upstreams}, l.file)
	again.post(chatPath, chatOf("m", "hi")).want(t, 409, "session s is closed: solved")
}

// TestCloseWhileBusy closes a session with a call in flight, in each way.
func TestCloseWhileBusy(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct{ status, call string }{
		"complete": {`"status":"closed"`, "fine"},
		"seal":     {`"status":"sealed"`, "fine"},
		"abort":    {`"status":"closed"`, "the session was aborted"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			asked, release := make(chan struct{}), make(chan struct{})
			l := to(t, script(func(w http.ResponseWriter, r *http.Request) {
				close(asked)
				select {
				case <-release:
				case <-r.Context().Done():
				}
				saying("fine")(w, r)
			}))
			var wg sync.WaitGroup
			wg.Go(func() {
				r := l.post(chatPath, chatOf("m", "hi"))
				if !strings.Contains(r.body, want.call) {
					t.Errorf("%d %s", r.status, r.body)
				}
			})
			<-asked
			switch mode {
			case "complete": // it waits for the call, so the call must end meanwhile
				wg.Go(func() { l.post("/v1/sessions/s/close", `{"reason":"enough"}`).want(t, 200, want.status) })
				close(release)
			default:
				l.post("/v1/sessions/s/close", `{"reason":"enough","completion_mode":"`+mode+`"}`).want(t, 200, want.status)
				close(release)
			}
			wg.Wait()
			calls := l.calls("s")
			e, ok := endedAs(t, l.file)
			if len(calls) != 1 || !ok || (e.Outcome.Failed != "") != (mode == "abort") {
				t.Errorf("%+v, ended %v: %+v", calls, ok, e)
			}
			if mode == "abort" && (calls[0].Error == nil || calls[0].Error.Kind != llm.KindCanceled) {
				t.Errorf("%+v", calls[0])
			}
		})
	}
}

// TestIdleIsClosed checks that idle sessions are closed.
func TestIdleIsClosed(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.Idle = time.Nanosecond })
	l.post(chatPath, chatOf("m", "hi"))
	for {
		r := l.post("/v1/sessions/s", "").want(t, 200)
		if strings.Contains(r.body, `"closed"`) {
			r.want(t, 200, "idle for 1ns")
			return
		}
	}
}

// TestGoesOn checks that sessions continue after a restart.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	c := Config{Upstreams: []provider.Provider{upstream("openai", serving(t, script(saying("fine"))))}, MaxSteps: 3}
	for range 2 {
		l := startAt(t, c, file)
		l.post(chatPath, chatOf("m", "hi")).want(t, 200)
		l.post("/v1/sessions/other/chat/completions", chatOf("m", "hi")).want(t, 200)
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
	}
	l := startAt(t, c, file)
	l.post("/v1/sessions/s", "").want(t, 200, `"llm_step_count":2`, `"requests":2`, `"episode":0`)
	l.post(chatPath, chatOf("m", "hi")).want(t, 200, "fine")
	l.post(chatPath, chatOf("m", "hi")).want(t, 200, "step limit")
	calls := l.calls("s")
	for i, c := range calls {
		if c.Turn != i {
			t.Errorf("turn %d is at %d", c.Turn, i)
		}
	}
	if len(calls) != 4 || len(recorded(t, file, "other")) != 2 {
		t.Errorf("%d calls", len(calls))
	}
}

// TestDrain stops the gateway with an open stream and a waiting call: the stream is finished, the call is told
// to retry.
func TestDrain(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	up := script(func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"))(w, r)
		<-release
		events(ends()...)(w, r)
	})
	l := to(t, up, func(c *Config) { c.Upstreams[0].Limits.Concurrency = 1 })
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+chatPath, strings.NewReader(chatOf("m", "hi", streamed)))
	res, err := l.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	readThis(t, res.Body, "data: "+chunk("so")+"\n\n")
	waits := make(chan reply, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := l.try(t.Context(), "/v1/w/chat/completions", chatOf("m", "hi"))
		if err != nil {
			t.Error(err)
		}
		waits <- r
	})
	for l.g.dispatch.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	l.drain()
	(<-waits).want(t, 503, "draining")
	close(release)
	var b strings.Builder
	if _, err := copyTo(&b, res.Body); err != nil || !strings.Contains(b.String(), "[DONE]") {
		t.Errorf("%v: %s", err, b.String())
	}
	wg.Wait()
	if calls := l.calls("s"); len(calls) != 1 || calls[0].Response == nil {
		t.Errorf("%+v", calls)
	}
}

// TestGraceEnds stops the gateway with a stream that does not end: after the grace it is canceled, and that is
// recorded.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	l := to(t, script(func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"))(w, r)
		<-r.Context().Done()
	}), func(c *Config) { c.Grace = 20 * time.Millisecond })
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+chatPath, strings.NewReader(chatOf("m", "hi", streamed)))
	res, err := l.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	readThis(t, res.Body, "data: "+chunk("so")+"\n\n")
	if calls := l.calls("s"); len(calls) != 1 || calls[0].Error == nil || !strings.Contains(calls[0].Error.Message, "the gateway stops") {
		t.Errorf("%+v", calls)
	}
}
