package simhttp

import (
	"net/http"
	"strings"
	"testing"
)

// TestBadRequests checks which requests are refused, with the vendors' errors.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{MaxBody: 4096})
	long := strings.Repeat("x", 5000)
	cases := []struct {
		name, path, body string
		status           int
		says             string // part of the message
	}{
		{"no JSON", chatPath, `{`, 400, "could not parse the JSON"},
		{"a list", chatPath, `[]`, 400, "could not parse the JSON"},
		{"more after it", chatPath, chatBody + `{}`, 400, "could not parse the JSON"},
		{"no messages", chatPath, `{"model":"m"}`, 400, "Missing required parameter: 'messages'"},
		{"no model", chatPath, `{"messages":[{"role":"user","content":"x"}]}`, 400, "must provide a model"},
		{"empty messages", chatPath, `{"model":"m","messages":[]}`, 400, "empty array"},
		{"type", chatPath, with(chatBody, `"temperature":"warm"`), 400, "Invalid type for 'temperature': expected a decimal, but got a string"},
		{"range", chatPath, with(chatBody, `"temperature":2.5`), 400, "<= 2"},
		{"below", chatPath, with(chatBody, `"top_p":-1`), 400, ">= 0"},
		{"max", chatPath, with(chatBody, `"max_tokens":0`), 400, "integer below minimum value"},
		{"both max", chatPath, with(chatBody, `"max_tokens":1,"max_completion_tokens":1`), 400, "at the same time"},
		{"unknown", chatPath, with(chatBody, `"temprature":1`), 400, "Unknown parameter: 'temprature'"},
		{"role", chatPath, `{"model":"m","messages":[{"role":"king","content":"x"}]}`, 400, "Invalid value: 'king'"},
		{"content", chatPath, `{"model":"m","messages":[{"role":"user","content":7}]}`, 400, "messages[0].content"},
		{"part", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"smell"}]}]}`, 400, "'smell'"},
		{"image", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;x"}}]}]}`, 400, "image"},
		{"file", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]}`, 400, "Expected a base64-encoded data URL with an application/pdf MIME type"},
		{"file by address", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"https://x/a.pdf"}}]}]}`, 400, "Invalid file data"},
		{"file of a tool", chatPath, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"file","file":{"file_data":"x"}}]}]}`, 400, "'file'"},
		{"audio", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, 400, "is not of valid wav format"},
		{"audio format", chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"ogg"}}]}]}`, 400, "Supported values are: 'wav' and 'mp3'"},
		{"lonely tool", chatPath, `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}`, 400, "must be a response"},
		{"unanswered tool", chatPath, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, 400, "must be followed by tool messages"},
		{"n", chatPath, with(chatBody, `"n":2`), 400, "'n'"},
		{"stop", chatPath, with(chatBody, `"stop":["a","b","c","d","e"]`), 400, "maximum length 4"},
		{"schema", chatPath, with(chatBody, `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"nothing"}}}`), 400, "Invalid schema"},
		{"strict", chatPath, with(chatBody, `"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}}`), 400, "'required' is required"},
		{"schema name", chatPath, with(chatBody, `"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`), 400, "pattern"},
		{"json mode", chatPath, with(chatBody, `"response_format":{"type":"json_object"}`), 400, "the word 'json'"},
		{"tool choice", chatPath, with(chatBody, `"tool_choice":"auto"`), 400, "only allowed when 'tools'"},
		{"effort", chatPath, with(chatBody, `"reasoning_effort":"huge"`), 400, "'huge'"},
		{"too large", chatPath, with(chatBody, `"user":"`+long+`"`), 413, "too large"},

		{"no input", responsesPath, `{"model":"m"}`, 400, "'input'"},
		{"old response", responsesPath, with(responsesBody, `"previous_response_id":"resp_1"`), 400, "not found"},
		{"short", responsesPath, with(responsesBody, `"max_output_tokens":3`), 400, ">= 16"},
		{"item", responsesPath, `{"model":"m","input":[{"type":"dance"}]}`, 400, "'dance'"},
		{"lost output", responsesPath, `{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, 400, "No tool call found"},
		{"open call", responsesPath, `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, 400, "No tool output found"},

		{"input audio", responsesPath, `{"model":"m","input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`, 400, "'input_audio'"},
		{"input file", responsesPath, `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"x"}]}]}`, 400, "Expected a base64-encoded data URL"},

		{"not a PDF", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}]}`, 400, "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid."},
		{"document type", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"audio/wav","data":"AAAA"}}]}]}`, 400, "Input should be 'application/pdf'"},
		{"document source", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"disk"}}]}]}`, 400, "does not match any of the expected tags: 'base64', 'url'"},
		{"no max_tokens", messagesPath, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 400, "max_tokens: Field required"},
		{"extra", messagesPath, with(messagesBody, `"seed":1`), 400, "seed: Extra inputs are not permitted"},
		{"warm", messagesPath, with(messagesBody, `"temperature":1.5`), 400, "temperature: range: 0..1"},
		{"assistant first", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"assistant","content":"x"}]}`, 400, `first message must use the "user" role`},
		{"system role", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"system","content":"x"}]}`, 400, "Input should be 'user' or 'assistant'"},
		{"empty text", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":""}]}`, 400, "non-empty"},
		{"no messages", messagesPath, `{"model":"m","max_tokens":5,"messages":[]}`, 400, "at least one message"},
		{"loose schema", messagesPath, with(messagesBody, `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`), 400, "additionalProperties"},
		{"small budget", messagesPath, with(messagesBody, `"thinking":{"type":"enabled","budget_tokens":10}`), 400, "1024"},
		{"large budget", messagesPath, with(messagesBody, `"thinking":{"type":"enabled","budget_tokens":2000}`), 400, "max_tokens"},
		{"lost result", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`, 400, "unexpected `tool_use_id`"},
		{"open use", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":"y"}]}`, 400, "without `tool_result`"},
		{"breaks", messagesPath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`, 400, "maximum of 4"},
		{"warm a stream", messagesPath, `{"model":"m","max_tokens":0,"stream":true,"messages":[{"role":"user","content":"x"}]}`, 400, "max_tokens"},
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

// TestCodingAgents sends what Claude Code and Codex send as shipped.
func TestCodingAgents(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	late := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]}`
	const beta = "claude-code-20250219,mid-conversation-system-2026-04-07"
	for _, c := range []struct {
		name, path, body, beta string
		status                 int
		says                   string
	}{
		{"late system", messagesPath, late, beta, 200, `"assistant"`},
		{"late system, counted", messagesPath + "/count_tokens", late, beta, 200, "input_tokens"},
		{"late system without the header", messagesPath, late, "claude-code-20250219", 400, "messages.1.role: Input should be 'user' or 'assistant'"},
		{"late system without content", messagesPath, strings.Replace(late, `"y"`, `7`, 1), beta, 400, "messages.1.content"},
		{"other tools", responsesPath, with(responsesBody, `"tools":[{"type":"namespace","name":"n","tools":[]},{"type":"web_search","external_web_access":false}],"client_metadata":{"a":"b"}`), "", 200, `"completed"`},
		{"no such tool", responsesPath, with(responsesBody, `"tools":[{"type":"dance"}]`), "", 400, "Invalid value: 'dance'"},
		{"function", responsesPath, with(responsesBody, `"tools":[{"type":"function","name":"f","parameters":{},"odd":1}]`), "", 400, "Unknown parameter: 'tools[0].odd'"},
	} {
		if a := call(t, s, http.MethodPost, c.path, c.body, "Anthropic-Beta", c.beta); a.status != c.status || !strings.Contains(string(a.body), c.says) {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
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

func TestLaxAndBadJSON500(t *testing.T) {
	t.Parallel()
	lax := newServer(t, Config{Lax: true})
	if a := call(t, lax, http.MethodPost, chatPath, with(chatBody, `"whatever":1`)); a.status != http.StatusOK {
		t.Errorf("%s", a.body)
	}
	s := newServer(t, Config{BadJSON500: true})
	if a := call(t, s, http.MethodPost, chatPath, `{"model":`); a.status != http.StatusInternalServerError {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := call(t, s, http.MethodPost, chatPath, `{"model":"m"}`); a.status != http.StatusBadRequest {
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
