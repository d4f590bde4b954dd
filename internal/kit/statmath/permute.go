package statmath

import (
	"math"
	"math/rand/v2"
	"slices"
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

// Shuffle tests whether a and b, which are from different deals, have the same mean. If
// they have, each observation could as well have been in the other group.
// Use Welch for groups that differ in both spread and size.
func (p Permutation) Shuffle(a, b []float64) Test {
	t := Test{P: math.NaN(), N: min(len(a), len(b)), Method: "shuffles"}
	if t.N == 0 {
		return t
	}
	if len(a) > len(b) {
		a, b = b, a // the absolute difference is the same, and the smaller group is less work
	}
	all, least := pooled(a, b)
	if math.IsNaN(least) {
		return t
	}
	if ways := choices(len(all), len(a)); ways <= maxExact {
		t.P = float64(chooseAll(all, len(a), 0, least)) / ways
		return t
	}
	t.Method = "shuffles, drawn"
	r := rand.New(rand.NewPCG(p.Seed, 0))
	t.P = p.drawn(func() bool { return math.Abs(chooseSome(r, all, len(a))) >= least })
	return t
}

// pooled returns a and b in one slice, less their mean, so that the sum of a's part measures the
// difference of means. least is the size of that sum, or NaN if an observation is not finite.
func pooled(a, b []float64) (all []float64, least float64) {
	var mean tally
	for _, x := range slices.Concat(a, b) {
		x -= a[0] // keeps precision: a mean of large numbers that are close together loses it
		all = append(all, x)
		mean.Add(x)
	}
	size, sum := 0.0, 0.0
	for i := range all {
		all[i] -= mean.mean
		size += math.Abs(all[i])
		if i < len(a) {
			sum += all[i]
		}
	}
	if !isFinite(size) {
		return nil, math.NaN()
	}
	return all, math.Abs(sum) - 1e-10*size
}

// choices returns the number of ways to choose k of n, or a number above maxExact.
func choices(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= k && ways <= maxExact; i++ {
		ways = math.Round(ways * float64(n-k+i) / float64(i))
	}
	return ways
}

// chooseAll counts the ways to choose k of xs for which sum plus the chosen xs is at least least, in either direction.
func chooseAll(xs []float64, k int, sum, least float64) int {
	if k == 0 {
		if math.Abs(sum) >= least {
			return 1
		}
		return 0
	}
	if k > len(xs) {
		return 0
	}
	return chooseAll(xs[1:], k-1, sum+xs[0], least) + chooseAll(xs[1:], k, sum, least)
}

// chooseSome returns the sum of k random xs. It reorders xs.
func chooseSome(r *rand.Rand, xs []float64, k int) float64 {
	sum := 0.0
	for i := range k {
		j := i + r.IntN(len(xs)-i)
		xs[i], xs[j] = xs[j], xs[i]
		sum += xs[i]
	}
	return sum
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
