package sketch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestSketchQuantiles(t *testing.T) {
	t.Parallel()
	var s Sketch
	var all []time.Duration
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := time.Duration(r.ExpFloat64() * float64(time.Second))
		all = append(all, d)
		s.Add(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.95, 0.99, 1} {
		want := all[int(q*float64(len(all)-1))]
		got := s.Quantile(q)
		if ratio := float64(got) / float64(want); ratio < 0.97 || ratio > 1.03 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if (&Sketch{}).Quantile(0.5) != 0 {
		t.Error("no durations, no quantile")
	}
}
