package results

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// TestMeasuresNote: a score that the kind has declared since the run was played is named, unless the kind has a new version.
func TestMeasuresNote(t *testing.T) {
	t.Parallel()
	kind := func(version int, names ...string) world.Kind {
		w := worldtest.Simple[struct{}]{Kind: world.About{Name: "duel", Version: version}, Sits: []string{"left", "right"}}
		for _, name := range names {
			w.Scores = append(w.Scores, world.Measure{Name: name, Bounds: world.Share()})
		}
		return world.Define(w)
	}
	entries := append(begin(2), end(0, 1, 0), end(1, 0, 1), journal.Entry(&journal.Closed{State: journal.Complete}))
	begun, staged := entries[0].(*journal.Begun), entries[2].(*journal.Staged)
	begun.KindVersion, begun.Measures = 1, []world.Measure{{Name: "won"}, {Name: "length"}}
	staged.Specs = staged.Specs.Map(func(s world.Spec) world.Spec { s.Params = []byte("{}"); return s })
	r := fold(t, entries...)
	for _, c := range []struct {
		kind world.Kind
		says string
	}{
		{kind(1, "won", "length"), ""}, {kind(1, "won"), ""}, {kind(2, "won", "price"), ""}, {world.Kind{}, ""},
		{kind(1, "won", "price", "length", "luck"), "measures now include price, luck, which"},
	} {
		r.Know(c.kind)
		if got := r.MeasuresNote(); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("version %d: %q, want %q", c.kind.Version, got, c.says)
		}
	}
}

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

// TestCourses: the last moment of a course is the estimate that is reported, and there are no more moments than were asked for.
func TestCourses(t *testing.T) {
	t.Parallel()
	entries := begin(100)
	for n := range 100 {
		entries = append(entries, end(n, float64(n%2), float64(n%3)))
	}
	r := fold(t, append(entries, &journal.Closed{State: journal.Complete})...)
	by := func(g Group) Group { return Group{Score: g.Score, Agent: g.Agent} }
	all := r.Courses("won", by, 10)
	want := 0
	for _, s := range r.Scores(by) {
		if s.Score != "won" {
			continue
		}
		if want >= len(all) {
			t.Fatalf("%d courses", len(all))
		}
		c := all[want]
		want++
		last := len(c.Episodes) - 1
		if c.Group != s.Group || last < 5 || last > 10 || c.Episodes[0] < 5 || c.Episodes[last] != s.Sample.Episodes() || !reflect.DeepEqual(c.Estimates[last], s.Estimate()) || !slices.IsSorted(c.Episodes) {
			t.Errorf("%+v: %+v, want %v at the end", s.Group, c, s.Estimate())
		}
	}
	if want == 0 || want != len(all) {
		t.Errorf("%d courses, want %d", len(all), want)
	}
	if none := r.Courses("beauty", by, 10); none != nil {
		t.Errorf("of a score that nobody has: %+v", none)
	}
}

// TestDeclaredOrder: scores come in the order in which the kind declares them, whatever an episode names first, and those that it does
// not declare come last.
func TestDeclaredOrder(t *testing.T) {
	t.Parallel()
	entries := append(begin(1), end(0, 1, 0), journal.Entry(&journal.Closed{State: journal.Complete}))
	entries[3].(*journal.Ended).Outcome.Scores = []world.Score{{Name: "odd", Value: 1}, {Name: "length", Value: 3}, {Seat: "left", Name: "won", Value: 1}}
	staged := entries[2].(*journal.Staged)
	staged.Specs = staged.Specs.Map(func(s world.Spec) world.Spec { s.Params = []byte("{}"); return s })
	r := fold(t, entries...)
	r.Know(world.Define(worldtest.Simple[struct{}]{
		Kind: world.About{Name: "duel", Version: 1}, Sits: []string{"left", "right"},
		Scores: []world.Measure{{Name: "unknown"}, {Name: "won", Bounds: world.Share()}, {Name: "length"}},
	}))
	var got []string
	for _, s := range r.Scores(func(g Group) Group { return Group{Score: g.Score} }) {
		got = append(got, s.Score)
	}
	if want := []string{"won", "length", "odd"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
