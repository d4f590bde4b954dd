package auction

import (
	"encoding/json"
	"testing"

	"parley/world"
	"parley/world/worldtest"
)

// TestKind holds the kind to everything that any kind promises. The stand-in answers, so it must understand every prompt.
func TestKind(t *testing.T) {
	t.Parallel()
	worldtest.Exercise(t, Kind(), worldtest.Options{})
}

// TestStandIn: the stand-in understands every prompt. List the labels of all calls here.
func TestStandIn(t *testing.T) {
	t.Parallel()
	worldtest.StandIn(t, Kind(), []string{"bid"})
}

// TestSecondPrice plays one round with known bids.
func TestSecondPrice(t *testing.T) {
	t.Parallel()
	w, err := definition{}.World(&Params{Bidders: 3, Rounds: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := world.Begin(w, world.Deal{Seed: 1})
	s.Next(nil)
	turn := s.Next([]world.Reply{{JSON: json.RawMessage(`{"bid":20}`)}, {JSON: json.RawMessage(`{"bid":70}`)}, {Failed: "timeout"}})
	if got := string(turn.Notes[0].Data); got != `{"bid":70,"price":20,"round":1}` || turn.Notes[0].Seat != "bidder2" {
		t.Errorf("sold to %s: %s", turn.Notes[0].Seat, got)
	}
	profit := map[string]float64{} // by seat
	for _, s := range turn.Outcome.Scores {
		if s.Name == "profit" {
			profit[s.Seat] = s.Value
		}
	}
	if profit["bidder1"] != 0 || profit["bidder2"] == 0 {
		t.Errorf("scores %+v", turn.Outcome.Scores)
	}
}
