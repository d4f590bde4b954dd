package report

import (
	"math"
	"strings"
	"testing"

	"parley/internal/run/results"
)

// TestConstantSides checks that two groups that never vary but differ are not called the same, and that no
// interval has zero width.
func TestConstantSides(t *testing.T) {
	t.Parallel()
	one := func(seed uint64, points float64) *results.Run {
		var all []episode
		for d := range 6 {
			all = append(all, episode{"", d, "a", "b", points, 0})
		}
		return run(t, seed, all)
	}
	for _, c := range []struct {
		a, b *results.Run
		want string
	}{
		{one(1, 3), one(2, 1), "spread is unknown"},
		{one(1, 3), one(1, 1), "spread is unknown"},
		{one(1, 3), one(2, 3), "exactly the same"},
	} {
		res, err := Runs([]*results.Run{c.a, c.b}, []string{"x", "y"}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		got := res.Comparisons[0]
		if text := got.nothing(); !strings.Contains(text, c.want) || !math.IsInf(got.Difference.Half(), 1) {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestMeansOfWhatIsCompared checks that if agents play against themselves, the finding says that the means weigh
// episodes differently from the difference, and that one more deal takes all of its episodes.
func TestMeansOfWhatIsCompared(t *testing.T) {
	t.Parallel()
	var all []episode
	for d := range 8 {
		luck := float64(d % 3)
		all = append(all, episode{"", d, "a", "a", 3 + luck, 0}, episode{"", d, "a", "b", 3 + luck, 1}, episode{"", d, "b", "a", 2, 1 - luck}, episode{"", d, "b", "b", 2, 1 + luck})
	}
	res, err := Runs([]*results.Run{run(t, 1, all)}, []string{"x"}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := res.Comparisons[0]
	if d := c.MeanA.Value - c.MeanB.Value; math.Abs(d-c.Difference.Value) < 1e-6 || !strings.Contains(c.Note, "the means are over all episodes") {
		t.Errorf("%v, %+v", d, c)
	}
	if c.perDeal != 4 {
		t.Errorf("a deal takes %d episodes, want 4", c.perDeal)
	}
}

// TestWidened checks that widening keeps the mean.
func TestWidened(t *testing.T) {
	t.Parallel()
	mean := func(xs []float64) (m float64) {
		for _, x := range xs {
			m += x / float64(len(xs))
		}
		return m
	}
	xs := []float64{0, 0, 0, 2, 4}
	shifted := []float64{5, 5, 5, 7, 9}
	for _, zeros := range []bool{false, true} {
		if got := mean(widened(xs, zeros)); math.Abs(got-mean(xs)) > 1e-12 {
			t.Errorf("zeros %v: the mean is %v, was %v", zeros, got, mean(xs))
		}
	}
	for i, x := range widened(shifted, false) {
		if want := widened(xs, false)[i] + 5; math.Abs(x-want) > 1e-12 {
			t.Errorf("value %d: %v, want %v", i, x, want)
		}
	}
}
