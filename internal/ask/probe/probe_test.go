package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a scripted model server. The zero value is honest and can do everything.
type server struct {
	root          string // where the API is. Default: /v1
	models        string // answer to /models. Default: one model with a context length
	ignoreMax     bool   // max_tokens
	ignoreNew     bool   // max_completion_tokens
	ignoreSchema  bool
	ignoreTools   bool
	ignoreRest    bool // log probabilities, token ids, usage in streams
	strict        bool // refuses fields it does not know
	noForce       bool
	noStream      bool
	batches       bool
	text          string // an answer without a schema. Default: as long as the limit allows
	chat          http.HandlerFunc
	onlyAnthropic bool

	mu       sync.Mutex
	requests []map[string]any
}

func (s *server) start(t *testing.T) string {
	t.Helper()
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	return ts.URL
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root := s.root
	if root == "" {
		root = "/v1"
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case root + "/models":
		models := s.models
		if models == "" {
			models = `{"object":"list","data":[{"id":"one","owned_by":"script","max_model_len":4096},{"id":"two"}]}`
		}
		fmt.Fprint(w, models)
	case root + "/chat/completions":
		if s.chat != nil {
			s.chat(w, r)
			return
		}
		if s.onlyAnthropic {
			http.NotFound(w, r)
			return
		}
		s.complete(w, r)
	case root + "/messages":
		if !s.onlyAnthropic {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"model":"one","stop_reason":"max_tokens","usage":{"input_tokens":3,"output_tokens":16}}`)
	case root + "/batches":
		if !s.batches {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"object":"list","data":[]}`)
	default:
		http.NotFound(w, r)
	}
}

// complete answers a chat completion.
func (s *server) complete(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var req map[string]any
	if json.Unmarshal(raw, &req) != nil {
		http.Error(w, `{"error":"not JSON"}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	for _, f := range []string{"return_token_ids", "seed", "stream_options"} {
		if _, has := req[f]; has && s.strict {
			http.Error(w, fmt.Sprintf(`{"detail":"Unexpected fields in the request: {'%s'}"}`, f), http.StatusUnprocessableEntity)
			return
		}
	}
	if req["tool_choice"] == "required" && s.noForce {
		http.Error(w, `{"error":{"message":"tool_choice must be auto"}}`, http.StatusBadRequest)
		return
	}
	if req["stream"] == true && !s.noStream {
		s.flow(w)
		return
	}
	n, finish := s.length(req)
	message := map[string]any{"role": "assistant", "content": s.text}
	if s.text == "" {
		message["content"] = strings.Repeat("one ", n)
	}
	if req["response_format"] != nil && !s.ignoreSchema {
		message["content"], n, finish = `{"colour":"red"}`, 6, "stop"
	}
	if req["tools"] != nil && !s.ignoreTools {
		message["tool_calls"] = []any{map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": "look", "arguments": `{"at":"sea"}`}}}
		finish = "tool_calls"
	}
	choice := map[string]any{"index": 0, "message": message, "finish_reason": finish}
	answer := map[string]any{"object": "chat.completion", "model": "one", "choices": []any{choice}, "usage": map[string]any{"prompt_tokens": 3, "completion_tokens": n}}
	if req["logprobs"] == true && !s.ignoreRest {
		choice["logprobs"] = map[string]any{"content": []any{map[string]any{"token": "one", "logprob": -0.5}}}
	}
	if req["return_token_ids"] == true && !s.ignoreRest {
		choice["token_ids"], answer["prompt_token_ids"] = []int{1}, []int{2, 3}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// length returns the length of an answer.
func (s *server) length(req map[string]any) (n int, finish string) {
	if v, has := req["max_tokens"].(float64); has && !s.ignoreMax {
		return int(v), "length"
	}
	if v, has := req["max_completion_tokens"].(float64); has && !s.ignoreNew {
		return int(v), "length"
	}
	return 500, "stop"
}

func (s *server) flow(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"one"}}]}`+"\n\n")
	if s.ignoreRest {
		return
	}
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
}

func verdicts(r *Report) map[string]Verdict {
	m := map[string]Verdict{}
	for _, f := range r.Findings {
		m[f.Feature] = f.Verdict
	}
	return m
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		s     *server
		want  map[string]Verdict
		entry []string // that it holds
	}{
		{
			"honest", &server{batches: true},
			map[string]Verdict{
				featureModels: yes, featureChat: yes, featureResponses: no, featureMessages: no, featureMaxTokens: yes, featureMaxNew: yes,
				featureSchema: yes, featureTools: yes, featureStream: yes, featureUsage: yes, featureSystem: yes, featureSampling: yes,
				featureLogprobs: yes, featureTokenIDs: yes, featureBatch: yes, featureMetrics: no, featureContext: yes,
			},
			[]string{"dialect: openai\n", "batch: {}\n", `capabilities: [{match: "lab/*", token_ids: true}]`, `player: {model: "lab/one"}`},
		},
		{
			"ignores the newer limit", &server{ignoreNew: true},
			map[string]Verdict{featureMaxTokens: yes, featureMaxNew: no},
			[]string{"use_max_tokens: true"},
		},
		{
			"ignores every limit", &server{ignoreNew: true, ignoreMax: true},
			map[string]Verdict{featureMaxTokens: no, featureMaxNew: no},
			nil,
		},
		{
			"ignores everything", &server{ignoreSchema: true, ignoreTools: true, ignoreRest: true, text: "The sea is wide."},
			map[string]Verdict{featureSchema: no, featureTools: no, featureStream: yes, featureUsage: no, featureLogprobs: no, featureTokenIDs: no, featureBatch: no},
			[]string{`{match: "lab/*", no_schema: true, no_tools: true, no_logprobs: true}`},
		},
		{
			"refuses what it does not know", &server{strict: true, noForce: true},
			map[string]Verdict{featureTokenIDs: no, featureSampling: no, featureTools: yes, featureStream: yes, featureUsage: yes},
			[]string{"no_seed: true", "no_force: true", "no_stream_options: true"},
		},
		{
			"does not stream", &server{noStream: true},
			map[string]Verdict{featureStream: no},
			nil,
		},
		{
			"speaks Anthropic's format only", &server{onlyAnthropic: true},
			map[string]Verdict{featureChat: no, featureMessages: yes, featureLimit: yes},
			[]string{"dialect: anthropic\n"},
		},
		{
			"context unknown", &server{models: `{"data":[{"id":"one","max_model_len":-5}]}`},
			map[string]Verdict{featureContext: unknown},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Config{BaseURL: tt.s.start(t) + "/v1/"})
			if err != nil {
				t.Fatal(err)
			}
			got := verdicts(r)
			for feature, want := range tt.want {
				if got[feature] != want {
					t.Errorf("%s: %q, want %q: %+v", feature, got[feature], want, r.Findings)
				}
			}
			for _, text := range tt.entry {
				if !strings.Contains(r.Entry, text) {
					t.Errorf("the entry does not hold %q:\n%s", text, r.Entry)
				}
			}
			if err := r.Provider.Validate(); err != nil {
				t.Errorf("the entry is not valid: %v", err)
			}
		})
	}
}

// TestBaseURL: a probe finds the API below an address without a path. If the API is not below the
// address, the address does not change.
func TestBaseURL(t *testing.T) {
	t.Parallel()
	below := (&server{}).start(t)
	r, err := Run(t.Context(), Config{BaseURL: below})
	if err != nil || r.BaseURL != below+"/v1" || !strings.HasSuffix(r.Findings[0].Detail, "; base_url has to end in /v1") {
		t.Errorf("%+v, %v", r, err)
	}
	odd := (&server{root: "/openai"}).start(t)
	r, err = Run(t.Context(), Config{BaseURL: odd + "/openai"})
	if err != nil || r.BaseURL != odd+"/openai" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestQuestionsAreShort limits the cost of a probe: every question has a limit of tokens, in a
// field that the server obeys once that is known.
func TestQuestionsAreShort(t *testing.T) {
	t.Parallel()
	s := &server{ignoreNew: true}
	if _, err := Run(t.Context(), Config{BaseURL: s.start(t) + "/v1", Model: "two"}); err != nil {
		t.Fatal(err)
	}
	if len(s.requests) < 8 || len(s.requests) > 25 {
		t.Errorf("%d questions", len(s.requests))
	}
	for i, req := range s.requests {
		n, old := req["max_tokens"].(float64)
		m, now := req["max_completion_tokens"].(float64)
		if !old && !now || n > structuredTokens || m > structuredTokens {
			t.Errorf("question %d has no limit: %v", i, req)
		}
		if i > 3 && !old {
			t.Errorf("the limit of question %d is in a field that the server ignores: %v", i, req)
		}
		if req["model"] != "two" {
			t.Errorf("question %d is to %v", i, req["model"])
		}
	}
}

// TestNoReport: if there is nothing to report, the error says what to do.
func TestNoReport(t *testing.T) {
	t.Parallel()
	status := func(code int, contentType, body string) string {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(ts.Close)
		return ts.URL
	}
	const gone = "http://127.0.0.1:1" // a port that systems give to nobody
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)
	for _, tt := range []struct {
		name, url, want string
		timeout         time.Duration
	}{
		{"an endpoint", status(404, "application/json", `{"detail":"Not Found"}`) + "/v1/chat/completions", "leave out /chat/completions", 0},
		{"an endpoint with a slash", status(404, "application/json", `{"detail":"Not Found"}`) + "/v1/messages/", "leave out /messages", 0},
		{"nothing listens", gone, "no server listens there", 0},
		{"no address", "localhost:8000", "http", 0},
		{"hangs", hangs.URL, "timeout", 20 * time.Millisecond},
		{"a page", status(200, "text/html", "<html><title>Welcome</title>"), "HTML page", 0},
		{"404", status(404, "application/json", `{"detail":"Not Found"}`), "--model", 0},
		{"401", status(401, "application/json", `{"error":{"message":"no key"}}`), "--key-env", 0},
		{"no models", status(200, "application/json", `{"data":[]}`), "--model", 0},
		{"no list", status(200, "application/json", `{"data":7}`), "JSON", 0},
		{"a model nobody can name", status(200, "application/json", `{"data":[{"id":"a\u001b[2Jb"}]}`), "--model", 0},
		{"endless", status(200, "application/json", `{"data":[{"id":"`+strings.Repeat("x", maxAnswer)+`"}]}`), "larger than", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Config{BaseURL: tt.url, Timeout: tt.timeout})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, %v; want an error with %q", r, err, tt.want)
			}
		})
	}
}

// TestRefusedKey: if you named a key, the error says that it was refused, and does not ask for one.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer s.Close()
	_, err := Run(t.Context(), Config{BaseURL: s.URL + "/v1", KeyEnv: "PATH"})
	if err == nil || !strings.Contains(err.Error(), "the key in the environment variable PATH was refused") || strings.Contains(err.Error(), "--key-env") {
		t.Error(err)
	}
}

// TestHostileAnswers: the report about a server that lists models and answers only rubbish has no
// entry, is short and has no control characters.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"empty": ``, "null": `null`, "a list": `[]`, "half": `{"choices":[{"message":{"content":"on`,
		"wrong types": `{"choices":{"message":7},"usage":"many"}`, "deep": strings.Repeat(`{"choices":[`, 20000),
		"long": `{"error":{"message":"` + strings.Repeat(`\u001b[31mred `, 10000) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{chat: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }}
			r, err := Run(t.Context(), Config{BaseURL: s.start(t) + "/v1"})
			if err != nil {
				t.Fatal(err)
			}
			if r.Provider != nil || r.Entry != "" {
				t.Errorf("an entry: %s", r.Entry)
			}
			for _, f := range r.Findings {
				if len(f.Detail) > maxDetail+len("…") || strings.ContainsAny(f.Detail, "\x1b\n") {
					t.Errorf("%s: %q", f.Feature, f.Detail)
				}
			}
		})
	}
}

// TestHangingAnswer: a question without an answer ends, and the report says so.
func TestHangingAnswer(t *testing.T) {
	t.Parallel()
	s := &server{chat: func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}}
	r, err := Run(t.Context(), Config{BaseURL: s.start(t) + "/v1", Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := verdicts(r)[featureChat]; got != unknown || r.Provider != nil {
		t.Errorf("%q, %+v", got, r.Provider)
	}
}

// TestCanceled: a canceled probe has no report.
func TestCanceled(t *testing.T) {
	t.Parallel()
	s := &server{}
	url := s.start(t) + "/v1"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.chat = func(w http.ResponseWriter, r *http.Request) {
		cancel()
		s.complete(w, r)
	}
	if r, err := Run(ctx, Config{BaseURL: url}); err == nil {
		t.Errorf("%+v", r)
	}
}
