package estimate

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
)

// TestCheckRefusesTokens: a check refuses a plan that trains on token ids which its servers do not return.
func TestCheckRefusesTokens(t *testing.T) {
	t.Parallel()
	asking := world.Define(simple(func(t *world.Table) world.Outcome {
		t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}, TokenIDs: true}})
		return world.Outcome{}
	}))
	lab := `providers: {lab: {dialect: openai, base_url: "http://127.0.0.1:1/v1"%s}}`
	for _, c := range []struct{ agent, providers, want string }{
		{"lab/any", fmt.Sprintf(lab, ""), "plan.yaml:3:13: agents.a: the plan asks lab/any for token ids"},
		{"lab/any", fmt.Sprintf(lab, `, capabilities: [{match: "lab/*", token_ids: true}]`), ""},
		{"sim/small", "", ""},
		{"vllm/any", "", ""},
	} {
		plan, err := planfile.Parse("plan.yaml", fmt.Appendf(nil, "kind: test\nepisodes: 2\nagents: {a: %s}\n%s\n", c.agent, c.providers), []world.Kind{asking}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = (Config{Plan: plan}).Run(t.Context()); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: %v", c.agent, c.providers, err)
		}
	}
}

// TestTrains: where agents are marked as trainable, the others may have no token ids.
func TestTrains(t *testing.T) {
	t.Parallel()
	marked := &trial{plan: &planfile.Plan{Agents: []world.Agent{{Name: "a", Trainable: true}, {Name: "b"}}}}
	none := &trial{plan: &planfile.Plan{Agents: []world.Agent{{Name: "a"}}}}
	if !marked.trains("a") || marked.trains("b") || !none.trains("a") {
		t.Error("only the marked agent is trained, or all if none is marked")
	}
}
