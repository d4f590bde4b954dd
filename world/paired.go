package world

import (
	calc "parley/internal/stats"
	"parley/stats"
)

// Paired compares two sides that did the same things, such as solved the same problems:
// by how much a is above b on average, with its interval, and how often chance alone makes
// as much of a difference. Where all that was done succeeded or not (1 or 0) these are
// Newcombe's interval and McNemar's test; elsewhere Student's and a test by flipping signs,
// which draws from the seed. Where they are not of one length nothing is known.
func Paired(a, b []float64, confidence float64, seed uint64) (stats.Quantity, stats.Test) {
	if len(a) == len(b) && zeroOne(a) && zeroOne(b) {
		var p calc.Pairs
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
		return calc.PairedShareDifference(p, confidence), calc.McNemar(p)
	}
	var differences []float64
	if len(a) == len(b) {
		for i := range a {
			differences = append(differences, a[i]-b[i])
		}
	}
	return calc.PairedDifference(a, b, confidence), calc.Permutation{Seed: seed}.SignFlip(differences)
}

func zeroOne(xs []float64) bool {
	for _, x := range xs {
		if x != 0 && x != 1 {
			return false
		}
	}
	return true
}
