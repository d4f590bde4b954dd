package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/llm"
)

// refusing serves a refusal to every request, and gives away what it got.
func refusing(t *testing.T) (url string, bodies <-chan string) {
	t.Helper()
	got := make(chan string, 10)
	return serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
		w.WriteHeader(http.StatusTeapot)
	})), got
}

// TestMaxOutput: the gateway's limit on output tokens is what the provider is asked for and what the budget sets aside, in every format and also
// where a call is translated. A call that does not fit is told which of its members sets aside so much, and what to set.
func TestMaxOutput(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"openai/m":{"input":0,"output":20},"anthropic/m":{"input":0,"output":20},"gemini/m":{"input":0,"output":20}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	const message = `"messages":[{"role":"user","content":"hello"}]`
	for _, c := range []struct {
		dialect, path, body, sent, name string
	}{
		{"openai", chatPath, `{"model":"m","max_completion_tokens":64000,` + message + `}`, `{"model":"m","max_completion_tokens":8000,` + message + `}`, "max_completion_tokens"},
		{"openai", "/v1/responses", `{"model":"m","max_output_tokens":64000,"input":"hello"}`, `{"model":"m","max_output_tokens":8000,"input":"hello"}`, "max_output_tokens"},
		{"anthropic", "/v1/messages", `{"model":"m","max_tokens":64000,` + message + `}`, `{"model":"m","max_tokens":8000,` + message + `}`, "max_tokens"},
		{"gemini", "/v1beta/models/m:generateContent", `{"generationConfig":{"maxOutputTokens":64000},"contents":[{"parts":[{"text":"hello"}]}]}`, `{"generationConfig":{"maxOutputTokens":8000},"contents":[{"parts":[{"text":"hello"}]}]}`, "generationConfig.maxOutputTokens"},
		{"anthropic", chatPath, `{"model":"m","max_tokens":64000,` + message + `}`, `"max_tokens":8000`, "max_tokens"},
	} {
		t.Run(c.dialect+c.path, func(t *testing.T) {
			t.Parallel()
			url, bodies := refusing(t)
			up := upstream(c.dialect, url)
			l := start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollar, 0), MaxOutput: 8000})
			l.post(c.path, c.body)
			select {
			case got := <-bodies:
				if got != c.sent && (c.sent[0] == '{' || !strings.Contains(got, c.sent)) {
					t.Errorf("sent %s, want %s", got, c.sent)
				}
			default:
				t.Error("nothing was sent")
			}
			l = start(t, Config{Upstreams: []provider.Provider{up}, Prices: prices, Settings: limited(llm.Dollar, 4)})
			l.post(c.path, c.body).want(t, http.StatusPaymentRequired,
				"$1.00 is left of $1.00 ($0.00 spent), too little for the next call: "+c.name+": 64000 sets aside $1.28; set "+c.name+", or --max-output-tokens of the gateway, to at most 50000, or raise the budget")
		})
	}
}

// TestAliasOutput: a limit of an alias is for the calls that use it, and the lower of two limits counts.
func TestAliasOutput(t *testing.T) {
	t.Parallel()
	url, bodies := refusing(t)
	l := start(t, Config{
		Upstreams: []provider.Provider{upstream("openai", url)}, Settings: limited(0, 0), MaxOutput: 500,
		Aliases: map[string]string{"bold": "openai/m", "long": "openai/m"}, AliasOutput: map[string]int{"bold": 50, "long": 5000},
	})
	for model, want := range map[string]string{"bold": `"max_tokens":50}`, "long": `"max_tokens":500}`, "m": `"max_tokens":500}`} {
		l.post(chatPath, chatOf(model, "hello", `,"max_tokens":64000`))
		if got := <-bodies; !strings.HasSuffix(got, want) {
			t.Errorf("%s: sent %s, want %s", model, got, want)
		}
	}
}
