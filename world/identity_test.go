package world_test

import (
	"encoding/json"
	"testing"

	"parley/world"
)

// TestIdentity: two plans differ in everything except params that are outside of play.
func TestIdentity(t *testing.T) {
	t.Parallel()
	k := outsideOf("servers", "pool")
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"env":"maze","servers":["x"],"pool":{"n":1}}`, `{"env":"maze","servers":["y","z"]}`, true},
		{`{"env":"maze"}`, `{"env":"word"}`, false},
		{`{"env":"maze","inner":{"servers":1}}`, `{"env":"maze","inner":{"servers":2}}`, false},
		{`no object`, `no object`, true},
	} {
		a, b := k.Identity(json.RawMessage(c.a)), k.Identity(json.RawMessage(c.b))
		if (string(a) == string(b)) != c.same {
			t.Errorf("%s and %s: %s and %s", c.a, c.b, a, b)
		}
	}
	if got := (world.Kind{}).Identity(json.RawMessage(`{"servers":1}`)); string(got) != `{"servers":1}` {
		t.Errorf("nothing is outside, and it is left out: %s", got)
	}
}
