package view

import (
	"encoding/json"
	"testing"

	"parley/journal"
	"parley/world"
)

// TestAnEpisodeCountsOnce: what an episode has several of in a group is its mean there, as
// in the closing table of a run.
func TestAnEpisodeCountsOnce(t *testing.T) {
	t.Parallel()
	many := end(0, 1, 1)
	many.Outcome.Scores = append(many.Outcome.Scores, world.Score{Seat: "left", Name: "won", Value: 1})
	r := fold(t, append(begin(2), many, end(1, 0, 0), journal.Entry(&journal.Closed{State: journal.Complete}))...)
	for _, s := range r.Scores(func(g Group) Group { return Group{Score: g.Score} }) {
		if s.Score != "won" {
			continue
		}
		if got := s.Sample.Estimate(0.95); got.Value != 0.5 || s.Sample.Episodes() != 2 {
			t.Errorf("the mean is %v of %d episodes, want 0.5 of 2", got.Value, s.Sample.Episodes())
		}
		return
	}
	t.Error("no score")
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	spec := func(deal int, agent, params string) world.Spec {
		return world.Spec{Deal: deal, Lineup: map[string]string{"s": agent}, Params: json.RawMessage(params)}
	}
	for name, c := range map[string]struct {
		specs []world.Spec
		want  bool
	}{
		"nothing":      {nil, false},
		"deals":        {[]world.Spec{spec(0, "a", "{}"), spec(1, "a", "{}")}, false},
		"a group":      {[]world.Spec{spec(0, "a", "{}"), spec(1, "a", "{}"), spec(1, "a", "{}")}, true},
		"other agents": {[]world.Spec{spec(0, "a", "{}"), spec(0, "b", "{}")}, false},
		"other params": {[]world.Spec{spec(0, "a", "{}"), spec(0, "a", `{"n":1}`)}, false},
	} {
		if got := Grouped([]journal.Staged{{Specs: world.List(c.specs...)}}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
