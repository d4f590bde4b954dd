package gateway

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/cache"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/llm"
)

var errFull = errors.New("the disk is full")

// TestDeadline checks that calls wait for a limit until their deadline.
func TestDeadline(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	up := script(func(w http.ResponseWriter, r *http.Request) { close(asked); <-release; saying("late")(w, r) })
	l := to(t, up, func(c *Config) { c.Upstreams[0].Limits.Concurrency = 1 })
	var wg sync.WaitGroup
	wg.Go(func() { l.post(chatPath, chatOf("m", "first")).want(t, 200, "late") })
	<-asked
	l.post("/v1/other/chat/completions", chatOf("m", "second"), "X-Parley-Deadline", "30ms").want(t, 504, "no answer began within 30ms")
	close(release)
	wg.Wait()
	calls := l.calls("other")
	if e := calls[0].Error; e == nil || e.Kind != llm.KindTimeout {
		t.Errorf("%+v", calls)
	}
}

// TestFair checks that a session with one call does not wait behind a session with many.
func TestFair(t *testing.T) {
	t.Parallel()
	var queue fair
	var greedy, modest int64
	var places []int64
	for range 1000 {
		places = append(places, queue.position(&greedy))
	}
	queue.admitted(places[0])
	if at := queue.position(&modest); at > places[1] {
		t.Errorf("the modest session's call is at %d, behind %d", at, places[1])
	}
	queue.admitted(places[999])
	if at := queue.position(&modest); at < places[999] {
		t.Errorf("who was away may not come before what is served now: %d", at)
	}
}

// TestBudget checks that no more than the budget is spent.
func TestBudget(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":1,"output":2}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.parley")
	c := Config{Upstreams: []provider.Provider{upstream("openai", simulated(t, sim.Config{MinTokens: 50, MaxTokens: 50}))}, Prices: prices, Budget: llm.Dollars(0.01)}
	answered := 0
	for range 2 { // the second process continues with the rest
		l := startAt(t, c, file)
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			wg.Go(func() {
				for {
					r := l.post(chatPath, chatOf("m", "hello", `,"max_completion_tokens":100`))
					if r.status != 200 {
						r.want(t, 402, "budget")
						return
					}
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		var spent llm.Money
		for _, call := range l.calls("s") {
			if call.Response != nil {
				spent += call.Response.Metadata.Cost
			}
		}
		if spent > c.Budget || spent < c.Budget*9/10 {
			t.Errorf("spent %v of %v", spent, c.Budget)
		}
	}
	if answered == 0 {
		t.Error("nothing was answered")
	}
	l := startAt(t, c, file)
	l.post(chatPath, chatOf("m", "hello", `,"n":3`)).want(t, 400, "max_completion_tokens")
}

// TestCache checks that the same question gets the same answer, and another draw in one session.
func TestCache(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir(), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	up := script(saying("one"), saying("two"), saying("three"))
	l := to(t, up, func(c *Config) { c.Cache = store })
	ask := func(path, more string) string {
		return l.post(path, chatOf("m", "hi", more)).want(t, 200).body
	}
	first := ask("/v1/a/chat/completions", "")
	for _, c := range []struct {
		path, more string
		same       bool
	}{
		{"/v1/b/chat/completions", "", true},
		{"/v1/b/chat/completions", `,"user":"somebody"`, false}, // the second draw of b
		{"/v1/chat/completions", "", true},
		{"/v1/chat/completions", "", true},
		{"/v1/c/chat/completions", `,"temperature":0.1`, false},
	} {
		if same := ask(c.path, c.more) == first; same != c.same {
			t.Errorf("%+v", c)
		}
	}
	if up.count() != 3 {
		t.Errorf("the provider was asked %d times", up.count())
	}
	if calls := l.calls("b"); !calls[0].Response.Metadata.Cached || calls[0].Response.Text != "one" || calls[1].Response.Metadata.Cached {
		t.Errorf("%+v", calls)
	}
}

// TestCachedStream serves a stream again, byte for byte.
func TestCachedStream(t *testing.T) {
	t.Parallel()
	store, err := cache.Open("", cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	up := script(events(append([]string{chunk("fine")}, ends()...)...))
	l := to(t, up, func(c *Config) { c.Cache = store })
	first := l.post("/v1/a/chat/completions", chatOf("m", "hi", streamed)).want(t, 200, "[DONE]")
	second := l.post("/v1/b/chat/completions", chatOf("m", "hi", streamed)).want(t, 200)
	if first.body != second.body || second.header.Get("Content-Type") != "text/event-stream" || up.count() != 1 {
		t.Errorf("%q, %q, asked %d times", first.body, second.body, up.count())
	}
}

// TestSteps checks the answer that tells an agent to stop, in every format.
func TestSteps(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Upstreams: both(simulated(t, sim.Config{})), MaxSteps: 2})
	for _, c := range []struct{ session, path, body, stream string }{
		{"c", "/chat/completions", chatOf("m", "hi"), `"finish_reason":"stop"`},
		{"cs", "/chat/completions", chatOf("m", "hi", streamed), "data: [DONE]"},
		{"r", "/responses", `{"model":"m","input":"hi"}`, `"status":"completed"`},
		{"rs", "/responses", `{"model":"m","input":"hi","stream":true}`, "event: response.completed"},
		{"m", "/messages", messageOf("m", "hi"), `"stop_reason":"end_turn"`},
		{"ms", "/messages", messageOf("m", "hi", streamed), "event: message_stop"},
	} {
		path := "/v1/sessions/" + c.session + c.path
		for range 2 {
			if got := l.post(path, c.body, anthropicVersion()...).want(t, 200); strings.Contains(got.body, "step limit") {
				t.Errorf("%s: reported too early", c.session)
			}
		}
		got := l.post(path, c.body, anthropicVersion()...).want(t, 200, "The step limit of this session is reached", c.stream)
		if got.header.Get("X-Parley-Stop") != "max_steps" {
			t.Errorf("%v", got.header)
		}
		l.post("/v1/sessions/"+c.session, "").want(t, 200, `"llm_step_count":2`, `"truncated":true`, `"truncate_reason":"max_steps"`, `"stop_responses_sent":1`)
		// Another model has its own steps.
		l.post(path, strings.Replace(c.body, `"m"`, `"other"`, 1), anthropicVersion()...).want(t, 200)
	}
}

// TestRoutes finds models by alias, by provider and by format, and falls back.
func TestRoutes(t *testing.T) {
	t.Parallel()
	first, second := script(answering(404, `{"error":{"message":"no such model"}}`), saying("first")), script(saying("second"))
	a, b := upstream("openai", serving(t, first)), upstream("openai", serving(t, second))
	b.Name = "lab"
	l := start(t, Config{
		Upstreams: []provider.Provider{a, b}, Aliases: map[string]string{"small": "lab/tiny"},
		Fallbacks: map[string][]string{"openai/gone": {"lab/spare"}},
	})
	l.post(chatPath, chatOf("gone", "hi")).want(t, 200, "second")
	l.post(chatPath, chatOf("small", "hi")).want(t, 200, "second")
	l.post(chatPath, chatOf("lab/some/model", "hi")).want(t, 200, "second")
	l.post(chatPath, chatOf("org/model", "hi")).want(t, 200, "first")
	l.post(chatPath, `{"messages":[]}`).want(t, 400, "names no model")
	for i, want := range []string{`"model":"spare"`, `"model":"tiny"`, `"model":"some/model"`} {
		if !strings.Contains(second.seen[i], want) {
			t.Errorf("%s: want %s", second.seen[i], want)
		}
	}
	if !strings.Contains(first.seen[1], `"model":"org/model"`) {
		t.Error(first.seen)
	}
	for _, bad := range []Config{
		{}, {Upstreams: []provider.Provider{a, a}},
		{Upstreams: []provider.Provider{a}, Aliases: map[string]string{"x": "nowhere/m"}},
		{Upstreams: []provider.Provider{a}, Fallbacks: map[string][]string{"openai/m": {"m"}}},
	} {
		if _, err := Open(context.Background(), bad); err == nil {
			t.Errorf("%+v was opened", bad)
		}
	}
}
