// Part learner plays the environments that come with Parley for the simulated provider, moderately well. It
// recognizes an environment by the rules in its system message, and its answers are sometimes good and
// sometimes not, so that the episodes of a group differ.
//
// It promises that an answer depends only on its arguments, and that no prompt makes it panic or run long. It
// is not for judging environments or models: the skill of a model's name is made up.

package rollout

import (
	"math/rand/v2"
	"strings"

	"parley/llm"
	"parley/world/worldsim"
)

// playLearner answers the prompt of an environment with a text. It does not answer other requests, or requests with a schema
// or with tools of others. Calls is asked first where there are tools.
//
// Models with small, mini, nano or tiny in their names are a little worse than others, and those with large,
// pro, max or huge a little better.
func playLearner(model string, req *llm.Request, seed uint64) (string, bool) {
	rules := worldsim.Instructions(req) // lessons may follow the rules
	if req.Schema != nil || len(req.Tools) > 0 && !strings.Contains(rules, shopSign) {
		return "", false
	}
	for _, g := range games() {
		if strings.Contains(rules, g.sign) {
			t := &turn{Rand: rand.New(rand.NewPCG(seed, 0)), skill: skill(model), rules: rules}
			t.read(req.Messages)
			return g.play(t)
		}
	}
	return "", false
}

// game is an environment: a text of its rules that no other has, and how to play it.
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
		{shopSign, (*turn).addUp},
	}
}

// turn is what a player knows at its turn.
type turn struct {
	*rand.Rand

	skill float64 // probability of a good move
	rules string
	heard []string // messages of the environment, which may be cut to the latest
	said  []string // its own answers
	all   []llm.Message
}

func (t *turn) read(messages []llm.Message) {
	t.all = messages
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			t.heard = append(t.heard, m.Text())
		case llm.RoleAssistant:
			t.said = append(t.said, m.Text())
		}
	}
}

// asked returns the message to answer.
func (t *turn) asked() string {
	if len(t.heard) == 0 {
		return ""
	}
	return t.heard[len(t.heard)-1]
}

// fails reports whether something with this chance of success goes wrong.
func (t *turn) fails(chance float64) bool { return t.Float64() >= chance }

func (t *turn) pick(from ...string) string { return from[t.IntN(len(from))] }

// skill returns the skill of a model, by its name.
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
