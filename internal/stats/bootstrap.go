package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Bootstrap makes intervals by drawing samples from the sample: for means of skewed
// observations and for statistics no formula is known of. The intervals are bias-corrected
// and accelerated (BCa). They want twenty or more independent observations; with fewer
// they are too narrow, and Mean and Clusters are the better choice.
type Bootstrap struct {
	Seed      uint64 // the same seed gives the same interval
	Resamples int    // default: 2,000
}

// Mean returns the mean of xs.
func (b Bootstrap) Mean(xs []float64, confidence float64) Quantity {
	if !allFinite(xs) {
		return Unknown(len(xs), "bca")
	}
	return b.Units(len(xs), func(picked []int) float64 {
		sum := 0.0
		for _, i := range picked {
			sum += xs[i]
		}
		return sum / float64(len(picked))
	}, confidence)
}

// Clusters returns the mean over all observations. It is whole episodes that are drawn.
func (b Bootstrap) Clusters(c *Clusters, confidence float64) Quantity {
	q := b.Units(c.N(), func(picked []int) float64 {
		sum, n := 0.0, 0.0
		for _, i := range picked {
			sum += c.sizes[i] * c.means[i]
			n += c.sizes[i]
		}
		return sum / n
	}, confidence)
	q.Method = "cluster bca"
	return q
}

// Units returns any statistic of n independent units: observations, pairs, episodes. The
// statistic is called with the units to compute it of, some of them several times, and
// is not to keep the slice. Where it is not finite for a sample, the interval is unbounded.
func (b Bootstrap) Units(n int, statistic func(picked []int) float64, confidence float64) Quantity {
	if n < 1 {
		return Unknown(0, "bca")
	}
	picked := make([]int, n)
	for i := range picked {
		picked[i] = i
	}
	q := Quantity{Value: statistic(picked), Interval: everything(), N: n, Method: "bca"}
	if !isFinite(q.Value) {
		return Unknown(n, "bca")
	}
	if n < 2 || math.IsInf(normalQuantile(confidence), 1) {
		return q
	}
	without := jackknife(n, statistic)
	resamples := b.Resamples
	if resamples < 1 {
		resamples = 2000
	}
	r := rand.New(rand.NewPCG(b.Seed, 0))
	drawn := make([]float64, resamples)
	for i := range drawn {
		for j := range picked {
			picked[j] = r.IntN(n)
		}
		drawn[i] = statistic(picked)
	}
	if allFinite(drawn) && allFinite(without) {
		q.Interval = bca(q.Value, drawn, without, confidence)
	}
	return q
}

// jackknife returns the statistic without one part of the units after the other. A part
// is one unit where they are few; with many, a share of them, which comes to the same
// acceleration and keeps the work from growing with the square.
func jackknife(n int, statistic func([]int) float64) []float64 {
	parts := min(n, 200)
	without := make([]float64, parts)
	rest := make([]int, 0, n)
	for p := range parts {
		rest = rest[:0]
		for i := range n {
			if i%parts != p {
				rest = append(rest, i)
			}
		}
		without[p] = statistic(rest)
	}
	return without
}

// bca returns the interval. It sorts drawn.
func bca(value float64, drawn, without []float64, confidence float64) Interval {
	slices.Sort(drawn)
	below, _ := slices.BinarySearch(drawn, value)
	upTo := below
	for upTo < len(drawn) && drawn[upTo] == value {
		upTo++
	}
	a := acceleration(without)
	if upTo == 0 || below == len(drawn) || !isFinite(a) {
		return everything() // all samples on one side: the bias is beyond what they can show
	}
	bias := mathext.NormalQuantile(float64(below+upTo) / float64(2*len(drawn)))
	end := func(z float64) float64 {
		x := bias + z
		if 1-a*x <= 0 {
			return math.Copysign(math.Inf(1), z)
		}
		return quantile7(drawn, normalCDF(bias+x/(1-a*x)))
	}
	z := normalQuantile(confidence)
	return Interval{Low: end(-z), High: end(z)}
}

// acceleration is how fast the spread of the statistic changes with its value.
func acceleration(without []float64) float64 {
	t := tallied(without)
	var cubes, squares float64
	for _, x := range without {
		d := t.mean - x
		squares += d * d
		cubes += d * d * d
	}
	if squares == 0 {
		return 0
	}
	return cubes / (6 * squares * math.Sqrt(squares))
}
