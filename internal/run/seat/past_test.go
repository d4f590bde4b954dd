package seat

import (
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
)

// TestSince: what is new since the last answer are the lines that the question before did not have, under their headings, and never what
// the person said.
func TestSince(t *testing.T) {
	t.Parallel()
	asked := func(second int, messages ...llm.Message) *journal.Replied {
		return &journal.Replied{Seat: "one", At: time.Unix(int64(second), 0), Request: &llm.Request{Messages: messages}, Response: &llm.Response{Text: "I bid 3."}}
	}
	question := func(messages ...llm.Message) Question {
		q := Question{Seat: "one"}
		for _, m := range messages {
			q.Messages = append(q.Messages, Message{m.Role, m.Text()})
		}
		return q
	}
	rules := llm.System("The rules.")
	for name, c := range map[string]struct {
		past  []*journal.Replied
		now   Question
		shown string
		want  string
	}{
		"the first question":  {nil, question(rules, llm.User("Bid.")), "", ""},
		"a conversation":      {[]*journal.Replied{asked(1, rules, llm.User("Bid."))}, question(rules, llm.User("Bid."), llm.Assistant("I bid 3."), llm.User("Bob bids 4.\nYour bid?")), "Your bid?", "Bob bids 4."},
		"a text that changes": {[]*journal.Replied{asked(1, rules, llm.User("Stock:\napples 1\npears 2\n\nSaid:\nann: hello\n\nBid."))}, question(rules, llm.User("Stock:\napples 1\npears 3\n\nSaid:\nann: hello\nbob: no\n\nBid.")), "", "Stock:\npears 3\nSaid:\nbob: no"},
		"the latest counts":   {[]*journal.Replied{asked(9, llm.User("b")), asked(1, llm.User("a"))}, question(llm.User("a\nc")), "", "a\nc"},
		"nothing new":         {[]*journal.Replied{asked(1, rules, llm.User("Bid."))}, question(rules, llm.User("Bid.")), "", ""},
	} {
		p := &Past{}
		for _, r := range c.past {
			p.add(r)
		}
		if got := p.Since(c.now, c.shown); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
