package rollout_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds/rollout"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
	"parley/worlds/rollout/rules"
)

// TestStandIn: the stand-in understands the prompts of every environment that comes with parley, whole and cut.
func TestStandIn(t *testing.T) {
	t.Parallel()
	var plays []worldtest.Options
	for _, e := range env.Standard() {
		for _, cut := range []int{0, 2} {
			params := map[string]any{"env": e.Name, "max_steps": 30, "message_cut": cut}
			if e.Seats != nil {
				params["seats"] = e.Seats
			}
			b, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			plays = append(plays, worldtest.Options{Params: string(b), Answer: acts(t, b)})
		}
	}
	worldtest.StandIn(t, rollout.Kind(), []string{"action"}, plays...)
}

// acts carries out acts in this process, of one episode after the other.
func acts(t *testing.T, params []byte) func(c world.Call, _ *rand.Rand) world.Reply {
	t.Helper()
	read, err := rollout.Kind().Read(params)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := read.Pointer().(*rules.Params)
	if !ok {
		t.Fatal("the params are not those of rollouts")
	}
	actor, err := envhttp.New(p, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { actor.Close(context.Background()) })
	var turn world.TurnID
	return func(c world.Call, _ *rand.Rand) world.Reply {
		turn.Turn++
		if c.Act.Name == rules.ActOpen {
			turn = world.TurnID{Episode: turn.Episode + 1}
		}
		resp, err := actor.Act(t.Context(), turn, 0, c.Seat, *c.Act)
		if err != nil {
			t.Errorf("%s: %v", c.Act.Name, err)
			return world.Reply{Failed: llm.KindInvalid}
		}
		return world.Reply{Text: resp.Text, JSON: resp.JSON, Finish: resp.Finish}
	}
}
