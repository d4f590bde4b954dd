package statmath

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// normalQuantile returns z such that a normal variable is within ±z with the given
// confidence. It is infinite if the confidence is not between 0 and 1.
func normalQuantile(confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) {
		return math.Inf(1)
	}
	return math.Sqrt2 * math.Erfinv(confidence)
}

// normalCDF returns the probability that a normal variable is below x.
func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// tQuantile is normalQuantile for Student's t with df degrees of freedom. If T is such
// a variable then T²/(df+T²) has the beta distribution of 1/2 and df/2. The smaller half
// of it is inverted, where floating point is more precise.
func tQuantile(df, confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) || !(df > 0) {
		return math.Inf(1)
	}
	if x := mathext.InvRegIncBeta(0.5, df/2, confidence); x < 0.5 {
		return math.Sqrt(df * x / (1 - x))
	}
	y := mathext.InvRegIncBeta(df/2, 0.5, 1-confidence)
	return math.Sqrt(df * (1 - y) / y)
}

// tTails returns the probability that Student's t with df degrees of freedom is further from 0
// than t.
func tTails(t, df float64) float64 {
	return mathext.RegIncBeta(df/2, 0.5, df/(df+t*t))
}

// binomialCDF returns the probability of at most k successes in n, each with probability p.
func binomialCDF(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}
