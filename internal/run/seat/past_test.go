package seat

import (
	"fmt"
	"testing"

	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/world"
)

// TestPlaces: seats of people are found in whichever episode they are.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const late = 50_000
	specs := world.Repeat(world.Spec{Kind: "duel", Lineup: map[string]string{"a": "bot", "b": "bot"}}, late)
	for _, lineup := range []map[string]string{{"a": "me", "b": "bot"}, {"a": "bot", "b": "me"}, {"a": "me", "b": "you"}} {
		specs = world.Join(specs, world.Repeat(world.Spec{Kind: "duel", Lineup: lineup}, 2))
	}
	begun := &journal.Begun{Version: journal.Version, Kind: "duel", Agents: []world.Agent{{Name: "bot", Model: "sim/x"}, {Name: "me", Model: world.Human}, {Name: "you", Model: world.Human}}}
	store := runfiletest.Open(t, begun, &journal.Opened{}, &journal.Staged{Specs: specs}, &journal.Ended{Episode: late + 2})
	places, err := Places(t.Context(), store, begun)
	if got := fmt.Sprint(places); err != nil || got != "[{a me} {b me} {b you}]" {
		t.Errorf("%s, %v", got, err)
	}
	for seat, want := range map[string]int{"a": late + 1, "b": late + 2, "c": -1} {
		if got, err := Latest(t.Context(), store, begun, seat); err != nil || got != want {
			t.Errorf("seat %s: episode %d, want %d, %v", seat, got, want, err)
		}
	}
}
