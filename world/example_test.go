package world_test

import (
	"fmt"

	"parley/llm"
	"parley/world"
)

// A world asks through its table and goes on when the replies are there. Whoever drives
// it resumes its strand: the engine does so when replies are durable.
func Example() {
	duel := world.Func(func(t *world.Table) world.Outcome {
		call := func(seat string) world.Call {
			return world.Call{Seat: seat, Label: "choice", Ask: llm.Request{Messages: []llm.Message{llm.User("Heads or tails?")}}}
		}
		replies := t.Ask(call("left"), call("right"))
		same := replies[0].OK() && replies[1].OK() && replies[0].Text == replies[1].Text
		t.Note("choices", "", []string{replies[0].Text, replies[1].Text})
		return world.Outcome{Data: same}
	})

	strand := world.Begin(duel, world.Deal{Seed: 1})
	turn := strand.Next(nil)
	for _, c := range turn.Calls {
		fmt.Println(c.Seat, "is asked:", c.Ask.Messages[0].Text())
	}
	turn = strand.Next([]world.Reply{{Text: "heads"}, {Failed: llm.KindTimeout}})
	fmt.Printf("noted %s, done %v, same %v\n", turn.Notes[0].Data, turn.Done, turn.Outcome.Data)
	// Output:
	// left is asked: Heads or tails?
	// right is asked: Heads or tails?
	// noted ["heads",""], done true, same false
}

// Two models meet on both sides, five times each, with the same deals.
func ExampleMatrix() {
	plan, err := world.Matrix{
		Kind: "secrets", Seats: []string{"first", "second"},
		Lineups:     world.Pairs("first", "second", []string{"small", "large"}, false),
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
	plan, err := world.Until{
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
