package results

import (
	"reflect"
	"testing"

	"parley/journal"
	"parley/world"
)

// TestEachScore: scores that are gathered a few at a time are the same.
func TestEachScore(t *testing.T) {
	t.Parallel()
	entries := begin(9)
	for n := range 9 {
		entries = append(entries, end(n, float64(n%2), float64(n)))
	}
	r := fold(t, append(entries, &journal.Closed{State: journal.Complete})...)
	same := func(g Group) Group { return g }
	want := r.Scores(same)
	for atOnce := range 20 {
		var got []Score
		r.eachScore(atOnce, r.grouped(same), func(s Score) { got = append(got, s) })
		if len(want) < 3 || !reflect.DeepEqual(got, want) {
			t.Errorf("%d at once: %+v, want %+v", atOnce, got, want)
		}
	}
}

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
