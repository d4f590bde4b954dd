package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts the P of several tests so that claiming whatever is below α makes one
// false claim or more with a probability of at most α. The tests may depend on each
// other. A P that is not known stays so and does not count.
func Holm(ps []float64) []float64 {
	adjusted, order := ranked(ps)
	least := 0.0
	for rank, i := range order {
		least = max(least, ps[i]*float64(len(order)-rank))
		adjusted[i] = min(1, least)
	}
	return adjusted
}

// BenjaminiHochberg adjusts the P of several tests so that of the claims below α a share
// of at most α is false on average. The tests are to be independent, or to depend on
// each other positively. A P that is not known stays so and does not count.
func BenjaminiHochberg(ps []float64) []float64 {
	adjusted, order := ranked(ps)
	most := 1.0
	for rank, i := range slices.Backward(order) {
		most = min(most, ps[i]*float64(len(order))/float64(rank+1))
		adjusted[i] = most
	}
	return adjusted
}

// Adjust adjusts the P of several tests by a method of that name: holm or bh. By any other they
// stay as they are.
func Adjust(method string, ps []float64) []float64 {
	switch method {
	case "holm":
		return Holm(ps)
	case "bh":
		return BenjaminiHochberg(ps)
	default:
		return slices.Clone(ps)
	}
}

// ranked returns room for as many as ps, not known yet, and the indices of what is known
// from small to large.
func ranked(ps []float64) (adjusted []float64, order []int) {
	adjusted = make([]float64, len(ps))
	for i, p := range ps {
		adjusted[i] = math.NaN()
		if p >= 0 && p <= 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ps[i], ps[j]) })
	return adjusted, order
}
