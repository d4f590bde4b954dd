package statmath

import (
	"cmp"
	"math"
	"slices"

	"parley/stats"
)

// RaterKappa returns Cohen's kappa of two raters, whose ratings of a thing are its two values, in the same order: 1 if they always
// agree, 0 if they agree as often as chance would make them. On the Ordinal scale a disagreement counts by the square
// of its distance, so it is the weighted kappa. The interval is that of Alpha. RaterKappa is unknown if all ratings are the same.
func RaterKappa(all []Rated, scale Scale, confidence float64) stats.Quantity {
	q := stats.Quantity{Value: math.NaN(), Interval: stats.Interval{Low: -1, High: 1}, N: len(all), Method: "cohen's kappa"}
	var kinds []float64
	for _, one := range all {
		if len(one.Values) != 2 || !ratersIsFinite(one.Values[0]) || !ratersIsFinite(one.Values[1]) {
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
	bootstrap(&q, len(k.clusters), k.of, confidence)
	return q
}

// kappa has the ratings of each cluster, as places in kinds.
type kappa struct {
	scale         Scale
	kinds         []float64
	clusters      [][][2]int
	first, second []float64 // how often each rater gave each rating
}

// of returns kappa of some clusters: 1 less how far ratings are apart, as a share of what chance would make it.
func (k *kappa) of(clusters []int) float64 {
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
