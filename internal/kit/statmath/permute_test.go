package statmath

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSignFlipP checks that it is the P of the exact test for few differences, and within a third of it for more.
func TestSignFlipP(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 5, 12, 13, 16, 20} {
		for shift := 0.0; shift < 2; shift += 0.25 {
			for _, heavy := range []bool{false, true} {
				ds := make([]float64, n)
				for i := range ds {
					ds[i] = r.NormFloat64() + shift
					if heavy {
						ds[i] = math.Pow(ds[i], 3)
					}
				}
				want, got := Permutation{}.SignFlip(ds).P, signFlipP(ds)
				tolerance := 1e-12
				if n > 12 {
					tolerance = want/3 + 1e-4 // there are steps, and heavy tails make them large
				}
				if math.Abs(got-want) > tolerance {
					t.Errorf("%d differences, shift %v, heavy %v: %v, want %v", n, shift, heavy, got, want)
				}
				for _, level := range []float64{0.05, 0.002, 1e-5} {
					if SignFlipBelow(ds, level) != (got < level) {
						t.Errorf("%d differences, shift %v, heavy %v: %v below %v", n, shift, heavy, got, level)
					}
				}
			}
		}
	}
	for _, n := range []int{3, 14, 30, 200} { // all of one sign: the smallest possible P
		ds := make([]float64, n+2) // the last two are 0
		for i := range n {
			ds[i] = 1 + r.Float64()
		}
		if got, want := signFlipP(ds), 2*math.Pow(0.5, float64(n)); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%d of one sign: %v, want %v", n, got, want)
		}
	}
	for _, ds := range [][]float64{nil, {math.NaN()}, {math.Inf(1), 1}, {math.MaxFloat64, math.MaxFloat64}} {
		if p := signFlipP(ds); !math.IsNaN(p) {
			t.Errorf("%v: %v", ds, p)
		}
	}
	balanced := make([]float64, 40)
	for i := range balanced {
		balanced[i] = float64(1 - 2*(i%2))
	}
	if p := signFlipP(balanced); p != 1 {
		t.Errorf("%v", p)
	}
	tiny := make([]float64, 40)
	for i := range tiny {
		tiny[i] = 1e-200 * (1 + r.NormFloat64())
	}
	if p := signFlipP(tiny); !(p >= 0 && p <= 1) && !math.IsNaN(p) {
		t.Errorf("%v", p)
	}
}

func BenchmarkSignFlipP(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 4))
	ds := make([]float64, 40)
	for i := range ds {
		ds[i] = r.NormFloat64() + 0.4
	}
	for b.Loop() {
		signFlipP(ds)
	}
}
