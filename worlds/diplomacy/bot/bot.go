// Package bot plays Diplomacy without a model: baselines to measure models against.
//
// It promises that what a bot orders is legal and depends on what it is asked alone: the
// position, and a number that its chance comes from.
//
// It is not for talking: bots say nothing and write no diary.
package bot

import (
	"encoding/json"
	"math/rand/v2"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// All are the bots by name: random draws among the legal orders of each unit, greedy goes
// for the nearest centres.
func All(r *rules.Rules) map[string]world.Bot {
	return map[string]world.Bot{
		"random": play(r, randomOrders),
		"greedy": play(r, greedyOrders),
	}
}

// view is what a bot is asked with: the position, and a number for its chance, so that
// games with other deals are other games.
type view struct {
	Power string      `json:"power"`
	State rules.State `json:"state"`
	Draw  uint64      `json:"draw"`
}

// Call asks the bot in a seat for orders.
func Call(seat, label string, form *llm.Schema, state rules.State, draw uint64) world.Call {
	b, err := json.Marshal(view{seat, state, draw})
	if err != nil {
		b = []byte("{}") // texts and lists always marshal
	}
	return world.Call{Seat: seat, Label: label, Ask: llm.Request{Messages: []llm.Message{llm.User(string(b))}, Schema: form}}
}

// player sees the position and gives orders.
type player func(r *rules.Rules, p *rules.Position, w board.Power, chance *rand.Rand) []order.Order

// play makes a bot of a player. What it is not asked as Call does it answers with no orders.
func play(r *rules.Rules, think player) world.Bot {
	return func(c world.Call) world.Reply {
		var seen view
		answer := struct {
			Reason string   `json:"reason"`
			Orders []string `json:"orders"`
		}{Orders: []string{}}
		if ms := c.Ask.Messages; len(ms) > 0 && json.Unmarshal([]byte(ms[len(ms)-1].Text()), &seen) == nil {
			p, err := r.FromState(seen.State)
			if w, ok := board.ParsePower(seen.Power); ok && err == nil {
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

// ownChoices are what a power can order, by province.
func ownChoices(r *rules.Rules, p *rules.Position, w board.Power) []rules.Choice {
	var own []rules.Choice
	for _, c := range r.Choices(p) {
		if c.Power == w {
			own = append(own, c)
		}
	}
	return own
}

// randomOrders draws an order for each unit; of builds and removals as many as are due.
func randomOrders(r *rules.Rules, p *rules.Position, w board.Power, chance *rand.Rand) []order.Order {
	choices := ownChoices(r, p, w)
	if p.Phase.Step == rules.Adjustments {
		n := r.Allowed(p, w)
		chance.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
		choices = choices[:min(len(choices), max(n, -n))]
	}
	orders := make([]order.Order, len(choices))
	for i, c := range choices {
		orders[i] = c.Orders[chance.IntN(len(c.Orders))]
	}
	return orders
}
