package chain

import (
	"strings"
	"testing"

	"parley/internal/cluster/wire"
	"parley/journal"
)

// TestAgain: a message that is delivered again, or was stored twice, is read once.
func TestAgain(t *testing.T) {
	t.Parallel()
	var w wire.Encoder
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
		message  int
		items    int
	}{{4, "a", 0, 1}, {4, "a", 0, 0}, {6, "a", 0, 0}, {7, "b", 1, 1}, {4, "a", 0, 0}, {7, "b", 1, 0}, {9, "", 1, 1}, {10, "", 1, 1}} {
		items, err := r.Add(c.sequence, c.id, messages[c.message])
		if err != nil || len(items) != c.items {
			t.Errorf("%d: %v %v", i, items, err)
		}
	}
}
