package genome

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Candidate is a prompt that can be picked.
type Candidate struct {
	Fitness float64
	// ByProblem is the score on each problem, for pareto.
	ByProblem []float64
}

// SelectionOptions are the options of methods.
type SelectionOptions struct {
	// Size is the number of candidates in a tournament. Default: 3.
	Size int
	// Pressure is how much more often the best is picked than the one in the middle, by rank:
	// 1 (not at all) to 2. Default: 1.5.
	Pressure float64
	// Share is the share of candidates that truncation picks from. Default: 0.5.
	Share float64
}

// Select picks n candidates and returns their indexes. It picks better candidates more often, the same one several times
// if necessary. The method decides how much more often:
//
//   - tournament: the best of a few that are drawn;
//   - roulette: in proportion to fitness above the worst;
//   - rank: by rank, whatever the difference in fitness;
//   - universal: like roulette, but with one draw for all picks;
//   - truncation: evenly from the best part;
//   - pareto: those that no other beats on every problem, weighted by the number of problems
//     on which they are the best;
//   - random: evenly from all.
func Select(method string, all []Candidate, n int, o SelectionOptions, r *rand.Rand) []int {
	if len(all) == 0 || n <= 0 {
		return nil
	}
	picked := make([]int, 0, n)
	switch method {
	case "tournament":
		for range n {
			picked = append(picked, tournament(all, cmp.Or(o.Size, 3), r))
		}
	case "roulette":
		return drawWeighted(aboveWorst(all), n, r)
	case "rank":
		return drawWeighted(byRank(all, cmp.Or(o.Pressure, 1.5)), n, r)
	case "universal":
		return universal(aboveWorst(all), n, r)
	case "truncation":
		best := ranked(all)
		best = best[:max(1, int(cmp.Or(o.Share, 0.5)*float64(len(all))))]
		for range n {
			picked = append(picked, best[r.IntN(len(best))])
		}
	case "pareto":
		return drawWeighted(paretoWeights(all), n, r)
	default:
		for range n {
			picked = append(picked, r.IntN(len(all)))
		}
	}
	return picked
}

// ranked returns the indexes of all candidates, the fittest first. Equal ones keep their order.
func ranked(all []Candidate) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].Fitness, all[a].Fitness) })
	return order
}

// tournament draws size different candidates and returns the fittest.
func tournament(all []Candidate, size int, r *rand.Rand) int {
	drawn := r.Perm(len(all))[:min(max(1, size), len(all))]
	best := drawn[0]
	for _, i := range drawn[1:] {
		if all[i].Fitness > all[best].Fitness {
			best = i
		}
	}
	return best
}

// aboveWorst returns weights in proportion to fitness above the worst. The worst keeps a small chance.
func aboveWorst(all []Candidate) []float64 {
	low, high := all[0].Fitness, all[0].Fitness
	for _, c := range all {
		low, high = min(low, c.Fitness), max(high, c.Fitness)
	}
	weights := make([]float64, len(all))
	for i, c := range all {
		weights[i] = c.Fitness - low + (high-low)/float64(10*len(all))
	}
	return weights
}

// byRank returns weights that fall from pressure for the best to 2-pressure for the worst. Equal candidates share their
// ranks.
func byRank(all []Candidate, pressure float64) []float64 {
	pressure = min(max(pressure, 1), 2)
	weights := make([]float64, len(all))
	for i, c := range all {
		rank := -0.5 // a candidate is equal to itself
		for _, other := range all {
			switch {
			case other.Fitness > c.Fitness:
				rank++
			case other.Fitness == c.Fitness:
				rank += 0.5
			}
		}
		weights[i] = pressure - rank/float64(max(1, len(all)-1))*(2*pressure-2)
	}
	return weights
}

// paretoWeights weighs each candidate by the number of problems on which no other beats it. Candidates that another dominates
// have no weight.
func paretoWeights(all []Candidate) []float64 {
	weights := make([]float64, len(all))
	for i, c := range all {
		if slices.ContainsFunc(all, func(other Candidate) bool { return dominates(other, c) }) {
			continue
		}
		for p, x := range c.ByProblem {
			if !slices.ContainsFunc(all, func(o Candidate) bool { return p < len(o.ByProblem) && o.ByProblem[p] > x }) {
				weights[i]++
			}
		}
	}
	return weights
}

// dominates reports whether a is at least as good as b on every problem and better on one.
func dominates(a, b Candidate) bool {
	better := false
	for p, x := range b.ByProblem {
		if p >= len(a.ByProblem) || a.ByProblem[p] < x {
			return false
		}
		better = better || a.ByProblem[p] > x
	}
	return better
}

// drawWeighted draws n by weight. If all weights are 0, it draws evenly.
func drawWeighted(weights []float64, n int, r *rand.Rand) []int {
	picked := make([]int, n)
	for k := range n {
		picked[k] = indexAt(weights, r.Float64())
	}
	return picked
}

// universal draws once and takes the others in even steps.
func universal(weights []float64, n int, r *rand.Rand) []int {
	picked := make([]int, n)
	start := r.Float64()
	for k := range n {
		picked[k] = indexAt(weights, (start+float64(k))/float64(n))
	}
	r.Shuffle(n, func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	return picked
}

// indexAt returns the index at a share of the total weight, from 0 to 1.
func indexAt(weights []float64, part float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if !(sum > 0) {
		return min(int(part*float64(len(weights))), len(weights)-1)
	}
	left := part * sum
	last := 0
	for i, w := range weights {
		if w <= 0 {
			continue
		}
		if last = i; left < w {
			return i
		}
		left -= w
	}
	return last
}
