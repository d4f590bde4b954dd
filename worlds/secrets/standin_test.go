package secrets

import (
	"testing"

	"parley/world/worldtest"
)

// TestStandIn: the stand-in understands the prompts of every mode.
func TestStandIn(t *testing.T) {
	t.Parallel()
	worldtest.StandIn(t, Kind(), []string{"message", "verdict"},
		worldtest.Options{},
		worldtest.Options{Params: `{"judge": "report", "rounds": 2, "memory": "short"}`},
		worldtest.Options{Params: `{"mode": "retained", "players": 4, "rounds": 3, "judge": "decide"}`},
		worldtest.Options{Params: `{"mode": "diversity", "players": 5, "rounds": 2, "pairing": "swiss", "persona": {"player1": "aggressive"}}`},
		worldtest.Options{Params: `{"mode": "targeted", "players": 3, "rounds": 2, "pairing": "round-robin"}`},
	)
}
