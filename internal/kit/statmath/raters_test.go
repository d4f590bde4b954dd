package statmath

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// ratersGolden reads a part of what other libraries computed.
func ratersGolden[T any](t *testing.T, part string) (v T) {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[part], &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func ratersSame(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestAlpha compares with NLTK, and checks the ends of the scale.
func TestAlpha(t *testing.T) {
	t.Parallel()
	rated := func(units [][]float64) (all []Rated) {
		for i, u := range units {
			all = append(all, Rated{Cluster: i, Values: u})
		}
		return all
	}
	for _, c := range ratersGolden[[]struct {
		Units            [][]float64
		Nominal, Ordinal float64
	}](t, "alpha") {
		for scale, want := range map[Scale]float64{Nominal: c.Nominal, Ordinal: c.Ordinal} {
			q := Alpha(rated(c.Units), scale, 0.95)
			ratersSame(t, "alpha", q.Value, want, 1e-12)
			if !(q.Low < q.Value && q.Value < q.High && q.Low >= -1 && q.High <= 1) {
				t.Errorf("interval %+v", q)
			}
		}
	}
	for name, c := range map[string]struct {
		units [][]float64
		want  float64
	}{
		"nothing":       {nil, math.NaN()},
		"one rater":     {[][]float64{{1}, {2}}, math.NaN()},
		"one rating":    {[][]float64{{1, 1}, {1, 1}}, math.NaN()},
		"not a number":  {[][]float64{{1, math.NaN()}, {1, 2}}, math.NaN()},
		"always agree":  {[][]float64{{1, 1}, {2, 2}, {3, 3, 3}}, 1},
		"single things": {[][]float64{{1, 1}, {7}, {2, 2}}, 1},
	} {
		if q := Alpha(rated(c.units), Ordinal, 0.95); q.Value != c.want && !(math.IsNaN(q.Value) && math.IsNaN(c.want)) {
			t.Errorf("%s: %+v, want %v", name, q, c.want)
		}
	}
	one := Alpha([]Rated{{1, []float64{1, 2}}, {1, []float64{2, 2}}, {1, []float64{1, 1}}}, Nominal, 0.95)
	if !one.Known() || one.Low != -1 || one.High != 1 {
		t.Errorf("one cluster shows no interval: %+v", one)
	}
}

// TestRatersKappa compares with statsmodels, and checks the ends of the scale.
func TestRatersKappa(t *testing.T) {
	t.Parallel()
	rated := func(pairs ...[]float64) (all []Rated) {
		for i, p := range pairs {
			all = append(all, Rated{Cluster: i, Values: p})
		}
		return all
	}
	for _, c := range ratersGolden[[]struct {
		Units            [][]float64
		Nominal, Squared float64
	}](t, "kappas") {
		for scale, want := range map[Scale]float64{Nominal: c.Nominal, Ordinal: c.Squared} {
			q := RaterKappa(rated(c.Units...), scale, 0.95)
			ratersSame(t, "kappa", q.Value, want, 1e-12)
			if !(q.Low < q.Value && q.Value < q.High && q.Low >= -1 && q.High <= 1) || q.N != len(c.Units) {
				t.Errorf("interval %+v", q)
			}
		}
	}
	for name, c := range map[string]struct {
		all  []Rated
		want float64
	}{
		"nothing":      {nil, math.NaN()},
		"one rater":    {rated([]float64{1}, []float64{2}), math.NaN()},
		"one rating":   {rated([]float64{1, 1}, []float64{1, 1}), math.NaN()},
		"not a number": {rated([]float64{1, math.NaN()}, []float64{1, 2}), math.NaN()},
		"always agree": {rated([]float64{1, 1}, []float64{2, 2}, []float64{3, 3}), 1},
		"never agree":  {rated([]float64{0, 1}, []float64{1, 0}), -1},
	} {
		if q := RaterKappa(c.all, Ordinal, 0.95); q.Value != c.want && !(math.IsNaN(q.Value) && math.IsNaN(c.want)) {
			t.Errorf("%s: %+v, want %v", name, q, c.want)
		}
	}
}

// TestSpearman compares with SciPy.
func TestSpearman(t *testing.T) {
	t.Parallel()
	for _, c := range ratersGolden[[]struct {
		X, Y      []float64
		Rho, P, T float64
	}](t, "spearman") {
		q := Spearman(c.X, c.Y, 0.95)
		ratersSame(t, "rho", q.Value, c.Rho, 1e-12)
		if !(q.Low < q.Value && q.Value < q.High) {
			t.Errorf("interval %+v", q)
		}
		p := Unrelated(c.X, c.Y)
		if len(c.X) <= exactOrders {
			ratersSame(t, "exact p", p, c.P, 1e-12)
			continue
		}
		ratersSame(t, "p", p, c.P, 0.01) // SciPy's is of orders by chance
		ratersSame(t, "p of Student's t", p, c.T, 0.01)
		if at := Spearman(c.X, c.Y, 1-p); !(p > 0 && p < 1) || min(math.Abs(at.Low), math.Abs(at.High)) > 1e-9 {
			t.Errorf("p is %v, and the interval at 1 - p is %+v", p, at)
		}
	}
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for name, c := range map[string]struct {
		x, y []float64
		want float64 // the share of orders that are as far from 0
	}{
		"four in order":  {ten[:4], ten[:4], 2.0 / 24},
		"four reversed":  {ten[:4], []float64{4, 3, 2, 1}, 2.0 / 24},
		"five, one swap": {ten[:5], []float64{1, 2, 3, 5, 4}, 10.0 / 120}, // as R's cor.test
		"ties":           {ten[:4], []float64{0, 0, 1, 1}, 2.0 / 6},
		"nine in order":  {ten[:9], ten[:9], 2.0 / 362880},
		"ten in order":   {ten, ten, 1.0 / 3628800}, // at least: the reversed order is not counted
		"ten, one apart": {[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 7}, 1.0 / 10},
	} {
		if p := Unrelated(c.x, c.y); math.Abs(p/c.want-1) > 1e-9 {
			t.Errorf("%s: p is %v, want %v", name, p, c.want)
		}
	}
	ratersSame(t, "same order", Spearman([]float64{1, 2, 3, 9}, []float64{2, 4, 5, 6}, 0.95).Value, 1, 1e-12)
	for name, c := range map[string][2][]float64{
		"constant": {{1, 1, 1, 1}, {1, 2, 3, 4}}, "few": {{1, 2}, {1, 2}}, "lengths": {{1, 2, 3, 4}, {1, 2, 3}},
		"not a number": {{1, 2, 3, math.NaN()}, {1, 2, 3, 4}},
	} {
		if q := Spearman(c[0], c[1], 0.95); q.Known() || !math.IsNaN(Unrelated(c[0], c[1])) {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

// TestPerfectSpearman compares the interval at a correlation of 1 with values computed by hand: 10 values without equal ones
// are treated as 1 - 6/990, and two groups of 10 equal values, whose ranks are 10 apart, as 1 - 10²/500/2.
func TestPerfectSpearman(t *testing.T) {
	t.Parallel()
	var up, down, groups []float64
	for i := range 10 {
		up, down = append(up, float64(i)), append(down, -float64(i*i))
	}
	for i := range 20 {
		groups = append(groups, float64(i/10))
	}
	for _, c := range []struct {
		name            string
		x, y            []float64
		rho, outer, low float64 // low is the end that is nearer to 0
	}{
		{"ten in order", up, up, 1, 1, 0.9634989418514084},
		{"ten in reverse", up, down, -1, -1, -0.9634989418514084},
		{"two groups", groups, groups, 1, 1, 0.7205371256625184},
		{"four", up[:4], up[:4], 1, 1, -0.6915803986939829},
	} {
		q := Spearman(c.x, c.y, 0.95)
		low, high := q.Low, q.High
		if c.rho < 0 {
			low, high = high, low
		}
		ratersSame(t, c.name, q.Value, c.rho, 0)
		ratersSame(t, c.name+": far end", high, c.outer, 0)
		ratersSame(t, c.name+": near end", low, c.low, 1e-12)
	}
	if p := Unrelated(groups, groups); !(p > 5.4e-6 && p < 5.5e-6) { // 10! 10! / 20!
		t.Errorf("two groups: p is %v", p)
	}
}

// TestKappa compares with statsmodels, and checks the ends of the scale.
func TestKappa(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]struct {
		Both, Neither    int
		OnlyA            int `json:"only_a"`
		OnlyB            int `json:"only_b"`
		Kappa, Low, High float64
	}](t, "kappa") {
		q := Kappa(Pairs{c.Both, c.OnlyA, c.OnlyB, c.Neither}, 0.95)
		same(t, "kappa", q.Value, c.Kappa, 1e-12)
		same(t, "kappa low", q.Low, max(-1, c.Low), 1e-12)
		same(t, "kappa high", q.High, min(1, c.High), 1e-12)
	}
	for name, c := range map[string]struct {
		of   Pairs
		want float64
	}{
		"nothing":            {Pairs{}, math.NaN()},
		"negative":           {Pairs{Both: -1, Neither: 2}, math.NaN()},
		"one rating":         {Pairs{Both: 9}, math.NaN()},
		"always agree":       {Pairs{Both: 5, Neither: 5}, 1},
		"never agree":        {Pairs{OnlyA: 5, OnlyB: 5}, -1},
		"one always says so": {Pairs{Both: 5, OnlyA: 5}, 0},
	} {
		q := Kappa(c.of, 0.95)
		if math.IsNaN(q.Value) != math.IsNaN(c.want) || !math.IsNaN(c.want) && q.Value != c.want {
			t.Errorf("%s: %v, want %v", name, q.Value, c.want)
		}
		if !(q.Low >= -1 && q.High <= 1 && q.Low < q.High) || q.Known() && !(q.Low <= q.Value && q.Value <= q.High) {
			t.Errorf("%s: %+v", name, q)
		}
	}
}
