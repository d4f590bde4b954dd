package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/run/runfile"
	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
)

// endedAs reads the end of session s.
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
	e, err := state.Ended.Outcome(t.Context(), s, state.Sessions[sessionName{ID: "s"}])
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
	l.post("/v1/sessions/s/close", `{"score":{"reward":1}}`).want(t, 400, "score", "did you mean scores?")
	l.post("/v1/sessions/s/close", `{"scores":{"reward":1e999}}`).want(t, 400, "close: scores: found number 1e999, want number")
	l.post("/v1/sessions/new", `{"tags":["x"]}`).want(t, 400, "open: tags: found array, want object")
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

// TestSessionNames checks where a session's name comes from, and that a provider does not get it.
func TestSessionNames(t *testing.T) {
	t.Parallel()
	up := script(saying("fine"))
	l := to(t, up)
	const path = "/v1/chat/completions"
	for _, c := range []struct {
		path   string
		header []string
		want   string
	}{
		{path, nil, "default"},
		{path, []string{"X-Claude-Code-Session-Id", "claude"}, "claude"},
		{path, []string{"Session-Id", "codex", "Thread-Id", "thread"}, "codex"},
		{path, []string{"X-Session-Id", "opencode", "X-Session-Affinity", "other"}, "opencode"},
		{path, []string{"X-Parley-Session", "mine", "X-Session-Id", "opencode", "Session-Id", "codex"}, "mine"},
		{"/v1/sessions/path/chat/completions", []string{"X-Parley-Session", "mine", "X-Claude-Code-Session-Id", "claude"}, "path"},
	} {
		episode := l.post(c.path, chatOf("m", "hi"), c.header...).want(t, 200).header.Get("X-Parley-Episode")
		l.post("/v1/sessions/"+c.want, "").want(t, 200, `"episode":`+episode+`,`)
	}
	l.post(path, chatOf("m", "hi"), "Session-Id", "a b").want(t, 400, "session_invalid")
	for i, h := range up.heads {
		if h["X-Session-Id"] != nil || h["X-Parley-Session"] != nil {
			t.Errorf("call %d: the provider gets %v", i, h)
		}
	}
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
		if c.Turn.Turn != i {
			t.Errorf("turn %d is at %d", c.Turn.Turn, i)
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

// running opens sessions over a journal; done ends them.
func running(t *testing.T, c Config) (all *sessionSet, done func()) {
	t.Helper()
	l, found, err := continueLedger(t.Context(), c.Journal, Begin{Run: "r", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	all = newSessionSet(c, l, found)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(context.WithoutCancel(ctx)) })
	wg.Go(func() { all.Sweep(ctx) })
	return all, func() { cancel(); l.Close(time.Now()); wg.Wait() }
}

// TestIdle checks that only idle sessions are closed.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, done := running(t, Config{Journal: &journal.Memory{}, Idle: time.Minute})
		defer done()
		for _, id := range []string{"idle", "busy", "late", defaultSession} {
			s, err := all.Begin(t.Context(), sessionName{ID: id}, about{})
			if err != nil {
				t.Fatal(err)
			}
			turn, err := s.Enter(func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			if id != "busy" {
				all.Leave(s, turn)
			}
		}
		time.Sleep(50 * time.Second)
		late, _ := all.Find(t.Context(), sessionName{ID: "late"})
		turn, err := late.Enter(func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		all.Leave(late, turn)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		for id, want := range map[string]sessionState{"idle": stateClosed, "busy": stateOpen, "late": stateOpen, defaultSession: stateOpen} {
			s, err := all.Find(t.Context(), sessionName{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Status(); got.Status != want {
				t.Errorf("%s is %s, want %s", id, got.Status, want)
			}
			_, err = s.Enter(func(error) {})
			if closed := err != nil; closed != (want == stateClosed) || closed && !strings.Contains(err.Error(), "idle for 1m0s") {
				t.Errorf("%s: %v", id, err)
			}
		}
		if open, n := all.Counts(); open != 3 || n != 4 {
			t.Errorf("%d of %d are open", open, n)
		}
		busy, _ := all.Find(t.Context(), sessionName{ID: "busy"})
		all.Leave(busy, 0)
	})
}

// TestRevive restores a session of an earlier process.
func TestRevive(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	all, done := running(t, Config{Journal: j, MaxSteps: 2})
	s, err := all.Begin(t.Context(), sessionName{ID: "s"}, about{})
	if err != nil {
		t.Fatal(err)
	}
	place, err := s.Enter(func(error) {})
	turn := s.Turn()
	if err != nil || turn != 0 || s.stepsUsedUp("lab/m") {
		t.Fatal(turn, err)
	}
	call := &Call{Replied: journal.Replied{Turn: journal.Turn{Episode: s.Episode, Turn: turn}, Request: &llm.Request{Model: "lab/m"}, Response: &llm.Response{Usage: llm.Usage{Input: 3}}}}
	if err := all.ledger.Keep(clientSeat, call); err != nil {
		t.Fatal(err)
	}
	s.Answered(call)
	all.Leave(s, place)
	before := s.Status()
	done()

	all, done = running(t, Config{Journal: j, MaxSteps: 2})
	defer done()
	if s, err = all.Find(t.Context(), sessionName{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	after := s.Status()
	if after.Steps != before.Steps || after.Usage != before.Usage || after.Episode != before.Episode || after.Requests != 1 {
		t.Errorf("%+v, and was %+v", after, before)
	}
	for turn := 1; turn < 3; turn++ { // a call that is served from the record takes none
		if _, err = s.Enter(func(error) {}); err != nil {
			t.Fatal(err)
		}
		if _, err = s.Enter(func(error) {}); err != nil || s.Turn() != turn || s.Status().Requests != turn+1 {
			t.Errorf("%+v, %v", s.Status(), err)
		}
	}
	s.Answered(call)
	if !s.stepsUsedUp("lab/m") || s.stepsUsedUp("lab/other") {
		t.Error("two steps are two steps")
	}
	if _, err := all.Find(t.Context(), sessionName{ID: "none"}); err == nil || !strings.Contains(err.Error(), "there is no session none") {
		t.Errorf("%v", err)
	}
}

// TestPast serves each recorded call once, and describes how another differs.
func TestPast(t *testing.T) {
	t.Parallel()
	call := func(words string) *format.Call {
		b, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]string{"role": "user", "content": words}}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := format.Decode(format.Chat, format.Address{}, b)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	of := func(c *format.Call, turn int, w wireAnswer, e *llm.Error) Call {
		return Call{Replied: journal.Replied{Turn: journal.Turn{Turn: turn}, Label: "chat", Request: &c.Request, Error: e}, Digest: c.Turn(), Wire: w}
	}
	ok := wireAnswer{Status: 200}
	calls := []Call{
		of(call("one"), 0, ok, nil), of(call("one"), 1, ok, nil),
		of(call("cut"), 2, wireAnswer{Status: 200, Cut: true}, &llm.Error{}), of(call("failed"), 3, wireAnswer{Status: 500}, &llm.Error{}),
	}
	p := newReplay(calls, &Config{Replay: true})
	for turn := range 2 {
		if c := p.Take(call("one")); c == nil || c.Turn.Turn != turn || c.How != howExact {
			t.Fatalf("%+v", c)
		}
	}
	if p.Take(call("one")) != nil || p.Take(call("cut")) != nil {
		t.Error("it was served twice, or what nobody stayed for was")
	}
	if why := p.Diverged(call("other")); !strings.Contains(why, "turn 3") || !strings.Contains(why, `"failed", and is "other"`) {
		t.Error(why)
	}
	if p.Take(call("failed")) == nil || newReplay(calls, &Config{}).Take(call("failed")) != nil {
		t.Error("a failure is for replay only")
	}
	if s := p.status(); *s != (replayStatus{Calls: 3, Found: 3, Missed: 2}) {
		t.Errorf("%+v", s)
	}
}
