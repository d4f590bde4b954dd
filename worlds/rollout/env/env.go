// Package env holds the environments that come with Parley: arithmetic, a maze, a
// negotiation of two, number puzzles and a word game. They are small, whole, and meant to
// be read as examples for one's own.
//
// What it promises: an environment is plain Go that starts nothing and waits for nobody; the
// same params, seed and actions give the same prompts and rewards, always; any text is an
// action, if a bad one, and none makes it panic or grow without bound.
//
// It is not for serving them: package envhttp holds them in this process, and its server
// serves them to others.
package env

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules/protocol"
)

// Env is one environment, played by one episode. It is used by one goroutine at a time.
type Env interface {
	// Reset begins anew. It is called before everything else.
	Reset(seed int64)
	// Prompt says who is to act, and on what. Asking again changes nothing.
	Prompt() protocol.Prompt
	// Step takes what they do. After the end it does nothing and is still the end.
	Step(a protocol.Action) protocol.Result
}

// Drawn is an Env that can be looked at.
type Drawn interface {
	// Draw is its state as a picture of characters, for people.
	Draw() string
}

// Kind is a family of environments.
type Kind struct {
	Name string
	Doc  string // one line
	// Seats are its agents. None: one, that may have any name.
	Seats []string
	// New makes an environment with params, a JSON object. Its errors name the key.
	New func(params json.RawMessage) (Env, error)
}

// Standard lists the environments that come with Parley, by name.
func Standard() []Kind {
	return []Kind{
		{Name: "arithmetic", Doc: "Sums and products of small numbers, or questions of a dataset.", New: newArithmetic},
		{Name: "maze", Doc: "Find the way out of a maze, step by step.", New: newMaze},
		{Name: "negotiation", Doc: "A seller and a buyer who do not know each other's limit agree on a price, or do not.", Seats: []string{seller, buyer}, New: newNegotiation},
		{Name: "number", Doc: "Make a target out of given numbers with + - * / and parentheses.", New: newNumber},
		{Name: "word", Doc: "Find a word of five letters from what earlier guesses tell.", New: newWord},
	}
}

// Find returns the environment of a name.
func Find(kinds []Kind, name string) (Kind, error) {
	var names []string
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("env: there is no environment %.40q%s", name, among(name, names))
}

// decode reads params over the defaults in v. Keys that are not known are refused.
func decode(name string, params json.RawMessage, v any) error {
	if len(bytes.TrimSpace(params)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("env: %s: params: there is no key %.60s%s", name, key, among(strings.Trim(key, `"`), keysOf(v)))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("env: %s: params.%s: want %s, found %s", name, wrong.Field, wrong.Type, wrong.Value)
	}
	return fmt.Errorf("env: %s: params: %w", name, err)
}

// keysOf lists the keys of the params that v points to.
func keysOf(v any) (keys []string) {
	for f := range reflect.TypeOf(v).Elem().Fields() {
		keys = append(keys, f.Tag.Get("json"))
	}
	slices.Sort(keys)
	return keys
}

// among lists what there is, after the name that was probably meant.
func among(name string, names []string) string {
	text := ": use "
	if n := world.Nearest(name, names); n != "" {
		text = "; did you mean " + n + "? There are "
	}
	return text + strings.Join(names, ", ")
}

// within checks a param.
func within(name, param string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("env: %s: params.%s: %d: want %d to %d", name, param, value, low, high)
	}
	return nil
}

// talk is the conversation of an agent with its environment: what Prompt returns.
type talk []llm.Message

func newTalk(rules, first string) talk { return talk{llm.System(rules), llm.User(first)} }

// maxAnswer is how much of an answer is kept in a conversation.
const maxAnswer = 20_000

// answered adds what the agent did and what that came to.
func (t *talk) answered(action, outcome string) {
	if len(action) > maxAnswer {
		action = strings.ToValidUTF8(action[:maxAnswer], "")
	}
	*t = append(*t, llm.Assistant(action), llm.User(outcome))
}

// only is what the single agent did, whatever it is called.
func only(a protocol.Action) string {
	if text, ok := a[protocol.Default]; ok || len(a) != 1 {
		return text
	}
	for _, text := range a {
		return text
	}
	return ""
}

// result is that of a step for the single agent.
func result(reward float64, terminated, truncated bool) protocol.Result {
	return protocol.Result{
		Observation: json.RawMessage("{}"), Info: json.RawMessage("{}"),
		Reward: protocol.Rewards{protocol.Default: reward}, Terminated: terminated, Truncated: truncated,
	}
}

// chance is what an environment draws from.
func chance(seed int64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0x9e3779b97f4a7c15)) }

var (
	boxed     = regexp.MustCompile(`\\boxed\{([^{}]*)\}`)
	anyNumber = regexp.MustCompile(`-?\d[\d,]*(?:\.\d+)?`)
)

// final returns what an answer comes down to: the last thing in a box or, without one, its
// last number.
func final(text string) string {
	if all := boxed.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return plain(all[len(all)-1][1])
	}
	all := anyNumber.FindAllString(text, -1)
	if len(all) == 0 {
		return ""
	}
	return plain(all[len(all)-1])
}

// plain writes an answer so that equal ones look equal.
func plain(s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	s = strings.Trim(strings.ReplaceAll(s, ",", ""), "$.")
	if strings.Contains(s, ".") && anyNumber.FindString(s) == s {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
