package relay

import (
	"net/http"
	"testing"

	"parley/internal/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// TestHeaders sends along what is the provider's business, and keeps what is ours.
func TestHeaders(t *testing.T) {
	t.Parallel()
	f := &Flight{Call: &format.Call{API: format.Messages}, Key: "sk-clients", Session: "s", Header: http.Header{
		"Anthropic-Beta": {"x"}, "User-Agent": {"agent/1"}, "Authorization": {"Bearer ours"}, "X-Api-Key": {"ours"}, "Cookie": {"c"},
		"X-Parley-Session": {"s"}, "X-Forwarded-For": {"me"}, "Sec-Fetch-Site": {"same-origin"}, "Accept-Encoding": {"gzip"},
	}}
	got := f.header(false)
	want := map[string]string{"Anthropic-Beta": "x", "User-Agent": "agent/1", "X-Api-Key": "sk-clients", "X-Session-Id": "s"}
	for k, v := range want {
		if got.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, got.Get(k), v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	if got := f.header(true); len(got) != 1 || got.Get("X-Session-Id") != "s" {
		t.Errorf("to another vendor goes %v", got)
	}
	if back := backward(http.Header{"Set-Cookie": {"c"}, "X-Request-Id": {"r"}, "Content-Length": {"3"}}); len(back) != 1 || back.Get("X-Request-Id") != "r" {
		t.Errorf("%v", back)
	}
}

// TestNoFlight refuses to be asked without a call to hand on.
func TestNoFlight(t *testing.T) {
	t.Parallel()
	u, err := Open(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Ask(t.Context(), &llm.Request{Model: "lab/m"}); llm.KindOf(err) != llm.KindBadRequest {
		t.Errorf("%v", err)
	}
	if _, err := Open(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: "nowhere"}); err == nil {
		t.Error("it was opened")
	}
}
