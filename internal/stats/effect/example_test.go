package effect_test

import (
	"fmt"

	"parley/internal/stats/effect"
)

// Twelve deals were played by both agents and do not tell yet who is better: how many
// would, if the difference is as large as it looks?
func ExamplePairedNeeded() {
	differences := []float64{0.2, -0.1, 0.4, 0, 0.3, -0.2, 0.1, 0.2, -0.3, 0.3, 0, 0.1}
	d := effect.Paired(differences, 0.95)
	n, ok := effect.PairedNeeded(d.Value, 0.05, 0.8)
	fmt.Println(d)
	fmt.Println(n-len(differences), "more", ok)
	// Output:
	// 0.3922 (-0.2045 to 0.9726, n=12, noncentral t)
	// 41 more true
}

func ExampleCliff() {
	fmt.Println(effect.Cliff([]float64{3, 5, 4, 6, 5, 7}, []float64{2, 4, 3, 3, 5, 1}, 0.95))
	// Output: 0.6944 (0.1245 to 0.9198, n=6, feng-cliff)
}
