package gateway

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/cache"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/kit/sse"
	"parley/llm"
)

// raw sends bytes unchanged and returns the connection and a reader of the answers.
func (l *lab) raw(request string) (net.Conn, *bufio.Reader) {
	l.t.Helper()
	addr := strings.TrimPrefix(l.url, "http://")
	request = strings.Replace(request, "Host: x\r\n", "Host: "+addr+"\r\n", 1)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		l.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

func statusOfRaw(t *testing.T, in *bufio.Reader) int {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// TestTwoMeanings checks that a body that a provider could read differently is refused.
func TestTwoMeanings(t *testing.T) {
	t.Parallel()
	up := script(saying("fine"))
	l := to(t, up, func(c *Config) { c.Settings = limited(llm.Dollars(1), 4) })
	const m = `,"messages":[{"role":"user","content":"hi"}]}`
	for body, words := range map[string]string{
		`{"model":"m","max_tokens":1,"max_tokens":100000` + m:      "given twice",
		`{"model":"m","max_tokens":1,"max_token\u0073":100000` + m: "escaped",
		`{"model":"m","max_tokens":1,"Max_Tokens":100000` + m:      "some servers take it for that",
		`{"model":"m","max_tokens":9000000000000000000` + m:        "want at most",
		`{"model":"m","max_tokens":2000000000,"n":1000` + m:        "tokens in all",
		`{"model":"m","n":-9223372036854775808` + m:                "want at most",
		`{"model":"m"` + m + `{"model":"n"` + m:                    "more after the value",
		"{\"model\":\"m\xff\"" + m:                                 "not UTF-8",
	} {
		l.post(chatPath, body).want(t, 400, "body_invalid", words)
	}
	if up.count() != 0 {
		t.Errorf("the provider was asked %d times", up.count())
	}
}

// TestCacheIsNotShared checks that an answer that one key paid for goes only to that key, and that servers do
// not share answers.
func TestCacheIsNotShared(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	words := func(w http.ResponseWriter, r *http.Request) {
		saying("for "+r.Header.Get("Authorization")+r.Header.Get("Api-Key"))(w, r)
	}
	cached := func(c *Config) { c.Cache = store }
	up := script(words)
	l := to(t, up, cached)
	for _, key := range []string{"Bearer key-of-alice", "Bearer key-of-bob", ""} {
		l.post("/v1/chat/completions", chatOf("m", "hi"), "Authorization", key).want(t, 200, "for ")
	}
	l.post("/v1/chat/completions", chatOf("m", "hi"), "Api-Key", "azure").want(t, 200, "for azure")
	if up.count() != 4 {
		t.Errorf("asked %d times, want once a key", up.count())
	}
	if r := l.post("/v1/chat/completions", chatOf("m", "hi"), "X-Api-Key", "key-of-alice"); r.header.Get("X-Parley-Cached") != "true" || up.count() != 4 {
		t.Errorf("%v: her own answer was not found", r.header)
	}
	// Equal members do not cancel out, so no two bodies share a digest.
	other := script(saying("other"))
	there := to(t, other, cached)
	there.post("/v1/chat/completions", chatOf("m", "hi")).want(t, 200, "other")
	l.post("/v1/chat/completions", chatOf("m", "hi", `,"a":1,"b":1`)).want(t, 200, "for ")
	if other.count() != 1 || up.count() != 5 {
		t.Errorf("asked %d and %d times", other.count(), up.count())
	}
}

// TestFallbackIsNotCached checks that the answer of a fallback is not cached for the first model.
func TestFallbackIsNotCached(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	first, second := script(answering(404, `{"error":{"message":"no such model"}}`), saying("first")), script(saying("second"))
	a, b := upstream("openai", serving(t, first)), upstream("openai", serving(t, second))
	b.Name = "lab"
	l := start(t, Config{Upstreams: []provider.Provider{a, b}, Cache: store, Fallbacks: map[string][]string{"openai/m": {"lab/m"}}})
	for _, want := range []string{"second", "first", "first"} {
		l.post("/v1/chat/completions", chatOf("m", "hi")).want(t, 200, want)
	}
	if first.count() != 2 || second.count() != 1 {
		t.Errorf("asked %d and %d times", first.count(), second.count())
	}
}

// TestSessionsBelongToKeys checks that a key sees and ends only its own sessions, also after a restart.
func TestSessionsBelongToKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	up := script(saying("one"), saying("two"), saying("three"))
	c := Config{Upstreams: []provider.Provider{upstream("openai", serving(t, up))}, Keys: []string{"key-of-alice", "key-of-bob"}}
	l := startAt(t, c, file)
	alice, bob := []string{"Authorization", "Bearer key-of-alice"}, []string{"X-Api-Key", "key-of-bob"}
	l.post(chatPath, chatOf("m", "hi"), alice...).want(t, 200, "one")
	l.post("/v1/sessions/s", "", bob...).want(t, 404, "session_unknown", "belongs to the key")
	l.post("/v1/sessions/s/close", `{"completion_mode":"abort"}`, bob...).want(t, 404, "session_unknown")
	l.post("/v1/sessions/default", "", bob...).want(t, 404)
	l.post("/v1/sessions/s", "", alice...).want(t, 200, `"status":"open"`, `"requests":1`)
	l.post(chatPath, chatOf("m", "hi"), bob...).want(t, 200, "two") // his own, of the same name
	l.post("/v1/sessions/s/close", `{"reason":"his"}`, bob...).want(t, 200, `"requests":1`)
	l.post("/v1/sessions/s", "", alice...).want(t, 200, `"status":"open"`)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	c.Resume = true
	again := startAt(t, c, file)
	again.post("/v1/sessions/s", "", alice...).want(t, 200, `"status":"open"`, `"episode":0`)
	again.post("/v1/sessions/s", "", bob...).want(t, 200, `"close_reason":"his"`, `"episode":1`)
	if r := again.post(chatPath, chatOf("m", "hi"), alice...).want(t, 200, "one"); r.header.Get("X-Parley-Replayed") != "exact" {
		t.Errorf("%v: her own record was not found", r.header)
	}
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(b), "key-of-") {
		t.Errorf("a key is in the run file, or %v", err)
	}
	// A record that its owner replays needs no key.
	replay := startAt(t, Config{Replay: true}, file)
	replay.post(chatPath, chatOf("m", "hi")).want(t, 200, "one")
	replay.post(chatPath, chatOf("m", "hi"), bob...).want(t, 200, "two")
}

// echoes are ways in which a provider returns a key.
func echoes(key string) map[string]http.HandlerFunc {
	var escaped strings.Builder
	for _, c := range key {
		fmt.Fprintf(&escaped, `\u%04x`, c)
	}
	pieces := make([]string, 0, len(key)+3)
	for _, c := range key {
		pieces = append(pieces, chunk(string(c)))
	}
	return map[string]http.HandlerFunc{
		"header":  answering(200, `{"choices":[{"message":{"content":"so"},"finish_reason":"stop"}]}`, "X-Echo", "Bearer "+key, "X-Request-Id", key),
		"body":    saying("It is " + key + "."),
		"escaped": saying("It is " + escaped.String() + "."),
		"base64":  saying("It is " + base64.StdEncoding.EncodeToString([]byte("Bearer "+key)) + "."),
		"error":   answering(400, `{"error":{"message":"`+strings.Repeat("x", 990)+key+`","code":"`+key+`"}}`, "X-Request-Id", key),
		"page":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html><title>"+key+"</title>") },
		"stream":  events(append([]string{chunk("It is " + key)}, ends()...)...),
		"pieces":  events(append(pieces, ends()...)...),
		"cut off": events(pieces...),
	}
}

// TestEchoedKey checks that a key that a provider returns reaches neither a client nor the run file nor the
// cache.
func TestEchoedKey(t *testing.T) {
	const key = "sk-upstream-0123456789-secret"
	t.Setenv("GATEWAY_ECHO_KEY", key)
	for _, passed := range []bool{false, true} {
		for name, step := range echoes(key) {
			folder := t.TempDir()
			store, err := cache.Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			p := upstream("openai", serving(t, script(step)))
			header := []string{}
			if passed {
				header = append(header, "Authorization", "Bearer "+key)
			} else {
				p.KeyEnv = "GATEWAY_ECHO_KEY"
			}
			l := start(t, Config{Upstreams: []provider.Provider{p}, Cache: store, Settings: limited(0, 0)})
			sent := ""
			for _, body := range []string{chatOf("m", "hi"), chatOf("m", "hi", streamed), messageOf("m", "hi"), messageOf("m", "hi", streamed)} {
				path := chatPath
				if strings.Contains(body, "max_tokens") {
					path = "/v1/sessions/s/messages"
				}
				r := l.post(path, body, header...)
				sent += fmt.Sprint(r.header) + r.body + streamWords(r.body)
			}
			r := l.post("/v1/sessions/s/models", "", header...)
			sent += fmt.Sprint(r.header) + r.body
			l.calls("s")
			store.Close()
			for _, secret := range []string{key, "0123456789-secret", base64.StdEncoding.EncodeToString([]byte("Bearer " + key))[10:30], `\u0073\u006b\u002d\u0075`} {
				if strings.Contains(sent, secret) {
					t.Errorf("%s, passed on %v: %s was sent: %s", name, passed, secret, sent)
				}
				for _, at := range []string{filepath.Dir(l.file), folder} {
					inFiles(t, at, secret)
				}
			}
		}
	}
}

// streamWords joins the words of a streamed chat completion.
func streamWords(stream string) (words string) {
	for _, part := range strings.Split(stream, `"content":"`)[1:] {
		word, _, _ := strings.Cut(part, `"`)
		words += word
	}
	return words
}

// inFiles searches every file below a folder for a secret.
func inFiles(t *testing.T, folder, secret string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), secret) {
			t.Errorf("%s is in %s", secret, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPaths checks that what follows /models is sent unchanged, unless it leads elsewhere.
func TestPaths(t *testing.T) {
	t.Parallel()
	var asked []string
	l := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI) // one call at a time
		answering(200, `{}`)(w, r)
	}))
	for _, path := range []string{"/v1/models/%3Fa=1", "/v1/models/org%2Fmodel", "/v1/models/a%23b", "/v1/sessions/s%2Ft/models/m"} {
		l.post(path, "").want(t, 200)
	}
	if got := strings.Join(asked, " "); got != "/v1/models/%3Fa=1 /v1/models/org%2Fmodel /v1/models/a%23b /v1/models/m" {
		t.Errorf("asked for %s", got)
	}
	for _, path := range []string{"/v1/models/..%2f..%2fadmin", "/v1/models/%2e%2e/admin", "/v1/models/%252e%252e/admin", "/v1/models/a%0d%0aX-Evil:1", "/v1/models/a%00", "/v1/models/a%5cb", "/v1/modelsx"} {
		l.post(path, "").want(t, 404)
	}
	l.post("/v1/sessions/a%0d%0ab/chat/completions", chatOf("m", "hi")).want(t, 400, "session_invalid")
	l.post("/v1/sessions/a%e2%80%aeb/chat/completions", chatOf("m", "hi")).want(t, 400, "session_invalid")
}

// TestSmuggling sends requests that two servers could split differently.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	up := script(saying("fine"))
	l := to(t, up)
	body := chatOf("m", "hi")
	head := "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\n"
	for name, request := range map[string]string{
		"two lengths":      head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body,
		"odd encoding":     head + "Transfer-Encoding: xchunked\r\n\r\n" + body,
		"two encodings":    head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n" + body,
		"bad length":       head + "Content-Length: +5\r\n\r\n" + body,
		"space in name":    head + "Content-Length : 5\r\n\r\n" + body,
		"control in value": head + "X-Session-Id: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
		"large header":     head + "X-Large: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
	} {
		_, in := l.raw(request)
		if status := statusOfRaw(t, in); status < 400 || status >= 600 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	if up.count() != 0 {
		t.Errorf("the provider was asked %d times", up.count())
	}
	// An accepted request is written again.
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	_, in := l.raw(head + "Transfer-Encoding: chunked\r\nConnection: keep-alive, x-api-key\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Api-Key: mine-0123\r\n\r\n" + chunked)
	if status := statusOfRaw(t, in); status != 200 {
		t.Fatal(status)
	}
	h := up.heads[0]
	if up.seen[0] != body || h.Get("Content-Type") != "application/json" || h.Get("Authorization") != "Bearer mine-0123" || h["Connection"] != nil || h["Transfer-Encoding"] != nil {
		t.Errorf("%q %v", up.seen[0], h)
	}
}

// sending answers with bytes of a type.
func sending(kind string, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for _, p := range parts {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

// chatTricks are streams of chat completions that split a key over two events.
func chatTricks(a, b string) map[string][]string {
	data := func(s string) string { return "data: " + s + "\n\n" }
	first, second := data(chunk(a)), data(chunk(b))
	last := `{"choices":[{"delta":{"content":"` + b + `"},"index":0}]}`
	return map[string][]string{
		"order of members": {first, data(last)},
		"another index":    {data(`{"xindex":1,` + strings.Replace(last, b, a, 1)[1:]), data(`{"xindex":2,` + last[1:])},
		"index of the top": {data(`{"index":1,` + chunk(a)[1:]), data(`{"index":2,` + chunk(b)[1:])},
		"escaped name":     {first, strings.Replace(second, "content", `c\u006fntent`, 1)},
		"name in capitals": {first, strings.Replace(second, "content", "Content", 1)},
		"large event":      {first, data(`{"pad":"` + strings.Repeat("z", 70000) + `","choices":[]}`), second},
		"comment":          {first, ": a \"content\": \"zzz\"\n\n", second},
		"quote in comment": {first, ": \"\n" + second},
		"quote in name":    {"event: \"\n" + first, "event: \"\n" + second},
		"two data lines":   {first, strings.Replace(second, `"content":`, "\"content\"\ndata: :", 1)},
		"carriage returns": {strings.ReplaceAll(first, "\n", "\r") + ": \"\r" + second},
		"another choice":   {first, data(strings.Replace(chunk("zzz"), `"index":0`, `"index":1`, 1)), second},
		"two reasonings":   {strings.Replace(first, "content", "reasoning", 1), strings.Replace(second, "content", "reasoning_content", 1)},
		"tool call": {data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"` + a + `"}}]}}]}`),
			data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + b + `\"}"}}]}}]}`)},
	}
}

// messageTricks do the same in Anthropic's format.
func messageTricks(a, b string) map[string][]string {
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + rest + "}\n\n"
	}
	start := event("message_start", `,"message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	out := map[string][]string{}
	for name, kind := range map[string][2]string{"two texts": {"text", "text_delta"}, "two thoughts": {"thinking", "thinking_delta"}, "two starts": {"text", ""}} {
		all := []string{start}
		for i, part := range []string{a, b} {
			index, begins := fmt.Sprintf(`,"index":%d`, i), ""
			if kind[1] == "" {
				begins = part
			}
			all = append(all, event("content_block_start", index+`,"content_block":{"type":"`+kind[0]+`","`+kind[0]+`":"`+begins+`"}`))
			if kind[1] != "" {
				all = append(all, event("content_block_delta", index+`,"delta":{"type":"`+kind[1]+`","`+kind[0]+`":"`+part+`"}`))
			}
			all = append(all, event("content_block_stop", index))
		}
		out[name] = append(all, event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}`), event("message_stop", ""))
	}
	return out
}

// geminiTricks do the same in Gemini's format.
func geminiTricks(a, b string) map[string][]string {
	data := func(part, rest string) string {
		return `data: {"candidates":[{"content":{"parts":[` + part + `]}` + rest + "}]}\n\n"
	}
	text := func(s string) string { return `{"text":"` + s + `"}` }
	thought := func(s string) string { return `{"text":"` + s + `","thought":true}` }
	const end = `,"finishReason":"STOP"`
	return map[string][]string{
		"two texts":    {data(text(a), ""), data(text(b), ""), data(text(""), end)},
		"in the last":  {data(text(a), ""), data(text(b), end)},
		"two parts":    {data(text(a)+","+text(b), end)},
		"two thoughts": {data(thought(a), ""), data(thought(b), ""), data(text("hi"), end)},
	}
}

// wholeTricks are whole answers, by the format of the provider.
func wholeTricks(dialect, a, b string) map[string]string {
	if dialect == "gemini" {
		return map[string]string{"parts": `{"candidates":[{"content":{"parts":[{"text":"` + a + `"},{"text":"` + b + `"}]},"finishReason":"STOP"}]}`}
	}
	if dialect == "openai" {
		return map[string]string{
			"parts":    `{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"` + a + `"},{"type":"text","text":"` + b + `"}]},"finish_reason":"stop"}]}`,
			"logprobs": `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"logprobs":{"content":[{"token":"` + a + `","logprob":-1},{"token":"` + b + `","logprob":-1}]},"finish_reason":"stop"}]}`,
		}
	}
	head := `{"id":"x","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"content":[`
	return map[string]string{
		"parts":    head + `{"type":"text","text":"` + a + `"},{"type":"text","text":"` + b + `"}]}`,
		"thoughts": head + `{"type":"thinking","thinking":"` + a + `","signature":"a"},{"type":"thinking","thinking":"` + b + `","signature":"b"},{"type":"text","text":"hi"}]}`,
	}
}

// joined joins the texts of an answer by member name.
func joined(body string) string {
	texts := map[string]string{}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case string:
			texts[name] += v
		case []any:
			for _, e := range v {
				walk(name, e)
			}
		case map[string]any:
			if n, ok := v["index"].(float64); ok && n == 1 && v["delta"] != nil && v["type"] == nil {
				return // another choice
			}
			for k, e := range v {
				walk(strings.ToLower(k), e)
			}
		}
	}
	read := func(b []byte) {
		var v any
		if json.Unmarshal(b, &v) == nil {
			walk("", v)
		}
	}
	read([]byte(body))
	all := sse.Splitter{}
	all.Add([]byte(strings.ReplaceAll(body, "\r", "\n") + "\n\n"))
	for raw, ok := all.Next(); ok; raw, ok = all.Next() {
		read(sse.Parse(raw).Data)
	}
	return fmt.Sprint(texts)
}

// TestSplitKey checks that no long part of a key that a provider returns in two pieces reaches a client, the
// run file or the cache.
func TestSplitKey(t *testing.T) {
	const key = "sk-UPSTREAMSECRET-0123456789abcdef"
	t.Setenv("GATEWAY_SPLIT_KEY", key)
	for _, at := range []int{11, 17} {
		a, b := key[:at], key[at:]
		for _, dialect := range []string{"openai", "anthropic", "gemini"} {
			streams := messageTricks(a, b)
			if dialect == "gemini" {
				streams = geminiTricks(a, b)
			}
			if dialect == "openai" {
				streams = chatTricks(a, b)
				for name := range streams {
					for _, e := range ends() {
						streams[name] = append(streams[name], "data: "+e+"\n\n")
					}
				}
			}
			for name, parts := range streams {
				splitKey(t, key, fmt.Sprint(dialect, " ", name, " ", at), dialect, streamed, sending("text/event-stream", parts...))
			}
			for name, body := range wholeTricks(dialect, a, b) {
				splitKey(t, key, fmt.Sprint(dialect, " whole ", name, " ", at), dialect, "", sending("application/json", body))
			}
		}
	}
}

// splitKey asks a provider that answers with step, in all formats.
func splitKey(t *testing.T, key, name, dialect, more string, step http.HandlerFunc) {
	t.Helper()
	folder := t.TempDir()
	store, err := cache.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	p := upstream(dialect, serving(t, script(step)))
	p.KeyEnv = "GATEWAY_SPLIT_KEY"
	l := start(t, Config{Upstreams: []provider.Provider{p}, Cache: store, Settings: limited(0, 0)})
	sent, google := "", geminiPath
	if more != "" {
		google = geminiStream
	}
	for path, body := range map[string]string{chatPath: chatOf("m", "hi", more), "/v1/sessions/s/messages": messageOf("m", "hi", more), "/v1/sessions/s" + google: contentsOf("hi"), "/v1/sessions/s/models": ""} {
		r := l.post(path, body)
		sent += r.body + "\n" + joined(r.body) + "\n"
	}
	for _, c := range l.calls("s") {
		b, err := json.Marshal(c.Response)
		if err != nil {
			t.Fatal(err)
		}
		sent += string(b) + "\n" + string(c.Wire.Body) + "\n" + joined(string(c.Wire.Body))
	}
	store.Close()
	for i := 0; i+12 <= len(key); i++ {
		if part := key[i : i+12]; strings.Contains(sent, part) {
			t.Errorf("%s: %s was sent: %.3000s", name, part, sent)
			return
		}
	}
	for _, in := range []string{filepath.Dir(l.file), folder} {
		inFiles(t, in, key[17:])
	}
}

// TestKeyHeaders checks every header in which clients send keys: sessions are separate, and no key comes back.
func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		l := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			saying("It is "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+r.Header.Get("X-Api-Key")+r.Header.Get("Api-Key")+r.Header.Get("X-Goog-Api-Key"))(w, r)
		}))
		key := func(who string) []string {
			if name == "Authorization" {
				who = "Bearer " + who
			}
			return []string{name, who}
		}
		l.post(chatPath, chatOf("m", "hi"), key("key-of-alice")...).want(t, 200, "It is [key]")
		l.post("/v1/sessions/s", "", key("key-of-bob")...).want(t, 404, "session_unknown")
		l.post("/v1/sessions/s", "").want(t, 404, "session_unknown")
		l.post("/v1/sessions/s", "", key("key-of-alice")...).want(t, 200, `"requests":1`)
		l.calls("s")
		inFiles(t, filepath.Dir(l.file), "key-of-")
	}
	// A gateway accepts its own key in each of them, and sends it to no provider.
	up := script(saying("fine"))
	l := to(t, up, func(c *Config) { c.Keys = []string{"key-of-alice"} })
	l.post(chatPath, chatOf("m", "hi"), "Api-Key", "key-of-alice").want(t, 200, "fine")
	l.post(chatPath, chatOf("m", "hi"), "Api-Key", "key-of-bob").want(t, 401)
	if got := up.heads[0]["Api-Key"]; got != nil {
		t.Errorf("%v was sent to the provider", got)
	}
}

// TestKeys checks that a key is needed, in either vendor's header.
func TestKeys(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.Keys = []string{"alpha-key", "beta-key"} })
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Authorization", "Bearer alpha-key", 200}, {"X-Api-Key", "beta-key", 200},
		{"Authorization", "Bearer alpha-keys", 401}, {"X-Api-Key", "", 401}, {"Authorization", "alpha-key", 401},
	} {
		got := l.post(chatPath, chatOf("m", "hi"), c.name, c.value)
		if got.status != c.status || strings.Contains(got.body, "alpha") {
			t.Errorf("%+v: %d %s", c, got.status, got.body)
		}
	}
	l.post("/healthz", "").want(t, 200)
	l.post("/metrics", "").want(t, 401)
	l.post("/v1/sessions/s", "").want(t, 401)
}

// TestNoWebPages checks that requests of web pages are refused.
func TestNoWebPages(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")))
	l.post(chatPath, chatOf("m", "hi"), "Origin", "https://example.com").want(t, 403, "does not serve web pages")
	l.post(chatPath, chatOf("m", "hi")).want(t, 200)
}

// TestSecrets looks for keys in answers, records and errors.
func TestSecrets(t *testing.T) {
	t.Setenv("GATEWAY_TEST_KEY", "sk-upstream-secret")
	echo := func(w http.ResponseWriter, r *http.Request) {
		answering(401, `{"error":{"message":"Incorrect API key provided: `+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`)(w, r)
	}
	tell := func(w http.ResponseWriter, r *http.Request) {
		events(chunk("so"), `{"error":{"message":"bad key `+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`)(w, r)
	}
	up := script(echo, echo, tell, saying("fine"))
	p := upstream("openai", serving(t, up))
	p.KeyEnv = "GATEWAY_TEST_KEY"
	l := start(t, Config{Upstreams: []provider.Provider{p}, Keys: []string{"client-secret"}})
	got := l.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer client-secret").want(t, 401, "Incorrect API key provided: [key]")
	// Without its own keys the gateway sends the client's.
	q := upstream("openai", p.BaseURL)
	open := start(t, Config{Upstreams: []provider.Provider{q}})
	other := open.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer sk-clients-own").want(t, 401, "[key]")
	streams := open.post(chatPath, chatOf("m", "hi", streamed), "Authorization", "Bearer sk-clients-own").want(t, 200, "bad key [key]")
	// A client's bad key does not affect others.
	open.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer sk-another-one").want(t, 200, "fine")
	if h := up.heads; h[0].Get("Authorization") != "Bearer sk-upstream-secret" || h[1].Get("Authorization") != "Bearer sk-clients-own" {
		t.Errorf("%v", h)
	}
	l.calls("s")
	open.calls("s")
	for _, file := range []string{l.file, open.file} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"sk-upstream-secret", "client-secret", "sk-clients-own"} {
			if bytes.Contains(b, []byte(secret)) || strings.Contains(got.body+other.body+streams.body, secret) {
				t.Errorf("%s is in %s, or was sent", secret, file)
			}
		}
	}
}

// TestBadRequests checks the errors of requests that cannot be served.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.MaxBody = 1000 })
	l.post(chatPath, "no JSON").want(t, 400, "not a JSON object")
	l.post(chatPath, `{"model":"m","messages":[]`).want(t, 400, "not a JSON object")
	l.post(chatPath, chatOf("m", strings.Repeat("x", 2000))).want(t, 413, "too large")
	l.post(chatPath, chatOf("m", "hi"), "Content-Encoding", "gzip").want(t, 400, "compressed")
	l.post("/v1/moderations", `{}`).want(t, 404, "POST /v1/chat/completions")
	l.post("/v1/chat/completions", chatOf("m", "hi"), "X-Parley-Session", strings.Repeat("s", 300)).want(t, 400, "at most 200 characters")
	l.post("/v1beta/models/m:embedContent", contentsOf("hi")).want(t, 404, "unknown_url", ":streamGenerateContent")
}

// TestSlowClients checks that a client has limited time to send its request.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	l := to(t, script(saying("fine")), func(c *Config) { c.ClientTimeout = 2 * time.Second }) // a busy machine needs some of it
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte("POST " + chatPath + " HTTP/1.1\r\nHost: " + conn.RemoteAddr().String() + "\r\nContent-Length: 100\r\n\r\n{"))
	b := make([]byte, 4096)
	n, err := conn.Read(b) // blocks forever if the gateway does
	if err != nil || !strings.Contains(string(b[:n]), "400") {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// TestClientReadsNothing checks a client that does not read its stream: the provider is slowed down, others
// are served, and in the end the call is canceled.
func TestClientReadsNothing(t *testing.T) {
	t.Parallel()
	long := "data: " + chunk(strings.Repeat("so ", 20_000)) + "\n\n"
	held, ended := make(chan struct{}, 1), make(chan struct{})
	l := to(t, script(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		events()(w, r)
		for r.Context().Err() == nil { // writing blocks when nobody reads
			if _, err := w.Write([]byte(long)); err != nil {
				return
			}
			select {
			case held <- struct{}{}:
			default:
			}
		}
	}, saying("fine")), func(c *Config) { c.ClientTimeout = 2 * time.Second }) // a busy machine needs some of it
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := chatOf("m", "hi", streamed)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", chatPath, conn.RemoteAddr(), len(body), body)
	<-held
	l.post("/v1/sessions/other/chat/completions", chatOf("m", "hi")).want(t, 200, "fine")
	<-ended
	calls := l.calls("s")
	if e := calls[0].Error; len(calls) != 1 || e == nil || e.Kind != llm.KindCanceled || !strings.Contains(e.Message, "took nothing for 2s after") || !calls[0].Wire.Cut {
		t.Errorf("%+v", e)
	}
}

// TestWatched reads the gateway's own metrics and status.
func TestWatched(t *testing.T) {
	t.Parallel()
	l := start(t, Config{Upstreams: both(simulated(t, sim.Config{}))})
	l.post(chatPath, chatOf("m", "hi"))
	l.post("/v1/messages", messageOf("m", "hi"), anthropicVersion()...)
	l.post("/metrics", "").want(t, 200,
		`parley_gateway_requests_total{code="200",endpoint="chat"} 1`, `parley_gateway_attempts_total{model="openai/m"} 1`,
		`parley_gateway_tokens_total{model="anthropic/m",type="output"}`, "parley_gateway_sessions_open 2", "go_goroutines")
	l.post("/readyz", "").want(t, 200, `"status":"ready"`)
	l.g.draining.Store(true)
	l.post("/readyz", "").want(t, 503, `"draining"`)
}
