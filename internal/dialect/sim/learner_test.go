package sim_test

import (
	"testing"

	"parley/internal/dialect/sim"
	"parley/llm"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules/protocol"
)

// TestLearner: the simulated provider plays environments unless it is told otherwise.
func TestLearner(t *testing.T) {
	t.Parallel()
	model, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	kind, err := env.Find(env.Standard(), "arithmetic")
	if err != nil {
		t.Fatal(err)
	}
	right := 0.0
	for i := range 200 {
		e, err := kind.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Reset(int64(i))
		resp, err := model.Ask(t.Context(), &llm.Request{Model: "sim/small", Messages: e.Prompt()[protocol.Default]})
		if err != nil {
			t.Fatal(err)
		}
		right += e.Step(protocol.Action{protocol.Default: resp.Text}).Reward[protocol.Default]
	}
	if right < 100 || right > 190 {
		t.Errorf("%v of 200 right", right)
	}
}
