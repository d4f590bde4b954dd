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

// noncentralT returns the probability that the noncentral t distribution is below t, which is not negative. It is
// algorithm AS 243 of Lenth (1989): two series with the weights of a Poisson distribution.
func noncentralT(t, df, noncentrality float64) float64 {
	const maxTerms, precise = 1000, 1e-12
	x, half := t*t/(t*t+df), df/2
	lambda := noncentrality * noncentrality
	p := math.Exp(-lambda/2) / 2
	q := math.Sqrt(2/math.Pi) * p * noncentrality
	rest := 0.5 - p
	a, power := 0.5, math.Pow(1-x, half)
	b, _ := math.Lgamma(half)
	c, _ := math.Lgamma(half + 0.5)
	odd, even := mathext.RegIncBeta(a, half, x), 1-power
	oddStep, evenStep := 2*power*math.Exp(a*math.Log(x)-(math.Log(math.Pi)/2+b-c)), half*x*power
	sum := p*odd + q*even
	for n := 1.0; n <= maxTerms; n++ {
		a++
		odd -= oddStep
		even -= evenStep
		oddStep *= x * (a + half - 1) / a
		evenStep *= x * (a + half - 0.5) / (a + 0.5)
		p *= lambda / (2 * n)
		q *= lambda / (2*n + 1)
		rest -= p
		sum += p*odd + q*even
		if rest < 0 || math.Abs(2*rest*(odd-oddStep)) < precise {
			break
		}
	}
	return min(1, sum+normalCDF(-noncentrality))
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
