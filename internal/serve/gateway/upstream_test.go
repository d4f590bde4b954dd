package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// TestHeaders checks which headers are sent to the provider.
func TestHeaders(t *testing.T) {
	t.Parallel()
	f := &flight{Call: &format.Call{API: format.Messages}, Keys: []string{"sk-clients"}, Session: "s", Header: http.Header{
		"Anthropic-Beta": {"x"}, "User-Agent": {"agent/1"}, "Authorization": {"Bearer other"}, "X-Api-Key": {"sk-clients"}, "Api-Key": {"azure"}, "Cookie": {"c"},
		"X-Parley-Session": {"s"}, "X-Session-Id": {"theirs"}, "Session-Id": {"drawn"}, "X-Forwarded-For": {"me"}, "Sec-Fetch-Site": {"same-origin"}, "Accept-Encoding": {"gzip"},
		"Content-Type": {"application/x-www-form-urlencoded"}, "Connection": {"keep-alive, X-Odd", "x-api-key"}, "X-Odd": {"1"}, "X-Org": {"theirs"},
		"Transfer-Encoding": {"chunked"}, "X-Http-Method-Override": {"DELETE"}, "Te": {"trailers"},
	}}
	u := &relay{own: ownHeaders(map[string]string{"x-org": "ours"}), provider: provider.Provider{Session: provider.SessionHeader}}
	got := u.header(f, false)
	want := map[string]string{"Anthropic-Beta": "x", "User-Agent": "agent/1", "X-Api-Key": "sk-clients", "Api-Key": "azure", "Session-Id": "drawn", "X-Session-Id": "s"}
	for k, v := range want {
		if got.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, got.Get(k), v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	ours := *f
	if ours.Keys = nil; u.header(&ours, false)["Api-Key"] != nil || u.header(&ours, false)["X-Api-Key"] != nil {
		t.Error("a key goes along to a provider that is asked with another")
	}
	if got := u.header(f, true); len(got) != 1 || got.Get("X-Session-Id") != "s" {
		t.Errorf("to another vendor goes %v", got)
	}
	u.provider.Session = ""
	if plain, other := u.header(f, false), u.header(f, true); plain["X-Session-Id"] != nil || len(other) != 0 {
		t.Errorf("a provider that does not want the session's name gets %v and %v", plain, other)
	}
	if back := answerHeaders(http.Header{
		"Set-Cookie": {"c"}, "X-Request-Id": {"r"}, "Content-Length": {"3"}, "Access-Control-Allow-Origin": {"*"}, "X-Parley-Cached": {"true"}, "Location": {"/"},
	}); len(back) != 1 || back.Get("X-Request-Id") != "r" {
		t.Errorf("%v", back)
	}
}

// TestPayer checks that a client chooses who pays only with its own key.
func TestPayer(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	for _, name := range []string{"X-Goog-User-Project", "OpenAI-Organization", "OpenAI-Project", "X-HF-Bill-To", "X-DashScope-WorkSpace", "x-ms-spillover-deployment", "X-Vertex-AI-LLM-Shared-Request-Type", "X-Amzn-Bedrock-Service-Tier"} {
		h.Set(name, "theirs")
	}
	p := provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1"}
	for _, c := range []struct {
		command []string
		want    int
	}{{[]string{"keys", "lab"}, 0}, {nil, len(h)}} {
		p.KeyCommand = c.command
		u, err := openRelay(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		f := &flight{Call: &format.Call{API: format.Chat}, Header: h}
		if got := u.header(f, false); len(got) != c.want {
			t.Errorf("%v: %v", c.command, got)
		}
	}
}

// TestAccount checks which calls may share an answer.
func TestAccount(t *testing.T) {
	t.Parallel()
	of := func(url, key string, header ...string) [32]byte {
		u := &relay{provider: provider.Provider{BaseURL: url, Dialect: "openai"}}
		h := http.Header{"User-Agent": {key}} // it says nothing
		for i := 0; i+1 < len(header); i += 2 {
			h.Add(header[i], header[i+1])
		}
		if key != "" {
			h.Set("Authorization", "Bearer "+key)
		}
		return u.Account(&flight{Keys: auth.SentKeys(h), Header: h})
	}
	want := of("http://a/v1", "")
	for name, other := range map[string][32]byte{
		"address": of("http://b/v1", ""), "key": of("http://a/v1", "k"), "another key": of("http://a/v1", "l"), "header": of("http://a/v1", "", "Api-Key", "k"),
		"values": of("http://a/v1", "", "X-A", "k", "X-A", "l"), "one value": of("http://a/v1", "", "X-A", "k, l"), "two headers": of("http://a/v1", "", "X-A", "k", "X-B", "l"),
	} {
		if other == want {
			t.Errorf("%s: it is the same account", name)
		}
		want = other
	}
	if of("http://a/v1", "k", "Traceparent", "1", "Connection", "x-a", "X-A", "1") != of("http://a/v1", "k", "X-Request-Id", "2") {
		t.Error("what is not sent along, or says nothing, makes another account")
	}
}

// TestNoFlight checks that Ask fails without a flight.
func TestNoFlight(t *testing.T) {
	t.Parallel()
	u, err := openRelay(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Ask(t.Context(), &llm.Request{Model: "lab/m"}); llm.KindOf(err) != llm.KindBadRequest {
		t.Errorf("%v", err)
	}
	if _, err := openRelay(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "nowhere"}, nil); err == nil {
		t.Error("it was opened")
	}
}

// TestFewLargeAnswers: a large answer that is relayed waits while the allowed number of others is kept.
func TestFewLargeAnswers(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("a", 2*transport.LargeSize)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	defer srv.Close()
	c, err := transport.New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL}, transport.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func() *transport.Answer {
		a, _, err := c.Raw(t.Context(), transport.Request{Path: "/x", Body: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var held []*transport.Answer
	for range transport.MaxLarge {
		a := ask()
		if err := a.Keep(t.Context(), transport.LargeSize); err != nil {
			t.Fatal(err)
		}
		held = append(held, a)
	}
	last, done := ask(), make(chan struct{})
	go func() {
		defer close(done)
		if b, err := readAll(t.Context(), last, maxWhole); err != nil || len(b) != len(body) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		last.Close()
	}()
	select {
	case <-done:
		t.Error("one more was read")
	case <-time.After(100 * time.Millisecond):
	}
	for _, a := range held {
		a.Close()
	}
	<-done
}

// accounts is a provider at which every key is its own account.
func accounts(w http.ResponseWriter, r *http.Request) {
	const spent = `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`
	const slower = `{"error":{"message":"Rate limit reached.","type":"requests","code":"rate_limit_exceeded"}}`
	none := []string{"X-Ratelimit-Limit-Requests", "1", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1h"}
	switch r.Header.Get("Authorization") {
	case "Bearer right":
		saying("fine")(w, r)
	case "Bearer last":
		for i := 0; i < len(none); i += 2 {
			w.Header().Set(none[i], none[i+1])
		}
		saying("fine")(w, r)
	case "Bearer poor":
		answering(429, spent)(w, r)
	case "Bearer hasty":
		answering(429, slower, append(none, "Retry-After", "3600")...)(w, r)
	default:
		answering(401, `{"error":{"message":"You must provide an API key.","code":"invalid_api_key"}}`)(w, r)
	}
}

// TestClientsAccounts checks that errors about one client's key, credit or rates are recorded as such and stop
// no other client.
func TestClientsAccounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, key string
		header    []string
		status    int
		kind      llm.Kind // empty: an answer
	}{
		{"no header", "", nil, 401, llm.KindAuth},
		{"no key", "Bearer ", nil, 401, llm.KindAuth},
		{"wrong key", "Bearer wrong", nil, 401, llm.KindAuth},
		{"no credit", "Bearer poor", nil, 429, llm.KindQuota},
		{"too fast", "Bearer hasty", []string{"X-Parley-Deadline", "200ms"}, 504, llm.KindTimeout},
		{"the last of a window", "Bearer last", nil, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := to(t, http.HandlerFunc(accounts))
			header := c.header
			if c.key != "" {
				header = append(header, "Authorization", c.key)
			}
			l.post("/v1/sessions/first/chat/completions", chatOf("m", "hi"), header...).want(t, c.status)
			for _, model := range []string{"m", "other"} {
				l.post(chatPath, chatOf(model, "hi"), "Authorization", "Bearer right", "X-Parley-Deadline", "20s").want(t, 200, "fine")
			}
			first := l.calls("first")
			if len(first) != 1 || (first[0].Error != nil) != (c.kind != "") || c.kind != "" && first[0].Error.Kind != c.kind {
				t.Errorf("want one call, %q: %+v", c.kind, first)
			}
		})
	}
}

// TestOwnAccount checks that a refused key of the gateway itself stops further calls.
func TestOwnAccount(t *testing.T) {
	t.Setenv("GATEWAY_TEST_KEY", "wrong")
	up := script(accounts)
	l := to(t, up, func(c *Config) { c.Upstreams[0].KeyEnv = "GATEWAY_TEST_KEY" })
	for range 3 {
		l.post(chatPath, chatOf("m", "hi"), "Authorization", "Bearer right").want(t, 401)
	}
	if n := up.count(); n != 1 {
		t.Errorf("the provider was asked %d times with a key that it refuses", n)
	}
}
