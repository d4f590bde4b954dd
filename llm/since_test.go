package llm

import (
	"fmt"
	"strings"
	"testing"
)

// TestSince compares a request with the one before it.
func TestSince(t *testing.T) {
	t.Parallel()
	rules := strings.Repeat("a rule\n", 10)
	for name, c := range map[string]struct {
		before, now []Message
		want        string
	}{
		"the first":         {nil, []Message{System("s"), Assistant("an example"), User("q")}, "0 0 s|an example|q"},
		"a conversation":    {[]Message{System("s"), User("q")}, []Message{System("s"), User("q"), Assistant("a"), User("q2")}, "2 0 q2"},
		"a longer text":     {[]Message{User(rules + "now one")}, []Message{User(rules + "now two")}, "0 10 now two"},
		"nearly all is new": {[]Message{User("hello\nyou")}, []Message{User("hello\nthere")}, "0 0 hello\nthere"},
		"a window":          {[]Message{System("s"), User("1"), User("2")}, []Message{System("s"), User("2"), User("3")}, "1 0 3"},
		"the same again":    {[]Message{User("q")}, []Message{User("q")}, "1 0 "},
		"shorter":           {[]Message{User("q"), Assistant("a")}, []Message{User("q")}, "1 0 "},
		"told again":        {[]Message{User("q"), User("no")}, []Message{User("q"), User("no"), Assistant("a"), User("no")}, "2 0 no"},
		"an instruction that is gone": {
			[]Message{User("hi\n\nWrite message 1.")},
			[]Message{User("hi"), Assistant("a"), User("ho\n\nWrite message 3.")}, "0 0 ho\n\nWrite message 3.",
		},
		"the beginning of a line": {[]Message{User("hi there\nyou")}, []Message{User("hi")}, "0 0 hi"},
		"another beginning": {
			[]Message{System("Turn 1 of 3"), User("q")},
			[]Message{System("Turn 2 of 3"), User("q"), Assistant("a"), User("q")}, "0 0 Turn 2 of 3|q",
		},
		"told again, in a window": {
			[]Message{System("s"), User("no"), User("yes"), User("no")},
			[]Message{System("s"), User("yes"), User("no"), User("no")}, "1 0 no",
		},
	} {
		fresh, same, lines := (&Request{Messages: c.now}).Since(&Request{Messages: c.before})
		var texts []string
		for i := range fresh {
			texts = append(texts, fresh[i].Words())
		}
		if got := fmt.Sprintf("%d %d %s", same, lines, strings.Join(texts, "|")); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
