package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/worlds/rollout/rules"
)

func kinds() []world.Kind { return []world.Kind{world.Define(rules.Definition{})} }

// TestExamples: every plan in examples/ can be played, and is the same when it is read back
// from a run file.
func TestExamples(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "rollout*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"rollout.yaml": 80, "rollout-maze.yaml": 50, "rollout-count.yaml": 40, "rollout-negotiation.yaml": 120, "rollout-openenv.yaml": 40, "rollout-tasks.yaml": 14, "rollout-refill.yaml": 24, "rollout-tools.yaml": 80,
		"rollout-judge.yaml": 40, "rollout-mcp.yaml": 20, "rollout-compare.yaml": 40,
	}
	played := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "kind: rollout") {
			continue // a file that a plan names
		}
		p, err := planfile.Load(t.Context(), name, kinds(), nil, planfile.Reach{})
		if err != nil && strings.Contains(err.Error(), "datasets cannot be read here") {
			t.Logf("%s: config cannot read datasets", name)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		played++
		again, err := planfile.FromJSON(p.JSON(), kinds(), nil)
		if err != nil || string(again.JSON()) != string(p.JSON()) {
			t.Errorf("%s: does not read back: %v", name, err)
			continue
		}
		plan, err := again.World()
		if err != nil {
			t.Fatal(err)
		}
		if n := plan.Next(nil).Len(); n != want[filepath.Base(name)] {
			t.Errorf("%s: %d episodes, want %d", name, n, want[filepath.Base(name)])
		}
	}
	if played < 5 {
		t.Errorf("%d plans", played)
	}
}

// TestPlanOfOneLine is how rollouts are most often begun.
func TestPlanOfOneLine(t *testing.T) {
	t.Parallel()
	const text = `
kind: rollout
episodes: 40
agents: {x: {model: lab/any}}
lineup: {agent: x}
providers: {lab: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}
params: {env: count, servers: ["http://127.0.0.1:36663"], max_steps: 10, message_cut: 2}
`
	p, err := planfile.Parse("plan.yaml", []byte(text), kinds(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := planfile.FromJSON(p.JSON(), kinds(), []string{"params.pool.timeout=90s"})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Params.Pointer().(*rules.Params).Pool; got.Timeout != 90*world.Second || got.Patience != 2*world.Minute {
		t.Errorf("%+v", got)
	}
	got := p.Params.Pointer().(*rules.Params)
	if got.MaxSteps != 10 || got.MessageCut != 2 || got.Env != "count" || got.Pool.Patience != 2*world.Minute || got.Protocol != rules.ProtocolV1 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ from, to, want string }{
		{"max_steps: 10", "max_steps: 0", "max_steps"},
		{"max_steps: 10", "max_stepz: 10", "max_stepz"},
		{"count,", "co/unt,", "params.env"},
		{"http://127.0.0.1:36663", "127.0.0.1:36663", "servers"},
		{"max_steps: 10", "pool: {timeout: 300}", "params.pool.timeout: wants a time with its unit, 1ms to 24h, found the number 300: add a unit, as 300s"},
		{"max_steps: 10", "pool: {timeout: 25h}", `params.pool.timeout: wants a time with its unit, 1ms to 24h, found the text "25h"`},
	} {
		_, err := planfile.Parse("plan.yaml", []byte(strings.Replace(text, c.from, c.to, 1)), kinds(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "plan.yaml:7:") {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

// TestExample: what init writes can be played as it is.
func TestExample(t *testing.T) {
	t.Parallel()
	p, err := planfile.Parse("rollout.yaml", []byte(world.Define(rules.Definition{}).Example), kinds(), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.World()
	if err != nil || plan.Next(nil).Len() != 40 {
		t.Errorf("%v", err)
	}
}
