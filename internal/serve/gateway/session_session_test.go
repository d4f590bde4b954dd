package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
)

// running opens sessions over a journal; done ends them.
func running(t *testing.T, c sessionConfig) (all *sessionSet, done func()) {
	t.Helper()
	l, found, err := openGatewayLedger(t.Context(), c.Journal, Begin{Run: "r", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	all = newSession(c, l, found)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(context.WithoutCancel(ctx)) })
	wg.Go(func() { all.Sweep(ctx) })
	return all, func() { cancel(); l.Close("over", time.Now()); wg.Wait() }
}

// TestIdle checks that only idle sessions are closed.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, done := running(t, sessionConfig{Journal: &journal.Memory{}, Idle: time.Minute})
		defer done()
		for _, id := range []string{"idle", "busy", "late", sessionDefault} {
			s, err := all.Find(t.Context(), Name{ID: id}, true)
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
		late, _ := all.Find(t.Context(), Name{ID: "late"}, false)
		turn, err := late.Enter(func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		all.Leave(late, turn)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		for id, want := range map[string]State{"idle": Closed, "busy": sessionOpen, "late": sessionOpen, sessionDefault: sessionOpen} {
			s, err := all.Find(t.Context(), Name{ID: id}, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Status(); got.Status != want {
				t.Errorf("%s is %s, want %s", id, got.Status, want)
			}
			_, err = s.Enter(func(error) {})
			if _, closed := errors.AsType[closedError](err); closed != (want == Closed) || closed && !strings.Contains(err.Error(), "idle for 1m0s") {
				t.Errorf("%s: %v", id, err)
			}
		}
		if open, n := all.Counts(); open != 3 || n != 4 {
			t.Errorf("%d of %d are open", open, n)
		}
		busy, _ := all.Find(t.Context(), Name{ID: "busy"}, false)
		all.Leave(busy, 0)
	})
}

// TestIdleProgram checks that the session of an earlier program of the name is closed too.
func TestIdleProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, done := running(t, sessionConfig{Journal: &journal.Memory{}, Idle: time.Minute})
		defer done()
		chain := []*Session{nil, nil, nil}
		var err error
		if chain[0], err = all.Find(t.Context(), Name{ID: "x"}, true); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if chain[i+1], err = all.renew(chain[i]); err != nil {
				t.Fatal(err)
			}
			all.replace(chain[i], chain[i+1])
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for i, s := range chain {
			if got := s.Status().Status; got != Closed {
				t.Errorf("session %d is %s", i, got)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if chain[2].before != nil {
			t.Error("sessions that are closed are kept")
		}
	})
}

// TestRevive restores a session of an earlier process.
func TestRevive(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	all, done := running(t, sessionConfig{Journal: j, MaxSteps: 2})
	s, err := all.Find(t.Context(), Name{ID: "s"}, true)
	if err != nil {
		t.Fatal(err)
	}
	place, err := s.Enter(func(error) {})
	turn := s.Turn()
	if err != nil || turn != 0 || s.Spent("lab/m") {
		t.Fatal(turn, err)
	}
	call := &Call{Episode: s.Episode, Turn: turn, Request: &llm.Request{Model: "lab/m"}, Response: &llm.Response{Usage: llm.Usage{Input: 3}}}
	if err := all.ledger.Keep(call); err != nil {
		t.Fatal(err)
	}
	s.Answered(call)
	all.Leave(s, place)
	before := s.Status()
	done()

	all, done = running(t, sessionConfig{Journal: j, MaxSteps: 2})
	defer done()
	if s, err = all.Find(t.Context(), Name{ID: "s"}, false); err != nil {
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
	if !s.Spent("lab/m") || s.Spent("lab/other") {
		t.Error("two steps are two steps")
	}
	if _, err := all.Find(t.Context(), Name{ID: "none"}, false); !errors.Is(err, errUnknown) {
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
		c, err := format.Decode(format.Chat, b)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	of := func(c *format.Call, turn int, w Wire, e *llm.Error) Call {
		return Call{Turn: turn, Label: "chat", Digest: c.Turn(), Request: &c.Request, Wire: w, Error: e}
	}
	ok := Wire{Status: 200}
	calls := []Call{
		of(call("one"), 0, ok, nil), of(call("one"), 1, ok, nil),
		of(call("cut"), 2, Wire{Status: 200, Cut: true}, &llm.Error{}), of(call("failed"), 3, Wire{Status: 500}, &llm.Error{}),
	}
	p := newPast(calls, &sessionConfig{Replay: true})
	for turn := range 2 {
		if c := p.Take(call("one")); c == nil || c.Turn != turn || c.How != Exact {
			t.Fatalf("%+v", c)
		}
	}
	if p.Take(call("one")) != nil || p.Take(call("cut")) != nil {
		t.Error("it was served twice, or what nobody stayed for was")
	}
	if why := p.Diverged(call("other")); !strings.Contains(why, "turn 3") || !strings.Contains(why, `"failed", and is "other"`) {
		t.Error(why)
	}
	if p.Take(call("failed")) == nil || newPast(calls, &sessionConfig{}).Take(call("failed")) != nil {
		t.Error("a failure is for replay only")
	}
	if s := p.status(); *s != (Record{Calls: 3, Found: 3, Missed: 2}) {
		t.Errorf("%+v", s)
	}
}
