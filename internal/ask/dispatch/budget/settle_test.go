package budget

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"parley/internal/ask/price"
	"parley/llm"
)

// asked returns a request of 50 bytes.
func asked(maxTokens int) *llm.Request {
	return &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User(strings.Repeat("word ", 10))}, MaxTokens: maxTokens}
}

// TestUsageIsJudged: everything that an honest server may report is believed, and nothing
// impossible.
func TestUsageIsJudged(t *testing.T) {
	t.Parallel()
	p := price.Price{Rates: price.Rates{Input: llm.Dollar, Cached: llm.Dollar, CacheWrite: llm.Dollar, CacheWriteLong: llm.Dollar, Output: 4 * llm.Dollar}, MaxOutput: 1000}
	long := strings.Repeat("word ", 100_000)
	for _, tt := range []struct {
		name  string
		asked int
		text  string
		usage llm.Usage
		want  verdict
	}{
		{"as usual", 50, "yes", llm.Usage{Input: 20, Output: 2}, usageOK},
		{"at the limit", 50, long[:200], llm.Usage{Input: 20, Output: 50}, usageOK},
		{"its end counted", 50, long[:200], llm.Usage{Input: 20, Output: 51}, usageOK},
		{"hidden instructions", 50, "yes", llm.Usage{Input: 20_000, Output: 2}, usageOK},
		{"nearly ten million for a short prompt", 50, "yes", llm.Usage{Input: 9_900_000, Output: 2}, usageImpossible},
		{"more than hidden instructions", 50, "yes", llm.Usage{Input: 25_000, Output: 2}, usageImpossible},
		{"nothing said", 50, "", llm.Usage{Input: 20}, usageOK},
		{"more cached than was read", 50, "yes", llm.Usage{Input: 20, Cached: 5000, Output: 2}, usageImpossible},
		{"cached and written", 50, "yes", llm.Usage{Input: 20, Cached: 20, CacheWrite: 20, Output: 2}, usageOK},
		{"parts of more than was read", 50, "yes", llm.Usage{Input: 15_000, Cached: 15_000, CacheWrite: 15_000, Output: 2}, usageImpossible},
		{"limit ignored", 50, long, llm.Usage{Input: 20, Output: 100_000}, usageLonger},
		{"hidden thoughts", 50, "yes", llm.Usage{Input: 20, Output: 60_000, Reasoning: 59_998}, usageLonger},
		{"no limit", 0, long, llm.Usage{Input: 20, Output: 1_000}, usageOK},
		{"more than the model is said to produce", 0, long, llm.Usage{Input: 20, Output: 100_000}, usageLonger},
		{"many answers without a limit", 0, long, llm.Usage{Input: 20, Output: 2_000_000}, usageLonger},
		{"none", 50, "yes", llm.Usage{}, usageMissing},
		{"none of the prompt", 50, "yes", llm.Usage{Output: 2}, usageMissing},
		{"none of the answer", 50, "yes", llm.Usage{Input: 20}, usageMissing},
		{"1e15 of output", 50, "yes", llm.Usage{Input: 20, Output: 1e15}, usageImpossible},
		{"1e15 of input", 50, "yes", llm.Usage{Input: 1e15, Output: 2}, usageImpossible},
		{"1e15 cached", 50, "yes", llm.Usage{Input: 20, Cached: 1e15, Output: 2}, usageImpossible},
		{"1e15 written", 50, "yes", llm.Usage{Input: 20, CacheWrite: 1e15, Output: 2}, usageImpossible},
		{"1e15 written for long", 50, "yes", llm.Usage{Input: 20, CacheWriteLong: 1e15, Output: 2}, usageImpossible},
		{"1e15 thought", 50, "yes", llm.Usage{Input: 20, Output: 2, Reasoning: 1e15}, usageImpossible},
		{"a million for a word", 50, "yes", llm.Usage{Input: 20, Output: 1_000_000}, usageImpossible},
		{"as much as was asked for", math.MaxInt, "yes", llm.Usage{Input: 20, Output: math.MaxInt}, usageImpossible},
		{"more sound than was read", 50, "yes", llm.Usage{Input: 20, Audio: 21, Output: 2}, usageImpossible},
		{"negative sound", 50, "yes", llm.Usage{Input: 20, Audio: -1, Output: 2}, usageImpossible},
		{"negative input", 50, "yes", llm.Usage{Input: -1, Output: 2}, usageImpossible},
		{"negative output", 50, "yes", llm.Usage{Input: 20, Output: math.MinInt}, usageImpossible},
	} {
		req := asked(tt.asked)
		a := Attempt{Request: req, Price: p, Terms: Terms{Worst: Worst(p, req, false)}}
		resp := &llm.Response{Text: tt.text, Usage: tt.usage}
		if got := a.judge(tt.usage, resp); got != tt.want {
			t.Errorf("%s: verdict %d, want %d", tt.name, got, tt.want)
		}
		c, err := a.Settle(resp, nil)
		if (err != nil) != (tt.want == usageImpossible) || c.total() < 0 || c.total() > a.Worst && tt.want != usageLonger && tt.want != usageOK {
			t.Errorf("%s: charged %v of %v: %v", tt.name, c.total(), a.Worst, err)
		}
		if err != nil && (err.Kind != llm.KindMalformed || !err.Final || c.Uncertain != a.Worst) {
			t.Errorf("%s: %+v, %+v", tt.name, err, c)
		}
	}
}

// TestReferences: a request that refers to something the provider stores or fetches may read more
// than it holds, up to the context, and that is set aside.
func TestReferences(t *testing.T) {
	t.Parallel()
	p := price.Price{Rates: price.Rates{Input: llm.Dollar, Output: 4 * llm.Dollar}}
	known := p
	known.Context = 200_000
	for _, tt := range []struct {
		name    string
		price   price.Price
		refers  bool
		extra   string
		input   int
		want    verdict
		reserve int // input tokens
		width   int
	}{
		{"plain", known, false, "metadata", 150_000, usageImpossible, 0, 0},
		{"a tool that the client runs", known, false, "own tools", 150_000, usageImpossible, 0, 0},
		{"a file", known, true, "", 150_000, usageOK, 200_000, 0},
		{"an earlier answer", known, false, "previous_response_id", 200_000, usageOK, 200_000, 0},
		{"a prompt stored at Gemini", known, false, "cachedContent", 150_000, usageOK, 200_000, 0},
		{"beyond the context", known, true, "", 250_000, usageImpossible, 200_000, 0},
		{"unknown context", p, false, "tools", 9_000_000, usageLonger, 0, 1},
		{"beyond any context", p, true, "", 11_000_000, usageImpossible, 0, 1},
	} {
		req := asked(50)
		req.Refers = tt.refers
		if tt.extra != "" {
			req.Extra = map[string]json.RawMessage{tt.extra: []byte(`[{"type":"web_search_20250305"}]`)}
		}
		if tt.extra == "own tools" {
			req.Extra = map[string]json.RawMessage{"tools": []byte(`[{"type":"bash_20250124"},{"name":"f"},{"type":"custom"}]`)}
		}
		e := &Model{Price: tt.price, OK: true, conduct: &conduct{keepsLimit: true}}
		terms := e.Terms(req, false)
		if least := tt.price.Worst(tt.reserve, 50, false); terms.Worst < least || tt.reserve == 0 && terms.Worst > llm.Dollars(0.01) || terms.maxTrusted != tt.width || terms.mayExceed() != (tt.width > 0) {
			t.Errorf("%s: %+v, want at least %v", tt.name, terms, least)
		}
		c, _ := Attempt{Request: req, Price: tt.price, Terms: terms}.Settle(&llm.Response{Text: "yes", Usage: llm.Usage{Input: tt.input, Output: 2}}, nil)
		if c.verdict != tt.want {
			t.Errorf("%s: verdict %d, want %d", tt.name, c.verdict, tt.want)
		}
		if batched := e.Terms(req, true); tt.width > 0 && batched.Worst < tt.price.Worst(maxContext, 50, true) {
			t.Errorf("%s: %v set aside for a line of a batch", tt.name, batched.Worst)
		}
	}
}
