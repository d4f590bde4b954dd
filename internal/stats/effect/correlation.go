package effect

import (
	"cmp"
	"math"
	"slices"

	"parley/internal/stats"
)

// Pearson returns how closely x[i] and y[i] follow a line, from -1 to 1, with Fisher's
// interval.
func Pearson(x, y []float64, confidence float64) stats.Quantity {
	r := pearson(x, y)
	return fisher(r, 1, min(len(x), len(y)), "fisher z", confidence)
}

// Spearman returns how closely the order of x[i] follows that of y[i], from -1 to 1, with
// the interval of Bonett and Wright. Equal values share their ranks.
func Spearman(x, y []float64, confidence float64) stats.Quantity {
	n := min(len(x), len(y))
	if !finite(x) || !finite(y) {
		return fisher(math.NaN(), 1, n, "bonett-wright", confidence)
	}
	r := pearson(ranks(x), ranks(y))
	return fisher(r, 1+r*r/2, n, "bonett-wright", confidence)
}

// pearson is NaN where there is none: too few, different lengths, or no spread.
func pearson(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 2 {
		return math.NaN()
	}
	mx, my := mean(x), mean(y)
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx += dx * dx
		yy += dy * dy
		xy += dx * dy
	}
	if !finite([]float64{xx, yy, xy}) || xx == 0 || yy == 0 {
		return math.NaN()
	}
	return min(1, max(-1, xy/math.Sqrt(xx)/math.Sqrt(yy)))
}

// fisher returns r with an interval that is even on the scale of artanh, where its
// variance is v/(n-3).
func fisher(r, v float64, n int, method string, confidence float64) stats.Quantity {
	q := stats.Quantity{Value: r, Interval: stats.Interval{Low: -1, High: 1}, N: n, Method: method}
	if math.IsNaN(r) || n < 4 || math.Abs(r) == 1 {
		return q
	}
	half := normalQuantile(confidence) * math.Sqrt(v/float64(n-3))
	q.Low, q.High = math.Tanh(math.Atanh(r)-half), math.Tanh(math.Atanh(r)+half)
	return q
}

// ranks returns ranks from 1 up; equal values have the mean of theirs.
func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(xs[i], xs[j]) })
	out := make([]float64, len(xs))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && xs[order[to]] == xs[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return out
}
