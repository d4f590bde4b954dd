package statmath

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts the P of several tests: if you claim every difference whose adjusted P is below α, the probability
// of one or more false claims is at most α. The tests may depend on each other. An unknown P stays unknown and does
// not count.
func Holm(ps []float64) []float64 {
	adjusted, order := ranked(ps)
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, ps[i]*float64(len(order)-rank))
		adjusted[i] = min(1, largest)
	}
	return adjusted
}

// benjaminiHochberg adjusts the P of several tests: if you claim every difference whose adjusted P is below α, at
// most a share α of the claims is false on average. The tests must be independent or positively dependent. An
// unknown P stays unknown and does not count.
func benjaminiHochberg(ps []float64) []float64 {
	adjusted, order := ranked(ps)
	smallest := 1.0
	for rank, i := range slices.Backward(order) {
		smallest = min(smallest, ps[i]*float64(len(order))/float64(rank+1))
		adjusted[i] = smallest
	}
	return adjusted
}

// Adjust adjusts the P of several tests by the named method, holm or bh. For any other name it
// returns them unchanged.
func Adjust(method string, ps []float64) []float64 {
	switch method {
	case "holm":
		return Holm(ps)
	case "bh":
		return benjaminiHochberg(ps)
	default:
		return slices.Clone(ps)
	}
}

// ranked returns a slice of unknown values, as long as ps, and the indices of the known ps in ascending order.
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
