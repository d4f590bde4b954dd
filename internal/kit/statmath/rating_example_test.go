package statmath_test

import (
	"fmt"

	"parley/internal/kit/statmath"
)

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
