package evolve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
	"parley/worlds/evolve/problem"
)

// standinSolved returns the share of problems that a model solves with a prompt.
func standinSolved(model, prompt string) float64 {
	right, n := 0, 0
	for i, p := range problem.GenerateArithmetic(9, 400, 2, 6) {
		req := &llm.Request{Messages: []llm.Message{llm.System(prompt), llm.User(p.Question)}}
		text, ok := solver(model, req, uint64(i)*7919)
		got, found := problem.ExtractNumber(text)
		n++
		if ok && found && int(got) == p.Answer {
			right++
		}
	}
	return float64(right) / float64(n)
}

// TestSolverClimbs checks that prompts make a difference, and that the difference depends on the model's name.
func TestSolverClimbs(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		model := fmt.Sprint("solver-", i)
		good, bad := []string{"End after ####."}, []string{"End after ####."}
		for k, w := range tastes(model) {
			if sign := habits()[k].signs[0]; w > 0 {
				good = append(good, "Do it "+sign+".")
			} else if w < 0 {
				bad = append(bad, "Do it "+sign+".")
			}
		}
		plain := standinSolved(model, "Solve it.")
		if best, worst := standinSolved(model, strings.Join(good, " ")), standinSolved(model, strings.Join(bad, " ")); best < plain+0.4 || worst > plain-0.1 || best < 0.8 {
			t.Errorf("%s: %v plain, %v with what it likes, %v with what it does not", model, plain, best, worst)
		}
	}
}

// TestSolverFlat checks that a flat model solves equally many problems with every prompt.
func TestSolverFlat(t *testing.T) {
	t.Parallel()
	plain := standinSolved("flat", "")
	for _, prompt := range []string{"Work step by step and check.", "Be brief. #### Answer:", strings.Repeat("word ", 500)} {
		if got := standinSolved("flat", prompt); got != plain {
			t.Errorf("with the prompt %.20q it solves %v, without one %v", prompt, got, plain)
		}
	}
}

// TestSolverMisreads checks that the solver sometimes adds a number after its answer, unless the prompt says how to end.
func TestSolverMisreads(t *testing.T) {
	t.Parallel()
	odd, clear := 0, 0
	for i, p := range problem.GenerateArithmetic(9, 200, 3, 3) {
		req := &llm.Request{Messages: []llm.Message{llm.User(p.Question)}}
		text, _ := solver("m", req, uint64(i)*31)
		if strings.Contains(text, "after 3 changes") {
			odd++
		}
		req.Messages = append([]llm.Message{llm.System("Put it after ####.")}, req.Messages...)
		if text, _ = solver("m", req, uint64(i)*31); strings.Contains(text, "#### ") {
			clear++
		}
	}
	if odd < 5 || odd > 60 || clear != 200 {
		t.Errorf("odd %d, clear %d of 200", odd, clear)
	}
}

func TestSolverKnowsItsProblems(t *testing.T) {
	t.Parallel()
	for _, req := range []*llm.Request{
		{}, {Messages: []llm.Message{llm.User("How many?")}},
		{Messages: []llm.Message{llm.User(problem.GenerateArithmetic(1, 1, 1, 1)[0].Question), llm.User("Go on.")}},
	} {
		if text, ok := solver("m", req, 1); ok {
			t.Errorf("%+v is answered with %q", req.Messages, text)
		}
		if text, ok := breeder("m", req, 1); ok {
			t.Errorf("%+v is answered with %q", req.Messages, text)
		}
	}
}

// TestStandinBreeder checks that a new prompt keeps most of the first one and adds to it.
func TestStandinBreeder(t *testing.T) {
	t.Parallel()
	ask := func(text string) *llm.Request {
		return &llm.Request{Messages: []llm.Message{llm.User(text)}, Schema: &llm.Schema{JSON: json.RawMessage(`{"properties":{"prompt":{}}}`)}}
	}
	grown, best := 0, 0.0
	for seed := range uint64(100) {
		text, ok := breeder("solver", ask(fmt.Sprintf(standinPrompt+"\n"+standinCase, "1", "Solve it.\nTake care.", "", "", "")), seed)
		var v struct{ Prompt string }
		if !ok || json.Unmarshal([]byte(text), &v) != nil || v.Prompt == "" {
			t.Fatalf("%q", text)
		}
		if strings.HasPrefix(v.Prompt, "Solve it.\nTake care.\n") {
			grown++
		}
		lines := strings.Split(v.Prompt, "\n")
		best += appeal("solver", lines[len(lines)-1]) / 100
	}
	if grown < 50 || best < 0.2 {
		t.Errorf("%d of 100 keep both lines, and what is added is worth %v", grown, best)
	}
	judge := &llm.Request{Schema: &llm.Schema{JSON: json.RawMessage(`{"properties":{"reason":{},"correct":{}}}`)}}
	for response, want := range map[string]string{"so it is 12": `"correct":true`, "12 or 13": `"correct":false`, "none": `"correct":false`} {
		judge.Messages = []llm.Message{llm.User(fmt.Sprintf(standinAnswered, "?", "12", response))}
		if text, ok := breeder("m", judge, 1); !ok || !strings.Contains(text, want) {
			t.Errorf("%s: %s", response, text)
		}
	}
}
