package world

import (
	"parley/internal/kit/statmath"
	"parley/stats"
)

// Paired compares two sides that did the same things, such as solve the same problems. It returns the mean difference
// a-b with its interval, and a test of how often chance alone makes such a difference. If all values are 0 or 1,
// these are Newcombe's interval and McNemar's test; otherwise Student's and a sign-flip test, which draws from the
// seed. If the lengths differ, the result is unknown.
func Paired(a, b []float64, confidence float64, seed uint64) (stats.Quantity, stats.Test) {
	if len(a) == len(b) && zeroOne(a) && zeroOne(b) {
		var p statmath.Pairs
		for i := range a {
			switch {
			case a[i] == 1 && b[i] == 1:
				p.Both++
			case a[i] == 1:
				p.OnlyA++
			case b[i] == 1:
				p.OnlyB++
			default:
				p.Neither++
			}
		}
		return statmath.PairedShareDifference(p, confidence), statmath.McNemar(p)
	}
	var differences []float64
	if len(a) == len(b) {
		for i := range a {
			differences = append(differences, a[i]-b[i])
		}
	}
	return statmath.PairedDifference(a, b, confidence), statmath.Permutation{Seed: seed}.SignFlip(differences)
}

func zeroOne(xs []float64) bool {
	for _, x := range xs {
		if x != 0 && x != 1 {
			return false
		}
	}
	return true
}
