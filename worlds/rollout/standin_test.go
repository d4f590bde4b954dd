package rollout

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/llm"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

// made makes an environment and resets it.
func made(t *testing.T, name, params string, seed int64) env.Env {
	t.Helper()
	kind, err := env.Find(env.Standard(), name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := kind.New(json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	e.Reset(seed)
	return e
}

// request returns a request with the last messages of a prompt.
func request(messages []llm.Message, last int) *llm.Request {
	if last > 0 && len(messages) > last+1 {
		messages = append([]llm.Message{messages[0]}, messages[len(messages)-last:]...)
	}
	return &llm.Request{Messages: messages}
}

// seedOf is that of a request in an episode: another with every message.
func seedOf(req *llm.Request, episode int) uint64 {
	h := fnv.New64a()
	for _, m := range req.Messages {
		_, _ = h.Write([]byte(m.Text())) // never fails
	}
	return h.Sum64() + uint64(episode)*0x9E3779B97F4A7C15
}

// playEpisode plays an episode to its end, against a small model where there are two, seeing only the last messages where last is above 0,
// and returns what was paid and all that was said.
func playEpisode(t *testing.T, model string, e env.Env, episode, last int) (rules.Rewards, string) {
	t.Helper()
	paid, said := rules.Rewards{}, ""
	for range 2000 {
		action := rules.Action{}
		for who, q := range e.Prompt() {
			messages := q.Messages
			req, model := request(messages, last), model
			req.Tools = q.Tools
			if who == "buyer" {
				model = "small"
			}
			if calls, ok := standInCalls(model, req, seedOf(req, episode)); ok {
				for i := range calls {
					calls[i].ID = fmt.Sprint(len(messages), "-", i)
				}
				action[who] = llm.Message{Role: llm.RoleAssistant, ToolCalls: calls}
				continue
			}
			text, ok := standInText(model, req, seedOf(req, episode))
			if !ok || text == "" {
				t.Fatalf("not played: %q", messages[len(messages)-1].Text())
			}
			if again, _ := standInText(model, req, seedOf(req, episode)); again != text {
				t.Fatalf("%q, then %q", text, again)
			}
			said += messages[len(messages)-1].Text() + "\n" + text + "\n"
			action[who] = llm.Assistant(text)
		}
		r := e.Step(action)
		for who, x := range r.Reward {
			paid[who] += x
		}
		if r.Done() {
			return paid, said
		}
	}
	t.Fatal("no end")
	return nil, ""
}

// sizes are the environments with the highest reward of a whole episode.
func sizes() []struct {
	name, params string
	maxReward    float64
	last         int
} {
	return []struct {
		name, params string
		maxReward    float64
		last         int
	}{
		{"arithmetic", `{"problems":3,"terms":3}`, 3, 0},
		{"arithmetic", `{"dataset":{"problem":"It begins at 9:40 and ends at 11:05. How many minutes is that?","answer":85}}`, 1, 0},
		{"maze", `{"size":4,"moves":40}`, 1, 0},
		{"maze", `{"size":4,"moves":40}`, 1, 3},
		{"negotiation", `{"rounds":6}`, 1, 0},
		{"negotiation", `{"rounds":6}`, 1, 3},
		{"number", `{}`, 1, 0},
		{"shop", `{}`, 1, 0},
		{"word", `{}`, 1, 0},
	}
}

// TestEveryEnvironmentIsThere checks that the tests below play every environment.
func TestEveryEnvironmentIsThere(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range sizes() {
		known[c.name] = true
	}
	for _, k := range env.Standard() {
		if !known[k.Name] {
			t.Errorf("%s is not played", k.Name)
		}
	}
}

// TestMiddling checks that mean rewards are neither near 0 nor near the maximum, that those of a group differ,
// and that a large model earns more than a small one.
func TestMiddling(t *testing.T) {
	t.Parallel()
	const groups, group = 40, 4
	for _, c := range sizes() {
		t.Run(c.name+c.params, func(t *testing.T) {
			t.Parallel()
			mean, unequal := map[string]float64{}, 0
			for _, model := range []string{"small", "large"} {
				for g := range groups {
					low, high := c.maxReward, 0.0
					for i := range group {
						paid, _ := playEpisode(t, model, made(t, c.name, c.params, int64(g)), g*group+i, c.last)
						got := paid["seller"] + paid[rules.DefaultAgent] // there is one of them
						mean[model] += got / (groups * group * c.maxReward)
						low, high = min(low, got), max(high, got)
					}
					if model == "small" && low < high {
						unequal++
					}
				}
			}
			if mean["small"] < 0.15 || mean["small"] > 0.85 || unequal < groups/2 {
				t.Errorf("a small model earns %v of what there is; %d of %d groups differ", mean["small"], unequal, groups)
			}
			if guessed := strings.Contains(c.params, "dataset"); !guessed && mean["large"] <= mean["small"] {
				t.Errorf("large %v, small %v", mean["large"], mean["small"])
			}
		})
	}
}

// TestLegal checks that answers have the form that the environment asks for.
func TestLegal(t *testing.T) {
	t.Parallel()
	never := []string{"That is no direction", "There is no <answer>", "That is no expression", "You used", "That holds no word", "There is no offer"}
	walls, steps := 0, 0
	for _, c := range sizes() {
		for i := range 30 {
			paid, said := playEpisode(t, "small", made(t, c.name, c.params, int64(i)), i, c.last)
			for _, complaint := range never {
				if strings.Contains(said, complaint) {
					t.Errorf("%s: %s:\n%s", c.name, complaint, said)
				}
			}
			for who, x := range paid {
				if x < 0 {
					t.Errorf("%s: %s loses %v", c.name, who, x)
				}
			}
			walls += strings.Count(said, "There is a wall")
			steps += strings.Count(said, "There are doors")
		}
	}
	if walls == 0 || walls > steps/10 {
		t.Errorf("into a wall %d times in %d steps", walls, steps)
	}
}

// TestDifficulty checks that harder tasks get lower rewards.
func TestDifficulty(t *testing.T) {
	t.Parallel()
	right := func(terms int) (n float64) {
		for i := range 500 {
			e := made(t, "arithmetic", fmt.Sprintf(`{"terms":%d}`, terms), int64(i))
			ms := e.Prompt()[rules.DefaultAgent].Messages
			req := &llm.Request{Messages: ms}
			text, _ := standInText("small", req, seedOf(req, i))
			n += e.Step(rules.Action{rules.DefaultAgent: llm.Assistant(text)}).Reward[rules.DefaultAgent]
		}
		return n
	}
	if easy, hard := right(2), right(6); easy < hard+100 {
		t.Errorf("%v easy ones right, %v hard ones", easy, hard)
	}
}

// TestCount plays the environment of examples/env_count.py, whose rules it takes from there.
func TestCount(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", "env_count.py"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), `"role": "system", "content": "`)
	rules, _, ok := strings.Cut(rest, `"`)
	if !ok || rules == "" {
		t.Fatal("env_count.py has no rules where they were")
	}
	right := 0
	for seed := range uint64(500) {
		text, ok := standInText("small", &llm.Request{Messages: []llm.Message{llm.System(rules), llm.User("41")}}, seed)
		if !ok {
			t.Fatal("not played")
		}
		if text == "42" {
			right++
		}
	}
	if right < 200 || right > 400 {
		t.Errorf("%d of 500 right", right)
	}
}

// TestShop checks that the tool is used: the total is often right, and prices are looked up.
func TestShop(t *testing.T) {
	t.Parallel()
	right := 0.0
	for i := range 100 {
		paid, _ := playEpisode(t, "large", made(t, "shop", "{}", int64(i)), i, 0)
		right += paid[rules.DefaultAgent]
	}
	if right < 60 || right > 99 {
		t.Errorf("%v of 100 right", right)
	}
}

func TestOthersAreNotPlayed(t *testing.T) {
	t.Parallel()
	ms := made(t, "maze", "{}", 1).Prompt()[rules.DefaultAgent].Messages
	for name, req := range map[string]*llm.Request{
		"nothing":       {},
		"no rules":      {Messages: ms[1:]},
		"a question":    {Messages: []llm.Message{llm.System("You are helpful."), llm.User("What is 1 + 1?")}},
		"another game":  {Messages: []llm.Message{ms[0], llm.User("Where are you?")}},
		"with a schema": {Messages: ms, Schema: &llm.Schema{Name: "move"}},
		"with tools":    {Messages: ms, Tools: []llm.Tool{{Name: "move"}}},
	} {
		if text, ok := standInText("small", req, 1); ok {
			t.Errorf("%s is answered with %q", name, text)
		}
	}
}

// FuzzPlay: no prompt makes it panic, and an answer is the same each time.
func FuzzPlay(f *testing.F) {
	for _, text := range []string{
		"", "What is 9 - 999999999 * 999999999 * 999999999?", "0 0 0:99 0 0", "The numbers are 0, 0, 000000000000000000. Make 999999999.",
		"Try again: make 0 of 1.", "There are doors to the north.", "0 is on the table.", "abcde: +++++.", "999999999", "\xff",
	} {
		f.Add(text, "OFFER 999999999", uint64(1))
	}
	f.Fuzz(func(t *testing.T, text, said string, seed uint64) {
		for _, g := range games() {
			rules := g.sign + " from 1 to 999999999 worth 0 to you, 0 times in all. " + text
			req := &llm.Request{Messages: []llm.Message{llm.System(rules), llm.User(text), llm.Assistant(said), llm.User(text)}}
			one, _ := standInText(said, req, seed)
			if two, _ := standInText(said, req, seed); one != two {
				t.Errorf("%q, then %q", one, two)
			}
		}
	})
}
