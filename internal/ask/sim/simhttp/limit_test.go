package simhttp

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/sim"
)

func limited(l sim.Limits) Config { return Config{Sim: sim.Config{Limits: l}} }

func TestOpenAILimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, limited(sim.Limits{RPM: 2, TPM: 10_000}))
		a := call(t, s, http.MethodPost, chatPath, with(chatBody, `"max_tokens":6000`))
		for name, want := range map[string]string{
			"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "30s",
			"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "4000", "x-ratelimit-reset-tokens": "36s",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		// max_tokens counts, not the output.
		a = call(t, s, http.MethodPost, chatPath, with(chatBody, `"max_tokens":6000`))
		if a.status != 429 || a.at(t, "error.type") != "tokens" || a.at(t, "error.code") != "rate_limit_exceeded" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if a.header.Get("Retry-After") != "12" || a.header.Get("Retry-After-Ms") != "12000" || !strings.Contains(string(a.body), "try again in 12s") {
			t.Errorf("%v %s", a.header, a.body)
		}
		time.Sleep(12 * time.Second)
		if a := call(t, s, http.MethodPost, chatPath, with(chatBody, `"max_tokens":6000`)); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := call(t, s, http.MethodPost, chatPath, chatBody); a.status != 429 || a.at(t, "error.type") != "requests" {
			t.Errorf("%d %s", a.status, a.body)
		}
		a = call(t, s, http.MethodPost, chatPath, with(chatBody, `"max_tokens":60000`))
		if a.status != 429 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if st := s.Stats(); st.RateLimited != 3 || st.OK != 2 || st.Requests != 5 || st.Errors["429"] != 3 {
			t.Errorf("%+v", st)
		}
	})
}

func TestNoLimitHeaders(t *testing.T) {
	t.Parallel()
	cfg := limited(sim.Limits{RPM: 1, ITPM: 50_000})
	cfg.NoLimitHeaders = true
	s := newServer(t, cfg)
	for path, body := range map[string]string{chatPath: chatBody, messagesPath: messagesBody} {
		for _, want := range []int{200, 429} {
			a := call(t, s, http.MethodPost, path, body)
			if a.status != want || want == 429 && a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %d, want %d", path, a.status, want)
			}
			for name := range a.header {
				if strings.Contains(strings.ToLower(name), "ratelimit") {
					t.Errorf("%s has %s", path, name)
				}
			}
		}
	}
}

func TestAnthropicLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, limited(sim.Limits{RPM: 100, ITPM: 50_000, OTPM: 100}))
		a := call(t, s, http.MethodPost, messagesPath, with(messagesBody, `"metadata":{}`))
		for name, want := range map[string]string{
			"anthropic-ratelimit-requests-limit": "100", "anthropic-ratelimit-requests-remaining": "99",
			"anthropic-ratelimit-input-tokens-limit": "50000", "anthropic-ratelimit-input-tokens-remaining": "50000",
			"anthropic-ratelimit-output-tokens-limit": "100", "anthropic-ratelimit-tokens-limit": "50100",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if _, err := time.Parse(time.RFC3339, a.header.Get("anthropic-ratelimit-requests-reset")); err != nil {
			t.Error(err)
		}
		// Output counts when it is complete: requests are admitted until the bucket is empty.
		for range 30 {
			if a = call(t, s, http.MethodPost, messagesPath, messagesBody); a.status != 200 {
				break
			}
		}
		if a.status != 429 || a.at(t, "error.type") != "rate_limit_error" || !strings.Contains(string(a.body), "output tokens") || a.header.Get("Retry-After") == "" {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if a.header.Get("Retry-After-Ms") != "" || a.at(t, "request_id") == nil {
			t.Errorf("%v %s", a.header, a.body)
		}
		time.Sleep(5 * time.Minute)
		if a := call(t, s, http.MethodPost, messagesPath, messagesBody); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := limited(sim.Limits{Concurrency: 2})
		cfg.Sim.Latency = sim.Fixed(time.Second)
		s := newServer(t, cfg)
		start := time.Now()
		refused := 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				a := call(t, s, http.MethodPost, chatPath, strings.Replace(chatBody, "river", fmt.Sprint(i), 1))
				mu.Lock()
				defer mu.Unlock()
				if a.status == 429 {
					refused++
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		if refused != 4 || took != time.Second {
			t.Errorf("%d refused in %v", refused, took)
		}
	})
}

func TestPromptCacheOverHTTP(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	long := strings.Repeat("a long story about harbours, ", 400)
	chat := `{"model":"m","messages":[{"role":"system","content":"` + long + `"},{"role":"user","content":"%s"}]}`
	call(t, s, http.MethodPost, chatPath, fmt.Sprintf(chat, "one"))
	a := call(t, s, http.MethodPost, chatPath, fmt.Sprintf(chat, "two"))
	if n := int(a.at(t, "usage.prompt_tokens_details.cached_tokens").(float64)); n < 1024 || n%128 != 0 {
		t.Errorf("%s", a.body)
	}
}
