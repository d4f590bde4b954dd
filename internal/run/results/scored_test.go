package results

import (
	"encoding/json"
	"fmt"
	"testing"

	"parley/journal"
	"parley/world"
)

// TestScoresKeepUnits: scores in a run of their own are as independent as the episodes that they score, and in the same cells.
func TestScoresKeepUnits(t *testing.T) {
	t.Parallel()
	for _, fork := range []bool{false, true} {
		head := &journal.Head{Begun: &journal.Begun{Run: "played", Kind: "duel", Seed: 5, Plan: json.RawMessage(`{}`)}}
		if fork {
			head.Begun.Fork = &journal.Origin{}
		}
		scores := &journal.Head{Begun: &journal.Begun{Run: "scores", Kind: "rubric", Seed: 1, Plan: json.RawMessage(`{"params":{"scored":{"run":"played"}}}`)}}
		var played, scored []world.Spec
		const episodes = 60
		for i := range episodes {
			played = append(played, world.Spec{Kind: "duel", Params: json.RawMessage(`{}`), Cell: fmt.Sprint("c", i%3), Deal: i / 12})
		}
		head.Stages = []journal.Staged{{Specs: world.List(played...)}}
		put := func(to *journal.Head, i int, play byte, chance bool) {
			to.Ended.Put(0, &journal.Ended{Episode: i, Play: journal.Digest{play}, Chance: chance, Outcome: world.Outcome{Scores: []world.Score{{Name: "x", Value: float64(i*i/12%7) + float64(i/12)}}}})
		}
		for i := range episodes {
			put(head, i, byte(1+i%20), i%5 == 0)
			put(scores, i, byte(1+i), false) // a judge says something else every time
		}
		of := Outcomes(head, world.Kind{}).Scorable()
		for i := range episodes {
			spec, err := of(world.Spec{Kind: "rubric"}, Scored{Run: "played"}, i, func(s Scored) (json.RawMessage, error) { return json.Marshal(map[string]any{ScoredParam: s}) })
			if err != nil || spec.Cell != played[i].Cell || spec.Deal != i {
				t.Fatalf("%+v, %v", spec, err)
			}
			scored = append(scored, spec)
		}
		scores.Stages = []journal.Staged{{Specs: world.List(scored...)}}
		of1, of2 := Outcomes(head, world.Kind{}), Outcomes(scores, world.Kind{})
		for _, by := range []func(Group) Group{func(g Group) Group { return Group{Score: g.Score} }, func(g Group) Group { return g }} {
			a, b := of1.Scores(by), of2.Scores(by)
			if len(a) != len(b) {
				t.Fatalf("%d groups, want %d", len(b), len(a))
			}
			for i := range a {
				if want, got := a[i].Estimate(), b[i].Estimate(); got != want || !fork && a[i].Cell == "" && got.N > 5 {
					t.Errorf("fork %v, %+v: %+v, want %+v", fork, b[i].Group, got, want)
				}
			}
		}
		if d1, c1 := Distinct(head); true {
			if d2, c2 := Distinct(scores); d1 != d2 || c1 != c2 || c1 == 0 {
				t.Errorf("%d distinct plays and %d copies, want %d and %d", d2, c2, d1, c1)
			}
		}
	}
}
