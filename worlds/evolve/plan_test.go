package evolve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/world"
)

// little is a small evolution.
const little = `"population_size": 8, "max_generations": 3, "elite_size": 2, "problems": {"train": 12, "test": 6, "validation": 4}, "race": {"minibatch": 4}, "fitness": {"by": "accuracy"}, "finalists": 2, "baselines": {"seeds": 2}`

// with joins params. Later ones replace earlier ones.
func with(params ...string) string { return "{" + strings.Join(params, ", ") + "}" }

const models = `"mutation": {"rewrite": 1, "reflect": 1, "difference": 1, "edit": 1}, "crossover": {"model": 1}`

// trials returns the trials of a run by stage.
func (l *lab) trials() [][]recordTrial {
	var all [][]recordTrial
	for _, stage := range l.stages {
		var some []recordTrial
		for _, p := range stage {
			if rec, ok := readRecord[recordTrial](p.Outcome); ok && rec.Purpose != "" {
				some = append(some, rec)
			}
		}
		all = append(all, some)
	}
	return all
}

// TestNeverTwice checks that each prompt is tried on each problem once for each solver and sample, and that the verdict
// counts every call.
func TestNeverTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		params string
		times  int
	}{
		{with(little), 1},
		{with(little, models), 1},
		{with(little, `"solvers": 2, "samples": 2`), 4},
		{with(little, `"mutation_rate": 0, "max_generations": 8`), 1},
		{with(little, `"islands": {"count": 2, "migration_interval": 1, "migrants": 1}`), 1},
		{with(little, `"preset": "random_search"`), 1},
	} {
		for seed := range uint64(2) {
			l := (&lab{t: t, seed: seed}).run(c.params)
			for what, n := range l.asked {
				if n != c.times {
					t.Errorf("%s: %+v is asked %d times, want %d", c.params, what, n, c.times)
				}
			}
			if l.verdict.Calls != l.solved {
				t.Errorf("%s: %d calls were made, and %d counted", c.params, l.solved, l.verdict.Calls)
			}
		}
	}
}

// TestPureFold checks that the same seed plays the same evolution, and another seed does not.
func TestPureFold(t *testing.T) {
	t.Parallel()
	specs := func(seed uint64) string {
		l := (&lab{t: t, seed: seed}).run(with(little, models))
		b, err := json.Marshal(l.stages)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if specs(1) != specs(1) {
		t.Error("the same evolution is played differently")
	}
	if specs(1) == specs(2) {
		t.Error("another seed makes no difference")
	}
}

// TestHeldOut checks that test problems are asked only in the last stage before the verdict, and validation problems only
// after evolution has stopped.
func TestHeldOut(t *testing.T) {
	t.Parallel()
	l := (&lab{t: t, seed: 4}).run(with(little, models))
	set := paramsOf(t, with(little)).set()
	part := map[string]string{}
	for _, p := range set.Validation {
		part[p.ID] = recordValidating
	}
	for _, p := range set.Test {
		part[p.ID] = recordTesting
	}
	stages := l.trials()
	for i, stage := range stages {
		for _, rec := range stage {
			for _, r := range rec.Results {
				if want := part[r.Problem]; want != "" && rec.Purpose != want || want == "" && rec.Purpose != recordRacing {
					t.Errorf("stage %d: %s is asked in a trial for %s", i, r.Problem, rec.Purpose)
				}
			}
			if late := map[string]int{recordTesting: 2, recordValidating: 3}[rec.Purpose]; late > 0 && i != len(stages)-late {
				t.Errorf("a trial for %s in stage %d of %d", rec.Purpose, i, len(stages))
			}
		}
	}
}

// TestElites checks that the best fitness never falls from one generation to the next.
func TestElites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		l := (&lab{t: t, seed: seed}).run(with(little, `"max_generations": 5`))
		gs := l.verdict.Generations
		for i := 1; i < len(gs); i++ {
			if gs[i].Best < gs[i-1].Best {
				t.Errorf("seed %d, generation %d: the best falls from %v to %v", seed, i, gs[i-1].Best, gs[i].Best)
			}
		}
	}
}

// TestStops checks every reason to stop.
func TestStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		params string
		want   Stop
	}{
		{`"target_fitness": 0.05`, stopTarget},
		{`"target_fitness": 0, "max_generations": 1`, stopGenerations},
		{`"target_fitness": 0, "max_generations": 50, "convergence_patience": 3, "improvement_threshold": 0.5`, stopStagnation},
		{`"target_fitness": 0, "max_generations": 50, "convergence_patience": 0, "diversity_threshold": 0.999`, stopDiversity},
		{`"target_fitness": 0, "max_generations": 50, "convergence_patience": 0, "fitness_plateau_generations": 2, "fitness_plateau_threshold": 0.9`, stopPlateau},
		{`"target_fitness": 0, "max_generations": 50, "convergence_patience": 0, "max_calls": 200`, stopCalls},
	} {
		l := (&lab{t: t, seed: 1}).run(with(little, c.params))
		if l.verdict.Stopped != c.want || l.verdict.Winner == nil || len(l.verdict.Test) < 4 {
			t.Errorf("%s: stopped by %s, %d tested", c.params, l.verdict.Stopped, len(l.verdict.Test))
		}
		if c.want == stopCalls && (l.solved > 200 || l.solved < 100) {
			t.Errorf("%d calls of at most 200", l.solved)
		}
	}
}

// TestAllFails checks that evolution stops at once if no call is answered.
func TestAllFails(t *testing.T) {
	t.Parallel()
	l := (&lab{t: t, answer: func(world.Call, string) world.Reply { return world.Reply{Failed: "auth"} }}).run(with(little))
	last := l.stages[len(l.stages)-1]
	if l.verdict.Stopped != stopFailures || l.verdict.Winner != nil || len(l.stages) != 2 || last[0].Outcome.Failed == "" || l.solved != 8*4 {
		t.Errorf("%+v after %d calls, %q", l.verdict, l.solved, last[0].Outcome.Failed)
	}
}

// TestSomeFail checks that failed calls are counted separately and do not stop evolution.
func TestSomeFail(t *testing.T) {
	t.Parallel()
	n := 0
	l := &lab{t: t, seed: 2}
	l.answer = func(c world.Call, place string) world.Reply {
		if n++; n%7 == 0 {
			return world.Reply{Failed: "timeout"}
		}
		return l.sim(c, place)
	}
	l.run(with(little, models))
	failed := 0
	for _, x := range l.verdict.Test {
		failed += x.Failed
		if x.Accuracy.N+x.Failed != 6 {
			t.Errorf("%+v", x)
		}
	}
	if failed == 0 || l.verdict.Winner == nil {
		t.Errorf("%+v", l.verdict)
	}
}

// TestBreeder checks that calls of the breeder are bounded, and that its prompts are tried.
func TestBreeder(t *testing.T) {
	t.Parallel()
	l := (&lab{t: t, seed: 3}).run(with(little, `"mutation": {"reflect": 1, "edit": 0, "insert": 0, "delete": 0, "swap": 0, "duplicate": 0}, "mutation_rate": 1, "crossover_rate": 0, "breeder_calls": 7, "failed_cases": 2`))
	var breeds, cases, written int
	texts := map[string]bool{}
	for _, stage := range l.stages {
		for _, p := range stage {
			var spec struct{ Episode Episode }
			if err := json.Unmarshal(p.Spec.Params, &spec); err != nil {
				t.Fatal(err)
			}
			if b := spec.Episode.Breed; b != nil {
				rec, _ := readRecord[recordBreeding](p.Outcome)
				breeds, cases, texts[rec.Text] = breeds+1, max(cases, len(b.Cases)), rec.Text != ""
			}
			if tr := spec.Episode.Trial; tr != nil && tr.Operator == playReflect && texts[tr.Text] {
				written++
			}
		}
	}
	if l.verdict.Bred != 7 || breeds != 7 || cases != 2 || written == 0 {
		t.Errorf("%d breedings counted, %d seen, %d cases, %d trials of what was written", l.verdict.Bred, breeds, cases, written)
	}
}

// TestIslands checks that parents are from the same island, or migrants from the one before.
func TestIslands(t *testing.T) {
	t.Parallel()
	island := func(interval int) (apart, across int) {
		l := (&lab{t: t, seed: 6}).run(with(little, fmt.Sprintf(`"population_size": 15, "max_generations": 4, "target_fitness": 0, "islands": {"count": 3, "migration_interval": %d, "migrants": 2}`, interval)))
		of := map[int]int{}
		for _, stage := range l.trials() {
			for _, rec := range stage {
				of[rec.ID] = rec.Island
			}
			for _, rec := range stage {
				for _, parent := range rec.Parents {
					if rec.Purpose != recordRacing || rec.Operator == "variant" {
						continue
					}
					switch of[rec.ID] {
					case of[parent]:
						apart++
					case (of[parent] + 1) % 3:
						across++
					default:
						t.Errorf("%d of island %d has a parent of island %d", rec.ID, rec.Island, of[parent])
					}
				}
			}
		}
		return apart, across
	}
	if apart, across := island(1000); apart == 0 || across > 0 {
		t.Errorf("without migration: %d and %d", apart, across)
	}
	if apart, across := island(1); apart == 0 || across == 0 {
		t.Errorf("with migration: %d and %d", apart, across)
	}
}

// TestAlone checks that a single episode of a plan can be played again.
func TestAlone(t *testing.T) {
	t.Parallel()
	p := paramsOf(t, `{`+threeProblems+`}`)
	cell := world.Spec{Kind: "evolve", Deal: 3}
	plan, err := definition{}.Plan(p, cell, 1)
	if err != nil {
		t.Fatal(err)
	}
	if specs := plan.Next(nil); specs.Len() != 1 || specs.At(0).Deal != 3 {
		t.Errorf("%+v", specs)
	}
	if _, err := (definition{}).Plan(paramsOf(t, with(little, `"max_calls": 20`)), cell, 1); err == nil || !strings.Contains(err.Error(), "params.max_calls: 20: the first round and the final test need") {
		t.Errorf("%v", err)
	}
}
