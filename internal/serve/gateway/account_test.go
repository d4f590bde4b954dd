package gateway

import (
	"net/http"
	"testing"

	"parley/llm"
)

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
