package effect

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// mostNeeded is where looking for enough episodes ends: nobody plays so many.
const mostNeeded = 1_000_000_000

// MeansPower returns how often a t test at level alpha finds a difference of d standard
// deviations between two groups of n episodes each. NaN where it is not known.
func MeansPower(d float64, n int, alpha float64) float64 {
	return tPower(d*math.Sqrt(float64(n)/2), 2*float64(n)-2, alpha)
}

// PairedPower returns how often a t test at level alpha finds a mean difference of d
// standard deviations of the differences, from n pairs. NaN where it is not known.
func PairedPower(d float64, n int, alpha float64) float64 {
	return tPower(d*math.Sqrt(float64(n)), float64(n)-1, alpha)
}

// SharesPower returns how often a test at level alpha tells shares of p1 and p2 apart,
// from n episodes in each of two groups. NaN where it is not known.
func SharesPower(p1, p2 float64, n int, alpha float64) float64 {
	if !(p1 >= 0 && p1 <= 1 && p2 >= 0 && p2 <= 1 && alpha > 0 && alpha < 1) || n < 1 {
		return math.NaN()
	}
	middle := (p1 + p2) / 2
	equal := math.Sqrt(2 * middle * (1 - middle))
	apart := math.Sqrt(p1*(1-p1) + p2*(1-p2))
	far := math.Abs(p1-p2) * math.Sqrt(float64(n))
	z := normalQuantile(1-alpha) * equal
	switch {
	case equal == 0: // both never, or both always: only ever the same
		return alpha
	case apart == 0: // one never, one always
		if far > z {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF((far-z)/apart) + distuv.UnitNormal.CDF((-far-z)/apart)
}

// tPower returns how often a noncentral t variable is beyond what chance alone makes it
// be with probability alpha.
func tPower(noncentrality, df, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1 && df >= 1) || math.IsNaN(noncentrality) || math.IsInf(noncentrality, 0) {
		return math.NaN()
	}
	nc := math.Abs(noncentrality)
	edge := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1 - alpha/2)
	return min(1, max(0, 1-below(edge, df, nc)+below(-edge, df, nc)))
}

// MeansNeeded returns how many episodes each of two groups needs for MeansPower to reach
// power. It is not ok where no number of them would: there is no effect, or it is so
// small that a thousand million are too few.
func MeansNeeded(d, alpha, power float64) (n int, ok bool) {
	return needed(2, d != 0, power, func(n int) float64 { return MeansPower(d, n, alpha) })
}

// PairedNeeded returns how many pairs are needed for PairedPower to reach power.
func PairedNeeded(d, alpha, power float64) (n int, ok bool) {
	return needed(2, d != 0, power, func(n int) float64 { return PairedPower(d, n, alpha) })
}

// SharesNeeded returns how many episodes each of two groups needs for SharesPower to
// reach power.
func SharesNeeded(p1, p2, alpha, power float64) (n int, ok bool) {
	return needed(1, p1 != p2, power, func(n int) float64 { return SharesPower(p1, p2, n, alpha) })
}

// MeanNeeded returns how many episodes make the interval of a mean ±half, if their
// standard deviation is sd.
func MeanNeeded(sd, half, confidence float64) (n int, ok bool) {
	if !(sd >= 0 && half > 0 && confidence > 0 && confidence < 1) || math.IsInf(sd/half, 0) {
		return 0, false
	}
	return needed(2, true, -half, func(n int) float64 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile((1 + confidence) / 2)
		return -t * sd / math.Sqrt(float64(n))
	})
}

// ShareNeeded returns how many episodes make Wilson's interval of a share ±half, if it
// is p. Nothing known about p: 0.5, which needs the most.
func ShareNeeded(p, half, confidence float64) (n int, ok bool) {
	if !(p >= 0 && p <= 1 && half > 0 && confidence > 0 && confidence < 1) {
		return 0, false
	}
	z := normalQuantile(confidence)
	return needed(1, true, -half, func(n int) float64 {
		f := float64(n)
		return -z / (1 + z*z/f) * math.Sqrt(p*(1-p)/f+z*z/(4*f*f))
	})
}

// needed returns the smallest n from least on for which reached is at least want. What
// is reached grows with n.
func needed(least int, possible bool, want float64, reached func(n int) float64) (int, bool) {
	if !possible || !(want < 1) || math.IsNaN(reached(least)) {
		return 0, false
	}
	top := least
	for reached(top) < want {
		if top *= 2; top > mostNeeded {
			return 0, false
		}
	}
	low := max(least, top/2)
	return low + sort.Search(top-low, func(i int) bool { return reached(low+i) >= want }), true
}
