package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// echo is a fake OpenEnv server: it echoes, its reward is the length, and it ends after three steps.
type echo struct {
	*httptest.Server
	open  atomic.Int64 // sockets
	limit int64
	ways  func(what string, c *websocket.Conn) bool // to misbehave: true, it is done
	seen  chan string
	mcp   string // the answer to tools/list
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{limit: 8, seen: make(chan string, 100), mcp: `{"type":"error","data":{"message":"Unknown","code":"UNKNOWN_TYPE"}}`}
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", e.socket)
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"healthy"}`)) })
	steps := 0
	mux.HandleFunc("/reset", func(w http.ResponseWriter, r *http.Request) {
		steps = 0
		e.note(r.Body)
		_, _ = w.Write([]byte(`{"observation":{"text":"hello"},"reward":null,"done":false}`))
	})
	mux.HandleFunc("/step", func(w http.ResponseWriter, r *http.Request) {
		steps++
		body := e.note(r.Body)
		if strings.Contains(body, "refuse") {
			http.Error(w, `{"detail":"bad"}`, http.StatusUnprocessableEntity)
			return
		}
		_, _ = fmt.Fprintf(w, `{"observation":{"text":"echo"},"reward":2,"done":%v}`, steps == 3)
	})
	e.Server = httptest.NewServer(mux)
	t.Cleanup(func() { e.CloseClientConnections(); e.Close() })
	return e
}

func (e *echo) note(r io.Reader) string {
	b, _ := io.ReadAll(r)
	e.seen <- string(b)
	return string(b)
}

func (e *echo) socket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	ctx := context.WithoutCancel(r.Context())
	say := func(text string) { _ = c.Write(ctx, websocket.MessageText, []byte(text)) }
	defer e.open.Add(-1)
	if e.open.Add(1) > e.limit {
		say(`{"type":"error","data":{"message":"full","code":"CAPACITY_REACHED"}}`)
		return
	}
	for steps := 0; ; {
		_, text, err := c.Read(ctx)
		if err != nil {
			return
		}
		var f frame
		if json.Unmarshal(text, &f) != nil || f.Type == "close" {
			return
		}
		if f.Type == "mcp" {
			say(e.mcp)
			continue
		}
		e.seen <- string(text)
		if e.ways != nil && e.ways(f.Type, c) {
			return
		}
		switch {
		case strings.Contains(string(f.Data), `"tool_name":"lost"`):
			say(`{"type":"observation","data":{"observation":{"tool_name":"lost","result":null,"error":{"error_type":"tool_not_found","message":"no such tool"}},"reward":null,"done":false}}`)
		case strings.Contains(string(f.Data), `"tool_name"`):
			say(`{"type":"observation","data":{"observation":{"tool_name":"add","result":{"content":[{"type":"text","text":"5"}],"data":5},"error":null},"reward":0.5,"done":false}}`)
		case strings.Contains(string(f.Data), "refuse"):
			say(`{"type":"error","data":{"message":"bad","code":"VALIDATION_ERROR"}}`)
		case strings.Contains(string(f.Data), "raise"):
			say(`{"type":"error","data":{"message":"boom","code":"EXECUTION_ERROR"}}`)
		case f.Type == "reset":
			steps = 0
			say(`{"type":"observation","data":{"observation":{"text":"hello"},"reward":null,"done":false}}`)
		default:
			steps++
			say(fmt.Sprintf(`{"type":"observation","data":{"observation":{"text":"echo"},"reward":2,"done":%v}}`, steps == 3))
		}
	}
}

func mapping() rules.OpenEnv {
	return rules.OpenEnv{System: "Echo.", Action: "message", Observation: "text"}
}

func act(text string) rules.Action { return rules.Action{rules.DefaultAgent: llm.Assistant(text)} }

// TestEpisode plays one over either transport.
func TestEpisode(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"ws", "http"} {
		e := newEcho(t)
		h, limit := newOpenEnvHost(scheme+strings.TrimPrefix(e.URL, "http"), mapping())
		if (limit == 1) != (scheme == "http") {
			t.Errorf("%s: at most %d sessions", scheme, limit)
		}
		if err := h.Check(t.Context(), nil); err != nil {
			t.Error(err)
		}
		s := h.New("run-1", rules.Opening{Params: json.RawMessage(`{"level":3}`)})
		if _, err := s.Reset(t.Context(), 42); err != nil {
			t.Fatal(err)
		}
		if got := <-e.seen; !strings.Contains(got, `"episode_id":"run-1","level":3,"seed":42`) {
			t.Errorf("%s: %s", scheme, got)
		}
		for step := 1; step <= 3; step++ {
			p, err := s.Prompt(t.Context())
			if ms := p[rules.DefaultAgent].Messages; err != nil || len(ms) != 2*step || ms[0].Text() != "Echo." || ms[1].Text() != "hello" {
				t.Fatalf("%s: %v %v", scheme, p, err)
			}
			r, err := s.Step(t.Context(), "k", act("hi"))
			if err != nil || r.Reward[rules.DefaultAgent] != 2 || r.Terminated != (step == 3) {
				t.Errorf("%s: %+v %v", scheme, r, err)
			}
			if got := <-e.seen; !strings.Contains(got, `{"message":"hi"}`) {
				t.Errorf("%s: %s", scheme, got)
			}
		}
		if p, err := s.Prompt(t.Context()); err != nil || len(p) != 0 {
			t.Errorf("%s: asks on after its end: %v %v", scheme, p, err)
		}
		if _, err := s.Reset(t.Context(), 1); err != nil {
			t.Error(err)
		}
		// An invalid action is reported to the agent, and no step is taken.
		r, err := s.Step(t.Context(), "k", act("refuse"))
		if p, _ := s.Prompt(t.Context()); err != nil || r.Done() || r.Rejected == "" || !strings.Contains(p[rules.DefaultAgent].Messages[3].Text(), "no action of this environment") {
			t.Errorf("%s: %+v %v", scheme, r, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		h.Close()
	}
}

// TestSocketFaults checks the kind of each failure, and whether its result is uncertain.
func TestSocketFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ways      func(what string, c *websocket.Conn) bool
		text      string
		kind      llm.Kind
		uncertain bool
	}{
		"hangs up":  {func(what string, _ *websocket.Conn) bool { return what == "step" }, "x", llm.KindTransport, true},
		"raises":    {nil, "raise", llm.KindServer, true},
		"garbage":   {say("<html>"), "x", llm.KindMalformed, true},
		"no answer": {say(`{"type":"observation","data":{}}`), "x", llm.KindInvalid, true},
		"odd frame": {say(`{"type":"state"}`), "x", llm.KindInvalid, true},
		"stalls": {func(what string, c *websocket.Conn) bool {
			if what == "step" {
				_, _, _ = c.Read(context.Background())
			}
			return what == "step"
		}, "x", llm.KindTimeout, true},
	} {
		e := newEcho(t)
		e.ways = c.ways
		h, _ := newOpenEnvHost("ws"+strings.TrimPrefix(e.URL, "http"), mapping())
		s := h.New("1", rules.Opening{})
		if _, err := s.Reset(t.Context(), 1); err != nil {
			t.Fatal(name, err)
		}
		limit := 2 * time.Minute
		if c.kind == llm.KindTimeout {
			limit = time.Second
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), limit, &llm.Error{Kind: llm.KindTimeout})
		_, err := s.Step(ctx, "k", act(c.text))
		if got := llm.AsError(err); got == nil || got.Kind != c.kind || got.Uncertain != c.uncertain {
			t.Errorf("%s: %+v", name, got)
		}
		cancel()
		if err := s.Close(t.Context()); err != nil {
			t.Error(name, err)
		}
		h.Close()
	}
}

// say answers a step with text.
func say(text string) func(string, *websocket.Conn) bool {
	return func(what string, c *websocket.Conn) bool {
		if what == "step" {
			_ = c.Write(context.Background(), websocket.MessageText, []byte(text))
		}
		return what == "step"
	}
}

// TestCapacity checks that a client waits for a full server, and that a closed session makes room.
func TestCapacity(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	e.limit = 1
	h, _ := newOpenEnvHost("ws"+strings.TrimPrefix(e.URL, "http"), mapping())
	defer h.Close()
	p := newPool([]Host{h}, poolConfig{Owner: "r"})
	defer p.Close(t.Context())
	for i := range 3 {
		l, err := p.lease(t.Context(), i, fmt.Sprint(i), rules.Opening{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Step(t.Context(), act("hi")); err != nil {
			t.Error(err)
		}
		if i == 0 {
			if _, err := h.New("x", rules.Opening{}).Reset(t.Context(), 1); llm.KindOf(err) != llm.KindOverloaded {
				t.Errorf("a second session: %v", err)
			}
		}
		l.Release(t.Context())
	}
}

// TestJSONActions: without a field, an answer is the action itself.
func TestJSONActions(t *testing.T) {
	t.Parallel()
	s := &openEnvSession{host: &openEnvHost{}}
	for text, ok := range map[string]bool{`{"a":1}`: true, "```json\n{\"a\":1}\n```": true, `[1]`: false, `go`: false, ``: false, `{`: false} {
		if _, got := s.action(text); got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
	if r, err := s.Step(t.Context(), "", act("go")); err != nil || r.Done() || !strings.Contains(s.talk[1].Text(), "one JSON object") {
		t.Errorf("%+v %v", r, err)
	}
	s.host.mapping.Observation = "n"
	for raw, want := range map[string]string{`{"n":3}`: "3", `{"n":"x"}`: "x", `{"m":1}`: `{"m":1}`, `7`: "7"} {
		if got := s.shown(json.RawMessage(raw)); got.Text() != want {
			t.Errorf("%s: %s", raw, got.Text())
		}
	}
}

// TestTools checks that the tools of an environment with an MCP server are offered, and that each call is a step.
func TestTools(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	e.mcp = `{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","description":"Adds.","input_schema":{"type":"object"}}]}}}`
	h, _ := newOpenEnvHost("ws"+strings.TrimPrefix(e.URL, "http"), mapping())
	defer h.Close()
	s := h.New("run-1", rules.Opening{})
	if _, err := s.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Prompt(t.Context()); err != nil || len(p[rules.DefaultAgent].Tools) != 1 || string(p[rules.DefaultAgent].Tools[0].Parameters) != `{"type":"object"}` {
		t.Errorf("%v %v", p, err)
	}
	calls := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{
		{ID: "1", Name: "add", Arguments: `{"a":2,"b":3}`}, {ID: "2", Name: "lost", Arguments: ""}, {ID: "3", Name: "add", Arguments: "[2]"}, {ID: "4", Name: "add", Arguments: `{"a":2}`},
	}}
	r, err := s.Step(t.Context(), "k", rules.Action{rules.DefaultAgent: calls})
	if err != nil || r.Reward[rules.DefaultAgent] != 1 || r.Terminated || r.Rejected != "" {
		t.Errorf("%+v %v", r, err)
	}
	p, _ := s.Prompt(t.Context())
	got := ""
	for _, m := range p[rules.DefaultAgent].Messages[3:] {
		got += fmt.Sprintf("%s %s %s %v\n", m.Role, m.ToolCallID, m.Text(), m.ToolFailed)
	}
	if want := "tool 1 5 false\ntool 2 no such tool true\ntool 3 The arguments are no JSON object. true\ntool 4 5 false\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	wrong := llm.Message{Role: llm.RoleAssistant, ToolCalls: calls.ToolCalls[2:3]}
	if r, err := s.Step(t.Context(), "k", rules.Action{rules.DefaultAgent: wrong}); err != nil || r.Rejected == "" {
		t.Errorf("no call was accepted: %+v %v", r, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPictures checks that every form of a picture is shown, and that one that cannot be read is named.
func TestPictures(t *testing.T) {
	t.Parallel()
	const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	for in, want := range map[string]string{
		`"` + dot + `"`: "image/png", `"data:image/png;base64,` + dot + `"`: "image/png", `"https://x/y.png"`: "https://x/y.png",
		`[[[0,0,0],[255,255,255]]]`: "image/png", `[[1,2],[3,4]]`: "image/png", `[[[1,2,3,4]]]`: "image/png",
		`[[[1,2]]]`: "a pixel of 2 numbers", `[[1,2],[3]]`: "row 1 has 1 pixels", `[]`: "want 1 to", `[[[999]]]`: "want an address", `"aGVsbG8="`: "its bytes are text/plain", `"?"`: "want an address", `{}`: "want an address",
	} {
		s := &openEnvSession{host: &openEnvHost{mapping: rules.OpenEnv{Image: "screen", Observation: "text"}}}
		m := s.shown(json.RawMessage(`{"text":"see","screen":` + in + `}`))
		got := m.Parts[1].Text
		if i := m.Parts[1].Image; i != nil {
			got = i.MediaType + i.URL
		}
		if m.Parts[0].Text != "see" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %s", in, got, want)
		}
	}
	s := &openEnvSession{host: &openEnvHost{mapping: rules.OpenEnv{Image: "screen"}}}
	if m := s.shown(json.RawMessage(`{"text":"see","screen":null}`)); len(m.Parts) != 1 {
		t.Errorf("%v", m)
	}
}
