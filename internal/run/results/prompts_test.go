package results

import (
	"encoding/json"
	"fmt"
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

// TestSince compares a request with the one before it.
func TestSince(t *testing.T) {
	t.Parallel()
	rules := strings.Repeat("a rule\n", 10)
	for name, c := range map[string]struct {
		before, now []llm.Message
		want        string
	}{
		"the first":         {nil, []llm.Message{llm.System("s"), assistant("an example"), llm.User("q")}, "0 0 s|an example|q"},
		"a conversation":    {[]llm.Message{llm.System("s"), llm.User("q")}, []llm.Message{llm.System("s"), llm.User("q"), assistant("a"), llm.User("q2")}, "2 0 q2"},
		"a longer text":     {[]llm.Message{llm.User(rules + "now one")}, []llm.Message{llm.User(rules + "now two")}, "0 10 now two"},
		"nearly all is new": {[]llm.Message{llm.User("hello\nyou")}, []llm.Message{llm.User("hello\nthere")}, "0 0 hello\nthere"},
		"a window":          {[]llm.Message{llm.System("s"), llm.User("1"), llm.User("2")}, []llm.Message{llm.System("s"), llm.User("2"), llm.User("3")}, "1 0 3"},
		"the same again":    {[]llm.Message{llm.User("q")}, []llm.Message{llm.User("q")}, "1 0 "},
		"shorter":           {[]llm.Message{llm.User("q"), assistant("a")}, []llm.Message{llm.User("q")}, "1 0 "},
		"told again":        {[]llm.Message{llm.User("q"), llm.User("no")}, []llm.Message{llm.User("q"), llm.User("no"), assistant("a"), llm.User("no")}, "2 0 no"},
		"an instruction that is gone": {
			[]llm.Message{llm.User("hi\n\nWrite message 1.")},
			[]llm.Message{llm.User("hi"), assistant("a"), llm.User("ho\n\nWrite message 3.")}, "0 0 ho\n\nWrite message 3.",
		},
		"the beginning of a line": {[]llm.Message{llm.User("hi there\nyou")}, []llm.Message{llm.User("hi")}, "0 0 hi"},
		"another beginning": {
			[]llm.Message{llm.System("Turn 1 of 3"), llm.User("q")},
			[]llm.Message{llm.System("Turn 2 of 3"), llm.User("q"), assistant("a"), llm.User("q")}, "0 0 Turn 2 of 3|q",
		},
		"told again, in a window": {
			[]llm.Message{llm.System("s"), llm.User("no"), llm.User("yes"), llm.User("no")},
			[]llm.Message{llm.System("s"), llm.User("yes"), llm.User("no"), llm.User("no")}, "1 0 no",
		},
	} {
		fresh, same, lines := NewSince(&llm.Request{Messages: c.before}, &llm.Request{Messages: c.now})
		var texts []string
		for i := range fresh {
			texts = append(texts, fresh[i].Words())
		}
		if got := fmt.Sprintf("%d %d %s", same, lines, strings.Join(texts, "|")); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
