package view

import (
	"testing"

	"parley/journal"
	"parley/world"
)

// TestAnEpisodeCountsOnce: several values of an episode in a group count as their mean.
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
