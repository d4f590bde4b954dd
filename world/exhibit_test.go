package world_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/kit/statmath"
	"parley/stats"
	"parley/world"
)

// TestSample wants an episode to count once, and what depends on each other to count less.
func TestSample(t *testing.T) {
	t.Parallel()
	var alone, together, dealt, copied world.Sample
	for i := range 20 {
		x := float64(i % 4 / 3) // one in four
		alone.Add(world.Unit{}, x)
		together.Add(world.Unit{}, x, x, x)
		for range 3 {
			dealt.Add(world.Unit{Deal: i + 1}, x)
			copied.Add(world.Unit{Play: i + 1}, x)
		}
	}
	one := alone.Estimate(0.95)
	if want := statmath.Share(5, 20, 0.95); one.Interval != want.Interval || one.N != 20 {
		t.Errorf("alone: %v, want %v", one, want)
	}
	if got := together.Estimate(0.95); got != one || together.Episodes() != 20 {
		t.Errorf("three values of an episode: %v, want %v", got, one)
	}
	// Three times the same says no more than once.
	for name, s := range map[string]*world.Sample{"deals": &dealt, "copies": &copied} {
		if got := s.Estimate(0.95); got.Value != 0.25 || got.N != 20 || s.Episodes() != 60 || got.Half() < one.Half() || got.Half() > 1.1*one.Half() {
			t.Errorf("%s: %v, and each once %v", name, got, one)
		}
	}
}

// TestSampleUnvaried: values that are all the same do not make an interval without width.
func TestSampleUnvaried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		bounds world.Bounds
		value  float64
		copies bool
		want   statmath.Interval
	}{
		{"share", world.Share(), 1, false, statmath.Wilson(5, 5, 0.95)},
		{"share of copies", world.Share(), 1, true, statmath.Wilson(1, 1, 0.95)},
		{"bounded", world.Bounds{Low: 0, High: 10}, 3, false, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
		{"anything", world.Bounds{}, 5.8, false, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
		{"difference of shares", world.Share().Difference(), 0, false, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
		{"difference of counts", world.AtLeast0().Difference(), 1, false, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
		{"count", world.AtLeast0(), 3, false, statmath.Interval{Low: math.Inf(-1), High: math.Inf(1)}},
	} {
		s := world.Sample{Bounds: c.bounds}
		for i := range 5 {
			u := world.Unit{Deal: i + 1}
			if c.copies {
				u.Play = 1
			}
			s.Add(u, c.value)
		}
		got := s.Estimate(0.95)
		if got.Interval != c.want || got.Value != c.value || (got.Method == stats.Constant) != math.IsInf(got.Half(), 1) || s.Hopeless() != (got.Method == stats.Constant || c.copies) {
			t.Errorf("%s: %v, want %v; hopeless %v", c.name, got, c.want, s.Hopeless())
		}
	}
}

// TestSampleOfOpposites: what is played from both sides of a deal is one observation, also where
// every play is known to be different.
func TestSampleOfOpposites(t *testing.T) {
	t.Parallel()
	var both world.Sample
	for i := range 10 {
		luck := float64(i % 3)
		both.Add(world.Unit{Deal: i + 1, Play: 2*i + 1}, 5+luck+0.1*float64(i))
		both.Add(world.Unit{Deal: i + 1, Play: 2*i + 2}, 5-luck)
	}
	if got := both.Estimate(0.95); got.N != 10 || got.Half() > 0.5 || both.Episodes() != 20 {
		t.Errorf("%v", got)
	}
}

func TestSampleOfNothing(t *testing.T) {
	t.Parallel()
	var s world.Sample
	s.Add(world.Unit{})
	if s.Episodes() != 0 || s.Estimate(0.95).Known() {
		t.Errorf("an empty sample has an estimate: %v", s.Estimate(0.95))
	}
}

// TestSampleOfEqualDeals: deals whose means are equal do not tell how much others would differ; and
// a score that can be anything is no share, even where it was only ever 0 or 1.
func TestSampleOfEqualDeals(t *testing.T) {
	t.Parallel()
	var deals world.Sample
	anything := world.Sample{Bounds: world.Anything()}
	for i := range 6 {
		for _, x := range []float64{0.1, 0.2, 0.7} { // their sums round otherwise in another order
			deals.Add(world.Unit{Deal: i + 1}, x*float64(3+i%2)/float64(3+i%2))
		}
		anything.Add(world.Unit{Deal: i + 1}, float64(i%2))
	}
	if got := deals.Estimate(0.95); !math.IsInf(got.Half(), 1) {
		t.Errorf("equal deals: %v", got)
	}
	if got := anything.Estimate(0.95); got.Method != "t" || got.Low >= 0 {
		t.Errorf("0 and 1 of anything: %v", got)
	}
}

// TestSampleIDs: which ids units have does not matter, only which are the same.
func TestSampleIDs(t *testing.T) {
	t.Parallel()
	odd := []int{0, math.MaxInt, -1, math.MinInt, 1 << 40, math.MaxInt32, 7_000_000}
	rapid.Check(t, func(rt *rapid.T) {
		var small, large world.Sample
		for range rapid.IntRange(1, 40).Draw(rt, "episodes") {
			u := world.Unit{Deal: rapid.IntRange(0, 6).Draw(rt, "deal"), Play: rapid.IntRange(0, 6).Draw(rt, "play")}
			x := float64(rapid.IntRange(0, 9).Draw(rt, "value"))
			small.Add(u, x)
			large.Add(world.Unit{Deal: odd[u.Deal], Play: odd[u.Play]}, x)
		}
		if got, want := large.Estimate(0.95), small.Estimate(0.95); got != want {
			rt.Fatalf("%v, want %v", got, want)
		}
	})
}
