package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/internal/serve/gateway/ledger"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

func assistant(text string, calls ...llm.ToolCall) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: text}}, ToolCalls: calls}
}

// TestHearing picks what is new out of requests that repeat everything, of two conversations
// that take turns in one session.
func TestHearing(t *testing.T) {
	t.Parallel()
	look := llm.ToolCall{ID: "c1", Name: "look", Arguments: `{"at":1}`}
	seen := llm.Message{Role: llm.RoleTool, ToolCallID: "c1", Parts: []llm.Part{{Text: "a wall"}}}
	picture := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "And this?"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("xyz")}}}}
	one := []llm.Message{llm.System("Be brief."), llm.User("Who?")}
	two := []llm.Message{llm.System("Be brief."), assistant("an example"), llm.User("Where?")}
	more := slices.Concat(one, []llm.Message{assistant("", look), seen})
	var h Hearing
	for i, c := range []struct {
		asked  []llm.Message
		answer *llm.Response
		want   string
	}{
		{one, &llm.Response{ToolCalls: []llm.ToolCall{look}}, "system Be brief./user Who?"},
		{two, nil, "assistant an example/user Where?"}, // it failed
		{more, &llm.Response{Text: "Nobody. "}, "tool a wall"},
		{two, &llm.Response{Text: "Here."}, "user Where?"}, // once more
		{slices.Concat(more, []llm.Message{assistant("Nobody."), picture}), nil, "user And this?\n(image image/png, 3 bytes)"},
		{nil, nil, ""},
	} {
		var got []string
		for _, m := range h.New(&llm.Request{Messages: c.asked}, c.answer) {
			got = append(got, string(m.Role)+" "+MessageText(&m))
		}
		if s := strings.Join(got, "/"); s != c.want {
			t.Errorf("%d: %q, want %q", i, s, c.want)
		}
	}
}

// TestSessionReads tells a session of a gateway: what is new in a request stands before its
// answer, and the bytes of the answers are left out. Other kinds tell it themselves.
func TestSessionReads(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"gateway": "asked user: Who?/answer client: me/asked user: Why?/answer client: because",
		"duel":    `note : {"body":"{}"}/answer client: me/answer client: because`,
	} {
		first := ask(turn(0, 0), "client", 1, "me")
		first.Request.Messages = []llm.Message{llm.User("Who?")}
		second := ask(turn(0, 1), "client", 2, "because")
		second.Request.Messages = []llm.Message{llm.User("Who?"), assistant("me"), llm.User("Why?")}
		entries := []journal.Entry{
			&journal.Begun{Version: 1, Run: "r", Kind: kind, KindVersion: 1, At: clockTime(0), Plan: json.RawMessage(`{}`)},
			&journal.Opened{At: clockTime(0)}, &journal.Staged{Specs: world.List(world.Spec{Kind: kind})},
			&journal.Turned{Turn: turn(0, 0), Calls: 1, Notes: []world.Note{{Kind: "wire", Data: json.RawMessage(`{"body":"{}"}`)}}},
			first, &journal.Turned{Turn: turn(0, 1), Calls: 1}, second,
		}
		j := &journal.Memory{}
		if err := j.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
		r := fold(t, entries...)
		if known := ledger.Kind(); known.Name == kind {
			r.Know(known)
		}
		read, err := ReadTranscript(t.Context(), j, r, 0)
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
