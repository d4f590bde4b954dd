package envhttp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

func serveV1(t *testing.T, f http.HandlerFunc) *v1Host {
	t.Helper()
	s := httptest.NewServer(f)
	h := newV1Host(s.URL, 2)
	t.Cleanup(func() { h.Close(); s.Close() })
	return h
}

// TestRequests checks the requests against the protocol.
func TestRequests(t *testing.T) {
	t.Parallel()
	var got []string
	h := serveV1(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Idempotency-Key")+" "+string(body)))
		switch {
		case strings.HasSuffix(r.URL.Path, "/step"):
			_, _ = w.Write([]byte(`{"observation":{},"reward":0.5,"terminated":false,"truncated":true,"info":{"a":1}}`))
		case strings.HasSuffix(r.URL.Path, "/get_task_prompt"):
			_, _ = w.Write([]byte(`{"a":[{"role":"user","content":"?"}]}`))
		default:
			_, _ = w.Write([]byte(`{"observation":{},"info":{"x":2},"tools":[{"name":"look"}]}`))
		}
	})
	s := h.New("run-1/2", rules.Opening{Env: "count", Params: json.RawMessage(`{"k":1}`)})
	info, err := s.Reset(t.Context(), 42)
	if err != nil || string(info) != `{"x":2}` {
		t.Errorf("%s %v", info, err)
	}
	if p, err := s.Prompt(t.Context()); err != nil || len(p["a"].Messages) != 1 || len(p["a"].Tools) != 1 {
		t.Errorf("%v %v", p, err)
	}
	if r, err := s.Step(t.Context(), "key", rules.Action{rules.DefaultAgent: llm.Assistant("go")}); err != nil || !r.Truncated || r.Reward[rules.DefaultAgent] != 0.5 || string(r.Info) != `{"a":1}` {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := s.Step(t.Context(), "key2", rules.Action{"a": llm.Assistant("x"), "b": llm.Assistant("y")}); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := []string{
		`POST /count/run-1%2F2/reset  {"env_param":{"k":1},"seed":42}`,
		`GET /count/run-1%2F2/get_task_prompt`,
		`POST /count/run-1%2F2/step key {"action":"go"}`,
		`POST /count/run-1%2F2/step key2 {"action":{"a":"x","b":"y"}}`,
		`DELETE /count/run-1%2F2`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNoResult checks that an invalid result of a step is an error.
func TestNoResult(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{}`: false, `null`: false, `{"status":"ok"}`: false, `{"reward":1}`: false, `{"terminated":true}`: false, `[]`: false, `{"reward":"a lot","terminated":false}`: false,
		`{"reward":NaN,"terminated":false}`: false, `{"reward":1,"terminated":"no"}`: false,
		`{"reward":1,"terminated":false}`: true, `{"terminated":true,"info":{"reward_dict":{"a":1}}}`: true,
	} {
		h := serveV1(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		_, err := h.New("1", rules.Opening{Env: "e"}).Step(t.Context(), "k", nil)
		if e := llm.AsError(err); (err == nil) != ok || e != nil && (e.Kind != llm.KindInvalid || !e.Uncertain || !strings.HasPrefix(e.Message, "step: ")) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestNoPrompt checks that an invalid prompt is not read as an empty one, which would end the episode.
func TestNoPrompt(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		``: false, ` `: false, `[`: false, `[] x`: false, `[{"role":"user","content":"hi"}`: false, `{"a":[]} {`: false, `"hi"`: false, `3`: false,
		`[]`: true, `null`: true, `{}`: true, `[{"role":"user","content":"hi"}]`: true, `{"a":{"messages":[]}}`: true,
	} {
		h := serveV1(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		_, err := h.New("1", rules.Opening{Env: "e"}).Prompt(t.Context())
		if e := llm.AsError(err); (err == nil) != ok || e != nil && (e.Kind.Retryable() == json.Valid([]byte(body)) || !e.Uncertain) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// TestClose checks that servers without DELETE get a request to close.
func TestClose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ deletes, closes, requests int }{{200, 200, 1}, {404, 200, 2}, {405, 200, 2}, {404, 404, 2}} {
		n := 0
		h := serveV1(t, func(w http.ResponseWriter, r *http.Request) {
			n++
			if r.Method == http.MethodDelete {
				w.WriteHeader(c.deletes)
				return
			}
			w.WriteHeader(c.closes)
		})
		if err := h.New("1", rules.Opening{Env: "e"}).Close(t.Context()); err != nil || n != c.requests {
			t.Errorf("%+v: %d requests, %v", c, n, err)
		}
	}
}
