package planfile

import (
	"fmt"
	"testing"
)

// TestVariations: a cell is labelled by its variation first, and has its params and lineup.
func TestVariations(t *testing.T) {
	t.Parallel()
	p, err := Parse("plan.yaml", []byte(`kind: talk
agents: {a: {model: sim/small, tags: {prompt: terse}}, b: sim/small, c: {model: sim/large, tags: {prompt: long}}}
lineup: {first: a}
plan:
  matrix:
    params: {messages: [2, 4]}
    variations:
      dry: {params: {style: {tone: dry}}, lineup: {second: b}, tags: {mood: low}}
      warm: {params: {style: {tone: warm}}, lineup: {second: c}, tags: {mood: high}}
`), testKinds(), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.World()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range plan.Next(nil).All() {
		got = append(got, fmt.Sprintf("%s: %s against %s, %s", s.Cell, s.Lineup["first"], s.Lineup["second"], s.Params))
	}
	if len(got) != 4 || got[0][:len("dry, messages=2: a against b, ")] != "dry, messages=2: a against b, " || got[3][:len("warm, messages=4: a against c")] != "warm, messages=4: a against c" {
		t.Errorf("%q", got)
	}
	again, err := FromJSON(p.JSON(), testKinds(), nil)
	if err != nil || string(again.JSON()) != string(p.JSON()) {
		t.Errorf("%v\n%s\n%s", err, p.JSON(), again.JSON())
	}
}
