package evolve

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/run/planner"
	"parley/world"
)

// statusLines plays an evolution and returns its status line after each stage. The episodes of a stage end in random
// order.
func statusLines(t *testing.T, params string, seed uint64) ([]string, Verdict) {
	t.Helper()
	l := (&testEvolution{t: t, seed: seed}).run(params)
	s := definition{}.Status(paramsOf(t, params))
	r := rand.New(rand.NewPCG(seed, 1))
	var lines []string
	for _, stage := range l.stages {
		for _, i := range r.Perm(len(stage)) {
			s.Add(stage[i])
		}
		lines = append(lines, strings.Join(s.Line(), ", "))
	}
	return lines, l.verdict
}

// TestStatus checks that the line follows the generations, agrees with the verdict about the best of each, and ends with
// the verdict.
func TestStatus(t *testing.T) {
	t.Parallel()
	lines, v := statusLines(t, joinParams(smallParams, `"target_fitness": 0`), 5)
	all := strings.Join(lines, "\n")
	for i, g := range v.Generations {
		at := strings.LastIndex(all, fmt.Sprintf("generation %d of 3, best %.2f [", i, g.Best))
		if at < 0 || !strings.Contains(all[at:], "diversity 0.") {
			t.Errorf("generation %d, best %v:\n%s", i, g.Best, all)
		}
	}
	end := lines[len(lines)-1]
	for _, want := range []string{"stopped by max generations after generation 3", fmt.Sprintf("solves %v of the test problems", v.Test[0].Accuracy), " than the best baseline (" + v.Best, fmt.Sprintf("%.2f [", math.Abs(v.Gain.Value))} {
		if !strings.Contains(end, want) {
			t.Errorf("%q is not in %q", want, end)
		}
	}
	if !strings.Contains(all, "validation, best") || !strings.Contains(all, "final test, best") {
		t.Error(all)
	}
}

// TestStatusOfWeights checks that a weighted fitness is shown with the share of problems that are solved.
func TestStatusOfWeights(t *testing.T) {
	t.Parallel()
	lines, _ := statusLines(t, joinParams(smallParams, `"fitness": {"by": "weighted"}`), 5)
	if !strings.Contains(lines[0], ", which solves 0.") {
		t.Error(lines[0])
	}
}

// TestStatusOfSeveral checks that several evolutions share one line.
func TestStatusOfSeveral(t *testing.T) {
	t.Parallel()
	s := definition{}.Status(paramsOf(t, joinParams(smallParams)))
	var plans []world.Stages
	for deal := range 3 {
		p, err := definition{}.Plan(paramsOf(t, joinParams(smallParams, `"target_fitness": 0`)), world.Spec{Deal: deal}, 1)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	l := &testEvolution{t: t}
	l.answer = l.sim
	l.follow(planner.Beside(plans...))
	var lines []string
	for _, stage := range l.stages {
		for _, p := range stage {
			s.Add(p)
		}
		lines = append(lines, strings.Join(s.Line(), ", "))
	}
	if got := lines[0]; !strings.HasPrefix(got, "generation 0 of 3, 0 of 3 evolutions ended, their best 0.") {
		t.Error(got)
	}
	if got := lines[len(lines)-1]; !strings.HasPrefix(got, "3 evolutions, the winners solve 0.") || !strings.Contains(got, " than the best baseline") {
		t.Error(got)
	}
}

// TestStatusOfAnything checks that hostile run files cause no panic.
func TestStatusOfAnything(t *testing.T) {
	t.Parallel()
	for _, params := range []*Params{{}, (definition{}).Defaults()} {
		s := definition{}.Status(params)
		if line := s.Line(); len(line) != 0 {
			t.Errorf("of nothing: %v", line)
		}
		for _, data := range []string{`null`, `[]`, `{"stopped":"x"}`, `{"stopped":"x","winner":{}}`, `{"purpose":"race","generation":-3,"results":[{}]}`, `{"purpose":"race","generation":9999999999,"id":-1}`, `{"purpose":"test","results":[{"asked":-1}]}`, `{"purpose":"validation"}`} {
			s.Add(world.Played{Spec: world.Spec{Params: json.RawMessage(`{}`)}, Outcome: world.Outcome{Data: json.RawMessage(data)}})
			s.Line()
		}
	}
}

// TestStatusForgets checks that the status keeps only the prompts of the last generation and the best one.
func TestStatusForgets(t *testing.T) {
	t.Parallel()
	const population = 8
	s := &status{}
	for id := range 9 * population {
		generation := id / population
		data := fmt.Sprintf(`{"id":%d,"text":"a","generation":%d,"purpose":"race","results":[{"asked":1,"correct":%d}]}`, id, generation, min(1, id%3))
		s.Add(world.Played{Spec: world.Spec{Params: json.RawMessage(`{"fitness":{"by":"accuracy"}}`)}, Outcome: world.Outcome{Data: json.RawMessage(data)}})
		if n := len(s.all[0].prompts); n > population+1 {
			t.Fatalf("%d prompts are kept of a population of %d", n, population)
		}
	}
	if best := s.all[0].best(); best.ID != 1 {
		t.Errorf("the best is prompt %d, want the first with full fitness, 1", best.ID)
	}
}

// TestBeyond checks that a negative gain is formatted as less, without a minus.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Estimate{
		"0.20 [0.10, 0.30] more than the best baseline":  {Value: 0.2, Low: 0.1, High: 0.3, N: 9},
		"0.20 [-0.10, 0.50] less than the best baseline": {Value: -0.2, Low: -0.5, High: 0.1, N: 9},
		"0.20 less than the best baseline":               {Value: -0.2, Low: 0, High: 0, N: 1},
		"0.00 [-0.10, 0.10] more than the best baseline": {Value: 0, Low: -0.1, High: 0.1, N: 9},
	} {
		if got := gainText(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
