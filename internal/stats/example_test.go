package stats_test

import (
	"fmt"

	"parley/internal/stats"
)

func ExampleShare() {
	fmt.Println(stats.Share(31, 50, 0.95))
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
	fmt.Println(stats.PairedDifference(a, b, 0.95))
	fmt.Println(stats.Permutation{Seed: 1}.SignFlip(differences))
	// Output:
	// 1.375 (0.6091 to 2.141, n=8, t, paired)
	// p=0.0156 (sign flips, n=8)
}

// Three episodes, with a score from each of several rounds.
func ExampleClusters() {
	var c stats.Clusters
	c.Add(1, 0, 1, 1)
	c.Add(0, 0)
	c.Add(1, 1, 0)
	fmt.Println(c.Between(0, 1, 0.95))
	fmt.Println(c.Mean(0.95))
	// Output:
	// 0.5556 (0.07927 to 0.9478, n=3, cluster wilson)
	// 0.5556 (-0.3205 to 1.432, n=3, cluster t)
}

// Any statistic of episodes can have an interval: here the ratio of two sums.
func ExampleBootstrap_Units() {
	cost := []float64{3, 5, 4, 8, 6, 7, 5, 4, 9, 6, 3, 5, 7, 6, 8, 4, 5, 6, 7, 5}
	points := []float64{2, 4, 4, 5, 3, 6, 4, 3, 5, 5, 2, 3, 6, 4, 6, 3, 4, 4, 5, 4}
	ratio := stats.Bootstrap{Seed: 1}.Units(len(cost), func(picked []int) float64 {
		c, p := 0.0, 0.0
		for _, i := range picked {
			c += cost[i]
			p += points[i]
		}
		return c / p
	}, 0.95)
	fmt.Printf("a point costs %.1f to %.1f\n", ratio.Low, ratio.High)
	// Output: a point costs 1.3 to 1.5
}

func ExampleHolm() {
	fmt.Println(stats.Holm([]float64{0.01, 0.04, 0.03}))
	// Output: [0.03 0.06 0.06]
}
