package journaltest

import (
	"strings"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Raised returns a turn of episode 0 whose acts all raised an error of the world's own code, with any text.
func Raised() []journal.Entry {
	texts := []string{"w.py:3: ValueError: “größer” than 3:\n\t日本語 🎲\r\n", "", "\xff\x00 is no text", "{\"a\": 1}", strings.Repeat("é\n", 5000)}
	at := journal.Turn{Turn: 4}
	entries := []journal.Entry{&journal.Turned{Turn: at, Calls: len(texts)}}
	for i, text := range texts {
		entries = append(entries, &journal.Replied{
			Turn: at, Index: i, Seat: "host", Agent: "a", At: time.Unix(9, 0).UTC(), Act: &world.Act{Name: "f"},
			Error: &llm.Error{Kind: llm.KindRaised, Final: true, Message: text},
		})
	}
	return entries
}

// raised checks that a resumed world is told, whole, what its acts raised.
func raised(t *testing.T, open OpenFunc) {
	j, reopen := open(t)
	acts := Raised()
	entries := append(Run(2, 3), acts...) // a run with a stage
	mustAppend(t, j, entries)
	for _, next := range []func() journal.Journal{func() journal.Journal { return j }, reopen} {
		j := next()
		Same(t, j, entries)
		n := 0
		err := j.Read(t.Context(), journal.Span{To: 1, Replay: true}, func(e journal.Entry) error {
			got, ok := e.(*journal.Replied)
			if !ok {
				return nil
			}
			n++
			if want, ok := acts[min(n, len(acts)-1)].(*journal.Replied); !ok || got.Index != want.Index || got.Reply().Why != want.Error.Message {
				t.Errorf("act %d raised %q: want %q of act %d", got.Index, got.Reply().Why, want.Error.Message, want.Index)
			}
			return nil
		})
		if err != nil || n != len(acts)-1 {
			t.Errorf("%d of %d acts came back: %v", n, len(acts)-1, err)
		}
	}
}
