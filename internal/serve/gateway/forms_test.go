package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/kit/sse"
	"parley/internal/serve/gateway/format"
)

// TestGeminiList: without alt=sse, a stream of any provider is a list, whose elements are the data of the events, live and from the record.
func TestGeminiList(t *testing.T) {
	t.Parallel()
	url := simulated(t, sim.Config{})
	const path = "/v1beta/models/m:streamGenerateContent"
	for _, p := range []provider.Provider{upstream("openai", url), upstream("gemini", url+"beta")} {
		l := start(t, Config{Upstreams: []provider.Provider{p}})
		list := l.post("/v1/sessions/a"+path, contentsOf("one", geminiTools)).want(t, 200)
		events := l.post("/v1/sessions/b"+path+"?alt=sse", contentsOf("one", geminiTools)).want(t, 200)
		var parts []json.RawMessage
		if err := json.Unmarshal([]byte(list.body), &parts); err != nil || len(parts) == 0 || list.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Fatalf("%s: %v: %s", p.Name, err, list.body)
		}
		n := 0
		for raw := range sse.Split([]byte(events.body)) {
			if e := sse.Parse(raw); e.Data != nil {
				n++
			}
		}
		if n != len(parts) || !strings.Contains(list.body, `"functionCall"`) {
			t.Errorf("%s: %d parts, %d events: %s", p.Name, len(parts), n, list.body)
		}
		again := startAt(t, Config{Replay: true}, l.file)
		if got := again.post("/v1/sessions/a"+path, contentsOf("one", geminiTools)).want(t, 200); got.body != list.body {
			t.Errorf("%s, again: %s", p.Name, got.body)
		}
	}
	failing := to(t, script(events(chunk("so"), `{"error":{"message":"out of luck"}}`)))
	got := failing.post(path, contentsOf("one")).want(t, 200, "out of luck")
	if !json.Valid([]byte(got.body)) {
		t.Errorf("%s", got.body)
	}
	to(t, script(answering(400, `{"error":{"message":"no"}}`))).post(path, contentsOf("one")).want(t, 400, `"message":"no"`)
}

// TestModels lists models in the form of each vendor, at servers of each.
func TestModels(t *testing.T) {
	t.Parallel()
	lists := map[string]string{
		"openai":    `{"object":"list","data":[{"id":"a/b","object":"model"},{"id":"c","max_model_len":5}]}`,
		"anthropic": `{"data":[{"type":"model","id":"a/b"},{"type":"model","id":"c"}],"has_more":true}`,
		"gemini":    `{"models":[{"name":"models/a/b"},{"name":"models/c"}],"nextPageToken":"x"}`,
	}
	clients := []struct {
		dialect, path string
		header        []string
		want          string
	}{
		{"openai", "/v1/models", nil, `{"object":"list","data":[{"id":"a/b","object":"model","created":0,"owned_by":"unknown"},{"id":"c","object":"model","created":0,"owned_by":"unknown"}]}`},
		{"anthropic", "/v1/models", anthropicVersion(), `{"data":[{"type":"model","id":"a/b","display_name":"a/b","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"c","display_name":"c","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"a/b","last_id":"c"}`},
		{"gemini", "/v1/models", []string{"X-Goog-Api-Key", "k"}, `{"models":[{"name":"models/a/b","displayName":"a/b","supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]},{"name":"models/c","displayName":"c","supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}]}`},
		{"gemini", "/v1/sessions/s/v1beta/models", nil, `"models":[{`},
	}
	for dialect, list := range lists {
		up := script(answering(200, list))
		l := start(t, Config{Upstreams: []provider.Provider{upstream(dialect, serving(t, up))}})
		for _, c := range clients {
			want := c.want
			if c.dialect == dialect {
				want = list
			}
			if got := l.post(c.path, "", c.header...).want(t, 200); !strings.Contains(got.body, want) {
				t.Errorf("%s at %s: %s", c.dialect, dialect, got.body)
			}
		}
	}
	one := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, script(answering(200, `{"id":"c"}`))))}})
	one.post("/v1beta/models/c", "").want(t, 200, `{"name":"models/c"`)
	for _, bad := range []string{`[]`, `{}`, `{"data":7}`, `{"data":[{}]}`, `{"data":[7]}`} {
		l := start(t, Config{Upstreams: []provider.Provider{upstream("openai", serving(t, script(answering(200, bad))))}, Settings: limited(0, 0)})
		l.post("/v1beta/models", "").want(t, http.StatusBadGateway, `"INTERNAL"`)
	}
}

// FuzzModels reads what a server says about its models.
func FuzzModels(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a\"b"}]}`))
	f.Add([]byte(`{"models":[{"name":"models/x"}],"data":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, api := range []format.API{format.Models, format.AnthropicModels, format.GeminiModels} {
			if out, ok := api.AppendModels(nil, b); ok && !json.Valid(out) {
				t.Errorf("%s became %s", b, out)
			}
		}
	})
}

// TestCountsHere: where a server does not count tokens, the answer is an estimate, and says so.
func TestCountsHere(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("one two three ", 1000)
	for _, p := range []struct {
		dialect string
		step    http.HandlerFunc
	}{{"openai", answering(500, "{}")}, {"anthropic", answering(404, `{"detail":"Not Found"}`)}, {"gemini", answering(405, "")}} {
		l := start(t, Config{Upstreams: []provider.Provider{upstream(p.dialect, serving(t, script(p.step)))}, Settings: limited(0, 0)})
		for path, body := range map[string][2]string{
			"/v1/messages/count_tokens":         {`{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`, "input_tokens"},
			"/v1beta/models/m:countTokens":      {contentsOf(long), "totalTokens"},
			"/v1/s/v1beta/models/m:countTokens": {`{"generateContentRequest":` + contentsOf(long, `,"model":"models/m"`) + `}`, "totalTokens"},
		} {
			got := l.post(path, body[0]).want(t, 200)
			var n map[string]int
			if err := json.Unmarshal([]byte(got.body), &n); err != nil || n[body[1]] < 2000 || n[body[1]] > 6000 || got.header.Get("X-Parley-Estimated") != "true" {
				t.Errorf("%s at %s: %s", path, p.dialect, got.body)
			}
		}
	}
}
