package export

import (
	"testing"

	"parley/world"
	"parley/world/part"
	"parley/world/worldtest"
)

type tabling struct {
	worldtest.Simple[struct{}]
	name string
}

func (t tabling) Tables() []part.NoteTable {
	return []part.NoteTable{{Name: t.name, Rows: func(world.Played, []world.Note) [][]any { return nil }}}
}

// TestTakenNames: a kind cannot name a table as one of ours.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	for _, table := range append(tables(), "all") {
		if err := part.Check(world.Define(tabling{name: string(table)})); err == nil {
			t.Errorf("a kind may have a table %s", table)
		}
	}
	if err := part.Check(world.Define(tabling{name: "bids"})); err != nil {
		t.Error(err)
	}
}
