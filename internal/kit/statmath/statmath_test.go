package statmath

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b, by float64) bool { return a == b || math.Abs(a-b) <= by }

// The values are those of Newcombe, "Two-sided confidence intervals for the single
// proportion: comparison of seven methods", Statistics in Medicine 17 (1998), table I,
// method 3 (score, without continuity correction), 95%.
func TestWilsonPublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
	} {
		i := Wilson(c.k, c.n, 0.95)
		if !near(i.Low, c.low, 5e-5) || !near(i.High, c.high, 5e-5) {
			t.Errorf("Wilson(%d, %d) = %.4f to %.4f, want %.4f to %.4f", c.k, c.n, i.Low, i.High, c.low, c.high)
		}
	}
}

func TestWilsonEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k, n       int
		confidence float64
		want       Interval
	}{
		{0, 0, 0.95, Interval{Low: 0, High: 1}},
		{3, -1, 0.95, Interval{Low: 0, High: 1}},
		{3, 10, 0, Interval{Low: 0, High: 1}},
		{3, 10, 1, Interval{Low: 0, High: 1}},
		{3, 10, math.NaN(), Interval{Low: 0, High: 1}},
	} {
		if i := Wilson(c.k, c.n, c.confidence); i != c.want {
			t.Errorf("Wilson(%d, %d, %v) = %v", c.k, c.n, c.confidence, i)
		}
	}
	if i := Wilson(7, 7, 0.95); i.High != 1 {
		t.Errorf("7 of 7 ends at %v, want exactly 1", i.High)
	}
	if i := Wilson(-4, 7, 0.95); i.Low != 0 {
		t.Errorf("-4 of 7 begins at %v, want exactly 0", i.Low)
	}
}

// The values are those of the table of the t distribution in the NIST/SEMATECH
// e-Handbook of Statistical Methods, section 1.3.6.7.2.
func TestTQuantilePublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		df         int
		confidence float64
		want       float64
	}{
		{1, 0.95, 12.706},
		{1, 0.99, 63.657},
		{2, 0.95, 4.303},
		{5, 0.95, 2.571},
		{10, 0.90, 1.812},
		{10, 0.95, 2.228},
		{10, 0.99, 3.169},
		{30, 0.95, 2.042},
		{100, 0.95, 1.984},
		{1_000_000, 0.95, 1.960},
	} {
		if q := tQuantile(float64(c.df), c.confidence); !near(q, c.want, 6e-4) {
			t.Errorf("t with %d degrees at %v = %.4f, want %.3f", c.df, c.confidence, q, c.want)
		}
	}
}

// The extra hours of sleep of Student, "The probable error of a mean", Biometrika 6
// (1908); the interval is the one R's t.test prints for its data set sleep, paired.
func TestMeanOfStudentsSleep(t *testing.T) {
	t.Parallel()
	e := Mean([]float64{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}, 0.95)
	if e.N != 10 || !near(e.Mean, 1.58, 1e-12) || !near(e.Interval.Low, 0.7001142, 1e-7) || !near(e.Interval.High, 2.4598858, 1e-7) {
		t.Errorf("got %+v", e)
	}
}

// The heat flow measurements ZARR13 of the NIST/SEMATECH e-Handbook, section 1.3.5.2.
func TestStudentOnHeatFlow(t *testing.T) {
	t.Parallel()
	i := student(9.261460, 0.022789/math.Sqrt(195), 194, 0.95)
	if !near(i.Low, 9.258242, 2e-6) || !near(i.High, 9.264679, 2e-6) {
		t.Errorf("got %v", i)
	}
}

func TestTooFew(t *testing.T) {
	t.Parallel()
	for _, xs := range [][]float64{nil, {3}} {
		e := Mean(xs, 0.95)
		if !math.IsInf(e.Interval.Low, -1) || !math.IsInf(e.Interval.High, 1) || e.SD != 0 {
			t.Errorf("%v: %+v", xs, e)
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Errorf("%v: %v", xs, err)
		}
		t.Logf("%s", b)
	}
	if e := Mean([]float64{2, 2, 2}, 1); !math.IsInf(e.Interval.High, 1) {
		t.Errorf("certainty of a sample: %+v", e)
	}
	if e := EstimateMean([]float64{1}, 0.95); e.Interval != Wilson(1, 1, 0.95) {
		t.Errorf("one observation of 1: %+v", e)
	}
}

func TestOfChooses(t *testing.T) {
	t.Parallel()
	if e := EstimateMean([]float64{0, 1, 1, 0, 1}, 0.95); e.Interval != Wilson(3, 5, 0.95) || e.Mean != 0.6 {
		t.Errorf("zeros and ones: %+v", e)
	}
	xs := []float64{0, 1, 3}
	if e := EstimateMean(xs, 0.95); e != Mean(xs, 0.95) {
		t.Errorf("anything else: %+v", e)
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100_000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		c := rapid.Float64Range(0.01, 0.999).Draw(t, "confidence")
		i, p := Wilson(k, n, c), float64(k)/float64(n)
		if i.Low > p+1e-12 || i.High < p-1e-12 || i.Low < 0 || i.High > 1 {
			t.Fatalf("Wilson(%d, %d, %v) = %v does not hold %v", k, n, c, i, p)
		}
		if more := Wilson(k, n, c+(1-c)/2); more.Half() < i.Half()-1e-12 {
			t.Fatalf("more confidence, less width: %v, %v", i, more)
		}
		q := tQuantile(float64(n), c)
		if z := normalQuantile(c); q < z-1e-6 || math.IsNaN(q) {
			t.Fatalf("t with %d degrees at %v = %v is below the normal's %v", n, c, q, z)
		}
	})
}
