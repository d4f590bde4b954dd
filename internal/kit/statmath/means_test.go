package statmath

import (
	"math"
	"testing"
)

// TestStrata checks that one stratum gives Student's interval, that an empty population has a total of 0, and that
// what cannot be estimated is unknown.
func TestStrata(t *testing.T) {
	t.Parallel()
	xs := []float64{3, 5, 4, 8, 1}
	one := Strata{Sampled: []Stratum{{Size: 10, Values: xs}}, Size: 10, All: 1}
	got, want := one.Mean(0.95), Mean(xs, 0.95)
	if math.Abs(got.Mean-want.Mean) > 1e-12 || math.Abs(got.Interval.Low-want.Interval.Low) > 1e-9 || math.Abs(got.SD-want.SD) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	// Prediction: the half width is t·s·√(N²/n + N).
	half := want.Interval.Half() * math.Sqrt(5) * math.Sqrt(100.0/5+10)
	if total := one.Total(0.95); math.Abs(total.Half()-half) > 1e-9 || math.Abs(total.Value-42) > 1e-9 {
		t.Errorf("%v, want ±%v", total, half)
	}
	// Two strata with the same values, and no others: 42 + 84, and twice the degrees of freedom.
	two := Strata{Sampled: []Stratum{{10, xs}, {20, xs}}, Size: 30, All: 2}
	if total := two.Total(0.95); math.Abs(total.Value-126) > 1e-9 {
		t.Errorf("%v", total)
	}
	two.All, two.Size = 4, 60 // two of four strata with equal means: no variance between them
	if total := two.Total(0.95); math.Abs(total.Value-252) > 1e-9 || math.IsInf(total.Half(), 0) {
		t.Errorf("%v", total)
	}
	if total := (Strata{Sampled: []Stratum{{0, xs}}}).Total(0.95); total.Interval != (Interval{}) {
		t.Errorf("%v", total)
	}
	if total := (Strata{Sampled: []Stratum{{5, xs[:1]}}, Size: 5, All: 1}).Total(0.95); !math.IsInf(total.High, 1) {
		t.Errorf("the spread of a single value is unknown: %v", total)
	}
}
