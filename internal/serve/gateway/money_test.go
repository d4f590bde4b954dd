package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/journal"
	"parley/llm"
)

// hostile serves chat completions with any usage.
func hostile(t *testing.T, usage string) (provider.Provider, *price.Table) {
	t.Helper()
	prices, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":1,"output":2}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	return upstream("openai", serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"a","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]%s}`, usage)
	}))), prices
}

// TestHugeLimits checks that a client cannot pass the budget with token limits that overflow.
func TestHugeLimits(t *testing.T) {
	t.Parallel()
	up, prices := hostile(t, `,"usage":{"prompt_tokens":5,"completion_tokens":1}`)
	l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Budget: llm.Dollars(0.2)})
	for _, rest := range []string{
		`,"max_tokens":9000000000000000000`, `,"max_completion_tokens":9223372036854775807`,
		`,"max_tokens":5000000000000000000,"n":4`, `,"max_tokens":4611686018427387905,"n":4`, `,"n":9000000000000000000`,
		`,"max_tokens":2147483647,"n":2147483647`,
	} {
		l.post(chatPath, chatOf("m", "hello", rest)).want(t, http.StatusBadRequest, "want at most 2147483647")
	}
	for _, rest := range []string{`,"max_tokens":2147483647`, `,"max_tokens":1000000,"n":1000`} {
		l.post(chatPath, chatOf("m", "hello", rest)).want(t, http.StatusPaymentRequired, "budget")
	}
	if spent, reserved := l.g.dispatch.Budget().Spent(); spent != 0 || reserved != 0 {
		t.Errorf("spent %v, %v set aside", spent, reserved)
	}
	l.post(chatPath, chatOf("m", "hello", `,"max_tokens":50`)).want(t, http.StatusOK, "yes")
}

// TestRecordedIsNotAtRisk checks that what a killed gateway may owe is about calls that are not recorded.
func TestRecordedIsNotAtRisk(t *testing.T) {
	t.Parallel()
	up, prices := hostile(t, `,"usage":{"prompt_tokens":5,"completion_tokens":40}`)
	l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Budget: llm.Dollars(0.01)})
	for range 60 {
		l.post(chatPath, chatOf("m", "hello", `,"max_tokens":50`)).want(t, http.StatusOK, "yes")
	}
	var risked llm.Money
	err := l.g.cfg.Journal.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if x, ok := e.(*journal.Exposed); ok {
			risked = max(risked, x.Worst)
		}
		return nil
	})
	if spent, _ := l.g.dispatch.Budget().Spent(); err != nil || risked == 0 || risked > spent/4 {
		t.Errorf("%v was at risk at once, %v spent in all; %v", risked, spent, err)
	}
}

// TestUnpricedMembers checks that with a budget, a call is refused that may cost more than its tokens. Without
// one, or if nothing costs anything, it is sent unchanged.
func TestUnpricedMembers(t *testing.T) {
	t.Parallel()
	up, prices := hostile(t, `,"usage":{"prompt_tokens":5,"completion_tokens":1}`)
	paid := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Budget: llm.Dollars(1)})
	free := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices})
	nothing, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":0,"output":0}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	local := start(t, Config{Upstreams: []provider.Provider{up}, Prices: nothing, Budget: llm.Dollars(1)})
	for member, rest := range map[string]string{
		"service_tier": `,"service_tier":"priority"`,
		"models":       `,"models":["m","dear"]`,
		"tools":        `,"tools":[{"type":"web_search_preview"}]`,
		"audio":        `,"audio":{"voice":"alloy","format":"wav"}`,
		"input_audio":  `,"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`,
	} {
		body := strings.Replace(chatOf("m", "hello", rest), `"messages":[{"role":"user","content":"hello"}],"messages"`, `"messages"`, 1)
		r := paid.post(chatPath, body).want(t, http.StatusBadRequest, "price_unknown", member+": it changes what the call costs", "leave it out, or set no budget")
		if strings.Contains(r.body, "yes") {
			t.Errorf("%s: %s", member, r.body)
		}
		free.post(chatPath, body).want(t, http.StatusOK, "yes")
		local.post(chatPath, body).want(t, http.StatusOK, "yes")
	}
	if spent, reserved := paid.g.dispatch.Budget().Spent(); spent != 0 || reserved != 0 {
		t.Errorf("spent %v, %v set aside", spent, reserved)
	}
	paid.post(chatPath, chatOf("m", "hello", `,"max_tokens":50,"service_tier":"flex","tools":[{"type":"function","function":{"name":"f"}}]`)).want(t, http.StatusOK, "yes")
}

// TestHostileUsage checks that whatever an upstream reports, the spent amount is neither negative nor above
// the budget, and that a call without usage is not free.
func TestHostileUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		usage   string
		status  int
		notices int
	}{
		{`,"usage":{"prompt_tokens":5,"completion_tokens":1000000000000000}`, http.StatusBadGateway, 0},
		{`,"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, http.StatusBadGateway, 0},
		{`,"usage":{"prompt_tokens":-5,"completion_tokens":-5}`, http.StatusBadGateway, 0},
		{`,"usage":{"prompt_tokens":5,"completion_tokens":-1}`, http.StatusBadGateway, 0},
		{`,"usage":{"prompt_tokens":9900000,"completion_tokens":1}`, http.StatusBadGateway, 0},
		{`,"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":9000000}}`, http.StatusBadGateway, 0},
		{`,"usage":null`, http.StatusOK, 1},
		{``, http.StatusOK, 1},
	} {
		up, prices := hostile(t, c.usage)
		var mu sync.Mutex
		var notices []dispatch.Notice
		l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Budget: llm.Dollars(0.002), Notices: func(n dispatch.Notice) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, n)
		}})
		before := llm.Money(0)
		for i := range 20 {
			r := l.post(chatPath, chatOf("m", "hello", `,"max_tokens":50`))
			spent, reserved := l.g.dispatch.Budget().Spent()
			if reserved != 0 || spent > llm.Dollars(0.002) || r.status != http.StatusPaymentRequired && (r.status != c.status || spent <= before) {
				t.Errorf("%q: call %d: status %d, spent %v after %v, %v set aside", c.usage, i, r.status, spent, before, reserved)
			}
			before = spent
		}
		if len(notices) != c.notices {
			t.Errorf("%q: notices %+v", c.usage, notices)
		}
		if page := metricsOf(t, l); !strings.Contains(page, "spent_dollars") || strings.Contains(page, "dollars -") || strings.Contains(page, "} -") {
			t.Errorf("%q: a negative figure in %s", c.usage, page)
		}
	}
}

func metricsOf(t *testing.T, l *lab) string {
	t.Helper()
	resp, err := l.client.Get(l.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAbortedStream checks that a stream that an upstream aborts ends for the client too, and that the gateway
// continues.
func TestAbortedStream(t *testing.T) {
	t.Parallel()
	up := upstream("openai", serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"a","model":"m","choices":[{"index":0,"delta":{"content":"ye"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, `data: {"id":"a","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"abort"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
	})))
	l := start(t, Config{Upstreams: []provider.Provider{up}})
	for range 2 {
		l.post(chatPath, chatOf("m", "hello", `,"stream":true`)).want(t, http.StatusOK, `"ye"`)
	}
}

// TestCutOffStream checks that a stream that is far longer than asked for and does not end properly is
// charged, and that the next call is refused if such an answer does not fit.
func TestCutOffStream(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	piece := strings.Repeat("word ", size/5/64)
	for _, api := range []struct{ name, path, body, event string }{
		{"openai", chatPath, chatOf("m", "hello", `,"stream":true,"max_tokens":10`), `data: {"id":"a","model":"m","choices":[{"index":0,"delta":{"content":"` + piece + `"}}]}`},
		{"openai", "/v1/responses", `{"model":"m","input":"hello","stream":true,"max_output_tokens":10}`, "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","delta":"` + piece + `"}`},
	} {
		up := upstream(api.name, serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 64 {
				fmt.Fprint(w, api.event+"\n\n")
			}
		})))
		_, prices := hostile(t, "")
		l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Budget: llm.Dollars(0.3)})
		l.post(api.path, api.body).want(t, http.StatusOK, "word")
		least := llm.Dollars(2e-6 * size / 8 * 0.99)
		if spent, reserved := l.g.dispatch.Budget().Spent(); spent < least || reserved != 0 {
			t.Errorf("%s: spent %v, want at least %v; %v set aside", api.path, spent, least, reserved)
		}
		l.post(api.path, api.body).want(t, http.StatusPaymentRequired, "longer answers than it was asked for")
	}
}
