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
	"testing"
	"time"

	"parley/internal/ask/price"
	"parley/journal"
	"parley/llm"
)

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
		g, done := opened(t, Config{Upstreams: both(up.URL + "/v1"), Prices: prices, Budget: llm.Dollars(0.01), Journal: &journal.Memory{}, Retries: NoRetries})
		defer done()
		path := []string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"}[api%4]
		for range 3 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
			if reports {
				r.Header.Set(inputHeader, strconv.FormatInt(input, 10))
				r.Header.Set(outputHeader, strconv.FormatInt(output, 10))
			}
			g.handle(httptest.NewRecorder(), r, func(*exchange, http.ResponseWriter, *http.Request) bool { return false })
			spent, reserved := g.dispatch.Budget().Spent()
			if spent < 0 || spent > g.cfg.Budget || reserved != 0 {
				t.Fatalf("spent %v of %v, %v set aside: %.300s, reports %v %d %d", spent, g.cfg.Budget, reserved, body, reports, input, output)
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
		g.ledger.Close("", time.Now())
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = g.closeUpstreams()
	}
}
