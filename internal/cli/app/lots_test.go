package app

import (
	"context"
	"encoding/json"
	"testing"

	"parley/internal/run/cluster/tally"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// TestReportOfActs: once a world has brought an act, which no provider counts, a worker says that more may be in flight than it counts.
func TestReportOfActs(t *testing.T) {
	t.Parallel()
	during := func() {}
	do := func(context.Context, string) (json.RawMessage, error) {
		during()
		return json.RawMessage(`1`), nil
	}
	kinds := []world.Kind{world.Define(worldtest.Simple[struct{}]{
		Kind: world.About{Name: "lone", Version: 1, Doc: "One act."}, Sits: []string{"one"},
		Play: func(_ *struct{}, t *world.Table) world.Outcome {
			return world.Outcome{Failed: string(t.One(world.Call{Seat: "one", Act: &world.Act{Name: "f", Do: do}}).Failed)}
		},
	})}
	plan, err := planfile.Parse("plan.yaml", []byte("kind: lone\nepisodes: 1\nagents: {x: sim/small}\nlineup: {one: x}\n"), kinds, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &journal.Memory{}
	played(t, Play{Kinds: kinds, Plan: plan, Journal: j})
	head, _ := j.Head(t.Context()) // Memory never fails
	l, err := Play{Kinds: kinds}.OpenLots(head.Begun, "w", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := l.Report()
	var first, act tally.Report
	l.BeforeActs(func() { first = l.Report() })
	during = func() { act = l.Report() }
	res, err := l.Play(t.Context(), context.Background(), &journal.Memory{}, engine.Lot{Specs: head.Stages[0].Specs}, func() {})
	if err != nil || res.Ended != 1 || res.Failed > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if before.Partial || !first.Partial || !act.Partial {
		t.Errorf("more may be in flight: %v before, %v when the act begins, %v during it", before.Partial, first.Partial, act.Partial)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
