// Part bot plays Diplomacy without a model: baselines to measure models against.
//
// A bot's orders are legal and depend only on the question: the position, and a number that
// seeds its random choices. Bots write no messages and no diary.

package diplomacy

import (
	"encoding/json"
	"math/rand/v2"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// botAll returns the bots by name: random draws among the legal orders of each unit, greedy moves
// to the nearest centres.
func botAll(r *rules.Rules) map[string]world.Bot {
	return map[string]world.Bot{
		"random": play(r, randomOrders),
		"greedy": play(r, greedyOrders),
	}
}

// view is the question to a bot: the position, and a seed, so that games with different deals
// differ.
type view struct {
	Power string      `json:"power"`
	State rules.State `json:"state"`
	Draw  uint64      `json:"draw"`
}

// botCall asks the bot in a seat for orders.
func botCall(seat, label string, form *llm.Schema, state rules.State, draw uint64) world.Call {
	b, err := json.Marshal(view{seat, state, draw})
	if err != nil {
		b = []byte("{}") // texts and lists always marshal
	}
	return world.Call{Seat: seat, Label: label, Ask: llm.Request{Messages: []llm.Message{llm.User(string(b))}, Schema: form}}
}

// botPlayer returns the orders of a power in a position.
type botPlayer func(r *rules.Rules, p *rules.Position, w rules.Power, chance *rand.Rand) []rules.Order

// play makes a bot from a player. It answers any question that Call did not make with no orders.
func play(r *rules.Rules, think botPlayer) world.Bot {
	return func(c world.Call) world.Reply {
		var seen view
		answer := struct {
			Reason string   `json:"reason"`
			Orders []string `json:"orders"`
		}{Orders: []string{}}
		if ms := c.Ask.Messages; len(ms) > 0 && json.Unmarshal([]byte(ms[len(ms)-1].Text()), &seen) == nil {
			p, err := r.FromState(seen.State)
			if w, ok := rules.ParsePower(seen.Power); ok && err == nil {
				for _, o := range think(r, &p, w, rand.New(rand.NewPCG(seen.Draw, uint64(w)))) {
					answer.Orders = append(answer.Orders, o.Text(r.Board))
				}
			}
		}
		b, err := json.Marshal(answer)
		if err != nil {
			return world.Reply{Failed: llm.KindMalformed}
		}
		return world.Reply{Text: string(b), JSON: b, Finish: llm.FinishStop}
	}
}

// randomOrders draws an order for each unit, and as many builds or removals as are due.
func randomOrders(r *rules.Rules, p *rules.Position, w rules.Power, chance *rand.Rand) []rules.Order {
	choices := rules.ChoicesOf(r.Choices(p), w)
	if p.Phase.Step == rules.Adjustments {
		n := r.Allowed(p, w)
		chance.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
		choices = choices[:min(len(choices), max(n, -n))]
	}
	orders := make([]rules.Order, len(choices))
	for i, c := range choices {
		orders[i] = c.Orders[chance.IntN(len(c.Orders))]
	}
	return orders
}
