package effect

import (
	"math"

	"parley/internal/stats"
)

// CohenH returns Cohen's h: how far the share k1 of n1 is above k2 of n2, measured so
// that a step is as hard to see anywhere between 0 and 1.
func CohenH(k1, n1, k2, n2 int, confidence float64) stats.Quantity {
	n := max(0, min(n1, n2))
	if !share(k1, n1) || !share(k2, n2) {
		return stats.Unknown(n, "arcsine")
	}
	q := stats.Unknown(n, "arcsine")
	q.Value = arcsine(float64(k1)/float64(n1)) - arcsine(float64(k2)/float64(n2))
	half := normalQuantile(confidence) * math.Sqrt(1/float64(n1)+1/float64(n2))
	q.Low, q.High = max(-math.Pi, q.Value-half), min(math.Pi, q.Value+half)
	return q
}

func arcsine(p float64) float64 { return 2 * math.Asin(math.Sqrt(p)) }

// OddsRatio returns the odds of k1 of n1 over those of k2 of n2, with Woolf's interval.
// Where something happened never or always, half an observation is added to each count
// (Haldane, Anscombe). Where neither group tells anything apart it is not known.
func OddsRatio(k1, n1, k2, n2 int, confidence float64) stats.Quantity {
	q := stats.Unknown(max(0, min(n1, n2)), "woolf")
	q.Low = 0
	if !share(k1, n1) || !share(k2, n2) || k1+k2 == 0 || k1+k2 == n1+n2 {
		return q
	}
	a, b, c, d := float64(k1), float64(n1-k1), float64(k2), float64(n2-k2)
	if a*b*c*d == 0 {
		a, b, c, d = a+0.5, b+0.5, c+0.5, d+0.5
		q.Method = "woolf, halves added"
	}
	q.Value = a / b * (d / c)
	half := normalQuantile(confidence) * math.Sqrt(1/a+1/b+1/c+1/d)
	q.Low, q.High = q.Value*math.Exp(-half), q.Value*math.Exp(half)
	return q
}

func share(k, n int) bool { return n > 0 && k >= 0 && k <= n }
