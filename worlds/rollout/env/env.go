// Package env has the environments that come with Parley: arithmetic, a maze, a negotiation of two, number
// puzzles, a shop with tools and a word game. They are small, complete, and meant as examples for your own.
// Package envhttp holds them in this process, and serves them to others.
//
// An environment is plain Go that starts nothing and does not wait. The same params, seed and actions give the
// same prompts and rewards. Any text is an action, if a bad one, and none makes it panic or grow without bound.
package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/worlds/rollout/rules"
)

// Env is one environment of one episode. It is used by one goroutine at a time.
type Env interface {
	// Reset starts over. It is called first.
	Reset(seed int64)
	// Prompt returns who is to act, and on what. Calling it again changes nothing.
	Prompt() rules.Prompt
	// Step handles an action. After the end it has no effect.
	Step(a rules.Action) rules.Result
}

// Kind is a family of environments.
type Kind struct {
	Name string
	Doc  string // one line
	// Seats are its agents. Empty: one agent, with any name.
	Seats []string
	// New returns an environment with params, a JSON object. Its errors name the key.
	New func(params json.RawMessage) (Env, error)
}

// Standard returns the environments that come with Parley, by name.
func Standard() []Kind {
	return []Kind{
		{Name: "arithmetic", Doc: "Sums and products of small numbers, or questions of a dataset.", New: newArithmetic},
		{Name: "maze", Doc: "Find the way out of a maze, step by step.", New: newMaze},
		{Name: "negotiation", Doc: "A seller and a buyer who do not know each other's limit agree on a price, or do not.", Seats: []string{seller, buyer}, New: newNegotiation},
		{Name: "number", Doc: "Make a target out of given numbers with + - * / and parentheses.", New: newNumber},
		{Name: "shop", Doc: "Look up prices with a tool, and add up an order.", New: newShop},
		{Name: "word", Doc: "Find a word of five letters from what earlier guesses tell.", New: newWord},
	}
}

// Find returns the environment with a name.
func Find(kinds []Kind, name string) (Kind, error) {
	var names []string
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	hint := ";"
	if n := part.Nearest(name, names); n != "" {
		hint = "; did you mean " + n + "?"
	}
	return Kind{}, fmt.Errorf("env: unknown environment %.40q%s want one of %s", name, hint, strings.Join(names, ", "))
}

// bound is the range of a param.
type bound struct {
	param     string
	value     *int
	low, high int
}

// readParams reads params over the defaults in v, and checks those that have bounds. It refuses unknown keys.
func readParams(name string, params json.RawMessage, v any, bounds ...bound) error {
	if len(bytes.TrimSpace(params)) > 0 {
		if err := world.DecodeStrict(params, v); err != nil {
			return fmt.Errorf("env: %s: params: %w", name, err)
		}
	}
	for _, b := range bounds {
		if *b.value < b.low || *b.value > b.high {
			return fmt.Errorf("env: %s: params.%s: %d: want %d to %d", name, b.param, *b.value, b.low, b.high)
		}
	}
	return nil
}

// conversation is the conversation of the single agent with its environment.
type conversation struct {
	messages []llm.Message
	done     bool // it has ended
}

func newConversation(rules, first string) conversation {
	return conversation{messages: []llm.Message{llm.System(rules), llm.User(first)}}
}

// Prompt returns the conversation, or nothing after the end.
func (t *conversation) Prompt() rules.Prompt {
	if t.done {
		return nil
	}
	return rules.Ask(t.messages...)
}

// maxAnswer is how much of an answer is kept in a conversation.
const maxAnswer = 20_000

// answered adds an action and the reply to it.
func (t *conversation) answered(action, outcome string) {
	if len(action) > maxAnswer {
		action = strings.ToValidUTF8(action[:maxAnswer], "")
	}
	t.messages = append(t.messages, llm.Assistant(action), llm.User(outcome))
}

// onlyText returns the action of the single agent, whatever its name.
func onlyText(a rules.Action) string { return onlyMessage(a).Text() }

// onlyMessage is onlyText with calls of tools.
func onlyMessage(a rules.Action) llm.Message {
	if m, ok := a[rules.DefaultAgent]; ok || len(a) != 1 {
		return m
	}
	for _, m := range a {
		return m
	}
	return llm.Message{}
}

// result returns the result of a step for the single agent.
func result(reward float64, terminated, truncated bool) rules.Result {
	return rules.Result{
		Observation: json.RawMessage("{}"), Info: json.RawMessage("{}"),
		Reward: rules.Rewards{rules.DefaultAgent: reward}, Terminated: terminated, Truncated: truncated,
	}
}

// newRand returns the random source of an environment.
func newRand(seed int64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0x9e3779b97f4a7c15)) }

var (
	boxed     = regexp.MustCompile(`\\boxed\{([^{}]*)\}`)
	anyNumber = regexp.MustCompile(`-?\d[\d,]*(?:\.\d+)?`)
)

// finalAnswer returns the answer in a text: the last boxed text or, without one, the last number.
func finalAnswer(text string) string {
	if all := boxed.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return normalize(all[len(all)-1][1])
	}
	all := anyNumber.FindAllString(text, -1)
	if len(all) == 0 {
		return ""
	}
	return normalize(all[len(all)-1])
}

// normalize writes equal answers in one way, so that they can be compared.
func normalize(s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	s = strings.Trim(strings.ReplaceAll(s, ",", ""), "$.")
	if strings.Contains(s, ".") && anyNumber.FindString(s) == s {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
