package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// broken panics when it is stepped.
type broken struct{}

func (broken) Reset(int64) {}

func (broken) Prompt() rules.Prompt { return nil }

func (broken) Step(rules.Action) rules.Result { panic("oh") }

func kinds() []env.Kind {
	return append(env.Standard(), env.Kind{Name: "broken", New: func(json.RawMessage) (env.Env, error) { return broken{}, nil }})
}

func ask(s *Server, method, path, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// TestProtocol holds the server to the v1 protocol, request by request.
func TestProtocol(t *testing.T) {
	t.Parallel()
	s := NewEnvServer(EnvServerConfig{Kinds: kinds()})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // that the answer begins with
	}{
		{"GET", "/envs", "", 200, `{"envs":[]}`},
		{"POST", "/chess/1/reset", `{}`, 400, `{"detail":"env: unknown environment \"chess\"`},
		{"POST", "/word/1/reset", `{"env_param":{"word":"nope"}}`, 400, `{"detail":"env: word: params.word`},
		{"POST", "/word/1/reset", `{`, 400, `{"detail":"the body is not what it should be`},
		{"GET", "/word/1/get_task_prompt", "", 404, `{"detail":"there is no such session`},
		{"POST", "/word/1/step", `{"action":"x"}`, 404, `{"detail":"there is no such session`},
		{"DELETE", "/word/1", "", 404, `{"detail"`},
		{"POST", "/word/1/reset", `{"env_param":"{\"word\":\"river\"}","seed":null}`, 200, `{"info":{},"observation":{}}`},
		{"GET", "/envs", "", 200, `{"envs":[{"envname":"word","id":"1","state":"ready"}]}`},
		{"GET", "/word/1/get_task_prompt", "", 200, `[{"role":"system","content":"Find a hidden word`},
		{"POST", "/word/1/step", `{"action":3}`, 400, `{"detail":"the body`},
		{"POST", "/word/1/step", `{}`, 400, `{"detail":"action: is missing"}`},
		{"POST", "/word/1/step", `{"action":"water"}`, 200, `{"observation":{},"reward":0,"terminated":false,"truncated":false,"info":{}}`},
		{"POST", "/word/1/step", `{"action":"river"}`, 200, `{"observation":{},"reward":1,"terminated":true,"truncated":false,"info":{}}`},
		{"GET", "/word/1/get_task_prompt", "", 200, `[]`},
		{"DELETE", "/word/1", "", 200, `{"envname":"word","id":"1","status":"ok"}`},
		{"POST", "/word/1/close", "{}", 404, `{"detail"`},
		{"POST", "/broken/1/reset", "", 200, "{"},
		{"POST", "/broken/1/step", `{"action":""}`, 500, `{"detail":"the environment panicked: oh"}`},
		{"POST", "/broken/1/step", `{"action":""}`, 500, `{"detail":"the environment panicked: oh"}`}, // and its lock is free
		{"POST", "/broken/1/close", "{}", 200, `{"envname"`},
		{"POST", "/negotiation/n/reset", "{}", 200, "{"},
		{"GET", "/negotiation/n/get_task_prompt", "", 200, `{"seller":[{`},
		{"POST", "/negotiation/n/step", `{"action":{"seller":"OFFER 5"}}`, 200, `{"observation":{},"reward":0,`},
		{"GET", "/negotiation/n/get_task_prompt", "", 200, `{"buyer":[{`},
		{"GET", "/nothing", "", 404, ""},
		{"PUT", "/word/1/step", "", 405, ""},
	} {
		if status, got := ask(s, c.method, c.path, c.body); status != c.status || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s %s: %d %.200s, want %d %s", c.method, c.path, c.body, status, got, c.status, c.want)
		}
	}
}

// TestSameKey checks that a repeated step gets the same answer and is not taken again.
func TestSameKey(t *testing.T) {
	t.Parallel()
	s := NewEnvServer(EnvServerConfig{Kinds: kinds()})
	ask(s, "POST", "/word/1/reset", `{"env_param":{"word":"river","guesses":3}}`)
	for range 5 {
		if _, got := ask(s, "POST", "/word/1/step", `{"action":"water"}`, "Idempotency-Key", "a"); strings.Contains(got, `"terminated":true`) {
			t.Fatal("it was taken again")
		}
	}
	ask(s, "POST", "/word/1/step", `{"action":"water"}`, "Idempotency-Key", "b")
	if _, got := ask(s, "POST", "/word/1/step", `{"action":"water"}`, "Idempotency-Key", "c"); !strings.Contains(got, `"terminated":true`) {
		t.Errorf("three guesses were taken: %s", got)
	}
	ask(s, "POST", "/word/1/reset", `{"env_param":{"word":"water"}}`)
	if _, got := ask(s, "POST", "/word/1/step", `{"action":"water"}`, "Idempotency-Key", "c"); !strings.Contains(got, `"reward":1`) {
		t.Errorf("after a reset: %s", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewEnvServer(EnvServerConfig{Kinds: kinds(), Sessions: 2, Idle: time.Hour})
		for i, want := range []int{200, 200, 503} {
			if status, _ := ask(s, "POST", fmt.Sprintf("/maze/%d/reset", i), "{}"); status != want {
				t.Errorf("session %d: %d", i, status)
			}
		}
		time.Sleep(50 * time.Minute)
		ask(s, "GET", "/maze/0/get_task_prompt", "")
		time.Sleep(50 * time.Minute)
		if _, got := ask(s, "GET", "/envs", ""); !strings.Contains(got, `"id":"0"`) || strings.Contains(got, `"id":"1"`) {
			t.Errorf("want only idle sessions closed: %s", got)
		}
	})
	s := NewEnvServer(EnvServerConfig{Kinds: kinds()})
	ask(s, "POST", "/maze/0/reset", "{}")
	if status, _ := ask(s, "POST", "/maze/0/step", `{"action":"`+strings.Repeat("x", maxRequest)+`"}`); status != 400 {
		t.Errorf("a body without bound: %d", status)
	}
}

// TestServe serves on a port and is spoken to by the client.
func TestServe(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- NewEnvServer(EnvServerConfig{Kinds: kinds()}).Serve(ctx, l) }()
	host := newV1Host("http://"+l.Addr().String(), 4)
	session := host.New("a b/c", rules.Opening{Env: "word", Params: json.RawMessage(`{"word":"river"}`)})
	if _, err := session.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p, err := session.Prompt(t.Context())
	if err != nil || len(p[rules.DefaultAgent].Messages) != 2 || p[rules.DefaultAgent].Messages[0].Role != llm.RoleSystem {
		t.Errorf("%v %v", p, err)
	}
	shop := host.New("tools", rules.Opening{Env: "shop"})
	if _, err := shop.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	calls := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "7", Name: "price", Arguments: `{"item":"kettle"}`}}}
	if _, err := shop.Step(t.Context(), "k", rules.Action{rules.DefaultAgent: calls}); err != nil {
		t.Fatal(err)
	}
	if p, err = shop.Prompt(t.Context()); err != nil || len(p[rules.DefaultAgent].Tools) != 1 || len(p[rules.DefaultAgent].Messages) != 4 || p[rules.DefaultAgent].Messages[3].ToolCallID != "7" {
		t.Errorf("%v %v", p, err)
	}
	if err := shop.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := session.Step(t.Context(), "k", rules.Action{rules.DefaultAgent: llm.Assistant("river")}); err != nil || !r.Terminated || r.Reward[rules.DefaultAgent] != 1 {
		t.Errorf("%+v %v", r, err)
	}
	strays := []string{}
	if err := host.Check(t.Context(), func(id string) bool { strays = append(strays, id); return true }); err != nil || len(strays) != 1 || strays[0] != "a b/c" {
		t.Errorf("%v %v", strays, err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Errorf("closing what is not there: %v", err)
	}
	if _, err := session.Step(t.Context(), "k2", nil); llm.AsError(err).Status != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	host.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// FuzzServer resets and steps every environment with whatever a client sends: that is refused or
// answered, and no environment panics.
func FuzzServer(f *testing.F) {
	for _, k := range env.Standard() {
		f.Add(k.Name, `{"seed": 7}`, `{"action": "east"}`)
	}
	f.Add("maze", `{"env_param": {"size": 9223372036854775807}}`, `{"action": {"text": "north"}}`)
	f.Add("maze", `{"env_param": "{\"size\": -1}", "seed": -9223372036854775808}`, `{"action": null}`)
	f.Add("negotiation", `{"env_param": null}`, `{"action": {"seller": "1e999", "buyer": [[[[]]]]}}`)
	f.Add("number", `{"env_param": {"low": -9223372036854775808, "high": 9223372036854775807}}`, `{"action": "0"}`)
	f.Fuzz(func(t *testing.T, name, reset, step string) {
		s := NewEnvServer(EnvServerConfig{Kinds: env.Standard()})
		for _, k := range env.Standard() {
			if k.Name != name {
				continue
			}
			for _, r := range []struct{ method, path, body string }{
				{"POST", "/reset", reset}, {"GET", "/get_task_prompt", ""}, {"POST", "/step", step}, {"POST", "/step", step},
				{"POST", "/close", step},
			} {
				if status, body := ask(s, r.method, "/"+name+"/1"+r.path, r.body); status >= 500 {
					t.Errorf("%s %s %q: %d %s", r.method, r.path, r.body, status, body)
				}
			}
		}
	})
}
