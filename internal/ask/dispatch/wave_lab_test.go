package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dialect"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/journal"
	"parley/llm"
)

// lab is the simulated provider over HTTP, and what is needed to ask it.
type lab struct {
	*simhttp.Server
	url string
	// meet, if set, serves requests instead of the server.
	meet func(w http.ResponseWriter, r *http.Request, serve http.Handler)

	connected atomic.Int64 // connections that the server has accepted and not closed
	clients   []io.Closer  // of the dispatchers
}

func newLab(t testing.TB, cfg simhttp.Config) *lab {
	t.Helper()
	if cfg.Batch.Latency.IsZero() {
		cfg.Batch.Latency = sim.Fixed(5 * time.Millisecond)
	}
	s, err := simhttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Server: s}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.meet != nil {
			l.meet(w, r, s)
			return
		}
		s.ServeHTTP(w, r)
	}))
	front.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			l.connected.Add(1)
		case http.StateClosed, http.StateHijacked:
			l.connected.Add(-1)
		}
	}
	front.Start()
	t.Cleanup(func() {
		l.hangUp()
		front.Close()
	})
	l.url = front.URL
	return l
}

func (l *lab) hangUp() {
	for _, c := range l.clients {
		_ = c.Close()
	}
	l.clients = nil
}

// ended waits until the lab has served all that a killed process sent: what was in flight may reach it late, and a
// process that looks for its batches waits only 15 ms here for one to appear.
func (l *lab) ended(t testing.TB) {
	t.Helper()
	l.hangUp()
	// Connections are accepted in their order, so none is left to accept that is older than this one.
	one := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := one.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for l.connected.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// quickly returns settings for fast tests.
func quickly() *settings.Settings {
	s := settings.New(settings.Library)
	s.Batch.Route, s.Batch.Poll = batch.Batch, time.Millisecond
	s.Retry.Pause, s.Retry.MaxPause = time.Millisecond, 5*time.Millisecond
	return s
}

func table(t testing.TB) *price.Table {
	t.Helper()
	p, err := price.Read(strings.NewReader(`{"models": {"lab/*": {"input": 1, "output": 4, "batch": 0.5, "max_output": 200}}}`), "prices.json")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// account is the lab's, with the batch API of a dialect or a vendor.
func (l *lab) account(name string) provider.Provider {
	p := provider.Provider{Name: "lab", Dialect: name, BaseURL: l.url + "/v1", Batch: &provider.Batch{}, Stream: "never"}
	switch name {
	case "gemini":
		p.BaseURL = l.url + "/v1beta"
	case "azure":
		p.Dialect, p.BaseURL, p.Batch.API = "openai", l.url+"/openai/v1", name
	}
	return p
}

// dispatcher asks the lab in a dialect.
func (l *lab) dispatcher(t testing.TB, name string, change ...func(*dispatch.Config)) *dispatch.Dispatcher {
	t.Helper()
	p := l.account(name)
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dialect.OpenBatches(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.clients = append(l.clients, m.(io.Closer), d.(io.Closer))
	c := dispatch.Config{
		Lanes: []dispatch.Lane{{Provider: p, Model: m, BatchAPI: d}}, Prices: table(t),
		Settings: quickly(),
	}
	for _, f := range change {
		f(&c)
	}
	out, err := dispatch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// creates reports whether a path creates batches.
func creates(path string) bool {
	return strings.HasSuffix(path, "/batches") || strings.HasSuffix(path, ":batchGenerateContent")
}

// live returns how many calls were made live. Gemini's batches are created at the address of its
// live calls.
func live(st simhttp.Stats) (n int64) {
	for name, calls := range st.Endpoints {
		if strings.HasSuffix(name, "/chat/completions") || strings.HasSuffix(name, "/messages") || strings.HasSuffix(name, "/responses") {
			n += calls
		}
	}
	return n
}

func questions(n int) []*llm.Request {
	out := make([]*llm.Request, n)
	for i := range out {
		out[i] = &llm.Request{Model: "lab/any", MaxTokens: 40, Sample: i, Messages: []llm.Message{llm.User(fmt.Sprint("question ", i))}}
	}
	return out
}

// wave makes a wave; no result may be reported twice.
func wave(t testing.TB, ctx context.Context, d *dispatch.Dispatcher, reqs []*llm.Request) []llm.Result {
	t.Helper()
	out, seen := make([]llm.Result, len(reqs)), make([]int, len(reqs))
	d.Wave(ctx, reqs, func(i int, r llm.Result) {
		out[i] = r
		seen[i]++
	})
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("call %d ended %d times", i, n)
		}
	}
	return out
}

// answers checks that every request has the answer that the provider gives it live.
func answers(t testing.TB, l *lab, name string, reqs []*llm.Request, got []llm.Result) {
	t.Helper()
	want := l.dispatcher(t, name).All(t.Context(), reqs)
	for i := range reqs {
		if got[i].Err != nil || want[i].Err != nil {
			t.Fatalf("call %d: %v, live %v", i, got[i].Err, want[i].Err)
		}
		if got[i].Response.Text != want[i].Response.Text {
			t.Fatalf("call %d was given another's answer", i)
		}
	}
}

// ledger keeps events as a run file would, and can fail.
type ledger struct {
	mu      sync.Mutex
	events  []*journal.Batched
	left    int // events that are kept before it fails; negative: all
	crash   func()
	replies []*llm.Request
}

var errCrash = errors.New("the disk is gone")

func (j *ledger) record(_ context.Context, m *journal.Batched) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.left == 0 {
		if j.crash != nil {
			j.crash()
		}
		return errCrash
	}
	j.left--
	j.events = append(j.events, m)
	return nil
}

func (j *ledger) replied(r *llm.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.replies = append(j.replies, r)
}

func (j *ledger) open() []batch.Open {
	var l batch.Log
	for _, m := range j.events {
		l.Add(m)
	}
	for _, r := range j.replies {
		l.Replied(r)
	}
	return l.Open()
}

func (j *ledger) steps() string {
	var s []string
	for _, m := range j.events {
		s = append(s, string(m.Step))
	}
	return strings.Join(s, " ")
}

func with(j *ledger) func(*dispatch.Config) {
	return func(c *dispatch.Config) { c.Record, c.Batches = j.record, j.open() }
}

func dialects() []string {
	if testing.Short() {
		return []string{"openai", "anthropic"} // batches of files, and without
	}
	return []string{"openai", "responses", "anthropic", "azure", "gemini"}
}

func faults(f sim.Faults) simhttp.Config { return simhttp.Config{Sim: sim.Config{Faults: f}} }
