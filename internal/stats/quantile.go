package stats

import (
	"slices"
	"sort"
)

// Quantile returns the value that a share q of xs is below: the median for 0.5. Between
// two observations it is interpolated (type 7, as R and NumPy do). The interval is from
// one observation to another and takes nothing for granted about how they are
// distributed; with too few observations for the confidence it is open at an end. For
// millions of durations there is a sketch in dispatch.
func Quantile(xs []float64, q, confidence float64) Quantity {
	const method = "order statistics"
	if len(xs) == 0 || !(q >= 0 && q <= 1) || !allFinite(xs) {
		return Unknown(len(xs), method)
	}
	if !slices.IsSorted(xs) {
		xs = slices.Clone(xs)
		slices.Sort(xs)
	}
	return Quantity{Value: quantile7(xs, q), Interval: orderInterval(xs, q, confidence), N: len(xs), Method: method}
}

// quantile7 interpolates in sorted observations, of which there is at least one.
func quantile7(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(max(int(at), 0), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	part := min(max(at-float64(i), 0), 1)
	between := float64(sorted[i]*(1-part)) + float64(sorted[j]*part) // a difference could overflow
	return min(max(between, sorted[i]), sorted[j])                   // whatever rounding says
}

// orderInterval counts how many observations are below the true quantile: that number
// is binomial, whatever the distribution.
func orderInterval(sorted []float64, q, confidence float64) Interval {
	i := everything()
	if !(confidence > 0 && confidence < 1) {
		return i
	}
	n, tail := len(sorted), (1-confidence)/2
	// The largest rank that is too high no more often than tail, and the smallest that is too low so often.
	if low := sort.Search(n, func(k int) bool { return binomialCDF(k, n, q) > tail }); low > 0 {
		i.Low = sorted[low-1]
	}
	if high := sort.Search(n, func(k int) bool { return binomialCDF(k, n, q) >= 1-tail }); high < n {
		i.High = sorted[high]
	}
	return i
}
