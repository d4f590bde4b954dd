package world_test

import (
	"fmt"

	"parley/llm"
	"parley/world"
)

// A world asks through its table and continues when the replies have arrived. The engine
// resumes its strand when replies are durable.
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

// flips are the params of a kind: what a plan file may say under params.
type flips struct {
	Coins int `json:"coins" doc:"How many coins are flipped: 1 or more."`
}

// coinKind is the definition of a kind: the four methods that every kind has, and the scores that it declares.
type coinKind struct{}

func (coinKind) About() world.About {
	return world.About{Name: "coin", Version: 1, Doc: "Guess coins.", Example: "kind: coin\nagents: {a: sim/small}\n"}
}

func (coinKind) Defaults() *flips { return &flips{Coins: 1} }

func (coinKind) Seats(p *flips) ([]string, error) {
	if p.Coins < 1 {
		return nil, fmt.Errorf("coin: params.coins: %d: want 1 or more", p.Coins)
	}
	return []string{"guesser"}, nil
}

func (coinKind) World(p *flips, _ world.Lineup) (world.World, error) {
	return world.Func(func(t *world.Table) world.Outcome {
		right := 0.0
		for range p.Coins {
			side := []string{"heads", "tails"}[t.Rand().IntN(2)]
			if t.One(world.Call{Seat: "guesser", Ask: llm.Request{Messages: []llm.Message{llm.User("Heads or tails?")}}}).Text == side {
				right++
			}
		}
		return world.Outcome{Scores: []world.Score{{Seat: "guesser", Name: "right", Value: right}}}
	}), nil
}

func (coinKind) Measures(p *flips) []world.Measure {
	return []world.Measure{{Name: "right", Seats: []string{"guesser"}, Bounds: world.Bounds{High: float64(p.Coins)}}}
}

// Measures is optional: the compiler checks here that it is what a Measurer has.
var _ world.Measurer[flips] = coinKind{}

// A kind is a definition: a type with the methods of Definition, and of the other parts that the kind brings.
func ExampleDefine() {
	kind := world.Define(coinKind{})
	params, err := kind.Read([]byte(`{"coins": 5}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	seats, err := kind.Seats(params)
	fmt.Println(kind.Name, seats, err)
	fmt.Println("scores up to", kind.Measures(params)[0].High)
	// Output:
	// coin [guesser] <nil>
	// scores up to 5
}
