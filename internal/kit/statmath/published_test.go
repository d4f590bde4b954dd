package statmath

import "testing"

// Newcombe, "Interval estimation for the difference between independent proportions:
// comparison of eleven methods", Statistics in Medicine 17 (1998), table II, method 10
// (score, without continuity correction), 95%.
func TestNewcombePublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k1, n1, k2, n2 int
		low, high      float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339},
		{9, 10, 3, 10, 0.1705, 0.8090},
		{6, 7, 2, 7, 0.0582, 0.8062},
		{5, 56, 0, 29, -0.0381, 0.1926},
		{0, 10, 0, 20, -0.1611, 0.2775},
	} {
		q := ShareDifference(c.k1, c.n1, c.k2, c.n2, 0.95)
		if !near(q.Low, c.low, 5.1e-5) || !near(q.High, c.high, 5.1e-5) {
			t.Errorf("%d/%d less %d/%d: %.4f to %.4f, want %.4f to %.4f", c.k1, c.n1, c.k2, c.n2, q.Low, q.High, c.low, c.high)
		}
	}
}

// Darwin's pairs of cross- and self-fertilized maize, in eighths of an inch. Fisher found
// that of the 32,768 ways to give them signs, 863 have a sum as
// large as the data. The Design of Experiments (1935), section 21.
func TestSignFlipOnDarwinsMaize(t *testing.T) {
	t.Parallel()
	maize := []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}
	if p := (Permutation{}).SignFlip(maize); p.P != 2*863.0/32768 {
		t.Errorf("%v, want %v", p, 2*863.0/32768)
	}
}

// Fisher's lady tasting tea, with three of four cups right: The Design of Experiments (1935),
// section 5. Of the 70 ways to choose, 17 are as good or better, and as many
// are as bad.
func TestFisherOnTheLadyTastingTea(t *testing.T) {
	t.Parallel()
	if p := Fisher(3, 4, 1, 4); !near(p.P, 34.0/70, 1e-12) {
		t.Errorf("%v, want %v", p, 34.0/70)
	}
}

// Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal
// Statistical Society B 57 (1995), section 3.2: fifteen tests of a study of myocardial
// infarction. Their method claims four at 5%, Bonferroni's and Holm's three.
func TestAdjustedPublished(t *testing.T) {
	t.Parallel()
	ps := []float64{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1}
	claims := func(ps []float64) (n int) {
		for _, p := range ps {
			if p <= 0.05 {
				n++
			}
		}
		return n
	}
	if h, b := claims(Holm(ps)), claims(benjaminiHochberg(ps)); h != 3 || b != 4 {
		t.Errorf("holm claims %d, benjamini-hochberg %d; want 3 and 4", h, b)
	}
}

// The two drugs of Student's sleep data, treated as different people: R's t.test
// prints this interval and this P.
func TestWelchOnStudentsSleep(t *testing.T) {
	t.Parallel()
	first := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	second := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	q := MeanDifference(first, second, 0.95)
	if !near(q.Low, -3.3654832, 1e-7) || !near(q.High, 0.2054832, 1e-7) {
		t.Errorf("%v, want -3.3654832 to 0.2054832", q)
	}
	if p := Welch(first, second); !near(p.P, 0.07939, 5e-6) {
		t.Errorf("%v, want 0.07939", p)
	}
}
