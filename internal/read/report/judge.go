package report

import (
	"slices"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/world"
)

const confidence = results.Confidence

// seed is the seed of all permutations.
const seed = 1

// judge tests a pairing, which is one of so many. No interval goes beyond the bounds of the score.
func (c *Comparison) judge(p pairing, share bool, within world.Bounds, matches int) {
	shares := share && p.single
	c.N = min(len(p.a), len(p.b))
	c.pairs, c.shares = pairing{paired: p.paired, a: p.a, b: p.b}, shares
	switch {
	case p.paired && shares:
		n := tally(p.a, p.b)
		c.Difference, c.Test = statmath.PairedShareDifference(n, confidence), statmath.McNemar(n)
		c.Effect = statmath.PairedEffect(differences(p), confidence)
	case p.paired:
		d := differences(p)
		c.Difference, c.Test = statmath.PairedDifference(p.a, p.b, confidence), flip(d, matches)
		c.Effect = statmath.PairedEffect(d, confidence)
	case shares:
		k1, k2 := ones(p.a), ones(p.b)
		c.Difference, c.Test = statmath.ShareDifference(k1, len(p.a), k2, len(p.b), confidence), statmath.Fisher(k1, len(p.a), k2, len(p.b))
		c.Effect = statmath.CohenH(k1, len(p.a), k2, len(p.b), confidence)
	default:
		c.Difference, c.Test = statmath.MeanDifference(p.a, p.b, confidence), statmath.Welch(p.a, p.b)
		c.Effect = statmath.Hedges(p.a, p.b, confidence)
		if c.N == 1 && p.unit != "" { // an episode among its branches
			c.Test = statmath.Permutation{Seed: seed}.Shuffle(p.a, p.b)
		}
	}
	c.Difference = within.Difference().Quantity(c.Difference)
}

// flip tests differences. P from n random draws is never below 1/n, which must not
// prevent a finding among many comparisons: if P is close to that, flip draws more.
// It draws less for very many differences, to bound the work.
func flip(differences []float64, matches int) statmath.Test {
	const work = 400_000_000
	n := max(1, len(differences))
	draws := min(9999, max(1999, work/n))
	t := statmath.Permutation{Seed: seed, Draws: draws}.SignFlip(differences)
	if more := min(100*matches, work/n); t.P < 20/float64(draws) && more > draws {
		t = statmath.Permutation{Seed: seed, Draws: more}.SignFlip(differences)
	}
	return t
}

// estimate returns the mean of a group as every other table shows it.
func estimate(all []observation, within world.Bounds) statmath.Quantity {
	sample := world.Sample{Bounds: within}
	deals := map[results.Deal]int{}
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(o observation) bool { return o.episode != all[0].episode })
		if n < 0 {
			n = len(all)
		}
		values := make([]float64, n)
		for i, o := range all[:n] {
			values[i] = o.value
		}
		d := all[0].deal
		if deals[d] == 0 {
			deals[d] = len(deals) + 1
		}
		unit := world.Unit{Deal: deals[d], Play: all[0].play}
		if len(all[0].from) > 0 {
			unit.Deal = 0 // all episodes of a fork have the same deal
		}
		sample.Add(unit, values...)
		all = all[n:]
	}
	return sample.Estimate(confidence)
}

func differences(p pairing) []float64 {
	out := make([]float64, len(p.a))
	for i := range out {
		out[i] = p.a[i] - p.b[i]
	}
	return out
}

func tally(a, b []float64) (n statmath.Pairs) {
	for i := range a {
		switch {
		case a[i] == 1 && b[i] == 1:
			n.Both++
		case a[i] == 1:
			n.OnlyA++
		case b[i] == 1:
			n.OnlyB++
		default:
			n.Neither++
		}
	}
	return n
}

func ones(xs []float64) (n int) {
	for _, x := range xs {
		if x == 1 {
			n++
		}
	}
	return n
}
