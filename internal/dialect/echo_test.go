package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/provider"
	"parley/llm"
)

// TestEchoedKey checks that no result of a call holds the key, if a server sends it back in any part
// of an answer or an error.
func TestEchoedKey(t *testing.T) {
	const key = "sk-openai-0123456789-secret"
	t.Setenv("OPENAI_ECHO_KEY", key)
	say := func(words string) string {
		return `{"id":"` + key + `","model":"` + key + `","choices":[{"message":{"content":"` + words + `","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"k\":\"` + key + `\"}"}}]},"finish_reason":"stop"}]}`
	}
	var escaped, pieces strings.Builder
	for _, c := range key {
		fmt.Fprintf(&escaped, `\u%04x`, c)
		fmt.Fprintf(&pieces, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", string(c))
	}
	stream := "data: {\"choices\":[{\"delta\":{\"content\":\"It is " + key + " \"}}]}\n\n" + pieces.String() + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for name, step := range map[string]struct {
		status     int
		kind, body string
	}{
		"body": {200, "application/json", say("It is " + key)}, "escaped": {200, "application/json", say("It is " + escaped.String())},
		"base64": {200, "application/json", say(base64.StdEncoding.EncodeToString([]byte("user:" + key)))},
		"stream": {200, "text/event-stream", stream}, "cut off": {200, "text/event-stream", pieces.String()},
		"error": {400, "application/json", `{"error":{"message":"` + strings.Repeat("x", 990) + key + `","code":"` + key + `"}}`},
		"page":  {200, "text/html", "<html><title>" + key + "</title>"}, "text": {200, "text/plain", strings.Repeat("x", 190) + key},
		"redirect": {302, "", ""}, "bad JSON": {200, "application/json", `{"choices":` + key},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", step.kind)
			w.Header().Set("X-Request-Id", key)
			w.Header().Set("Location", "http://example.com/?key="+key)
			w.WriteHeader(step.status)
			_, _ = io.WriteString(w, step.body)
		}))
		m, err := Open(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL, KeyEnv: "OPENAI_ECHO_KEY"})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := m.Ask(t.Context(), &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("hi")}})
		b, _ := json.Marshal(resp)
		e, _ := json.Marshal(err)
		all := string(b) + string(e) + fmt.Sprint(err)
		for _, secret := range []string{key, "sk-openai-01", "0123456789-secret", base64.StdEncoding.EncodeToString([]byte("user:" + key))[12:30]} {
			if strings.Contains(all, secret) {
				t.Errorf("%s: %s is in %s", name, secret, all)
			}
		}
		srv.Close()
	}
}
