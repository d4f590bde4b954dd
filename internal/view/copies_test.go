package view

import (
	"testing"

	"parley/journal"
	"parley/world"
)

func TestDistinct(t *testing.T) {
	t.Parallel()
	ended := func(play byte, chance bool, failed string) journal.Ended {
		return journal.Ended{Play: journal.Digest{play}, Chance: chance, Outcome: world.Outcome{Failed: failed}}
	}
	head := &journal.Head{Ended: map[int]journal.Ended{
		0: ended(1, false, ""), 1: ended(1, false, ""), 2: ended(1, false, ""), // two copies
		3: ended(2, true, ""), 4: ended(2, true, ""), // the same by chance
		5: ended(3, false, "it broke"), 6: ended(3, false, "it broke"),
		7: ended(0, false, ""), 8: ended(0, false, ""), // not recorded
	}}
	if distinct, copies := Distinct(head); distinct != 2 || copies != 2 {
		t.Errorf("%d distinct plays and %d copies, want 2 and 2", distinct, copies)
	}
}
