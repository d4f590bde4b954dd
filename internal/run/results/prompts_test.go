package results

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

func assistant(text string, calls ...llm.ToolCall) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: text}}, ToolCalls: calls}
}

// TestMessageDiff finds the new messages in requests that repeat everything, of two conversations
// that alternate in one session.
func TestMessageDiff(t *testing.T) {
	t.Parallel()
	look := llm.ToolCall{ID: "c1", Name: "look", Arguments: `{"at":1}`}
	seen := llm.Message{Role: llm.RoleTool, ToolCallID: "c1", Parts: []llm.Part{{Text: "a wall"}}}
	picture := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "And this?"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("xyz")}}, {File: &llm.File{Name: "a.pdf", MediaType: llm.MediaPDF, Data: []byte("%PDF-")}}}}
	one := []llm.Message{llm.System("Be brief."), llm.User("Who?")}
	two := []llm.Message{llm.System("Be brief."), assistant("an example"), llm.User("Where?")}
	more := slices.Concat(one, []llm.Message{assistant("", look), seen})
	var h MessageDiff
	for i, c := range []struct {
		asked  []llm.Message
		answer *llm.Response
		want   string
	}{
		{one, &llm.Response{ToolCalls: []llm.ToolCall{look}}, "system Be brief./user Who?"},
		{two, nil, "assistant an example/user Where?"}, // it failed
		{more, &llm.Response{Text: "Nobody. "}, "tool a wall"},
		{two, &llm.Response{Text: "Here."}, "user Where?"}, // once more
		{slices.Concat(more, []llm.Message{assistant("Nobody."), picture}), nil, "user And this?\n(image image/png, 3 bytes)\n(document a.pdf (application/pdf, 5 bytes))"},
		{nil, nil, ""},
	} {
		var got []string
		for _, m := range h.New(&llm.Request{Messages: c.asked}, c.answer) {
			got = append(got, string(m.Role)+" "+m.Words())
		}
		if s := strings.Join(got, "/"); s != c.want {
			t.Errorf("%d: %q, want %q", i, s, c.want)
		}
	}
}

// TestSessionReads reads a session of a gateway: the new messages of a request come before its
// answer, and notes with the bytes of answers are hidden. Other kinds note it themselves.
func TestSessionReads(t *testing.T) {
	t.Parallel()
	turn := func(n int) journal.Turn { return journal.Turn{Turn: n} }
	for kind, want := range map[string]string{
		"gateway": "asked user: Who?/answer client: me/asked user: Why?/answer client: because",
		"duel":    `note : {"body":"{}"}/answer client: me/answer client: because`,
	} {
		first := askTranscript(turn(0), "client", "me")
		first.Request.Messages = []llm.Message{llm.User("Who?")}
		second := askTranscript(turn(1), "client", "because")
		second.Request.Messages = []llm.Message{llm.User("Who?"), assistant("me"), llm.User("Why?")}
		entries := append(transcriptBegin(kind),
			&journal.Turned{Turn: turn(0), Calls: 1, Notes: []world.Note{{Kind: "wire", Data: json.RawMessage(`{"body":"{}"}`)}}},
			first, &journal.Turned{Turn: turn(1), Calls: 1}, second)
		j := &journal.Memory{}
		if err := j.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
		var known world.Kind
		if k := gateway.Kind(); k.Name == kind {
			known = k
		}
		read, err := ReadTranscript(t.Context(), j, head(t, j), known, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range read.Lines {
			got = append(got, string(l.Said)+" "+l.Seat+": "+l.Text)
		}
		if s := strings.Join(got, "/"); s != want {
			t.Errorf("%s: %q, want %q", kind, s, want)
		}
	}
}
