package world_test

import (
	"testing"

	"parley/internal/stats"
	"parley/world"
)

// TestSample wants what comes alone to be independent, and what comes together not.
func TestSample(t *testing.T) {
	t.Parallel()
	var alone, together world.Sample
	for i := range 20 {
		x := float64(i % 4 / 3) // one in four
		alone.Add(x)
		together.Add(x, x, x)
	}
	if got, want := alone.Share(0.95), stats.Share(5, 20, 0.95); got.Interval != want.Interval || got.N != 20 {
		t.Errorf("alone: %v, want %v", got, want)
	}
	if together.N() != 20 || together.Observations() != 60 {
		t.Errorf("%d episodes gave %d", together.N(), together.Observations())
	}
	// Three times the same says no more than once.
	if got := together.Share(0.95); got.Value != 0.25 || got.Half() < alone.Share(0.95).Half() {
		t.Errorf("together: %v", got)
	}
	if a, b := alone.Mean(0.95), together.Mean(0.95); a.Value != b.Value || b.Half() < 0.999*a.Half() {
		t.Errorf("means: %v, %v", a, b)
	}
}

func TestSampleOfNothing(t *testing.T) {
	t.Parallel()
	var s world.Sample
	s.Add()
	if s.N() != 0 || s.Mean(0.95).Known() || s.Share(0.95).Known() {
		t.Errorf("something is known of nothing: %v, %v", s.Mean(0.95), s.Share(0.95))
	}
}
