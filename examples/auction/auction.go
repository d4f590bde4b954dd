// Package auction is a kind of worlds: sealed-bid auctions, in which the highest bid wins and pays the second highest.
package auction

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"parley/llm"
	"parley/world"
)

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

// question is the prompt of a bidder. The stand-in parses it with the same format.
const question = "Something is for sale that is worth %d to you. The highest bid wins and pays the second highest. Your bid?"

// ask returns the request for a bid.
func ask(worth int) llm.Request {
	return llm.Request{
		Messages: []llm.Message{llm.User(fmt.Sprintf(question, worth))},
		Schema: &llm.Schema{Name: "bid", JSON: json.RawMessage(
			`{"type":"object","properties":{"bid":{"type":"integer","minimum":0,"maximum":100}},"required":["bid"],"additionalProperties":false}`)},
	}
}

// read returns the bid of a reply. A seat that fails to answer does not bid.
func read(reply world.Reply) int {
	var answer struct{ Bid int }
	if !reply.OK() || json.Unmarshal(reply.JSON, &answer) != nil {
		return 0
	}
	return min(max(answer.Bid, 0), 100)
}

// Params are what a plan file can set.
type Params struct {
	Bidders int `json:"bidders" doc:"How many seats bid." range:"2..20"`
	Rounds  int `json:"rounds" doc:"How many things are sold, one after the other." range:"1..100"`
}

// Kind returns the kind of these auctions.
func Kind() world.Kind { return world.Define(definition{}) }

//go:embed auction.yaml
var example string

// definition implements the parts of the kind.
type definition struct{}

// About says what the kind is. Raise Version when prompts or rules change.
func (definition) About() world.About {
	return world.About{
		Name: "auction", Version: 1, Doc: "Sealed bids: the highest wins and pays the second highest.", Example: example,
	}
}

// Defaults returns the params that apply if a plan file sets nothing.
func (definition) Defaults() *Params { return &Params{Bidders: 2, Rounds: 4} }

// Seats lists bidder1, bidder2 and so on.
func (definition) Seats(p *Params) ([]string, error) {
	var names []string
	for i := range p.Bidders {
		names = append(names, fmt.Sprintf("bidder%d", i+1))
	}
	return names, nil
}

// World makes the world of one episode.
func (d definition) World(p *Params, _ world.Lineup) (world.World, error) {
	seats, err := d.Seats(p)
	return auction{seats: seats, rounds: p.Rounds}, err
}

// Measures declares the score: its range, and that bidders compete for it.
func (d definition) Measures(p *Params) []world.Measure {
	seats, err := d.Seats(p)
	if err != nil {
		return nil
	}
	bounds := world.Bounds{Low: -99 * float64(p.Rounds), High: 100 * float64(p.Rounds)}
	return []world.Measure{{Name: "profit", Seats: seats, Rivals: true, Bounds: bounds}}
}

// StandIn bids for the simulated provider. The model large bids the true worth, which is the best strategy; any other is
// off by up to 20.
func (definition) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	var worth int
	if len(req.Messages) == 0 {
		return "", false
	}
	if _, err := fmt.Sscanf(req.Messages[len(req.Messages)-1].Text(), question, &worth); err != nil {
		return "", false
	}
	bid := worth
	if model != "large" {
		bid += rand.New(rand.NewPCG(seed, 0)).IntN(41) - 20
	}
	return fmt.Sprintf(`{"bid":%d}`, min(max(bid, 0), 100)), true
}
