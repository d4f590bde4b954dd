package chain

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/journal"
)

// TestAgain: a message that is delivered again, or was stored twice, is read once.
func TestAgain(t *testing.T) {
	t.Parallel()
	var w encoder
	var messages [][]byte
	for _, text := range []string{strings.Repeat("long enough to be numbered ", 2), "short"} {
		b, err := w.Append(nil, &journal.Steered{Verb: journal.SteerPause, Detail: text})
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, Parts(b, 1<<20)[0])
	}
	r := &Reader{}
	for i, c := range []struct {
		sequence uint64
		id       string
		after    string
		message  int
		items    int
	}{
		{4, "a", "0", 0, 1}, {4, "a", "0", 0, 0}, {6, "a", "0", 0, 0}, {7, "b", "6", 1, 1}, {4, "a", "0", 0, 0}, {7, "b", "6", 1, 0},
		{9, "", "", 1, 1}, {10, "", "", 1, 1},
	} {
		items, err := r.Add(c.sequence, header(c.id, c.after), messages[c.message])
		if err != nil || len(items) != c.items {
			t.Errorf("%d: %v %v", i, items, err)
		}
	}
}

func header(id, after string) nats.Header {
	h := nats.Header{}
	for name, value := range map[string]string{jetstream.MsgIDHeader: id, jetstream.ExpectedLastSubjSeqHeader: after} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// TestForked: a message that does not follow the one before it is refused. Otherwise its texts would be others.
func TestForked(t *testing.T) {
	t.Parallel()
	claim, done := message(t, &Claim{Session: "x"}), message(t, &Done{})
	part := Parts(make([]byte, 100), headers+50)[0]
	for name, c := range map[string]struct {
		first, second []byte
		after         string
		forked        bool
	}{
		"in order":                  {claim, claim, "4", false},
		"a message is missing":      {claim, claim, "5", true},
		"one is there too much":     {claim, claim, "3", true},
		"two beginnings":            {claim, claim, "0", true},
		"a part, and a beginning":   {part, claim, "0", false},
		"done, and the rest purged": {claim, done, "5", false},
	} {
		r := &Reader{}
		if _, err := r.Add(4, header("a-1", "0"), c.first); err != nil {
			t.Fatal(err)
		}
		if items, err := r.Add(6, header("b-1", c.after), c.second); errors.Is(err, ErrForked) != c.forked || (err == nil) != (len(items) == 1) {
			t.Errorf("%s: %v %v", name, items, err)
		}
	}
}

// message returns a whole message.
func message(t *testing.T, items ...any) []byte {
	t.Helper()
	b, err := new(encoder).Append(nil, items...)
	if err != nil {
		t.Fatal(err)
	}
	return Parts(b, 1<<20)[0]
}
