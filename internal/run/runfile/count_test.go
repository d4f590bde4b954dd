package runfile

import (
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestCount: questions, acts and answers of bots are counted apart, as a journal in memory counts them.
func TestCount(t *testing.T) {
	t.Parallel()
	entries := mixed(60, 1)
	turn := journal.Turn{Episode: 0, Attempt: 7}
	said := &llm.Response{Text: "yes"}
	entries = append(entries, &journal.Turned{Turn: turn, Calls: 4},
		&journal.Replied{Turn: turn, Act: &world.Act{Name: "step"}, Response: said},
		&journal.Replied{Turn: turn, Index: 1, Act: &world.Act{Name: "step"}, Error: &llm.Error{Kind: llm.KindServer}},
		&journal.Replied{Turn: turn, Index: 2, Seat: "a", Response: said})
	memory := &journal.Memory{}
	if err := memory.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	want, err := journal.Count(t.Context(), memory)
	if err != nil || want.Asks == 0 || want.Acts != 2 || want.Bots != 1 {
		t.Fatal(want, err)
	}
	s := kept(t, entries)
	if got, err := journal.Count(t.Context(), s); err != nil || got != want {
		t.Errorf("%+v, want %+v, %v", got, want, err)
	}
	s.readers.leaveOut(&Losses{})
	if got, err := journal.Count(t.Context(), s); err != nil || got != want {
		t.Errorf("without what is damaged: %+v, want %+v, %v", got, want, err)
	}
}
