package statmath

import "math"

// Share returns the share k of n with Wilson's interval.
func Share(k, n int, confidence float64) Quantity {
	if n <= 0 || k < 0 || k > n {
		return Quantity{Value: math.NaN(), Interval: Interval{Low: 0, High: 1}, N: max(n, 0), Method: "wilson"}
	}
	return Quantity{Value: float64(k) / float64(n), Interval: Wilson(k, n, confidence), N: n, Method: "wilson"}
}

// Wilson returns Wilson's score interval of a proportion: k of n. It stays within 0 and
// 1 and suits small n and k of 0 or n. Without observations it is 0 to 1.
func Wilson(k, n int, confidence float64) Interval {
	if n <= 0 {
		return Interval{Low: 0, High: 1}
	}
	k = min(max(k, 0), n)
	return wilsonShare(float64(k)/float64(n), float64(n), confidence)
}

// wilsonShare returns Wilson's interval of a share p of n observations. n need not be a whole number:
// observations that depend on each other count for less than one.
func wilsonShare(p, n, confidence float64) Interval {
	z := normalQuantile(confidence)
	if math.IsInf(z, 1) {
		return Interval{Low: 0, High: 1}
	}
	zz := float64(z * z) // the conversions prevent fused multiply-add, which only some processors have
	denominator := 1 + zz/n
	centre := (p + zz/(2*n)) / denominator
	half := z / denominator * math.Sqrt(float64(p*(1-p))/n+zz/float64(4*n*n))
	i := Interval{Low: max(0, centre-half), High: min(1, centre+half)}
	if p == 0 {
		i.Low = 0 // without a rounding error
	}
	if p == 1 {
		i.High = 1
	}
	return i
}

// ShareDifference returns the share k1 of n1 less the share k2 of n2, with
// Newcombe's hybrid score interval. N is the smaller of n1 and n2.
func ShareDifference(k1, n1, k2, n2 int, confidence float64) Quantity {
	a, b := Share(k1, n1, confidence), Share(k2, n2, confidence)
	d := Quantity{Value: a.Value - b.Value, Interval: Interval{Low: -1, High: 1}, N: min(a.N, b.N), Method: "newcombe"}
	if d.Known() {
		d.Interval = squareAndAdd(a, b, 0, confidence)
	}
	return d
}

// Pairs counts which side won on the same deals, where each side wins a deal or not.
type Pairs struct {
	Both, OnlyA, OnlyB, Neither int
}

// N returns the number of pairs.
func (p Pairs) N() int { return p.Both + p.OnlyA + p.OnlyB + p.Neither }

// Count counts a pair. 1 is a win, and anything else is not.
func (p *Pairs) Count(a, b float64) {
	switch {
	case a == 1 && b == 1:
		p.Both++
	case a == 1:
		p.OnlyA++
	case b == 1:
		p.OnlyB++
	default:
		p.Neither++
	}
}

func (p Pairs) valid() bool {
	return p.Both >= 0 && p.OnlyA >= 0 && p.OnlyB >= 0 && p.Neither >= 0
}

// PairedShareDifference returns the share of A less that of B on the
// same deals, with Newcombe's interval for pairs.
func PairedShareDifference(p Pairs, confidence float64) Quantity {
	n := p.N()
	if n == 0 || !p.valid() {
		return Quantity{Value: math.NaN(), Interval: Interval{Low: -1, High: 1}, N: max(n, 0), Method: "newcombe, paired"}
	}
	a, b := Share(p.Both+p.OnlyA, n, confidence), Share(p.Both+p.OnlyB, n, confidence)
	return Quantity{
		Value:    float64(p.OnlyA-p.OnlyB) / float64(n),
		Interval: squareAndAdd(a, b, p.correlation(), confidence),
		N:        n,
		Method:   "newcombe, paired",
	}
}

// correlation returns Newcombe's coefficient: phi, corrected for continuity if it is
// above 0, and 0 if a side always wins or never does.
func (p Pairs) correlation() float64 {
	e, f, g, h := float64(p.Both), float64(p.OnlyA), float64(p.OnlyB), float64(p.Neither)
	margins := math.Sqrt((e+f)*(g+h)) * math.Sqrt((e+g)*(f+h))
	if margins == 0 {
		return 0
	}
	c := e*h - f*g
	if c > 0 {
		c = max(0, c-(e+f+g+h)/2)
	}
	return c / margins
}

// squareAndAdd returns the interval of a-b from their Wilson intervals and their correlation r. It
// never leaves -1 to 1.
func squareAndAdd(a, b Quantity, r, confidence float64) Interval {
	if math.IsInf(normalQuantile(confidence), 1) {
		return Interval{Low: -1, High: 1}
	}
	side := func(x, y float64) float64 {
		return math.Sqrt(max(0, x*x-2*r*x*y+y*y))
	}
	d := a.Value - b.Value
	return Interval{
		Low:  max(-1, d-side(a.Value-a.Low, b.High-b.Value)),
		High: min(1, d+side(a.High-a.Value, b.Value-b.Low)),
	}
}

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
