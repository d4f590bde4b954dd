package statmath_test

import (
	"fmt"

	"parley/internal/kit/statmath"
)

func ExampleShare() {
	fmt.Println(statmath.Share(31, 50, 0.95))
	// Output: 0.62 (0.4815 to 0.7414, n=50, wilson)
}

// Two agents on the same eight deals: how much better is the first, and is it luck?
func ExamplePermutation_SignFlip() {
	a := []float64{7, 5, 9, 6, 8, 7, 9, 4}
	b := []float64{5, 4, 7, 6, 5, 6, 8, 3}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	fmt.Println(statmath.PairedDifference(a, b, 0.95))
	fmt.Println(statmath.Permutation{Seed: 1}.SignFlip(differences))
	// Output:
	// 1.375 (0.6091 to 2.141, n=8, t, paired)
	// p=0.0156 (sign flips, n=8)
}

// Three episodes, with a score from each of several rounds.
func ExampleClusters() {
	var c statmath.Clusters
	c.Add(1, 0, 1, 1)
	c.Add(0, 0)
	c.Add(1, 1, 0)
	fmt.Println(c.Between(0, 1, 0.95))
	fmt.Println(c.Mean(0.95))
	// Output:
	// 0.5556 (0.07927 to 0.9478, n=3, cluster wilson)
	// 0.5556 (-0.3205 to 1.432, n=3, cluster t)
}

// Both agents played the same twelve deals, which do not show who is better. How many would, if the
// difference is as large as it looks?
func ExamplePairedNeeded() {
	differences := []float64{0.2, -0.1, 0.4, 0, 0.3, -0.2, 0.1, 0.2, -0.3, 0.3, 0, 0.1}
	d := statmath.PairedEffect(differences, 0.95)
	n, ok := statmath.PairedNeeded(d.Value, 0.05, 0.8)
	fmt.Println(d)
	fmt.Println(n-len(differences), "more", ok)
	// Output:
	// 0.3922 (-0.2045 to 0.9726, n=12, noncentral t)
	// 41 more true
}

func ExampleHolm() {
	fmt.Println(statmath.Holm([]float64{0.01, 0.04, 0.03}))
	// Output: [0.03 0.06 0.06]
}
