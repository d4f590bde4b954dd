package statmath

import (
	"math"
	"sort"
)

// maxNeeded is the largest number of episodes that the search considers.
const maxNeeded = 1_000_000_000

// meansPower returns how often a t test at level alpha detects a difference of d standard
// deviations between two groups of n episodes each. It returns NaN if that is unknown.
func meansPower(d float64, n int, alpha float64) float64 {
	return tPower(d*math.Sqrt(float64(n)/2), 2*float64(n)-2, alpha)
}

// pairedPower returns how often a t test at level alpha detects a mean difference of d
// standard deviations of the differences, from n pairs. It returns NaN if that is unknown.
func pairedPower(d float64, n int, alpha float64) float64 {
	return tPower(d*math.Sqrt(float64(n)), float64(n)-1, alpha)
}

// sharesPower returns how often a test at level alpha detects that shares of p1 and p2
// differ, from n episodes in each of two groups. It returns NaN if that is unknown.
func sharesPower(p1, p2 float64, n int, alpha float64) float64 {
	if !(p1 >= 0 && p1 <= 1 && p2 >= 0 && p2 <= 1 && alpha > 0 && alpha < 1) || n < 1 {
		return math.NaN()
	}
	middle := (p1 + p2) / 2
	equal := math.Sqrt(2 * middle * (1 - middle))
	apart := math.Sqrt(p1*(1-p1) + p2*(1-p2))
	far := math.Abs(p1-p2) * math.Sqrt(float64(n))
	z := normalQuantile(1-alpha) * equal
	switch {
	case equal == 0: // both shares are 0, or both are 1
		return alpha
	case apart == 0: // one share is 0, the other 1
		if far > z {
			return 1
		}
		return 0
	}
	return normalCDF((far-z)/apart) + normalCDF((-far-z)/apart)
}

// tPower returns how often a noncentral t variable is beyond the critical values of level alpha.
func tPower(noncentrality, df, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1 && df >= 1) || math.IsNaN(noncentrality) || math.IsInf(noncentrality, 0) {
		return math.NaN()
	}
	nc := math.Abs(noncentrality)
	edge := tQuantile(df, 1-alpha)
	return min(1, max(0, 1-below(edge, df, nc)+below(-edge, df, nc)))
}

// MeansNeeded returns how many episodes each of two groups needs for meansPower to reach
// power. It is not ok if no number up to maxNeeded is enough.
func MeansNeeded(d, alpha, power float64) (n int, ok bool) {
	return needed(2, d != 0, power, func(n int) float64 { return meansPower(d, n, alpha) })
}

// PairedNeeded returns how many pairs are needed for pairedPower to reach power.
func PairedNeeded(d, alpha, power float64) (n int, ok bool) {
	return needed(2, d != 0, power, func(n int) float64 { return pairedPower(d, n, alpha) })
}

// SharesNeeded returns how many episodes each of two groups needs for sharesPower to
// reach power.
func SharesNeeded(p1, p2, alpha, power float64) (n int, ok bool) {
	return needed(1, p1 != p2, power, func(n int) float64 { return sharesPower(p1, p2, n, alpha) })
}

// needed returns the smallest n of at least first for which reached(n) is at least want. reached grows with n.
func needed(first int, possible bool, want float64, reached func(n int) float64) (int, bool) {
	if !possible || !(want < 1) || math.IsNaN(reached(first)) {
		return 0, false
	}
	top := first
	for reached(top) < want {
		if top *= 2; top > maxNeeded {
			return 0, false
		}
	}
	low := max(first, top/2)
	return low + sort.Search(top-low, func(i int) bool { return reached(low+i) >= want }), true
}
