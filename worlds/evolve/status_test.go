package evolve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/internal/planner"
	"parley/world"
)

// told plays an evolution and returns what its status says after each stage, whose
// episodes end in any order.
func told(t *testing.T, params string, seed uint64) ([]string, Verdict) {
	t.Helper()
	l := (&lab{t: t, seed: seed}).run(params)
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

// TestStatus: the line follows the generations, says the same as the verdict about the
// best of each, and ends with the verdict.
func TestStatus(t *testing.T) {
	t.Parallel()
	lines, v := told(t, with(little, `"target_fitness": 0`), 5)
	all := strings.Join(lines, "\n")
	for i, g := range v.Generations {
		at := strings.LastIndex(all, fmt.Sprintf("generation %d of 3, best %.2f [", i, g.Best))
		if at < 0 || !strings.Contains(all[at:], "diversity 0.") {
			t.Errorf("generation %d, best %v:\n%s", i, g.Best, all)
		}
	}
	end := lines[len(lines)-1]
	for _, want := range []string{"stopped by max generations after generation 3", fmt.Sprintf("solves %v of the test problems", v.Test[0].Accuracy), v.Gain.beyond() + " (" + v.Best} {
		if !strings.Contains(end, want) {
			t.Errorf("%q is not in %q", want, end)
		}
	}
	if !strings.Contains(all, "validation, best") || !strings.Contains(all, "final test, best") {
		t.Error(all)
	}
}

// TestStatusOfWeights: fitness that is not accuracy is told with the share that is solved.
func TestStatusOfWeights(t *testing.T) {
	t.Parallel()
	lines, _ := told(t, with(little, `"fitness": {"by": "weighted"}`), 5)
	if !strings.Contains(lines[0], ", which solves 0.") {
		t.Error(lines[0])
	}
}

// TestStatusOfSeveral: evolutions beside each other are told together.
func TestStatusOfSeveral(t *testing.T) {
	t.Parallel()
	s := definition{}.Status(paramsOf(t, with(little)))
	var plans []world.Plan
	for deal := range 3 {
		p, err := definition{}.Plan(paramsOf(t, with(little, `"target_fitness": 0`)), world.Spec{Deal: deal}, 1)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	l := &lab{t: t}
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

// TestStatusForgets: it keeps the prompts of a generation and the best, whatever comes.
func TestStatusForgets(t *testing.T) {
	t.Parallel()
	l := (&lab{t: t, seed: 3}).run(with(little, `"max_generations": 8, "target_fitness": 0`))
	s := &status{}
	for _, stage := range l.stages {
		for _, p := range stage {
			s.Add(p)
			if n := len(s.all[0].prompts); n > 8+1 {
				t.Fatalf("%d prompts are kept of a population of 8", n)
			}
		}
	}
}

// TestStatusOfAnything: a run file may come from anywhere.
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

// TestBeyond: what is behind the baseline is less, not a negative more.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Estimate{
		"0.20 [0.10, 0.30] more than the best baseline":  {0.2, 0.1, 0.3, 9},
		"0.20 [-0.10, 0.50] less than the best baseline": {-0.2, -0.5, 0.1, 9},
		"0.20 less than the best baseline":               {-0.2, 0, 0, 1},
		"0.00 [-0.10, 0.10] more than the best baseline": {0, -0.1, 0.1, 9},
	} {
		if got := e.beyond(); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
