package rollout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

const shopSign = "Only the tool price knows the price of an item"

var orderLine = regexp.MustCompile(`(\d{1,9}) x ([a-z]+)`)

// learnerCalls returns the calls of tools with which a model answers the prompt of an environment, or false if it answers
// with a text.
func learnerCalls(model string, req *llm.Request, seed uint64) ([]llm.ToolCall, bool) {
	if len(req.Tools) != 1 || req.Tools[0].Name != "price" || !strings.Contains(worldsim.Instructions(req), shopSign) {
		return nil, false
	}
	t := &turn{Rand: rand.New(rand.NewPCG(seed, 0)), skill: skill(model), all: req.Messages}
	prices, asked := t.prices()
	var calls []llm.ToolCall
	for _, line := range t.order() {
		if _, known := prices[line.item]; known || asked[line.item] && t.fails(t.skill) {
			continue
		}
		args, err := json.Marshal(map[string]string{"item": line.item})
		if err != nil {
			return nil, false
		}
		calls = append(calls, llm.ToolCall{Name: "price", Arguments: string(args)})
		if t.fails(0.5) {
			break // one at a time, or several at once
		}
	}
	return calls, len(calls) > 0
}

// orderedItem is a line of an order.
type orderedItem struct {
	n    int
	item string
}

func (t *turn) order() (lines []orderedItem) {
	for _, m := range t.all {
		if m.Role != llm.RoleUser {
			continue
		}
		for _, found := range orderLine.FindAllStringSubmatch(m.Text(), -1) {
			lines = append(lines, orderedItem{whole(found[1]), found[2]})
		}
	}
	return lines
}

// prices returns the prices that the tool answered, and the items that it was asked for.
func (t *turn) prices() (known map[string]int, asked map[string]bool) {
	known, asked = map[string]int{}, map[string]bool{}
	of := map[string]string{} // items by call
	for _, m := range t.all {
		for _, c := range m.ToolCalls {
			var in struct{ Item string }
			if json.Unmarshal([]byte(c.Arguments), &in) == nil {
				of[c.ID], asked[in.Item] = in.Item, true
			}
		}
		if m.Role == llm.RoleTool && !m.ToolFailed {
			known[of[m.ToolCallID]] = whole(m.Text())
		}
	}
	return known, asked
}

// addUp answers with the total, which is sometimes wrong, and 0 if the order was cut from the prompt.
func (t *turn) addUp() (string, bool) {
	prices, _ := t.prices()
	total := 0
	for _, line := range t.order() {
		total += line.n * prices[line.item]
	}
	if t.fails(t.skill + 0.15) {
		total += 1 + t.IntN(5)
	}
	return fmt.Sprintf("The order costs \\boxed{%d}.", total), true
}
