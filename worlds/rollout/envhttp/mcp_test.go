package envhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/llm"
)

// server answers requests by method: with JSON, or with events if stream is set.
func server(t *testing.T, stream bool, results map[string]string) (*MCPServer, *[]string) {
	t.Helper()
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID     int
			Method string
			Params struct{ Name, Cursor string }
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		seen = append(seen, strings.TrimSpace(fmt.Sprint(r.Method, " ", in.Method, " ", in.Params.Name+in.Params.Cursor, " ", r.Header.Get("Mcp-Session-Id"))))
		result, ok := results[in.Method+" "+in.Params.Name+in.Params.Cursor]
		switch {
		case in.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			result = `"result":{"protocolVersion":"2025-03-26"}`
		case !ok:
			w.WriteHeader(http.StatusAccepted)
			return
		case result == "down":
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, in.ID, result)
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\nevent: message\ndata: %s\n\n", body)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return NewMCP(s.URL), &seen
}

// TestSession checks what is sent in a session, and how results become messages.
func TestSession(t *testing.T) {
	t.Parallel()
	results := map[string]string{
		"tools/list ":     `"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}],"nextCursor":"p2"}`,
		"tools/list p2":   `"result":{"tools":[{"name":"say"}]}`,
		"tools/call add":  `"result":{"content":[{"type":"text","text":"5"},{"type":"image","data":"x"},{"type":"resource","resource":{"uri":"u","text":"r"}}]}`,
		"tools/call bad":  `"result":{"content":[{"type":"text","text":"no"}],"isError":true}`,
		"tools/call none": `"error":{"code":-32602,"message":"unknown tool"}`,
		"tools/call form": `"result":{"content":[],"structuredContent":{"a":1}}`,
		"tools/call long": fmt.Sprintf(`"result":{"content":[{"type":"text","text":"%s"}]}`, strings.Repeat("x", maxToolText+5)),
		"tools/call down": "down",
	}
	for _, stream := range []bool{false, true} {
		srv, seen := server(t, stream, results)
		defer srv.Close()
		s, err := srv.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tools, err := s.Tools(t.Context())
		if err != nil || len(tools) != 2 || tools[0].Name != "add" || tools[1].Name != "say" {
			t.Fatal(tools, err)
		}
		for name, want := range map[string]string{
			"add": "5\n(image, which cannot be shown)\nr", "bad": "failed no", "none": "failed unknown tool", "form": `{"a":1}`,
		} {
			m, err := s.Call(t.Context(), llm.ToolCall{ID: "7", Name: name, Arguments: "{}"})
			got := m.Text()
			if m.ToolFailed {
				got = "failed " + got
			}
			if err != nil || got != want || m.ToolCallID != "7" || m.Role != llm.RoleTool {
				t.Errorf("%s: %q, %v, want %q", name, got, err, want)
			}
		}
		if m, err := s.Call(t.Context(), llm.ToolCall{Name: "long"}); err != nil || len(m.Text()) > maxToolText+100 || !strings.Contains(m.Text(), "cut off") {
			t.Errorf("%d, %v", len(m.Text()), err)
		}
		if m, err := s.Call(t.Context(), llm.ToolCall{Name: "add", Arguments: "[1"}); err != nil || !m.ToolFailed {
			t.Errorf("%+v, %v", m, err)
		}
		if _, err := s.Call(t.Context(), llm.ToolCall{Name: "down"}); llm.AsError(err) == nil || !llm.AsError(err).Uncertain {
			t.Errorf("a server that fails: %v", err)
		}
		s.End(t.Context())
		if all := strings.Join(*seen, "|"); !strings.HasPrefix(all, "POST initialize|POST notifications/initialized  s1|POST tools/list  s1|POST tools/list p2 s1|") || !strings.HasSuffix(all, "|DELETE   s1") {
			t.Error(all)
		}
	}
}

// TestWrongAnswers checks that nothing a server sends is taken for a result that it is not.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", "[]", "<html>", `{"id":99,"result":{}}`, `{"id":1}`, `{"id":1,"method":"x","result":{}}`, strings.Repeat("x", 1000)} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				fmt.Fprint(w, "data: "[:map[bool]int{true: 6}[kind != "application/json"]]+body+"\n\n")
			}))
			if _, err := NewMCP(s.URL).Open(t.Context()); err == nil || !llm.AsError(err).Uncertain {
				t.Errorf("%q as %s: %v", body, kind, err)
			}
			s.Close()
		}
	}
	if _, err := NewMCP("http://127.0.0.1:1").Open(t.Context()); err == nil || llm.AsError(err).Uncertain {
		t.Error("nothing was sent:", err)
	}
}

// TestMCPStatus: the statuses of an MCP server mean what those of other servers do.
func TestMCPStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]llm.Error{
		302: {Kind: llm.KindMalformed, Uncertain: true}, 304: {Kind: llm.KindMalformed, Uncertain: true},
		400: {Kind: llm.KindBadRequest}, 401: {Kind: llm.KindAuth}, 403: {Kind: llm.KindAuth}, 404: {Kind: llm.KindBadRequest},
		429: {Kind: llm.KindOverloaded}, 500: {Kind: llm.KindServer, Uncertain: true}, 503: {Kind: llm.KindOverloaded},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		_, err := NewMCP(s.URL).Open(t.Context())
		if e := llm.AsError(err); e == nil || e.Kind != want.Kind || e.Uncertain != want.Uncertain || e.Status != status {
			t.Errorf("%d: %+v, want %s, uncertain %v", status, e, want.Kind, want.Uncertain)
		}
		s.Close()
	}
}
