package gateway

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/cache"
	"parley/internal/ask/provider"
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

// post1 returns a request for a separate connection.
func post1(body, header string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", chatPath, len(body), header, body)
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
	l := to(t, up, func(c *Config) { c.Budget = llm.Dollars(1) })
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
	store, err := cache.Open(t.TempDir(), cache.Options{})
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
	store, err := cache.Open("", cache.Options{})
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
			store, err := cache.Open(folder, cache.Options{})
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
			l := start(t, Config{Upstreams: []provider.Provider{p}, Cache: store, Retries: NoRetries})
			sent := ""
			for _, body := range []string{chatOf("m", "hi"), chatOf("m", "hi", streamed), messageOf("m", "hi"), messageOf("m", "hi", streamed)} {
				path := chatPath
				if strings.Contains(body, "max_tokens") {
					path = "/v1/sessions/s/messages"
				}
				r := l.post(path, body, header...)
				sent += fmt.Sprint(r.header) + r.body + gatewayText(r.body)
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

// gatewayText joins the words of a streamed chat completion.
func gatewayText(stream string) (words string) {
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

// TestLeavesAfterAByte checks that the call of a client ends that sends a byte of its next request and goes
// away.
func TestLeavesAfterAByte(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", streamed} {
		asked, ended := make(chan struct{}), make(chan struct{})
		l := to(t, script(func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
			close(ended)
		}))
		conn, _ := l.raw(post1(chatOf("m", "hi", more), ""))
		<-asked
		io.WriteString(conn, "P")
		conn.Close()
		<-ended
		calls := l.calls("s")
		if e := calls[0].Error; len(calls) != 1 || e == nil || e.Status != 499 || !strings.Contains(e.Message, "the client went away") {
			t.Errorf("%q: %+v", more, calls)
		}
	}
}
