// Package learner plays the environments that come with Parley, for the simulated provider:
// middling well, as something that is still to be trained might. It knows an environment by
// the rules in its system message and answers legally, sometimes well and sometimes not, so
// that the episodes of a group come out differently.
//
// It promises that an answer depends on its arguments and on nothing else, and that no prompt
// makes it panic or think long. It is not for judging environments or models: how good a name
// is at them is made up.
package learner

import (
	"math/rand/v2"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// Play answers what an environment asks. It answers nothing else, and no request that wants a
// form or offers tools.
//
// Models whose names have small, mini, nano or tiny in them are a little worse than others,
// and those with large, pro, max or huge a little better.
func Play(model string, req *llm.Request, seed uint64) (string, bool) {
	if req.Schema != nil || len(req.Tools) > 0 {
		return "", false
	}
	rules := worldsim.Instructions(req) // there may be lessons behind the rules
	for _, g := range games() {
		if strings.Contains(rules, g.sign) {
			t := &turn{Rand: rand.New(rand.NewPCG(seed, 0)), skill: skill(model), rules: rules}
			t.read(req.Messages)
			return g.play(t)
		}
	}
	return "", false
}

// game is an environment: words of its rules that no other has, and how it is played. What is
// not asked as that environment asks is not played.
type game struct {
	sign string
	play func(*turn) (string, bool)
}

func games() []game {
	return []game{
		{`put the final answer last, in \boxed{}`, (*turn).calculate},
		{"Count: answer each number with the next one", (*turn).count},
		{"The way out is in the room furthest to the south-east", (*turn).walk},
		{"End what you say with OFFER and a whole number", (*turn).bargain},
		{"Put the expression last, in <answer> and </answer>", (*turn).express},
		{"Find a hidden word of five letters", (*turn).guess},
	}
}

// turn is what a player knows when it is its turn.
type turn struct {
	*rand.Rand

	skill float64 // how likely it is to do what it should
	rules string
	heard []string // what the environment said, the latest last: a prompt may be cut to that
	said  []string // its own answers
}

func (t *turn) read(messages []llm.Message) {
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			t.heard = append(t.heard, m.Text())
		case llm.RoleAssistant:
			t.said = append(t.said, m.Text())
		}
	}
}

// asked is the message that is answered.
func (t *turn) asked() string {
	if len(t.heard) == 0 {
		return ""
	}
	return t.heard[len(t.heard)-1]
}

// fails says whether something goes wrong that goes right with some chance.
func (t *turn) fails(chance float64) bool { return t.Float64() >= chance }

func (t *turn) pick(from ...string) string { return from[t.IntN(len(from))] }

// skill is that of a model, by its name.
func skill(model string) float64 {
	switch {
	case worldsim.Small(model):
		return 0.55
	case worldsim.Large(model):
		return 0.8
	default:
		return 0.68
	}
}
