package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
	l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollars(0.2), 4)})
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
	l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollars(0.01), 4)})
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
	paid := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollars(1), 4)})
	free := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices})
	nothing, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":0,"output":0}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	local := start(t, Config{Upstreams: []provider.Provider{up}, Prices: nothing, Settings: limited(llm.Dollars(1), 4)})
	for member, rest := range map[string]string{
		"service_tier": `,"service_tier":"priority"`,
		"models":       `,"models":["m","dear"]`,
		`tools[0] of type \"web_search_preview\"`: `,"tools":[{"type":"web_search_preview"}]`,
		"audio":       `,"audio":{"voice":"alloy","format":"wav"}`,
		"input_audio": `,"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`,
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
	paid.post(chatPath, chatOf("m", "hello", `,"max_tokens":50,"tools":[{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"f"}]}]`)).want(t, http.StatusOK, "yes")
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
		l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollars(0.002), 4), Events: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Notice != nil {
				notices = append(notices, *e.Notice)
			}
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
		l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollars(0.3), 4)})
		l.post(api.path, api.body).want(t, http.StatusOK, "word")
		least := llm.Dollars(2e-6 * size / 8 * 0.99)
		if spent, reserved := l.g.dispatch.Budget().Spent(); spent < least || reserved != 0 {
			t.Errorf("%s: spent %v, want at least %v; %v set aside", api.path, spent, least, reserved)
		}
		l.post(api.path, api.body).want(t, http.StatusPaymentRequired, "longer answers than it was asked for")
	}
}

// greedy is a provider that reads every request in the way that lets it produce most, and reports that, or any
// usage.
type greedy struct{}

// Headers of a request that say what greedy reports.
const (
	inputHeader  = "X-Test-Input"
	outputHeader = "X-Test-Output"
)

func (greedy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	input, output := readings(r.URL.Path, b)
	if n, err := strconv.Atoi(r.Header.Get(inputHeader)); err == nil {
		input = report(n, input)
	}
	if n, err := strconv.Atoi(r.Header.Get(outputHeader)); err == nil {
		output = report(n, output)
	}
	answering(200, fmt.Sprintf(`{"id":"1","type":"message","role":"assistant","object":"response","status":"completed","model":"m","data":[],"stop_reason":"end_turn",`+
		`"content":[{"type":"text","text":"so"}],"output":[{"type":"message","content":[{"type":"output_text","text":"so"}]}],`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":"so"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"input_tokens":%d,"output_tokens":%d}}`, input, output, input, output))(w, r)
}

// report returns n if a provider could report it.
func report(n, limit int) int {
	const absurd = 9_000_000
	if n > limit && n < absurd {
		return limit
	}
	return n
}

// unlimited is how much a model produces without a limit.
const unlimited = 128_000

// readings returns the largest number of input and output tokens of a request.
func readings(path string, b []byte) (input, output int) {
	var folded struct { // ignoring case, the last one counts
		Messages, Input, System json.RawMessage
		Tokens                  any `json:"max_tokens"`
		Completion              any `json:"max_completion_tokens"`
		Output                  any `json:"max_output_tokens"`
		N                       any
	}
	_ = json.NewDecoder(bytes.NewReader(b)).Decode(&folded)
	exact := map[string]any{}
	_ = json.NewDecoder(bytes.NewReader(b)).Decode(&exact)
	for _, raw := range []json.RawMessage{folded.Messages, folded.Input, folded.System} {
		input += weigh(raw)
	}
	limits, counts := []any{folded.Tokens, exact["max_tokens"]}, []any{}
	switch path {
	case "/v1/chat/completions":
		limits, counts = append(limits, folded.Completion, exact["max_completion_tokens"]), append(counts, folded.N, exact["n"])
	case "/v1/responses":
		limits = []any{folded.Output, exact["max_output_tokens"]}
	}
	limit, n := 0, 1
	for _, v := range limits {
		f, ok := numeric(v)
		if ok && f < 1 {
			f = unlimited
		}
		limit = max(limit, f)
	}
	for _, v := range counts {
		f, _ := numeric(v)
		n = max(n, f)
	}
	if limit == 0 {
		limit = unlimited
	}
	return input, limit * n
}

func numeric(v any) (int, bool) {
	switch v := v.(type) {
	case float64:
		return int(v), true
	case string: // some servers take it
		n, err := strconv.Atoi(v)
		return n, err == nil
	}
	return 0, false
}

// weigh counts the text of messages.
func weigh(raw json.RawMessage) int {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return len(one)
	}
	var list []struct {
		Content json.RawMessage
		Text    string
	}
	if json.Unmarshal(raw, &list) != nil {
		return 0
	}
	n := 0
	for _, m := range list {
		n += len(m.Text) + weigh(m.Content)
	}
	return n
}

// FuzzBudget sends any body to a gateway with a budget, over a greedy provider: the spent amount is never
// negative and never above the budget, and nothing stays reserved.
func FuzzBudget(f *testing.F) {
	const m = `"model":"m","messages":[{"role":"user","content":"hi"}]`
	for _, body := range []string{
		`{` + m + `}`, `{` + m + `,"max_tokens":100}`, `{` + m + `,"max_tokens":9000000000000000000}`, `{` + m + `,"max_tokens":1,"max_tokens":100000}`,
		`{` + m + `,"max_tokens":1,"max_token\u0073":100000}`, `{` + m + `,"max_tokens":1,"Max_Tokens":100000}`, `{` + m + `,"max_tokens":1,"max_completion_tokens":4000}`,
		`{` + m + `,"max_tokens":-1,"max_completion_tokens":1}`, `{` + m + `,"max_tokens":"5000"}`, `{` + m + `,"max_tokens":1000,"n":3}`, `{` + m + `,"max_tokens":3037000500,"n":3037000500}`,
		`{` + m + `,"max_tokens":10,"n":-5}`, `{` + m + `,"max_tokens":1e18}`, `{"model":"m","max_tokens":1,"messages":[{"role":"user","c\u006fntent":"` + strings.Repeat("long ", 3000) + `"}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","Content":"` + strings.Repeat("long ", 3000) + `"}]}`, `{"model":"m","input":"hi","max_output_tokens":50}`,
	} {
		for api := range uint8(4) {
			f.Add([]byte(body), api, int64(0), int64(0), false)
		}
	}
	for _, n := range []int64{-1, 9_900_000, 1e15, 9e18, -9e18, 1 << 31} {
		f.Add([]byte(`{`+m+`,"max_tokens":100}`), uint8(0), n, n, true)
		f.Add([]byte(`{`+m+`,"max_tokens":100}`), uint8(2), int64(5), n, true)
	}
	prices, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":1,"output":2},"anthropic/m":{"input":1,"output":2}}}`), "test")
	if err != nil {
		f.Fatal(err)
	}
	up := httptest.NewServer(greedy{})
	f.Cleanup(up.Close)
	f.Fuzz(func(t *testing.T, body []byte, api uint8, input, output int64, reports bool) {
		g, done := opened(t, Config{Upstreams: both(up.URL + "/v1"), Prices: prices, Settings: limited(llm.Dollars(0.01), 0), Journal: &journal.Memory{}})
		defer done()
		path := []string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"}[api%4]
		for range 3 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
			if reports {
				r.Header.Set(inputHeader, strconv.FormatInt(input, 10))
				r.Header.Set(outputHeader, strconv.FormatInt(output, 10))
			}
			g.handle(httptest.NewRecorder(), r)
			spent, reserved := g.dispatch.Budget().Spent()
			if spent < 0 || spent > g.cfg.Settings.Budget || reserved != 0 {
				t.Fatalf("spent %v of %v, %v set aside: %.300s, reports %v %d %d", spent, g.cfg.Settings.Budget, reserved, body, reports, input, output)
			}
		}
	})
}

// opened opens a gateway without a server. done must follow.
func opened(t *testing.T, c Config) (g *Gateway, done func()) {
	t.Helper()
	c.Begin = Begin{Run: "lab", Tool: "test", Now: time.Now(), Plan: json.RawMessage(`{}`)}
	g, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.ledger.Run(context.WithoutCancel(t.Context())) }()
	return g, func() {
		g.ledger.Close(time.Now())
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = g.closeUpstreams()
	}
}

// TestRoomIsWaitedFor: a call that waits for room in the budget is shown with the reason, and its record has the time.
func TestRoomIsWaitedFor(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":1,"output":20,"context":100000}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	arrived, answer := make(chan struct{}, 2), make(chan struct{})
	url := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"a","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
	}))
	messages := make(chan string, 10)
	l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", url)}, Prices: prices, Settings: limited(2*llm.Dollar, 4), Events: func(e Event) { messages <- e.Text }})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			l.post("/v1/sessions/one/chat/completions", chatOf("m", "hello", `,"max_tokens":64000`)).want(t, http.StatusOK, "yes")
		})
	}
	<-arrived
	const why = "1 call waits for room in the budget: a server that is not known to stop at max_tokens (an answer may have 100,000 tokens) sets aside $2.02"
	if text := <-messages; !strings.Contains(text, why) || !strings.Contains(text, "--max-output-tokens") {
		t.Errorf("told %q", text)
	}
	l.post("/v1/sessions/one", "").want(t, http.StatusOK, why)
	if page := metricsOf(t, l); !strings.Contains(page, "parley_gateway_waiting_for_budget 1\n") || !strings.Contains(page, "parley_gateway_set_aside_dollars 1.28") {
		t.Errorf("%s", page)
	}
	close(answer)
	wg.Wait()
	var waited []time.Duration
	err = l.g.cfg.Journal.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok {
			waited = append(waited, r.Response.Metadata.Waited)
		}
		return nil
	})
	if err != nil || len(waited) != 2 || max(waited[0], waited[1]) == 0 {
		t.Errorf("waited %v; %v", waited, err)
	}
	if page := metricsOf(t, l); !strings.Contains(page, "parley_gateway_waiting_for_budget 0\n") {
		t.Errorf("%s", page)
	}
}

// TestEveryChargeIsMeasured: what attempts may have cost that failed is in the metrics of cost, by model.
func TestEveryChargeIsMeasured(t *testing.T) {
	t.Parallel()
	_, prices := hostile(t, "")
	up := upstream("openai", serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})))
	l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollar, 0)})
	l.post(chatPath, chatOf("m", "hello", `,"max_tokens":50`)).want(t, http.StatusBadGateway)
	spent := l.g.dispatch.Budget().Sums().Spent
	want := fmt.Sprintf("parley_gateway_cost_dollars_total{model=\"openai/m\"} %v\n", spent.Dollars())
	if page := metricsOf(t, l); spent == 0 || !strings.Contains(page, want) {
		t.Errorf("%v spent, no %s in\n%s", spent, want, page)
	}
}
