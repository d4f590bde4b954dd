package statmath

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Rated is one thing that several raters rated. Things with the same Cluster, such as the seats of one episode, are not
// independent.
type Rated struct {
	Cluster int
	Values  []float64 // one for each rater who rated it
}

// Scale says what the distance between two ratings means.
type Scale int

// The scales of ratings.
const (
	Nominal Scale = iota // names: ratings are the same or not
	Ordinal              // ranks: only their order counts
)

// bootstrapRounds is how many samples an interval is made of.
const bootstrapRounds = 1000

// Alpha returns Krippendorff's alpha: 1 if raters always agree, 0 if they agree as often as chance would make them. Things
// that fewer than two rated do not count. The interval is of the percentiles of a bootstrap over clusters, from a
// fixed seed. Alpha is unknown if all ratings are the same.
func Alpha(all []Rated, scale Scale, confidence float64) Quantity {
	a, n := newAlpha(all, scale)
	q := Quantity{Value: math.NaN(), Interval: Interval{Low: -1, High: 1}, N: n, Method: "krippendorff's alpha"}
	if a == nil {
		return q
	}
	bootstrap(&q, len(a.clusters), a.value, confidence)
	return q
}

// bootstrap sets a value of clusters, and its interval: of the percentiles of samples of the clusters, from a fixed seed.
func bootstrap(q *Quantity, clusters int, of func([]int) float64, confidence float64) {
	every := make([]int, clusters)
	for i := range every {
		every[i] = i
	}
	if q.Value = of(every); !isFinite(q.Value) || len(every) < 2 || !(confidence > 0 && confidence < 1) {
		return
	}
	r := rand.New(rand.NewPCG(uint64(len(every)), 1))
	var values []float64
	drawn := make([]int, len(every))
	for range bootstrapRounds {
		for i := range drawn {
			drawn[i] = r.IntN(len(drawn))
		}
		if v := of(drawn); isFinite(v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	if tail := int(float64(len(values)) * (1 - confidence) / 2); len(values) > 2*tail {
		q.Interval = Interval{Low: max(-1, min(q.Value, values[tail])), High: max(q.Value, values[len(values)-1-tail])}
	}
}

// alpha has the ratings of each cluster as coincidences.
type alpha struct {
	scale    Scale
	kinds    int                  // different ratings
	clusters [][]coincidence      // by cluster
	counts   []float64            // how often each rating is given
	observed map[[2]int32]float64 // coincidences of different ratings
}

// coincidence says how often a pair of ratings was given to the same thing. Pairs of equal ratings are included.
type coincidence struct {
	a, b int32
	n    float64
}

// newAlpha returns nil if there is nothing to compare.
func newAlpha(all []Rated, scale Scale) (_ *alpha, things int) {
	var kinds []float64
	for _, one := range all {
		if len(one.Values) < 2 {
			continue
		}
		things++
		for _, v := range one.Values {
			if !isFinite(v) {
				return nil, things
			}
			kinds = append(kinds, v)
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if len(kinds) == 0 {
		return nil, things
	}
	a := &alpha{scale: scale, kinds: len(kinds), counts: make([]float64, len(kinds)), observed: map[[2]int32]float64{}}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Rated) int { return cmp.Compare(a.Cluster, b.Cluster) })
	last := -1
	for i, one := range all {
		if len(one.Values) < 2 {
			continue
		}
		if last < 0 || all[last].Cluster != one.Cluster {
			a.clusters = append(a.clusters, nil)
		}
		last = i
		of := &a.clusters[len(a.clusters)-1]
		for i, v := range one.Values {
			for j, w := range one.Values {
				if i != j {
					x, _ := slices.BinarySearch(kinds, v)
					y, _ := slices.BinarySearch(kinds, w)
					*of = append(*of, coincidence{int32(x), int32(y), 1 / float64(len(one.Values)-1)})
				}
			}
		}
	}
	return a, things
}

// value returns alpha of some clusters.
func (a *alpha) value(clusters []int) float64 {
	clear(a.counts)
	clear(a.observed)
	total := 0.0
	for _, i := range clusters {
		for _, c := range a.clusters[i] {
			a.counts[c.a] += c.n
			total += c.n
			if c.a < c.b {
				a.observed[[2]int32{c.a, c.b}] += c.n
			}
		}
	}
	// Sums are in the order of the ratings, so that the digits are always the same.
	var seen, expected float64
	for x := range a.kinds {
		for y := x + 1; y < a.kinds; y++ {
			d := a.distance(x, y)
			seen += float64(a.observed[[2]int32{int32(x), int32(y)}] * d)
			expected += float64(a.counts[x] * a.counts[y] * d)
		}
	}
	if expected == 0 {
		return math.NaN()
	}
	return 1 - (total-1)*seen/expected
}

// distance returns the squared distance between two ratings, x before y.
func (a *alpha) distance(x, y int) float64 {
	if a.scale == Nominal {
		return 1
	}
	between := -(a.counts[x] + a.counts[y]) / 2
	for k := x; k <= y; k++ {
		between += a.counts[k]
	}
	return between * between
}

// Spearman returns the correlation of ranks of two lists of the same length. The interval is that of Bonett and
// Wright (2000). At a correlation of 1 or -1, where theirs would have no width, it is that of the value just inside: see innerCorrelation.
// It is unknown if one list is constant. clusters has the cluster of each place, and nil means that each is its own: otherwise the
// interval is for as many independent places as would vary as much, with the degrees of freedom of the clusters.
func Spearman(xs, ys []float64, clusters []int, confidence float64) Quantity {
	q := Quantity{Value: math.NaN(), Interval: Interval{Low: -1, High: 1}, N: len(xs), Method: "spearman"}
	if len(xs) != len(ys) || len(xs) < 4 || slices.ContainsFunc(slices.Concat(xs, ys), func(x float64) bool { return !isFinite(x) }) {
		return q
	}
	a, b := centredRanks(xs), centredRanks(ys)
	ab, aa, bb := dotProduct(a, b), dotProduct(a, a), dotProduct(b, b)
	if !(aa > 0 && bb > 0) {
		return q
	}
	q.Value = max(-1, min(1, ab/math.Sqrt(aa*bb)))
	rho := innerCorrelation(q.Value, a)
	n, df := effectivePairs(a, b, clusters)
	quantile := normalQuantile(confidence)
	if !math.IsInf(df, 1) {
		quantile = tQuantile(df, confidence)
	}
	if half := quantile * fisherError(rho, n); confidence > 0 && confidence < 1 && !math.IsNaN(half) {
		q.Interval = Interval{Low: math.Tanh(math.Atanh(rho) - half), High: math.Tanh(math.Atanh(rho) + half)}
		if rho != q.Value { // the interval reaches to the value itself
			q.Low, q.High = min(q.Low, q.Value), max(q.High, q.Value)
		}
	}
	return q
}

// effectivePairs returns how many independent pairs of ranks would give a correlation that varies as much as that of these, and the degrees of
// freedom. The variance between clusters is that of the linearised correlation. If it is always 1 or -1, each cluster counts as one.
func effectivePairs(a, b []float64, clusters []int) (n, df float64) {
	n = float64(len(a))
	sums := map[int]float64{}
	for _, c := range clusters {
		sums[c] = 0
	}
	if len(clusters) != len(a) || len(sums) == len(a) {
		return n, math.Inf(1)
	}
	aa, bb, ab := dotProduct(a, a), dotProduct(b, b), dotProduct(a, b)
	root := math.Sqrt(aa * bb)
	var alone, together float64
	for i, c := range clusters {
		part := a[i]*b[i]/root - ab/root/2*(a[i]*a[i]/aa+b[i]*b[i]/bb)
		alone += float64(part * part)
		sums[c] += part
	}
	for _, c := range slices.Sorted(maps.Keys(sums)) {
		together += float64(sums[c] * sums[c])
	}
	g := float64(len(sums))
	if alone < 1e-20 || g < 2 {
		return g, g - 1
	}
	return n / max(1, together/alone*g/(g-1)*(n-1)/n), g - 1
}

// innerCorrelation returns a correlation of ranks that Fisher's transformation can take. In place of 1 or -1 it is halfway to the next
// value that the ranks can have, as a correction for continuity is: the one after two neighbours have changed places, which is
// 12/(n³-n) away if no values are equal. ranks are those of one list, less their mean.
func innerCorrelation(rho float64, ranks []float64) float64 {
	if math.Abs(rho) < 1-1e-12 { // sums of quarters and one root
		return rho
	}
	sorted := slices.Sorted(slices.Values(ranks))
	gap := math.Inf(1)
	for i := range sorted[1:] {
		if d := sorted[i+1] - sorted[i]; d > 0 {
			gap = min(gap, d)
		}
	}
	return math.Copysign(1-gap*gap/dotProduct(ranks, ranks)/2, rho)
}

// exactOrders is the largest number of values whose orders are all tried: 362,880, in milliseconds.
const exactOrders = 9

// Unrelated returns the p-value of no correlation of ranks. Up to 9 values it is exact: the share of all orders whose correlation
// is as far from 0. Otherwise it is the least share by which confidence must be below 1 for the interval of Spearman to leave out
// 0, but at least the share of orders that equal values make the same as this one, or of orders of clusters. It is NaN if the correlation is
// unknown, or the clusters are too few for an interval.
func Unrelated(xs, ys []float64, clusters []int) float64 {
	q := Spearman(xs, ys, nil, 0)
	if !q.Known() {
		return math.NaN()
	}
	a, b := centredRanks(xs), centredRanks(ys)
	n, df := effectivePairs(a, b, clusters)
	independent := math.IsInf(df, 1)
	if independent && q.N <= exactOrders {
		return exactShare(a, b)
	}
	se := fisherError(q.Value, n)
	if math.IsNaN(se) || math.IsInf(se, 1) {
		return math.NaN()
	}
	far := math.Abs(math.Atanh(q.Value)) / se // infinite at a correlation of 1
	if !independent {
		orders, _ := math.Lgamma(df + 2)
		return max(tTails(far, df), math.Exp(-orders))
	}
	all, _ := math.Lgamma(float64(q.N + 1))
	return max(math.Erfc(far/math.Sqrt2), math.Exp(max(logEqualOrders(xs), logEqualOrders(ys))-all))
}

// exactShare returns the share of orders of b in which the product with a is as far from 0 as it is now.
func exactShare(a, b []float64) float64 {
	now := math.Abs(dotProduct(a, b)) // sums of quarters: without error
	var far, all float64
	var visit func(i int, sum float64)
	visit = func(i int, sum float64) {
		if i == len(b) {
			if all++; math.Abs(sum) >= now {
				far++
			}
			return
		}
		for j := i; j < len(b); j++ {
			b[i], b[j] = b[j], b[i]
			visit(i+1, sum+float64(a[i]*b[i]))
			b[i], b[j] = b[j], b[i]
		}
	}
	visit(0, 0)
	return far / all
}

// logEqualOrders returns the logarithm of the number of orders that differ only by equal values.
func logEqualOrders(values []float64) (sum float64) {
	times := map[float64]int{}
	for _, v := range values {
		times[v]++
		sum += math.Log(float64(times[v]))
	}
	return sum
}

// fisherError is the standard error of a correlation of ranks after Fisher's transformation.
func fisherError(rho, n float64) float64 { return math.Sqrt((1 + rho*rho/2) / (n - 3)) }

// centredRanks returns the ranks of values, less their mean.
func centredRanks(values []float64) []float64 {
	out := ranks(values)
	for i := range out {
		out[i] -= float64(len(out)+1) / 2
	}
	return out
}

func dotProduct(a, b []float64) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// ranks returns the ranks of values, from 1. Equal values have the mean of their ranks.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	out := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, k := range order[i:max(j, i+1)] {
			out[k] = float64(i+1+max(j, i+1)) / 2
		}
		i = max(j, i+1)
	}
	return out
}

// RaterKappa returns Cohen's kappa of two raters, whose ratings of a thing are its two values, in the same order: 1 if they always
// agree, 0 if they agree as often as chance would make them. On the Ordinal scale a disagreement counts by the square
// of its distance, so it is the weighted kappa. The interval is that of Alpha. RaterKappa is unknown if all ratings are the same.
func RaterKappa(all []Rated, scale Scale, confidence float64) Quantity {
	q := Quantity{Value: math.NaN(), Interval: Interval{Low: -1, High: 1}, N: len(all), Method: "cohen's kappa"}
	var kinds []float64
	for _, one := range all {
		if len(one.Values) != 2 || !isFinite(one.Values[0]) || !isFinite(one.Values[1]) {
			return q
		}
		kinds = append(kinds, one.Values...)
	}
	slices.Sort(kinds)
	k := &kappa{scale: scale, kinds: slices.Compact(kinds)}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Rated) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for i, one := range all {
		if i == 0 || all[i-1].Cluster != one.Cluster {
			k.clusters = append(k.clusters, nil)
		}
		x, _ := slices.BinarySearch(k.kinds, one.Values[0])
		y, _ := slices.BinarySearch(k.kinds, one.Values[1])
		last := &k.clusters[len(k.clusters)-1]
		*last = append(*last, [2]int{x, y})
	}
	k.first, k.second = make([]float64, len(k.kinds)), make([]float64, len(k.kinds))
	bootstrap(&q, len(k.clusters), k.value, confidence)
	return q
}

// kappa has the ratings of each cluster, as places in kinds.
type kappa struct {
	scale         Scale
	kinds         []float64
	clusters      [][][2]int
	first, second []float64 // how often each rater gave each rating
}

// value returns kappa of some clusters: 1 less how far ratings are apart, as a share of what chance would make it.
func (k *kappa) value(clusters []int) float64 {
	clear(k.first)
	clear(k.second)
	var n, seen float64
	for _, i := range clusters {
		for _, c := range k.clusters[i] {
			n++
			k.first[c[0]]++
			k.second[c[1]]++
			seen += k.distance(c[0], c[1])
		}
	}
	if k.expected(n) == 0 {
		return math.NaN()
	}
	return 1 - n*seen/k.expected(n)
}

// expected returns the sum of the distances of each rating of one rater to each of the other.
func (k *kappa) expected(n float64) float64 {
	if k.scale == Nominal {
		same := 0.0
		for x := range k.kinds {
			same += float64(k.first[x] * k.second[x])
		}
		return n*n - same
	}
	var a, b, aa, bb float64
	for i, x := range k.kinds {
		a, aa = a+float64(k.first[i]*x), aa+float64(k.first[i]*x*x)
		b, bb = b+float64(k.second[i]*x), bb+float64(k.second[i]*x*x)
	}
	return n*(aa+bb) - 2*a*b
}

func (k *kappa) distance(x, y int) float64 {
	switch d := k.kinds[x] - k.kinds[y]; {
	case k.scale == Ordinal:
		return d * d
	case x == y:
		return 0
	default:
		return 1
	}
}

// Kappa returns Cohen's kappa: how much more often two raters agree than by chance, as a share of what is left above
// chance. A pair is one thing that both rated. The interval is that of Fleiss, Cohen and Everitt (1969). Where it has no
// width, it is Wilson's for how often they agree. Kappa is unknown if both gave one and the same rating to everything. Pairs are in
// clusters: if some have several, the variance is that between clusters, with Student's quantile, and no less than that of
// independent pairs.
func Kappa(clusters []Pairs, confidence float64) Quantity {
	var p Pairs
	size := 0.0
	for _, c := range clusters {
		p.Both, p.OnlyA, p.OnlyB, p.Neither = p.Both+c.Both, p.OnlyA+c.OnlyA, p.OnlyB+c.OnlyB, p.Neither+c.Neither
		if c.N() > 0 {
			size++
		}
	}
	n := float64(p.N())
	q := Quantity{Value: math.NaN(), Interval: Interval{Low: -1, High: 1}, N: max(0, p.N()), Method: "cohen's kappa"}
	if n <= 0 || !p.valid() {
		return q
	}
	// Shares of the table: cell[i][j] has rating i by A and j by B.
	cell := [2][2]float64{{float64(p.Both) / n, float64(p.OnlyA) / n}, {float64(p.OnlyB) / n, float64(p.Neither) / n}}
	a := [2]float64{cell[0][0] + cell[0][1], cell[1][0] + cell[1][1]}
	b := [2]float64{cell[0][0] + cell[1][0], cell[0][1] + cell[1][1]}
	agree, chance := cell[0][0]+cell[1][1], float64(a[0]*b[0])+float64(a[1]*b[1])
	if chance >= 1 {
		return q
	}
	q.Value = (agree - chance) / (1 - chance)
	k := 1 - q.Value
	var variance float64
	var part [2][2]float64 // what a pair of ratings adds to kappa
	for i := range 2 {
		part[i][i] = 1 - float64((a[i]+b[i])*k)
		part[i][1-i] = -float64(k * (b[i] + a[1-i]))
		variance += float64(cell[i][i]*part[i][i]*part[i][i]) + float64(cell[i][1-i]*part[i][1-i]*part[i][1-i])
	}
	rest := q.Value - float64(chance*k)
	variance = (variance - float64(rest*rest)) / float64((1-chance)*(1-chance)*n)
	z := normalQuantile(confidence)
	if size < n {
		together := 0.0
		for _, c := range clusters {
			sum := float64(c.Both)*part[0][0] + float64(c.OnlyA)*part[0][1] + float64(c.OnlyB)*part[1][0] + float64(c.Neither)*part[1][1] - float64(c.N())*rest
			together += float64(sum * sum)
		}
		variance = max(variance, together*size/(size-1)/float64((1-chance)*(1-chance)*n*n))
		z = tQuantile(size-1, confidence)
	}
	switch {
	case math.IsInf(z, 1) || math.IsNaN(z):
	case agree == 0 || agree == 1 || !(variance > 0):
		i := wilsonShare(agree, size, confidence)
		q.Interval = Interval{Low: max(-1, (i.Low-chance)/(1-chance)), High: (i.High - chance) / (1 - chance)}
	default:
		half := z * math.Sqrt(variance)
		q.Interval = Interval{Low: max(-1, q.Value-half), High: min(1, q.Value+half)}
	}
	return q
}
