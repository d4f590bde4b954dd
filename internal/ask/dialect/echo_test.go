package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"parley/internal/ask/provider"
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
		m, err := Open(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL, KeyEnv: "OPENAI_ECHO_KEY"}, nil)
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

// TestEchoedSignature checks that neither the session token of AWS nor a signature is in a result, if a server sends them back.
func TestEchoedSignature(t *testing.T) {
	const token = "session-token-0123456789-hunter2"
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "eu-central-1",
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter3", "AWS_SESSION_TOKEN": token,
	} {
		t.Setenv(name, value)
	}
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		var signature string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, signature, _ = strings.Cut(r.Header.Get("Authorization"), "Signature=")
			sent := r.Header.Get("X-Amz-Security-Token") + " " + signature
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Amzn-Requestid", sent)
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"message":%q,"output":{"message":{"content":[{"text":%q}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`, sent, sent)
		}))
		m, err := Open(provider.Provider{Name: "bedrock", Dialect: "bedrock", BaseURL: srv.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := m.Ask(t.Context(), &llm.Request{Model: "bedrock/m", Messages: []llm.Message{llm.User("hi")}})
		b, _ := json.Marshal(resp)
		e, _ := json.Marshal(err)
		all := string(b) + string(e) + fmt.Sprint(err)
		if len(signature) != 64 || !strings.Contains(all, "[key] [key]") || strings.Contains(all, token) || strings.Contains(all, signature) {
			t.Errorf("status %d: %s", status, all)
		}
		srv.Close()
	}
}
