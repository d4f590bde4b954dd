package simhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBadRequests checks that requests that cannot be answered are refused, with errors of the vendors' form, and no others.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{MaxBody: 4096})
	long := strings.Repeat("x", 5000)
	cases := []struct {
		name, path, body string
		status           int
		says             string // part of the message
	}{
		{"no JSON", chatPath, `{`, 400, "not a JSON object"},
		{"a list", chatPath, `[]`, 400, "not a JSON object"},
		{"more after it", chatPath, chatBody + `{}`, 400, "not a JSON object"},
		{"no messages", chatPath, `{"model":"m"}`, 400, "messages: it is required"},
		{"no model", chatPath, `{"messages":[{"role":"user","content":"x"}]}`, 400, "model: it is required"},
		{"empty messages", chatPath, `{"model":"m","messages":[]}`, 400, "at least one is required"},
		{"role", chatPath, `{"model":"m","messages":[{"role":"king","content":"x"}]}`, 400, "messages[0] cannot be read"},
		{"content", chatPath, `{"model":"m","messages":[{"role":"user","content":7}]}`, 400, "messages[0]"},
		{"part", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"smell"}]}]}`, 400, "of type smell"},
		{"image", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;x"}}]}]}`, 400, "of type image_url"},
		{"file", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]}`, 400, "not of the type application/pdf"},
		{"file of a tool", chatPath, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"file","file":{"file_data":"x"}}]}]}`, 400, "of type file"},
		{"audio", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, 400, "not of the type audio/wav"},
		{"audio format", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"ogg"}}]}]}`, 400, "of type input_audio"},
		{"lonely tool", chatPath, `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}`, 400, "has no call before it"},
		{"unanswered tool", chatPath, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, 400, "not followed by its result"},
		{"n", chatPath, with(chatBody, `"n":2`), 400, "one answer"},
		{"schema", chatPath, with(chatBody, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"nothing"}}}`), 400, "Invalid schema"},
		{"too large", chatPath, with(chatBody, `"user":"`+long+`"`), 413, "too large"},

		{"no input", responsesPath, `{"model":"m"}`, 400, "input: it is required"},
		{"old response", responsesPath, with(responsesBody, `"previous_response_id":"resp_1"`), 400, "not stored"},
		{"item", responsesPath, `{"model":"m","input":[{"type":"dance"}]}`, 400, "cannot be read"},
		{"lost output", responsesPath, `{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, 400, "has no call before it"},
		{"open call", responsesPath, `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, 400, "not followed by its result"},

		{"not a PDF", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}]}`, 400, "not of the type application/pdf"},
		{"document type", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"audio/wav","data":"AAAA"}}]}]}`, 400, "of type document"},
		{"document source", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"disk"}}]}]}`, 400, "of type document"},
		{"no max_tokens", messagesPath, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 400, "max_tokens: it is required"},
		{"no messages", messagesPath, `{"model":"m","max_tokens":5,"messages":[]}`, 400, "at least one is required"},
		{"lost result", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`, 400, "has no call before it"},
		{"open use", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":"y"}]}`, 400, "not followed by its result"},
		{"too large", messagesPath, with(messagesBody, `"metadata":{"user_id":"`+long+`"}`), 413, "maximum size"},

		{"nowhere", "/v1/nowhere", `{}`, 404, "Invalid URL"},
	}
	for _, c := range cases {
		a := call(t, s, http.MethodPost, c.path, c.body)
		if message, _ := a.at(t, "error.message").(string); a.status != c.status || !strings.Contains(message, c.says) {
			t.Errorf("%s: status %d, %s; want %d and %q", c.name, a.status, a.body, c.status, c.says)
		}
		want := "invalid_request_error"
		if c.status == 413 && c.path == messagesPath {
			want = "request_too_large"
		}
		if a.at(t, "error.type") != want || (c.path == messagesPath) != (a.at(t, "type") == "error") {
			t.Errorf("%s: %s", c.name, a.body)
		}
	}
}

// TestCodingAgents sends what Claude Code and Codex send as shipped, and what a vendor may refuse and this server does not.
func TestCodingAgents(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	for path, body := range map[string]string{
		messagesPath:                   `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]}`,
		chatPath:                       with(chatBody, `"whatever":1,"temperature":2.5,"tool_choice":"auto","response_format":{"type":"json_schema","json_schema":{"name":"a b","strict":true,"schema":{"type":"object"}}}`),
		messagesPath + "/count_tokens": `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]}`,
		responsesPath:                  with(responsesBody, `"tools":[{"type":"namespace","name":"n","tools":[]},{"type":"web_search","external_web_access":false}],"client_metadata":{"a":"b"}`),
	} {
		if a := call(t, s, http.MethodPost, path, body); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestVersionHeaderIsNeeded(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	if a := call(t, s, http.MethodPost, messagesPath, messagesBody, "Anthropic-Version", ""); a.status != 400 || !strings.Contains(string(a.body), "anthropic-version") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestKeys(t *testing.T) {
	t.Setenv("SIM_TEST_KEY", "s3cret")
	s := newServer(t, Config{KeyEnv: "SIM_TEST_KEY"})
	for _, c := range []struct {
		path, body, header, value string
		status                    int
	}{
		{chatPath, chatBody, "Authorization", "Bearer s3cret", 200},
		{chatPath, chatBody, "Authorization", "Bearer guess", 401},
		{chatPath, chatBody, "X-Nothing", "", 401},
		{messagesPath, messagesBody, "X-Api-Key", "s3cret", 200},
		{messagesPath, messagesBody, "Authorization", "Bearer s3cret", 200},
		{messagesPath, messagesBody, "X-Api-Key", "guess", 401},
	} {
		a := call(t, s, http.MethodPost, c.path, c.body, c.header, c.value)
		if a.status != c.status || strings.Contains(string(a.body), "s3cret") || strings.Contains(string(a.body), "guess") {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		}
	}
	if a := call(t, s, http.MethodPost, messagesPath, messagesBody); a.at(t, "error.type") != "authentication_error" {
		t.Errorf("%s", a.body)
	}
	if _, err := New(Config{KeyEnv: "SIM_TEST_NO_SUCH_KEY"}); err == nil {
		t.Error("an empty key is taken")
	}
}

// TestForeignHosts: what the guard refuses has the form of the vendor whose path was asked.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	srv, stop := newServer(t, Config{}).httpServer(t.Context())
	defer stop()
	const vertex = "/v1/projects/p/locations/l/publishers/"
	for path, form := range map[string]string{
		chatPath: `"type":"invalid_request_error"`, messagesPath: `"type":"error"`, "/model/m/converse": `{"message":`,
		"/v1beta/models/m:generateContent": `"status":"PERMISSION_DENIED"`, "/v1/models/m:generateContent": `"status":"PERMISSION_DENIED"`,
		vertex + "google/models/m:generateContent": `"status":"PERMISSION_DENIED"`, vertex + "anthropic/models/m:rawPredict": `"status":"PERMISSION_DENIED"`,
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}"))
		req.Host = "evil.example"
		rec := httptest.NewRecorder()
		if srv.Handler.ServeHTTP(rec, req); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), form) {
			t.Errorf("%s: %d %s, want %s", path, rec.Code, rec.Body, form)
		}
	}
}
