package statmath

import "math"

// Stratum is a part of a population, sampled separately.
type Stratum struct {
	Size   float64   // the number of units in the stratum
	Values []float64 // of the sampled units: two or more
}

// Strata is a stratified random sample of a population of known size.
type Strata struct {
	Sampled []Stratum
	// Size is the number of units in the population, including strata that were not sampled.
	Size float64
	// All is the number of strata in the population. If it is more than len(Sampled), these are a random
	// sample of them.
	All int
}

// Total predicts the sum over all units of the population, if each is a new unit of its stratum and not
// a sampled one. The estimate is the sum over strata of size times mean. If only some strata
// were sampled, it is scaled to the size of the population, and its variance has two stages: between
// strata, and within them. See Cochran, Sampling Techniques (1977), chapters 5 and 11.
func (s Strata) Total(confidence float64) Quantity {
	mean, parts := s.spread(true)
	q := Quantity{Value: mean * s.Size, Interval: everything(), N: len(s.Sampled), Method: "strata"}
	if s.Size == 0 {
		q.Interval = Interval{}
	} else if variance, df := welch1947(parts); df > 0 {
		q.Interval = student(q.Value, math.Sqrt(variance), df, confidence)
	}
	return q
}

// Mean returns the mean over all units, with its interval. Its SD is that of single units.
func (s Strata) Mean(confidence float64) Estimate {
	mean, parts := s.spread(false)
	e := Estimate{Mean: mean, Interval: everything(), Method: "strata"}
	size, squares := 0.0, 0.0
	for _, h := range s.Sampled {
		t := tallied(h.Values)
		e.N += t.N()
		size += h.Size
		squares += h.Size * (t.variance() + (t.mean-mean)*(t.mean-mean))
	}
	if size > 0 {
		e.SD = math.Sqrt(squares / size)
	}
	if variance, df := welch1947(parts); df > 0 && s.Size > 0 {
		e.Interval = student(mean, math.Sqrt(variance)/s.Size, df, confidence)
	}
	return e
}

// component is a part of a variance, with its degrees of freedom.
type component struct{ variance, df float64 }

// spread returns the mean over units, and the components of the variance of the total.
func (s Strata) spread(predict bool) (mean float64, parts []component) {
	size, sum := 0.0, 0.0
	for _, h := range s.Sampled {
		size += h.Size
		t := tallied(h.Values)
		sum += h.Size * t.mean
	}
	if !(size > 0) {
		return 0, nil
	}
	mean = sum / size
	scale, between := s.Size/size, 0.0
	for _, h := range s.Sampled {
		if h.Size == 0 {
			continue
		}
		t := tallied(h.Values)
		n := float64(t.N())
		factor := h.Size * h.Size / n
		if predict {
			factor += h.Size
		}
		parts = append(parts, component{scale * factor * t.variance(), n - 1})
		between += math.Pow(h.Size*(t.mean-mean), 2)
	}
	if m, all := float64(len(s.Sampled)), float64(s.All); m < all {
		parts = append(parts, component{scale * scale * m * (1 - m/all) * between / (m - 1), m - 1})
	}
	return mean, parts
}

// welch1947 adds up components. The degrees of freedom of the sum are Welch's second
// approximation (Biometrika 34, 1947). Unlike the first, it does not mistake the noise in
// components of few degrees of freedom for a difference between them. A df of 0 means that the variance is unknown.
func welch1947(parts []component) (variance, df float64) {
	squares := 0.0
	for _, p := range parts {
		if !(p.df > 0) {
			return 0, 0
		}
		variance += p.variance
		squares += p.variance * p.variance / (p.df + 2)
	}
	switch {
	case len(parts) == 0:
		return 0, 0
	case squares == 0: // nothing varies
		return 0, 1
	}
	return variance, variance*variance/squares - 2
}
