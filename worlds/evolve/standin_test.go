package evolve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/llm"
	"parley/world/worldtest"
	"parley/worlds/evolve/problem"
)

// shareSolved returns the share of problems that a model solves with a prompt.
func shareSolved(model, prompt string) float64 {
	right, n := 0, 0
	for i, p := range problem.GenerateArithmetic(9, 400, 2, 6) {
		req := &llm.Request{Messages: []llm.Message{llm.System(prompt), llm.User(p.Question)}}
		text, ok := standInSolver(model, req, uint64(i)*7919)
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
		for k, w := range habitWeights(model) {
			if sign := habits()[k].signs[0]; w > 0 {
				good = append(good, "Do it "+sign+".")
			} else if w < 0 {
				bad = append(bad, "Do it "+sign+".")
			}
		}
		plain := shareSolved(model, "Solve it.")
		if best, worst := shareSolved(model, strings.Join(good, " ")), shareSolved(model, strings.Join(bad, " ")); best < plain+0.4 || worst > plain-0.1 || best < 0.8 {
			t.Errorf("%s: %v plain, %v with what it likes, %v with what it does not", model, plain, best, worst)
		}
	}
}

// TestSolverFlat checks that a flat model solves equally many problems with every prompt.
func TestSolverFlat(t *testing.T) {
	t.Parallel()
	plain := shareSolved("flat", "")
	for _, prompt := range []string{"Work step by step and check.", "Be brief. #### Answer:", strings.Repeat("word ", 500)} {
		if got := shareSolved("flat", prompt); got != plain {
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
		text, _ := standInSolver("m", req, uint64(i)*31)
		if strings.Contains(text, "after 3 changes") {
			odd++
		}
		req.Messages = append([]llm.Message{llm.System("Put it after ####.")}, req.Messages...)
		if text, _ = standInSolver("m", req, uint64(i)*31); strings.Contains(text, "#### ") {
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
		if text, ok := standInSolver("m", req, 1); ok {
			t.Errorf("%+v is answered with %q", req.Messages, text)
		}
		if text, ok := standInBreeder("m", req, 1); ok {
			t.Errorf("%+v is answered with %q", req.Messages, text)
		}
	}
}

// TestStandInBreeder checks that a new prompt keeps most of the first one and adds to it.
func TestStandInBreeder(t *testing.T) {
	t.Parallel()
	ask := func(text string) *llm.Request {
		return &llm.Request{Messages: []llm.Message{llm.User(text)}, Schema: &llm.Schema{JSON: json.RawMessage(`{"properties":{"prompt":{}}}`)}}
	}
	grown, best := 0, 0.0
	for seed := range uint64(100) {
		text, ok := standInBreeder("solver", ask(fmt.Sprintf(promptFormat+"\n"+caseFormat, "1", "Solve it.\nTake care.", "", "", "")), seed)
		var v struct{ Prompt string }
		if !ok || json.Unmarshal([]byte(text), &v) != nil || v.Prompt == "" {
			t.Fatalf("%q", text)
		}
		if strings.HasPrefix(v.Prompt, "Solve it.\nTake care.\n") {
			grown++
		}
		lines := strings.Split(v.Prompt, "\n")
		best += adviceWeight("solver", lines[len(lines)-1]) / 100
	}
	if grown < 50 || best < 0.2 {
		t.Errorf("%d of 100 keep both lines, and what is added is worth %v", grown, best)
	}
	judge := &llm.Request{Schema: &llm.Schema{JSON: json.RawMessage(`{"properties":{"reason":{},"correct":{}}}`)}}
	for response, want := range map[string]string{"so it is 12": `"correct":true`, "12 or 13": `"correct":false`, "none": `"correct":false`} {
		judge.Messages = []llm.Message{llm.User(fmt.Sprintf(answeredFormat, "?", "12", response))}
		if text, ok := standInBreeder("m", judge, 1); !ok || !strings.Contains(text, want) {
			t.Errorf("%s: %s", response, text)
		}
	}
}

// TestStandIn checks that the stand-in answers the requests to solvers, breeders and judges.
func TestStandIn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	plays := []worldtest.Options{
		{Params: `{"problems": {"train": 20, "test": 2}}`},
		{Params: `{"problems": {"train": 20, "test": 2}, "ask": "{prompt}\n\nProblem: {question}", "checker": {"type": "judge"}}`},
	}
	labels := []string{"solve", "judge"}
	for parents, operators := range map[int][]string{1: {mutateRewrite, mutateReflect}, 2: {crossByModel}, 4: {mutateDifference}} {
		for _, operator := range operators {
			text, cases := "", "[]"
			for i := range parents {
				text += fmt.Sprintf(`,{"id": %d, "text": "Solve it.\nTake care."}`, i+1)
			}
			if operator == mutateReflect {
				cases = `[{"question": "1+1?", "expected": "2", "response": "3"}]`
			}
			labels = append(labels, operator)
			plays = append(plays, worldtest.Options{Params: fmt.Sprintf(`{"mutation": {"rewrite": 1}, "episode": {"breed": {"operator": %q, "parents": [%s], "cases": %s, "most": 500}}}`, operator, text[1:], cases)})
		}
	}
	worldtest.StandIn(t, Kind(), labels, plays...)
}
