package statmath

import (
	"math"
	"math/rand/v2"
)

// Permutation tests whether there is a difference by counting how often chance alone makes
// one as large: over all possibilities if there are few enough, and otherwise over
// random ones. It assumes nothing about the distribution of scores.
type Permutation struct {
	Seed  uint64 // the same seed gives the same P
	Draws int    // default: 9,999
}

// maxExact is the number of possibilities up to which a test goes through all of them.
const maxExact = 1 << 20

// SignFlip tests whether the mean of differences is 0. A difference is the score of A
// less that of B on the same deal. If A and B are equal, each difference could as well have the
// other sign. Average pairs that depend on each other first.
func (p Permutation) SignFlip(differences []float64) Test {
	t := Test{P: math.NaN(), N: len(differences), Method: "sign flips"}
	var nonzero []float64 // the others stay 0 with either sign
	sum, size := 0.0, 0.0
	for _, d := range differences {
		sum += d
		size += math.Abs(d)
		if d != 0 {
			nonzero = append(nonzero, d)
		}
	}
	if len(differences) == 0 || !isFinite(size) {
		return t
	}
	// Sums that differ only by rounding are equal.
	least := math.Abs(sum) - 1e-10*size
	if len(nonzero) < 63 && 1<<len(nonzero) <= maxExact {
		t.P = float64(flipAll(nonzero, 0, least)) / float64(int(1)<<len(nonzero))
		return t
	}
	t.Method = "sign flips, drawn"
	r := rand.New(rand.NewPCG(p.Seed, 0))
	t.P = p.drawn(func() bool { return math.Abs(flipSome(r, nonzero)) >= least })
	return t
}

// flipAll counts the ways to give signs to ds for which sum plus the signed ds is at least
// least, in either direction.
func flipAll(ds []float64, sum, least float64) int {
	if len(ds) > 0 {
		return flipAll(ds[1:], sum+ds[0], least) + flipAll(ds[1:], sum-ds[0], least)
	}
	if math.Abs(sum) >= least {
		return 1
	}
	return 0
}

// flipSome returns the sum of ds with random signs, one bit for each.
func flipSome(r *rand.Rand, ds []float64) float64 {
	sum, bits := 0.0, uint64(0)
	for i, d := range ds {
		if i%64 == 0 {
			bits = r.Uint64()
		}
		if bits&1 == 0 {
			d = -d
		}
		bits >>= 1
		sum += d
	}
	return sum
}

// Among tests whether x is like others, which are from other deals: P is how many of them all are at least as far from their mean as x. If
// it is like the others, each of them could as well have been x.
func Among(x float64, others []float64) Test {
	t := Test{P: math.NaN(), N: min(1, len(others)), Method: "shuffles"}
	all := []float64{0} // less x: a mean of large numbers that are close together loses precision
	for _, other := range others {
		all = append(all, other-x)
	}
	mean, size, far := tallied(all).mean, 0.0, 0.0
	for _, d := range all {
		size += math.Abs(d - mean)
	}
	if t.N == 0 || !isFinite(size) {
		return t
	}
	for _, d := range all {
		if math.Abs(d-mean) >= math.Abs(mean)-1e-10*size { // distances that differ only by rounding are equal
			far++
		}
	}
	t.P = far / float64(len(all))
	return t
}

// drawn returns P: the share of draws that are as extreme as the data. The data count
// as one of the draws, so P is never 0 and not too small on average.
func (p Permutation) drawn(extreme func() bool) float64 {
	draws := p.Draws
	if draws < 1 {
		draws = 9999
	}
	count := 1
	for range draws {
		if extreme() {
			count++
		}
	}
	return float64(count) / float64(draws+1)
}
