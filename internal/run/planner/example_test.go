package planner_test

import (
	"fmt"

	"parley/internal/run/planner"
	"parley/world"
)

// Two models meet on both sides, five times each, with the same deals.
func ExampleMatrix() {
	plan, err := planner.Matrix{
		Kind: "secrets", Seats: []string{"first", "second"},
		Lineups:     []map[string]string{{"first": "small", "second": "large"}, {"first": "large", "second": "small"}},
		Repetitions: 5,
	}.Plan()
	if err != nil {
		fmt.Println(err)
		return
	}
	specs := plan.Next(nil)
	fmt.Println(specs.Len(), "episodes")
	for i := range 3 {
		fmt.Printf("deal %d: %s\n", specs.At(i).Deal, specs.At(i).Cell)
	}
	// Output:
	// 10 episodes
	// deal 0: first=small, second=large
	// deal 0: first=large, second=small
	// deal 1: first=small, second=large
}

// A score that is always the same is known after the first stage.
func ExampleUntil() {
	plan, err := planner.Until{
		Cells: []world.Spec{{Kind: "secrets", Lineup: map[string]string{"first": "small", "second": "large"}}},
		Score: "points", Agent: "small", Width: 0.25, Min: 20, Step: 10, Max: 500,
	}.Plan()
	if err != nil {
		fmt.Println(err)
		return
	}
	var played []world.Played
	for i, s := range plan.Next(nil).All() {
		points := world.Score{Seat: "first", Name: "points", Value: 3}
		played = append(played, world.Played{Episode: i, Spec: s, Outcome: world.Outcome{Scores: []world.Score{points}}})
	}
	fmt.Println(len(played), "played, then", plan.Next(played).Len())
	// Output: 20 played, then 0
}
