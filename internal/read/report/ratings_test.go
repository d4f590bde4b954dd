package report

import (
	"encoding/json"
	"slices"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// TestRatings rates agents by the score that seats compete for. Copies of a play count once,
// and there is no table for two agents.
func TestRatings(t *testing.T) {
	t.Parallel()
	duel := worldtest.Simple[struct{}]{Kind: world.About{Name: "duel"}}
	unscored := world.Define(duel)
	duel.Scores = []world.Measure{{Name: "style", Seats: []string{"left", "right"}}, {Name: "points", Seats: []string{"left", "right"}, Rivals: true}}
	kind := world.Define(duel)
	of := func(kind world.Kind, agents ...string) Block {
		head := &journal.Head{Begun: &journal.Begun{Kind: "duel"}}
		for _, a := range agents {
			head.Begun.Agents = append(head.Begun.Agents, world.Agent{Name: a})
		}
		var specs []world.Spec
		for i := range 60 {
			left, right := agents[i%len(agents)], agents[(i+1)%len(agents)]
			points := []float64{float64(len(left)), float64(len(right))}
			if i%4 == 3 {
				slices.Reverse(points) // the weaker wins one in four
			}
			e := journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{
				{Seat: "left", Name: "points", Value: points[0]}, {Seat: "right", Name: "points", Value: points[1]},
				{Seat: "left", Name: "style", Value: 1}, {Seat: "right", Name: "style", Value: 0},
			}}}
			e.Play = journal.Digest{byte(i % 30), 1}
			head.Ended.Put(0, &e)
			specs = append(specs, world.Spec{Kind: "duel", Params: json.RawMessage("{}"), Lineup: map[string]string{"left": left, "right": right}, Deal: i})
		}
		head.Stages = []journal.Staged{{Specs: world.List(specs...)}}
		r := results.Outcomes(head, kind)
		return ratings(Source{Run: r, Kind: kind}, NewPalette(r, kind))
	}
	b := of(kind, "weakest", "strongest", "stronger")
	if b.Table == nil || len(b.Table.Rows) != 3 {
		t.Fatalf("%+v", b)
	}
	meetings := 0
	for i, want := range []string{"strongest", "stronger", "weakest"} {
		row := b.Table.Rows[i]
		meetings += row[3].Value.(int)
		if row[0].Text != want {
			t.Errorf("rank %d: %s, want %s", i, row[0].Text, want)
		}
	}
	if meetings != 2*30 {
		t.Errorf("%d meetings, want 60: the second half are copies", meetings)
	}
	if b := of(kind, "weak", "strong"); b.Table != nil {
		t.Error("two agents are rated")
	}
	if b := of(unscored, "weak", "strong", "stronger"); b.Table != nil {
		t.Error("agents are rated without a score")
	}
}
