package gateway

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

const (
	geminiPath   = "/v1beta/models/m:generateContent"
	geminiStream = "/v1beta/models/m:streamGenerateContent?alt=sse"
	geminiTools  = `,"tools":[{"functionDeclarations":[{"name":"look","parametersJsonSchema":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`
	geminiAnswer = `{"candidates":[{"content":{"parts":[{"text":"yes"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1},"modelVersion":"m"}`
)

// contentsOf returns a request in Gemini's format.
func contentsOf(question string, more ...string) string {
	return `{"contents":[{"role":"user","parts":[{"text":"` + question + `"}]}]` + strings.Join(more, "") + `}`
}

// atGemini starts a gateway before a provider of Gemini's format.
func atGemini(t *testing.T, h http.Handler, change ...func(*Config)) *lab {
	t.Helper()
	c := Config{Upstreams: []provider.Provider{upstream("gemini", serving(t, h)+"beta")}, Settings: limited(0, 0)}
	for _, f := range change {
		f(&c)
	}
	return start(t, c)
}

// TestGeminiPasses checks on every method and kind of path that the provider's bytes reach the client, are recorded and are replayed.
func TestGeminiPasses(t *testing.T) {
	t.Parallel()
	s, err := simhttp.New(simhttp.Config{ChunkTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	up := &tee{Handler: s}
	l := atGemini(t, up)
	type call struct{ path, body string }
	program := []call{
		{"/v1/sessions/s/v1beta/models/m:generateContent", contentsOf("one")},
		{"/v1/s/v1beta/models/n:generateContent", contentsOf("one")}, // the model is in the address only
		{"/v1/sessions/s/models/m:streamGenerateContent?alt=sse", contentsOf("two", geminiTools)},
		{"/v1/sessions/s/v1/models/m:countTokens", contentsOf("three")},
		{"/v1/sessions/s/v1beta/models/m:generateContent", `{"contents":[]}`},
	}
	var want []reply
	for i, c := range program {
		got := l.post(c.path, c.body)
		if want = append(want, got); got.body != up.sent() || got.body == "" || (got.status == 400) != (i == 4) {
			t.Errorf("%s: %d %q, want %q", c.path, got.status, got.body, up.sent())
		}
	}
	if want[0].body == want[1].body || !strings.Contains(want[2].body, `"functionCall"`) {
		t.Errorf("%+v", want)
	}
	calls := l.calls("s")
	if len(calls) != 5 {
		t.Fatalf("%d calls", len(calls))
	}
	first, stream := calls[0], calls[2]
	if first.Request.Model != "gemini/m" || first.Response.Text == "" || first.Response.Usage.Output == 0 || first.Label != string(format.Gemini) || len(stream.Response.ToolCalls) == 0 || stream.Response.Finish != llm.FinishTools {
		t.Errorf("%+v\n%+v", first, stream.Response)
	}
	again := startAt(t, Config{Replay: true}, l.file)
	for i, c := range program {
		if got := again.post(c.path, c.body); got.status != want[i].status || got.body != want[i].body {
			t.Errorf("again, %s: %d %q, want %d %q", c.path, got.status, got.body, want[i].status, want[i].body)
		}
	}
}

// TestGeminiRoutes checks that the address that is asked has the model's own name, that a body is sent as it came, and what is refused.
func TestGeminiRoutes(t *testing.T) {
	t.Parallel()
	var asked []string
	up := script(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI) // one call at a time
		answering(200, geminiAnswer)(w, r)
	})
	l := atGemini(t, up, func(c *Config) { c.Aliases = map[string]string{"small": "gemini/tiny"} })
	body := `{"contents" : [{"parts":[{"text":"hi"}]}],"safetySettings":[], "x":{"é":1}}`
	for _, path := range []string{"/v1beta/models/small:generateContent", "/v1beta/models/gemini/m:generateContent", "/v1beta/models/qwen3:8b:generateContent", "/v1beta/models/a%2Fb:countTokens"} {
		l.post(path, body).want(t, 200, "yes")
	}
	if got := strings.Join(asked, " "); got != "/v1beta/models/tiny:generateContent /v1beta/models/m:generateContent /v1beta/models/qwen3:8b:generateContent /v1beta/models/a%2Fb:countTokens" {
		t.Errorf("asked for %s", got)
	}
	for _, seen := range up.seen {
		if seen != body {
			t.Errorf("%s was sent", seen)
		}
	}
	l.post(geminiPath, `{"contents":[],"generation_config":{}}`).want(t, 400, `write it \"generationConfig\"`, `"reason":"body_invalid"`)
	l.post("/v1beta/models/%2e%2e%2fx:generateContent", body).want(t, 404)
	if up.count() != 4 {
		t.Errorf("%d calls", up.count())
	}
}

// TestGeminiStream checks that the end of a stream is held until the call is recorded, and that a stream without an end fails.
func TestGeminiStream(t *testing.T) {
	t.Parallel()
	const piece = `{"candidates":[{"content":{"parts":[{"text":"so"}]}}]}`
	l := atGemini(t, script(events(piece, geminiAnswer), events(piece), events(piece, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`)))
	if got := l.post(geminiStream, contentsOf("hi")).want(t, 200); got.body != "data: "+piece+"\n\ndata: "+geminiAnswer+"\n\n" {
		t.Error(got.body)
	}
	l.post(geminiStream, contentsOf("hi")).want(t, 200, "so", `"error":{"code":502`, "without a finishReason")
	l.post(geminiStream, contentsOf("hi")).want(t, 200, "so", `"message":"overloaded"`)
	calls := l.calls(defaultSession)
	if len(calls) != 3 || calls[0].Response.Text != "soyes" || calls[1].Error == nil || calls[2].Error == nil {
		t.Errorf("%+v", calls)
	}
}

// TestGeminiKeys checks that a key is taken from either place, and that none is in a record, an answer or an address that is asked.
func TestGeminiKeys(t *testing.T) {
	t.Parallel()
	var asked []string
	echo := func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		answering(200, strings.Replace(geminiAnswer, "yes", "It is "+r.Header.Get("X-Goog-Api-Key"), 1))(w, r)
	}
	up := script(echo)
	l := atGemini(t, up)
	l.post(geminiPath+"?key=key-of-alice", contentsOf("hi")).want(t, 200, "It is [key]")
	l.post(geminiPath, contentsOf("hi"), "X-Goog-Api-Key", "key-of-alice").want(t, 200, "It is [key]")
	l.post(geminiPath, contentsOf("hi"), "Authorization", "Bearer key-of-alice").want(t, 200, "It is [key]")
	l.post("/v1/sessions/default?key=key-of-bob", "").want(t, 404, "session_unknown")
	l.post("/v1/sessions/default?key=key-of-alice", "").want(t, 200, `"requests":3`)
	for i, h := range up.heads {
		if h.Get("X-Goog-Api-Key") != "key-of-alice" || h.Get("Authorization") != "" || strings.Contains(asked[i], "key") {
			t.Errorf("%s %v", asked[i], h)
		}
	}
	l.calls(defaultSession)
	inFiles(t, filepath.Dir(l.file), "key-of-")

	up = script(echo)
	l = atGemini(t, up, func(c *Config) { c.Keys = []string{"key-of-alice"} })
	l.post(geminiPath+"?key=key-of-alice", contentsOf("hi")).want(t, 200, "It is ")
	if got := l.post(geminiPath+"?key=key-of-bob", contentsOf("hi")).want(t, 401, `"status":"UNAUTHENTICATED"`); strings.Contains(got.body, "key-of") {
		t.Error(got.body)
	}
	if h := up.heads[0]; h.Get("X-Goog-Api-Key") != "" || up.count() != 1 {
		t.Errorf("%v", h)
	}
}

// TestGeminiTranslates asks providers of other formats: the client reads the same answer in its own.
func TestGeminiTranslates(t *testing.T) {
	t.Parallel()
	url := simulated(t, sim.Config{})
	for _, dialect := range []string{"openai", "anthropic"} {
		l := start(t, Config{Upstreams: []provider.Provider{upstream(dialect, url)}})
		for _, more := range []string{"", geminiTools} {
			for _, path := range []string{geminiPath, geminiStream} {
				got := l.post(path, contentsOf("hello", more)).want(t, 200)
				r := readAnswer(t, format.Gemini, path == geminiStream, got.body)
				if (more != "") != (len(r.ToolCalls) > 0) || (r.Text == "") == (more == "") || r.Usage.Input == 0 || r.Usage.Output == 0 || r.Model != "m" {
					t.Errorf("%s %s%s: %+v\n%s", dialect, path, more, r, got.body)
				}
			}
		}
	}
	up := script(answering(200, `{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}`))
	l := start(t, Config{Upstreams: []provider.Provider{upstream("anthropic", serving(t, up))}})
	got := l.post(geminiPath, `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"safetySettings":[],"generationConfig":{"maxOutputTokens":50,"stopSequences":["END"],"mediaResolution":"HIGH"},"contents":[
		{"role":"user","parts":[{"text":"See:"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
		{"role":"model","parts":[{"text":"Hm.","thought":true},{"functionCall":{"name":"look","args":{"at":"it"}},"thoughtSignature":"SIG"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"A cat."}}}]}]`+geminiTools+`}`, "X-Goog-Api-Key", "key-of-google").want(t, 200, `"text":"Yes."`, `"finishReason":"STOP"`)
	if d := got.header.Get("X-Parley-Dropped"); d != "mediaResolution,safetySettings" {
		t.Errorf("dropped %q", d)
	}
	for _, want := range []string{`"text":"Be brief."`, `"stop_sequences":["END"]`, `"max_tokens":50`, `"media_type":"image/png","data":"AAAA"`, `"id":"call-1-0","name":"look","input":{"at":"it"}`, `"tool_use_id":"call-1-0"`, `"text":"A cat."`, `"tool_choice":{"type":"any"}`} {
		if !strings.Contains(up.seen[0], want) {
			t.Errorf("want %s in %s", want, up.seen[0])
		}
	}
	if strings.Contains(up.seen[0], "SIG") || strings.Contains(up.seen[0], "Hm.") || up.heads[0].Get("X-Goog-Api-Key") != "" {
		t.Errorf("%s %v", up.seen[0], up.heads[0])
	}
	l.post(geminiPath, contentsOf("hi", `,"tools":[{"googleSearch":{}}]`)).want(t, 400, "tool googleSearch", `"status":"INVALID_ARGUMENT"`)
}

// TestGeminiBudget checks that a budget is kept, and that what changes the price of a call is refused.
func TestGeminiBudget(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"gemini/m":{"input":1,"output":2}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	l := atGemini(t, script(answering(200, geminiAnswer)), func(c *Config) { c.Prices, c.Settings = prices, limited(llm.Dollars(0.2), 4) })
	limit := func(n string) string { return `,"generationConfig":{"maxOutputTokens":50` + n + `}` }
	l.post(geminiPath, contentsOf("hi", limit(""))).want(t, 200, "yes")
	l.post(geminiPath, contentsOf("hi", limit(`,"candidateCount":1000000`))).want(t, 402, `"code":402`, `"reason":"budget"`)
	for _, more := range []string{`,"tools":[{"googleSearch":{}}]`, `,"serviceTier":"priority"`, limit(`,"responseModalities":["IMAGE"]`)} {
		l.post(geminiPath, contentsOf("hi", more)).want(t, 400, "price_unknown")
	}
	if spent, _ := l.g.dispatch.Budget().Spent(); spent <= 0 {
		t.Errorf("spent %v", spent)
	}
}
