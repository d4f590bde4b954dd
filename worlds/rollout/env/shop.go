package env

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// shopParams are its params.
type shopParams struct {
	Items   int `json:"items"`   // in the order
	Largest int `json:"largest"` // price
	Answers int `json:"answers"` // calls of tools included
}

// shop has an order whose total needs a tool, because only the tool knows the prices. The right total earns 1.
type shop struct {
	shopParams
	conversation
	prices map[string]int
	total  int
	left   int // answers
}

func newShop(params json.RawMessage) (Env, error) {
	p := shopParams{Items: 3, Largest: 20, Answers: 12}
	err := readParams("shop", params, &p, bound{"items", &p.Items, 1, len(shopItems())}, bound{"largest", &p.Largest, 1, 1000}, bound{"answers", &p.Answers, 1, 100})
	return &shop{shopParams: p}, err
}

func shopItems() []string {
	return []string{"basket", "candle", "hammer", "kettle", "ladder", "mirror", "pencil", "teapot"}
}

func (s *shop) Reset(seed int64) {
	r := newRand(seed)
	s.prices, s.total, s.left = map[string]int{}, 0, s.Answers
	var order []string
	for i, at := range r.Perm(len(shopItems())) {
		item := shopItems()[at]
		s.prices[item] = 1 + r.IntN(s.Largest)
		if i < s.Items {
			n := 1 + r.IntN(5)
			order = append(order, fmt.Sprintf("%d x %s", n, item))
			s.total += n * s.prices[item]
		}
	}
	s.conversation = newConversation("Work out what an order costs. Only the tool price knows the price of an item. When you know all prices, answer with the total, in \\boxed{}.",
		"The order is "+strings.Join(order, ", ")+". What does it cost?")
}

func (s *shop) Prompt() rules.Prompt {
	if s.done {
		return nil
	}
	p := rules.Ask(s.messages...)
	q := p[rules.DefaultAgent]
	q.Tools = rules.ToolList{{
		Name: "price", Description: "Returns the price of one item.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"item":{"type":"string"}},"required":["item"],"additionalProperties":false}`),
	}}
	p[rules.DefaultAgent] = q
	return p
}

// maxCalls is how many calls of tools an answer may have.
const maxCalls = 32

func (s *shop) Step(action rules.Action) rules.Result {
	if s.done {
		return result(0, true, false)
	}
	m := onlyMessage(action)
	s.left--
	switch {
	case len(m.ToolCalls) == 0:
		s.done = true
		if finalAnswer(m.Text()) == fmt.Sprint(s.total) {
			return result(1, true, false)
		}
		return result(0, true, false)
	case s.left == 0 || len(m.ToolCalls) > maxCalls:
		s.done = true
		return result(0, false, true)
	}
	s.messages = append(s.messages, m)
	for _, call := range m.ToolCalls {
		s.messages = append(s.messages, s.call(call))
	}
	return result(0, false, false)
}

// call carries out a call of a tool.
func (s *shop) call(call llm.ToolCall) llm.Message {
	var in struct{ Item string }
	why := ""
	switch err := json.Unmarshal([]byte(call.Arguments), &in); {
	case call.Name != "price":
		why = "There is no such tool: use price."
	case err != nil:
		why = `The arguments are not an object such as {"item": "kettle"}.`
	case s.prices[in.Item] == 0:
		why = "The shop does not have this item."
	}
	m := llm.ToolResult(call.ID, fmt.Sprint(s.prices[in.Item]))
	if why != "" {
		m = llm.ToolResult(call.ID, why)
		m.ToolFailed = true
	}
	return m
}
