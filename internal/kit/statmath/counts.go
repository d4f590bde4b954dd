package statmath

import "math"

// McNemar is the exact test of whether A and B win equally often on the same deals. Only deals
// that one side won and the other lost count.
func McNemar(p Pairs) Test {
	t := Test{P: math.NaN(), N: max(p.N(), 0), Method: "mcnemar"}
	if t.N == 0 || !p.valid() {
		return t
	}
	fewer, differ := min(p.OnlyA, p.OnlyB), p.OnlyA+p.OnlyB
	t.P = min(1, 2*binomialCDF(fewer, differ, 0.5))
	return t
}

// Fisher is the exact test of whether k1 of n1 and k2 of n2, from different deals, are
// equal shares. It is conservative: with small numbers it finds a
// difference less often than its P says.
func Fisher(k1, n1, k2, n2 int) Test {
	t := Test{P: math.NaN(), N: max(0, min(n1, n2)), Method: "fisher"}
	if t.N == 0 || k1 < 0 || k2 < 0 || k1 > n1 || k2 > n2 {
		return t
	}
	k := k1 + k2
	log := func(i int) float64 { return logChoose(n1, i) + logChoose(n2, k-i) - logChoose(n1+n2, k) }
	limit := log(k1) + 1e-7 // allows for rounding: tables as likely as this one count
	sum := 0.0
	for i := max(0, k-n2); i <= min(k, n1); i++ {
		if l := log(i); l <= limit {
			sum += math.Exp(l)
		}
	}
	t.P = min(1, sum)
	return t
}

func logChoose(n, k int) float64 {
	log := func(x int) float64 { l, _ := math.Lgamma(float64(x + 1)); return l }
	return log(n) - log(k) - log(n-k)
}
