package env

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

func made(t *testing.T, name, params string, seed int64) Env {
	t.Helper()
	k, err := Find(Standard(), name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := k.New(json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	e.Reset(seed)
	return e
}

// last returns the last message of the environment to the agent that acts.
func last(e Env) string {
	for _, q := range e.Prompt() {
		return q.Messages[len(q.Messages)-1].Text()
	}
	return ""
}

func act(e Env, text string) rules.Result {
	return e.Step(rules.Action{rules.DefaultAgent: llm.Assistant(text)})
}

// TestEveryEnvironment: any text is an action, each ends, and the same seed is the same game.
func TestEveryEnvironment(t *testing.T) {
	t.Parallel()
	texts := []string{"", "north east 7 \\boxed{12} <answer>1+1</answer> crane OFFER 50", "ACCEPT", strings.Repeat("(", 25_000), "\xff\x00", "<answer>" + strings.Repeat("9", 150) + "</answer>", "offer 999999999999"}
	for _, k := range Standard() {
		var games []string
		for _, seed := range []int64{1, 1, 2} {
			e := made(t, k.Name, "{}", seed)
			game := ""
			for step := 0; ; step++ {
				if step > 1000 {
					t.Fatalf("%s has no end", k.Name)
				}
				p := e.Prompt()
				if !reflect.DeepEqual(p, e.Prompt()) || len(p) != 1 {
					t.Fatalf("%s: asking again gives another prompt, or not one of one agent", k.Name)
				}
				raw, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				action := rules.Action{}
				for who := range p {
					action[who] = llm.Assistant("and so on")
					if step < len(texts) {
						action[who] = llm.Assistant(texts[step])
					}
				}
				r := e.Step(action)
				out, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				if game += string(raw) + string(out); r.Done() {
					break
				}
			}
			if again := e.Step(rules.Action{}); !again.Terminated || again.Reward[rules.DefaultAgent] != 0 || len(e.Prompt()) != 0 {
				t.Errorf("%s goes on after its end: %+v", k.Name, again)
			}
			games = append(games, game)
		}
		if games[0] != games[1] || games[0] == games[2] {
			t.Errorf("%s: games depend on something else than the seed", k.Name)
		}
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	e := made(t, "arithmetic", `{"problems":50,"terms":4,"largest":30}`, 3)
	for i := range 50 {
		_, sum, _ := strings.Cut(strings.TrimSuffix(last(e), "?"), "What is ")
		want, _, err := evaluate(sum)
		if err != nil {
			t.Fatal(err)
		}
		answer, reward := fmt.Sprintf("It is 3, no: \\boxed{ %s }. Or 7?", want.RatString()), 1.0
		if i%2 == 1 {
			answer, reward = "\\boxed{1000000}", 0
		}
		if r := act(e, answer); r.Reward[rules.DefaultAgent] != reward || r.Terminated != (i == 49) {
			t.Fatalf("problem %d, %s: %+v", i, sum, r)
		}
	}
	for _, c := range []struct {
		row, answer string
		reward      float64
	}{
		{`{"problem":"?","answer":"42"}`, "so 42.", 1},
		{`{"question":"?","answer":3.50,"level":3}`, "$3.5$", 1},
		{`{"problem":"?","answer":"thus \\boxed{x+1}"}`, "\\boxed{x + 1}", 1},
		{`{"problem":"?","answer":"1,000"}`, "1000", 1},
		{`{"problem":"?","answer":"42"}`, "41", 0},
	} {
		e := made(t, "arithmetic", `{"dataset":`+c.row+`}`, 1)
		if r := act(e, c.answer); r.Reward[rules.DefaultAgent] != c.reward || !r.Terminated {
			t.Errorf("%s, %s: %+v", c.row, c.answer, r)
		}
	}
}

// TestMaze follows the wall on one side, which leads out of every maze of this kind.
func TestMaze(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		e := made(t, "maze", `{"size":5,"step_cost":0.01}`, seed)
		facing, total := 1, 0.0
		for {
			before := last(e)
			_, doors, _ := strings.Cut(before, "doors")
			for turn := range 4 {
				try := (facing + 3 + turn) % 4
				if strings.Contains(doors, compass()[try].name) {
					facing = try
					break
				}
			}
			r := act(e, "I go "+compass()[facing].name)
			if total += r.Reward[rules.DefaultAgent]; r.Done() {
				if !r.Terminated || total >= 1 || total < 1-0.01*100 {
					t.Fatalf("seed %d: %+v, in all %v", seed, r, total)
				}
				break
			}
			if !strings.HasPrefix(last(e), "You walk") {
				t.Fatalf("seed %d: %s, after %s", seed, last(e), before)
			}
		}
	}
	e := made(t, "maze", `{"moves":2}`, 1)
	act(e, "up")
	if r := act(e, "north"); !r.Truncated || r.Terminated {
		t.Errorf("after two moves: %+v", r)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	n := &number{numberParams: numberParams{Numbers: 3, Largest: 9, Tries: 3}}
	n.Reset(1)
	n.given, n.target = []int{3, 5, 7}, 6
	for _, c := range []struct{ answer, want string }{
		{"", "There is no <answer>."},
		{"<answer>(3+</answer>", "no expression"},
		{"<answer>3+3</answer>", "You used 3"},
		{"<answer>3*7/5</answer>", "That makes 21/5."},
		{"<answer>3/(5-5)</answer>", "divides by zero"},
		{"<answer>1</answer> <answer>7 - (5 - 3) + 1</answer>", "You used 1"},
		{"<answer>3 * (7 - 5)</answer>", ""},
		{"<answer>" + strings.Repeat("(", 150) + "</answer>", "no expression"},
	} {
		if got := n.judge(c.answer); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q", c.answer, got)
		}
	}
	if r := act(n, "?"); r.Done() {
		t.Errorf("%+v", r)
	}
	if r := act(n, "<answer>-(5-7)*3</answer>"); !r.Terminated || r.Reward[rules.DefaultAgent] <= 0.5 || r.Reward[rules.DefaultAgent] >= 1 {
		t.Errorf("second try: %+v", r)
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ hidden, guess, want string }{
		{"crane", "crane", "+++++"}, {"crane", "nacre", "???" + "?+"}, {"apple", "paper", "??+?-"}, {"sleep", "eerie", "??---"}, {"abbey", "bbbbb", "-++--"},
	} {
		if got := WordHint(c.hidden, c.guess); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.hidden, c.guess, got, c.want)
		}
	}
	e := made(t, "word", `{"word":"river","guesses":3}`, 1)
	if act(e, "a b").Done() || !strings.Contains(last(e), "2 guesses left") {
		t.Error(last(e))
	}
	if r := act(e, "Not water but RIVER"); !r.Terminated || r.Reward[rules.DefaultAgent] != 1 {
		t.Errorf("%+v", r)
	}
	for _, w := range hiddenWords() {
		if !fiveLetters.MatchString(w) {
			t.Errorf("%q is hidden", w)
		}
	}
}

// TestNegotiation checks that the agents speak in turn, each reads the other's words as the other's, and the
// price divides the gain.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	n := &negotiation{negotiationParams: negotiationParams{Rounds: 4, Largest: 100}}
	n.Reset(5)
	n.limit = map[string]int{seller: 20, buyer: 60}
	if r := n.Step(rules.Action{seller: llm.Assistant("ACCEPT? No: OFFER 50")}); r.Done() || len(r.Reward) != 0 {
		t.Errorf("%+v", r)
	}
	ms := n.Prompt()[buyer].Messages
	if len(ms) != 2 || !strings.Contains(ms[1].Text(), "The seller says: ACCEPT? No: OFFER 50") || !strings.Contains(ms[1].Text(), "50 is on the table") {
		t.Errorf("%v", ms)
	}
	n.Step(rules.Action{buyer: llm.Assistant("offer: 30"), seller: llm.Assistant("ACCEPT")})
	if r := n.Step(rules.Action{seller: llm.Assistant("I accept.")}); !r.Terminated || r.Reward[seller] != 0.25 || r.Reward[buyer] != 0.75 || string(r.Info) != `{"deal":true,"price":30}` {
		t.Errorf("%+v %s", r, r.Info)
	}
	n.Reset(5)
	for range 3 {
		n.Step(rules.Action{seller: llm.Assistant("hm"), buyer: llm.Assistant("OFFER 0")})
	}
	if r := n.Step(rules.Action{buyer: llm.Assistant("ACCEPT")}); !r.Terminated || r.Reward[seller] != 0 || len(r.Reward) != 2 {
		t.Errorf("nothing to accept: %+v", r)
	}
}

func TestBadParams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, params, want string }{
		{"arithmetic", `{"problems":0}`, "params.problems: 0: want 1 to"},
		{"arithmetic", `{"problem":1}`, `params: unknown field "problem"; did you mean problems? want one of dataset, largest, problems, terms`},
		{"arithmetic", `{"sizee":3}`, `params: unknown field "sizee"; want one of dataset, largest, problems, terms`},
		{"maze", `{"sizee":3}`, `params: unknown field "sizee"; did you mean size? want one of moves, size, step_cost`},
		{"maze", `{"size":"big"}`, "params: size: found string, want whole number"},
		{"arithmetic", `{"dataset":{"answer":"1"}}`, "want a problem"},
		{"arithmetic", `[]`, "params"},
		{"maze", `{"size":1}`, "params.size"},
		{"maze", `{"step_cost":-1}`, "params.step_cost"},
		{"negotiation", `{"largest":1}`, "params.largest"},
		{"number", `{"numbers":99}`, "params.numbers"},
		{"word", `{"word":"nope"}`, "params.word"},
	} {
		k, err := Find(Standard(), c.env)
		if err == nil {
			_, err = k.New(json.RawMessage(c.params))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "env: "+c.env) {
			t.Errorf("%s %s: %v, want %q", c.env, c.params, err, c.want)
		}
	}
	if _, err := Find(Standard(), "maz"); err == nil || !strings.Contains(err.Error(), "did you mean maze?") {
		t.Error(err)
	}
	if _, err := Find(Standard(), "chess"); err == nil || !strings.Contains(err.Error(), "arithmetic, maze, negotiation, number, shop, word") {
		t.Error(err)
	}
}

// TestShop checks that calls of tools are answered one by one, and that the right total earns the reward.
func TestShop(t *testing.T) {
	t.Parallel()
	e := made(t, "shop", `{"items":2,"answers":3}`, 3)
	s := e.(*shop)
	if q := e.Prompt()[rules.DefaultAgent]; len(q.Tools) != 1 || q.Tools[0].Name != "price" {
		t.Errorf("%v", q.Tools)
	}
	calls := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{
		{ID: "1", Name: "price", Arguments: `{"item":"kettle"}`}, {ID: "2", Name: "price", Arguments: `{"item":"moon"}`},
		{ID: "3", Name: "rm", Arguments: `{}`}, {ID: "4", Name: "price", Arguments: `{"item":`},
	}}
	if r := e.Step(rules.Action{"me": calls}); r.Done() {
		t.Errorf("%+v", r)
	}
	ms := e.Prompt()[rules.DefaultAgent].Messages
	var got []string
	for _, m := range ms[3:] {
		got = append(got, fmt.Sprint(m.Role, m.ToolCallID, m.ToolFailed))
	}
	if len(ms[2].ToolCalls) != 4 || ms[3].Text() != fmt.Sprint(s.prices["kettle"]) || fmt.Sprint(got) != "[tool1false tool2true tool3true tool4true]" {
		t.Errorf("%v %q", ms, got)
	}
	if r := act(e, fmt.Sprintf("\\boxed{%d}", s.total)); !r.Terminated || r.Reward[rules.DefaultAgent] != 1 {
		t.Errorf("%+v", r)
	}
	for name, e := range map[string]Env{"too many answers": made(t, "shop", `{"answers":1}`, 3), "too many calls": made(t, "shop", `{}`, 3)} {
		many := calls
		if name == "too many calls" {
			many.ToolCalls = make([]llm.ToolCall, maxCalls+1)
		}
		if r := e.Step(rules.Action{rules.DefaultAgent: many}); !r.Truncated || len(e.Prompt()) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
