package bedrock

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/eventstream"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
	"parley/llm/llmtest"
)

// read assembles a stream.
func read(b []byte) (*llm.Response, error) {
	a := new(Assembler)
	if _, err := eventstream.Read(bufio.NewReader(bytes.NewReader(b)), 1<<20, func() {}, a.Event); err != nil {
		return nil, err
	}
	return a.Response()
}

// TestRoundTrip: what the Writer writes is what the Assembler reads, and no part of it is an answer.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	want := &llm.Response{
		Text: "Hello.", Finish: llm.FinishTools, Usage: llm.Usage{Input: 9, Cached: 4, Output: 5}, Thoughts: []llm.Thought{{Text: "Hm.", Signature: "s"}},
		ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: "{}"}},
	}
	b := openai.AppendStream(nil, NewWriter(openai.Meta{}), want)
	whole := AppendResponse(nil, openai.Meta{}, want)
	for name, read := range map[string]func() (*llm.Response, error){
		"streamed": func() (*llm.Response, error) { return read(b) },
		"whole":    func() (*llm.Response, error) { return DecodeResponse(whole) },
	} {
		got, err := read()
		if err != nil {
			t.Fatal(name, err)
		}
		if got.Text != want.Text || got.Finish != want.Finish || got.Usage != want.Usage || len(got.Thoughts) != 1 || got.Thoughts[0] != want.Thoughts[0] ||
			len(got.ToolCalls) != 2 || got.ToolCalls[0] != want.ToolCalls[0] || got.ToolCalls[1] != want.ToolCalls[1] {
			t.Errorf("%s: %+v", name, got)
		}
	}
	ends := eventstream.Ends(b)
	if len(ends) == 0 || ends[len(ends)-1] != len(b) {
		t.Errorf("%v of %d", ends, len(b))
	}
	for n := range b {
		if r, err := read(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are an answer: %+v", n, len(b), r)
		}
	}
}

// TestException: an exception ends a stream as an error of its kind.
func TestException(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]llm.Kind{
		"throttlingException": llm.KindRateLimited, "modelStreamErrorException": llm.KindServer, "internalServerException": llm.KindServer,
		"serviceUnavailableException": llm.KindOverloaded, "validationException": llm.KindBadRequest, "someNewException": llm.KindServer,
	} {
		b := eventstream.AppendException(nil, name, []byte(`{"message":"No."}`))
		if _, err := read(b); llm.KindOf(err) != want || !strings.Contains(err.Error(), "No.") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestDocumentNames: documents of a request have different names, as the format wants it.
func TestDocumentNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	var ms []llm.Message
	for _, name := range []string{"", "a/b.pdf", "A_B.pdf", "", "\u00fc.pdf", "document-2", long, long} {
		ms = append(ms, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "?"}, {File: &llm.File{Name: name, MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}}}})
	}
	b, _, err := AppendRequest(nil, &llm.Request{Messages: ms}, provider.Capability{}, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rest := range strings.Split(string(b), `"document":{"name":"`)[1:] {
		name, _, _ := strings.Cut(rest, `"`)
		got = append(got, name)
	}
	want := []string{"document", "a b", "A B-2", "document-2", "document-3", "document-2-2", long[:200], long[:198] + "-2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzStream(f *testing.F) {
	f.Add(openai.AppendStream(nil, NewWriter(openai.Meta{}), &llm.Response{Text: "x", Finish: llm.FinishStop}))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = read(b)
		_, _ = DecodeResponse(b)
	})
}

// TestBlocks: an answer has a bounded number of blocks, whole or streamed, and many pieces of a signature take linear time.
func TestBlocks(t *testing.T) {
	t.Parallel()
	whole := func(blocks int, block string) string {
		return `{"output":{"message":{"content":[` + strings.TrimSuffix(strings.Repeat(block+",", blocks), ",") + `]}},"stopReason":"end_turn","usage":{}}`
	}
	if r, err := DecodeResponse([]byte(whole(openai.MaxBlocks, `{"text":"a"}`))); err != nil || len(r.Text) != openai.MaxBlocks {
		t.Errorf("%v", err)
	}
	for body, want := range map[string]string{
		whole(openai.MaxBlocks+1, "{}"): "too many blocks",
		whole(1, `{"text":7}`):          "content",
		`{"output":{"message":{"content":{"text":"a"}}},"stopReason":"end_turn"}`: "content",
	} {
		if _, err := DecodeResponse([]byte(body)); llm.KindOf(err) != llm.KindMalformed || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", body, err, want)
		}
	}
	a := new(Assembler)
	piece := sse.Event{Name: []byte("contentBlockDelta"), Data: []byte(`{"delta":{"reasoningContent":{"signature":"0123456789abcdef","redactedContent":"fedcba9876543210"}}}`)}
	for range 200_000 { // quadratic work would take minutes
		if _, err := a.Event(piece); err != nil {
			t.Fatal(err)
		}
	}
	var r llm.Response
	if a.Fill(&r); a.Len() != 1 || len(r.Thoughts[0].Signature) != 200_000*16 || len(r.Thoughts[0].Opaque) != 200_000*16 {
		t.Errorf("%d blocks", a.Len())
	}
}

// TestCachePoints: where a model takes cache points, one stands after the shared prompt, wherever that ends.
func TestCachePoints(t *testing.T) {
	t.Parallel()
	const point = `{"cachePoint":{"type":"default"}}`
	call := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}}
	for _, c := range []struct {
		name, before string // what stands before the point
		shared       []llm.Message
	}{
		{"system", `{"text":"shared"},` + point + `]`, []llm.Message{llm.System("S"), llm.System("shared")}},
		{"user", `{"text":"shared"},` + point, []llm.Message{llm.System("S"), llm.User("shared")}},
		{"result", `[{"text":"shared"}]}},` + point, []llm.Message{llm.User("Look."), call, llm.ToolResult("a", "shared")}},
	} {
		req := &llm.Request{Prefix: len(c.shared), Messages: append(slices.Clone(c.shared), llm.User("question")), Tools: []llm.Tool{{Name: "f"}}}
		for _, can := range []bool{true, false} {
			b, _, err := AppendRequest(nil, req, provider.Capability{CachePoint: can}, false)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), point); n == 1 != can || strings.Contains(string(b), c.before) != can {
				t.Errorf("%s, cache points %v: %s", c.name, can, b)
			}
		}
	}
}
