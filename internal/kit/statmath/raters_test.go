package statmath

import (
	"encoding/json"
	"math"
	"os"
	"slices"
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
		q := Spearman(c.X, c.Y, nil, 0.95)
		ratersSame(t, "rho", q.Value, c.Rho, 1e-12)
		if !(q.Low < q.Value && q.Value < q.High) {
			t.Errorf("interval %+v", q)
		}
		p := Unrelated(c.X, c.Y, nil)
		if len(c.X) <= exactOrders {
			ratersSame(t, "exact p", p, c.P, 1e-12)
			continue
		}
		ratersSame(t, "p", p, c.P, 0.01) // SciPy's is of orders by chance
		ratersSame(t, "p of Student's t", p, c.T, 0.01)
		if at := Spearman(c.X, c.Y, nil, 1-p); !(p > 0 && p < 1) || min(math.Abs(at.Low), math.Abs(at.High)) > 1e-9 {
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
		if p := Unrelated(c.x, c.y, nil); math.Abs(p/c.want-1) > 1e-9 {
			t.Errorf("%s: p is %v, want %v", name, p, c.want)
		}
	}
	ratersSame(t, "same order", Spearman([]float64{1, 2, 3, 9}, []float64{2, 4, 5, 6}, nil, 0.95).Value, 1, 1e-12)
	for name, c := range map[string][2][]float64{
		"constant": {{1, 1, 1, 1}, {1, 2, 3, 4}}, "few": {{1, 2}, {1, 2}}, "lengths": {{1, 2, 3, 4}, {1, 2, 3}},
		"not a number": {{1, 2, 3, math.NaN()}, {1, 2, 3, 4}},
	} {
		if q := Spearman(c[0], c[1], nil, 0.95); q.Known() || !math.IsNaN(Unrelated(c[0], c[1], nil)) {
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
		q := Spearman(c.x, c.y, nil, 0.95)
		low, high := q.Low, q.High
		if c.rho < 0 {
			low, high = high, low
		}
		ratersSame(t, c.name, q.Value, c.rho, 0)
		ratersSame(t, c.name+": far end", high, c.outer, 0)
		ratersSame(t, c.name+": near end", low, c.low, 1e-12)
	}
	if p := Unrelated(groups, groups, nil); !(p > 5.4e-6 && p < 5.5e-6) { // 10! 10! / 20!
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
		q := Kappa(apart(Pairs{c.Both, c.OnlyA, c.OnlyB, c.Neither}), 0.95)
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
		q := Kappa(apart(c.of), 0.95)
		if math.IsNaN(q.Value) != math.IsNaN(c.want) || !math.IsNaN(c.want) && q.Value != c.want {
			t.Errorf("%s: %v, want %v", name, q.Value, c.want)
		}
		if !(q.Low >= -1 && q.High <= 1 && q.Low < q.High) || q.Known() && !(q.Low <= q.Value && q.Value <= q.High) {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

// apart returns pairs that are independent: each is its own cluster.
func apart(p Pairs) (all []Pairs) {
	if !p.valid() {
		return []Pairs{p}
	}
	all = append(all, slices.Repeat([]Pairs{{Both: 1}}, p.Both)...)
	all = append(all, slices.Repeat([]Pairs{{OnlyA: 1}}, p.OnlyA)...)
	all = append(all, slices.Repeat([]Pairs{{OnlyB: 1}}, p.OnlyB)...)
	return append(all, slices.Repeat([]Pairs{{Neither: 1}}, p.Neither)...)
}

// TestRatersClusters: ratings that are repeated within clusters say no more than the clusters do.
func TestRatersClusters(t *testing.T) {
	t.Parallel()
	const copies = 9
	var once, often []Pairs
	var x, y, xs, ys []float64
	var clusters []int
	for i := range 40 {
		p := []Pairs{{Both: 1}, {OnlyA: 1}, {OnlyB: 1}, {Neither: 1}, {Both: 1}, {Neither: 1}}[i%6]
		once = append(once, p)
		often = append(often, Pairs{copies * p.Both, copies * p.OnlyA, copies * p.OnlyB, copies * p.Neither})
		x, y = append(x, float64(i)), append(y, float64(i*7%40+i/2))
		for range copies {
			clusters, xs, ys = append(clusters, i), append(xs, x[i]), append(ys, y[i])
		}
	}
	for name, q := range map[string][2]Quantity{
		"kappa":    {Kappa(once, 0.95), Kappa(often, 0.95)},
		"spearman": {Spearman(x, y, nil, 0.95), Spearman(xs, ys, clusters, 0.95)},
	} {
		if ratio := q[1].Half() / q[0].Half(); math.Abs(q[0].Value-q[1].Value) > 0.01 || ratio < 0.99 || ratio > 1.15 {
			t.Errorf("%s: once %+v, often %+v", name, q[0], q[1])
		}
	}
	p := Unrelated(xs, ys, clusters)
	if q := Spearman(xs, ys, clusters, 1-p); min(math.Abs(q.Low), math.Abs(q.High)) > 1e-6 {
		t.Errorf("p %v: the interval %+v does not end at 0", p, q)
	}
	if q := Kappa([]Pairs{{Both: 5, Neither: 5}, {Both: 4}, {Neither: 6}}, 0.95); q.Value != 1 || q.Low > 0.4 || q.Low == q.High {
		t.Errorf("three clusters that always agree: %+v", q)
	}
}
