package statmath

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// answers returns the result of every function for two samples.
func answers(xs, ys []float64, confidence float64) ([]Quantity, []Test) {
	var c Clusters
	for i := range xs {
		c.Add(xs[i/2 : i+1]...)
	}
	p := Permutation{Draws: 50}
	k, n := len(xs)-2, len(ys)-1
	return []Quantity{
			Mean(xs, confidence).Quantity(), EstimateMean(xs, confidence).Quantity(),
			Share(k, n, confidence), ShareDifference(k, n, n, k, confidence),
			PairedShareDifference(Pairs{k, n, k, n}, confidence),
			PairedDifference(xs, ys, confidence), MeanDifference(xs, ys, confidence),
			c.Mean(confidence), c.Between(0, 1, confidence),
			Hedges(xs, ys, confidence), PairedEffect(xs, confidence), CohenH(k, n, n, k, confidence),
		}, []Test{
			Welch(xs, ys), p.SignFlip(xs), Among(confidence, ys), McNemar(Pairs{k, n, k, n}), Fisher(k, n, n, k),
		}
}

// TestAnything checks what holds for any input: no panic, no NaN as an end, ends in order,
// P between 0 and 1, and JSON that can be written.
func TestAnything(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(
		rapid.Float64(),
		rapid.SampledFrom([]float64{0, 1, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324}),
		rapid.Float64Range(-3, 3),
	)
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(value, 0, 9).Draw(t, "xs")
		ys := rapid.SliceOfN(value, 0, 9).Draw(t, "ys")
		confidence := rapid.OneOf(rapid.Just(0.95), value).Draw(t, "confidence")
		original := slices.Clone(xs)
		quantities, tests := answers(xs, ys, confidence)
		for i, q := range quantities {
			if math.IsNaN(q.Low) || math.IsNaN(q.High) || q.Low > q.High || math.IsInf(q.Value, 0) {
				t.Fatalf("answer %d: %v (%v to %v)", i, q, q.Low, q.High)
			}
			if _, err := json.Marshal(q); err != nil {
				t.Fatalf("answer %d: %v: %v", i, q, err)
			}
		}
		for i, p := range tests {
			if p.Known() && !(p.P >= 0 && p.P <= 1) {
				t.Fatalf("test %d: %v", i, p)
			}
			if _, err := json.Marshal(p); err != nil {
				t.Fatalf("test %d: %v: %v", i, p, err)
			}
		}
		if !slices.EqualFunc(xs, original, func(a, b float64) bool { return a == b || a != a && b != b }) {
			t.Fatalf("the observations were changed: %v, %v", xs, original)
		}
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		for i, p := range []float64{meansPower(a, len(xs), confidence), pairedPower(a, len(xs), confidence), sharesPower(a, b, len(xs), confidence)} {
			if !math.IsNaN(p) && !(p >= 0 && p <= 1) {
				t.Fatalf("power %d: %v", i, p)
			}
		}
		for i, f := range []func(_, _, _ float64) (int, bool){MeansNeeded, PairedNeeded} {
			if n, ok := f(a, b, confidence); ok != (n > 0) {
				t.Fatalf("needed %d: %d, %v", i, n, ok)
			}
		}
	})
}

// TestNothingIsMadeUp checks that what too little data cannot show is unknown.
func TestNothingIsMadeUp(t *testing.T) {
	t.Parallel()
	for _, xs := range [][]float64{nil, {math.NaN()}, {1, math.NaN(), 3}, {1, math.Inf(1), 3}} {
		quantities, tests := answers(xs, []float64{1, 2, 4}, 0.95)
		means := slices.Delete(quantities[:len(quantities)-1], 2, 5) // the others are made of counts only
		for i, q := range means {
			if q.Known() || q.Half() < math.MaxFloat64 {
				t.Errorf("%v: answer %d: %v", xs, i, q)
			}
		}
		for i, p := range tests[:2] {
			if p.Known() {
				t.Errorf("%v: test %d: %v", xs, i, p)
			}
		}
	}
	if q := MeanDifference([]float64{1}, []float64{2, 3}, 0.95); q.Value != -1.5 || !math.IsInf(q.Half(), 1) {
		t.Errorf("one against two: %v", q)
	}
	if p := Welch([]float64{1, 1}, []float64{2, 2}); p.Known() {
		t.Errorf("no spread at all: %v", p)
	}
	if p := (Permutation{}).SignFlip([]float64{0, 0}); p.P != 1 {
		t.Errorf("no difference at all: %v", p)
	}
	for i, p := range []Test{Among(1, nil), Among(math.NaN(), []float64{1, 2}), Among(1, []float64{1, math.Inf(1)}), Among(math.MaxFloat64, []float64{-math.MaxFloat64})} {
		if p.Known() {
			t.Errorf("one among others %d: %v", i, p)
		}
	}
	var one Clusters
	one.Add(1, 2, 3)
	one.Add()
	if q := one.Mean(0.95); q.Value != 2 || q.N != 1 || !math.IsInf(q.Half(), 1) {
		t.Errorf("one episode: %v", q)
	}
	for i, q := range []Quantity{
		Hedges(nil, nil, 0.95), Hedges([]float64{1}, []float64{2}, 0.95), Hedges([]float64{1, 1}, []float64{2, 2}, 0.95),
		Hedges([]float64{1, 2}, []float64{math.NaN(), 2}, 0.95), Hedges([]float64{1, 2}, []float64{4}, 0.95),
		PairedEffect(nil, 0.95), PairedEffect([]float64{1}, 0.95), PairedEffect([]float64{2, 2, 2}, 0.95),
	} {
		if q.Known() {
			t.Errorf("effect %d: %v", i, q)
		}
	}
}

func TestWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of         any
		json, text string
	}{
		{Quantity{Value: 0.5, Interval: Interval{Low: 0.25, High: 0.75}, N: 8, Method: "wilson"}, `{"value":0.5,"low":0.25,"high":0.75,"n":8,"method":"wilson"}`, "0.5 (0.25 to 0.75, n=8, wilson)"},
		{Mean([]float64{2}, 0.95).Quantity(), `{"value":2,"low":null,"high":null,"n":1,"method":"t"}`, "2 (interval unknown, n=1, t)"},
		{Unknown(3, "t"), `{"value":null,"low":null,"high":null,"n":3,"method":"t"}`, "unknown (n=3, t)"},
		{Test{P: 0.0125, N: 12, Method: "sign flips"}, `{"p":0.0125,"n":12,"method":"sign flips"}`, "p=0.0125 (sign flips, n=12)"},
		{Test{P: math.NaN(), N: 0, Method: "welch"}, `{"p":null,"n":0,"method":"welch"}`, "p unknown (welch, n=0)"},
	} {
		b, err := json.Marshal(c.of)
		if err != nil || string(b) != c.json {
			t.Errorf("%s, %v; want %s", b, err, c.json)
		}
		if text := c.of.(interface{ String() string }).String(); text != c.text {
			t.Errorf("%q, want %q", text, c.text)
		}
	}
}

// TestSeeds checks that a seed decides the result, and that results of two seeds are close.
func TestSeeds(t *testing.T) {
	t.Parallel()
	xs := make([]float64, 40)
	for i := range xs {
		xs[i] = math.Sqrt(float64(i*7%40)) - 3.5
	}
	p, same, else_ := Permutation{Seed: 1}.SignFlip(xs), Permutation{Seed: 1}.SignFlip(xs), Permutation{Seed: 2}.SignFlip(xs)
	if p != same || p == else_ || !near(p.P, else_.P, 0.03) {
		t.Errorf("sign flips: %v, %v, %v", p, same, else_)
	}
}

// TestDrawnIsNearExact checks that random draws give nearly the P of all possibilities.
func TestDrawnIsNearExact(t *testing.T) {
	t.Parallel()
	xs := []float64{0.3, -0.2, 0.9, 0.4, -0.1, 0.6, 0.2, -0.5, 0.7, 0.1, 0.3, -0.4, 0.5, 0.2, 0.1, -0.3, 0.4, 0.2}
	exact := Permutation{}.SignFlip(xs)
	more := append(slices.Clone(xs), make([]float64, 100)...) // zeros do not count
	if p := (Permutation{}).SignFlip(more); p.P != exact.P || p.N != len(more) {
		t.Errorf("with zeros: %v, want %v", p, exact)
	}
	drawnP := Permutation{Seed: 5, Draws: 50_000}
	// Three more differences that are too small to matter make too many possibilities to try them all.
	p := drawnP.SignFlip(append(slices.Clone(xs), 1e-15, 1e-15, 1e-15))
	if p.Method != "sign flips, drawn" || !near(p.P, exact.P, 0.01) {
		t.Errorf("drawn %v, exact %v", p, exact)
	}
}

// TestClustersOfOneSize checks that the interval is Student's of their means, and unknown if the means
// are equal.
func TestClustersOfOneSize(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(t, "size")
		means := rapid.SliceOfN(rapid.Float64Range(-100, 100), 2, 20).Draw(t, "means")
		var c Clusters
		for _, m := range means {
			xs := make([]float64, size)
			for i := range xs {
				xs[i] = m + float64(i) - float64(size-1)/2
			}
			c.Add(xs...)
		}
		got, want := c.Mean(0.95), Mean(means, 0.95)
		if math.IsInf(got.Half(), 1) && want.SD <= 1e-9*(1+math.Abs(want.Mean)) {
			return
		}
		if !near(got.Low, want.Interval.Low, 1e-6) || !near(got.High, want.Interval.High, 1e-6) || got.N != len(means) {
			t.Fatalf("%v, want %+v", got, want)
		}
	})
}
