// Package llmtest is the conformance suite for every llm.Model: each dialect, the simulated provider, and each layer of
// dispatch around them.
//
// It checks what package llm promises, and not the quality or the speed of answers. It asks a few hundred small
// questions, so it is for models that cost nothing: simulated ones, and servers written for a test. Each dialect has its
// own tests for a provider's failures.
package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/llm"
)

// Harness is a model under test, and what it cannot do.
type Harness struct {
	Model llm.Model
	Name  string // what to ask, as provider/model

	// Stall is a model of the same kind that does not answer, for the checks of cancelation and deadline. Nil skips them.
	Stall llm.Model

	NoTools  bool // tool calls
	NoForce  bool // being made to call a tool
	NoSchema bool // native structured output
	NoImages bool
	NoLinks  bool // images by their address
	NoAudio  bool
	NoStop   bool // stop sequences
	NoLength bool // MaxTokens
	NoUsage  bool // counting tokens

	NoDocuments     bool // PDFs
	NoDocumentLinks bool // PDFs by their address

	// MinTokens is the smallest MaxTokens that the model accepts. Default: 3
	MinTokens int
}

// Exercise runs the whole suite.
func Exercise(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		skip bool
		run  func(*testing.T, Harness)
	}{
		{"text", false, text},
		{"turns", false, turns},
		{"usage", h.NoUsage, usage},
		{"schema", h.NoSchema, schema},
		{"tool forced", h.NoTools || h.NoForce, toolForced},
		{"tool required", h.NoTools || h.NoForce, toolRequired},
		{"tool result", h.NoTools, toolResult},
		{"tool forbidden", h.NoTools, toolForbidden},
		{"image", h.NoImages, image},
		{"document", h.NoDocuments, document},
		{"audio", h.NoAudio, audio},
		{"length", h.NoLength, length},
		{"stop", h.NoStop, stop},
		{"hostile text", false, hostileText},
		{"began", false, began},
		{"request kept", false, requestKept},
		{"at once", false, atOnce},
		{"canceled before", false, canceledBefore},
		{"canceled during", h.Stall == nil, canceledDuring},
		{"deadline", h.Stall == nil, deadline},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.skip {
				t.Skip("the harness says that the model cannot do this")
			}
			c.run(t, h)
		})
	}
}

// ask asks and checks what holds for every answer.
func ask(ctx context.Context, t *testing.T, h Harness, req *llm.Request) *llm.Response {
	t.Helper()
	r, err := h.Model.Ask(ctx, req)
	if err != nil {
		checkError(t, r, err)
		t.Fatalf("Ask: %v", err)
	}
	if r == nil {
		t.Fatal("Ask returned neither a response nor an error")
	}
	switch r.Finish {
	case llm.FinishStop, llm.FinishLength, llm.FinishTools, llm.FinishRefused, llm.FinishAborted:
	default:
		t.Errorf("finish = %q, which is not one of the reasons", r.Finish)
	}
	if len(r.ToolCalls) > 0 != (r.Finish == llm.FinishTools) && r.Finish == llm.FinishStop {
		t.Errorf("finish = %q with %d tool calls", r.Finish, len(r.ToolCalls))
	}
	return r
}

// checkError checks what holds for every failure.
func checkError(t *testing.T, r *llm.Response, err error) {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is a %T, not an *llm.Error: %v", err, err)
	}
	if e.Kind == "" {
		t.Errorf("the error has no kind: %v", err)
	}
	if r != nil {
		t.Errorf("Ask returned a response with the error %v", err)
	}
}

func (h Harness) request(ms ...llm.Message) *llm.Request {
	return &llm.Request{Model: h.Name, Messages: ms, MaxTokens: 200}
}

func text(t *testing.T, h Harness) {
	r := ask(t.Context(), t, h, h.request(llm.System("You are brief."), llm.User("Say a word about the sea.")))
	if r.Text == "" {
		t.Error("the answer has no text")
	}
	if r.Model == "" {
		t.Error("the answer does not say which model it is of")
	}
}

func turns(t *testing.T, h Harness) {
	r := ask(t.Context(), t, h, h.request(
		llm.System("You are a guest."), llm.User("Hello."), llm.Assistant("Good evening."),
		llm.User("Who are you?"), llm.User("And where from?")))
	if r.Text == "" {
		t.Error("the answer has no text")
	}
}

func usage(t *testing.T, h Harness) {
	u := ask(t.Context(), t, h, h.request(llm.User("Count to three, please."))).Usage
	if u.Input <= 0 || u.Output <= 0 {
		t.Errorf("usage = %+v: input and output must be counted", u)
	}
	if u.Cached+u.CacheWrite+u.CacheWriteLong > u.Input || u.Reasoning > u.Output {
		t.Errorf("usage = %+v: a part is larger than its whole", u)
	}
}

const placeSchema = `{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer"}},"required":["city","people"],"additionalProperties":false}`

func schema(t *testing.T, h Harness) {
	req := h.request(llm.User("Name a city and how many live there, as JSON."))
	req.Schema = &llm.Schema{Name: "place", JSON: json.RawMessage(placeSchema)}
	r := ask(t.Context(), t, h, req)
	var v struct {
		City   *string
		People *int
	}
	if err := json.Unmarshal([]byte(r.Text), &v); err != nil || v.City == nil || v.People == nil {
		t.Errorf("the answer %q is not of the schema: %v", r.Text, err)
	}
}

func (h Harness) toolRequest() *llm.Request {
	req := h.request(llm.User("What is the weather in Paris?"))
	req.Tools = []llm.Tool{
		{Name: "weather", Description: "Tells the weather.", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)},
		{Name: "noop"},
	}
	return req
}

func toolForced(t *testing.T, h Harness) {
	req := h.toolRequest()
	req.ToolChoice, req.OneTool = "weather", true
	r := ask(t.Context(), t, h, req)
	if len(r.ToolCalls) != 1 {
		t.Fatalf("%d tool calls, want 1", len(r.ToolCalls))
	}
	checkCall(t, r.ToolCalls[0])
	if r.ToolCalls[0].Name != "weather" {
		t.Errorf("called %q, want weather", r.ToolCalls[0].Name)
	}
}

func toolRequired(t *testing.T, h Harness) {
	req := h.toolRequest()
	req.ToolChoice = "required"
	r := ask(t.Context(), t, h, req)
	if len(r.ToolCalls) == 0 {
		t.Fatal("no tool was called")
	}
	for _, c := range r.ToolCalls {
		checkCall(t, c)
	}
}

func checkCall(t *testing.T, c llm.ToolCall) {
	t.Helper()
	var args map[string]any
	if c.ID == "" || c.Name == "" || json.Unmarshal([]byte(c.Arguments), &args) != nil {
		t.Errorf("tool call %+v: needs an id, a name, and an object of arguments", c)
	}
}

func toolResult(t *testing.T, h Harness) {
	req := h.toolRequest()
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{
			{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`},
			{ID: "call_2", Name: "noop", Arguments: `not JSON`},
		}},
		llm.ToolResult("call_1", "Rain."),
		llm.Message{Role: llm.RoleTool, ToolCallID: "call_2", ToolFailed: true, Parts: []llm.Part{{Text: "It failed."}}},
		llm.User("So?"))
	r := ask(t.Context(), t, h, req)
	if r.Text == "" && len(r.ToolCalls) == 0 {
		t.Error("the answer has neither text nor tool calls")
	}
}

func toolForbidden(t *testing.T, h Harness) {
	req := h.toolRequest()
	req.ToolChoice = "none"
	if r := ask(t.Context(), t, h, req); len(r.ToolCalls) > 0 {
		t.Errorf("tools were called: %+v", r.ToolCalls)
	}
}

func image(t *testing.T, h Harness) {
	parts := []llm.Part{{Text: "What is this?"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}
	if !h.NoLinks {
		parts = append(parts, llm.Part{Image: &llm.Image{URL: "https://example.com/a.png", Detail: "low"}})
	}
	ask(t.Context(), t, h, h.request(llm.Message{Role: llm.RoleUser, Parts: parts}))
}

// PDF is a document of one page, and WAV a recording of a moment of silence.
const (
	PDF = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
	WAV = "RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"
)

func document(t *testing.T, h Harness) {
	parts := []llm.Part{{Text: "What is this?"}, {File: &llm.File{Name: "a_b.pdf", MediaType: llm.MediaPDF, Data: []byte(PDF)}}}
	if !h.NoDocumentLinks {
		parts = append(parts, llm.Part{File: &llm.File{URL: "https://example.com/a.pdf", MediaType: llm.MediaPDF}})
	}
	ask(t.Context(), t, h, h.request(llm.Message{Role: llm.RoleUser, Parts: parts}))
}

func audio(t *testing.T, h Harness) {
	ask(t.Context(), t, h, h.request(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
		{Text: "What is said?"}, {File: &llm.File{MediaType: llm.MediaWAV, Data: []byte(WAV)}},
	}}))
}

func length(t *testing.T, h Harness) {
	req := h.request(llm.User("Tell a long story of at least a thousand words."))
	req.MaxTokens = max(h.MinTokens, 3)
	if r := ask(t.Context(), t, h, req); r.Finish != llm.FinishLength {
		t.Errorf("finish = %q, want %q", r.Finish, llm.FinishLength)
	}
}

func stop(t *testing.T, h Harness) {
	req := h.request(llm.User("Tell a story."))
	req.Stop = []string{"e"}
	r := ask(t.Context(), t, h, req)
	if strings.Contains(r.Text, "e") {
		t.Errorf("the answer %q goes beyond the stop sequence", r.Text)
	}
}

// hostileText asks with text that breaks careless writers of JSON and of prompts.
func hostileText(t *testing.T, h Harness) {
	for _, s := range []string{"\"}]}", "\x00\x1b[31m\u2028\u2029", "\xff\xfe\xc0", strings.Repeat("\\", 99), "data: [DONE]\n\n", "𝄞 é 漢字"} {
		ask(t.Context(), t, h, h.request(llm.System(s), llm.User(s), llm.Assistant(s), llm.User(s)))
	}
}

func began(t *testing.T, h Harness) {
	var mu sync.Mutex
	n := 0
	ctx := llm.OnBegan(t.Context(), func() { mu.Lock(); n++; mu.Unlock() })
	ask(ctx, t, h, h.request(llm.User("Go on.")))
	mu.Lock()
	defer mu.Unlock()
	if n == 0 {
		t.Error("the model did not report that the answer had begun")
	}
}

func requestKept(t *testing.T, h Harness) {
	temperature := 0.5
	req := h.toolRequest()
	req.Temperature, req.Prefix, req.Session = &temperature, 1, "s"
	req.Messages = []llm.Message{llm.System("S"), llm.User("U"), llm.Assistant("A"), llm.User("V")}
	before := req.Digest()
	kept := *req
	kept.Messages = append([]llm.Message(nil), req.Messages...)
	ask(t.Context(), t, h, req)
	if req.Digest() != before || !reflect.DeepEqual(*req, kept) {
		t.Error("the model changed the request")
	}
}

func atOnce(t *testing.T, h Harness) {
	var wg sync.WaitGroup
	req := h.request(llm.User("All together."))
	for range 64 {
		wg.Go(func() {
			if _, err := h.Model.Ask(t.Context(), req); err != nil {
				t.Errorf("Ask: %v", err)
			}
		})
	}
	wg.Wait()
}

func canceledBefore(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := h.Model.Ask(ctx, h.request(llm.User("Too late.")))
	wantKind(t, r, err, llm.KindCanceled)
}

func canceledDuring(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	r, err := h.Stall.Ask(ctx, h.request(llm.User("Never mind.")))
	wantKind(t, r, err, llm.KindCanceled)
}

func deadline(t *testing.T, h Harness) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := h.Stall.Ask(ctx, h.request(llm.User("In time.")))
	wantKind(t, r, err, llm.KindTimeout)
}

func wantKind(t *testing.T, r *llm.Response, err error, kind llm.Kind) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of kind %s", kind)
	}
	checkError(t, r, err)
	if k := llm.KindOf(err); k != kind {
		t.Errorf("kind = %s, want %s (%v)", k, kind, err)
	}
	if strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("the error is not one plain line: %q", err)
	}
}
