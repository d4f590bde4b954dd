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

func ExampleRate() {
	table, err := statmath.Rate([]statmath.Game{
		{A: "large", B: "small", Score: 1},
		{A: "large", B: "small", Score: 1},
		{A: "small", B: "large", Score: 1},
		{A: "small", B: "bot", Score: 1},
		{A: "large", B: "bot", Score: 1},
	}, 0.95)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range table.Standings {
		if s.Why != "" {
			fmt.Println(s.Group, s.Player, s.Why)
			continue
		}
		fmt.Printf("%d %s %.0f\n", s.Group, s.Player, s.Rating.Value)
	}
	// Output:
	// 1 large 1560
	// 1 small 1440
	// 2 bot lost every game: how much weaker it is, the games do not show
}
