// Package auction is the example of docs/writing-a-world.md: a sealed-bid auction, whose
// winner pays the second highest bid. It is a whole world in one small file, and is not
// for more than that.
package auction

import (
	"encoding/json"
	"fmt"

	"parley/llm"
	"parley/world"
)

// Params are what a plan file can say.
type Params struct {
	Bidders int `json:"bidders" doc:"How many bid: 2 to 20."`
	Rounds  int `json:"rounds" doc:"How many things are sold, one after the other: 1 to 100."`
}

// Kind is the family of these auctions.
func Kind() world.Kind { return world.Define(definition{}) }

// definition is what the auctions are made of.
type definition struct{}

// About says what they are.
func (definition) About() world.About {
	return world.About{
		Name: "auction", Version: 1, Doc: "Sealed bids; the highest wins and pays the second highest.",
		Example: "kind: auction\nagents: {bidder: sim/small}\nparams: {bidders: 3, rounds: 4}\n",
	}
}

// Defaults are the params where a plan file says nothing.
func (definition) Defaults() *Params { return &Params{Bidders: 3, Rounds: 4} }

// Seats lists bidder1 and so on. All that is wrong with params is said at once, by param.
func (definition) Seats(p *Params) ([]string, error) {
	c := world.Complaints{Kind: "auction"}
	c.Whole("bidders", p.Bidders, 2, 20)
	c.Whole("rounds", p.Rounds, 1, 100)
	if err := c.Err(); err != nil {
		return nil, err
	}
	var names []string
	for i := range p.Bidders {
		names = append(names, fmt.Sprintf("bidder%d", i+1))
	}
	return names, nil
}

// World makes the world of one episode.
func (d definition) World(p *Params, _ world.Lineup) (world.World, error) {
	names, err := d.Seats(p)
	if err != nil {
		return nil, err
	}
	return auction{seats: names, rounds: p.Rounds}, nil
}

// auction is one episode.
type auction struct {
	seats  []string
	rounds int
}

// Play sells one thing after the other.
func (a auction) Play(t *world.Table) world.Outcome {
	profit := make([]float64, len(a.seats))
	for round := range a.rounds {
		worth := make([]int, len(a.seats))
		calls := make([]world.Call, len(a.seats))
		for i, seat := range a.seats {
			worth[i] = 1 + t.Rand().IntN(100)
			calls[i] = world.Call{Seat: seat, Label: "bid", Ask: ask(worth[i])}
		}
		winner, best, second := -1, 0, 0
		for i, reply := range t.Ask(calls...) {
			switch bid := read(reply); {
			case bid > best:
				winner, best, second = i, bid, best
			case bid > second:
				second = bid
			}
		}
		if winner >= 0 {
			profit[winner] += float64(worth[winner] - second)
			t.Note("sold", a.seats[winner], map[string]int{"round": round + 1, "bid": best, "price": second})
		}
	}
	var o world.Outcome
	for i, seat := range a.seats {
		o.Scores = append(o.Scores, world.Score{Seat: seat, Name: "profit", Value: profit[i]})
	}
	return o
}

// ask is what a bidder is asked.
func ask(worth int) llm.Request {
	return llm.Request{
		Messages: []llm.Message{llm.User(fmt.Sprintf(
			"Something is for sale that is worth %d to you. The highest bid wins and pays the second highest. Your bid?", worth))},
		Schema: &llm.Schema{Name: "bid", JSON: json.RawMessage(
			`{"type":"object","properties":{"bid":{"type":"integer","minimum":0,"maximum":100}},"required":["bid"],"additionalProperties":false}`)},
	}
}

// read takes a bid from a reply. Who fails to answer does not bid.
func read(reply world.Reply) int {
	var answer struct{ Bid int }
	if !reply.OK() || json.Unmarshal(reply.JSON, &answer) != nil {
		return 0
	}
	return min(max(answer.Bid, 0), 100)
}
