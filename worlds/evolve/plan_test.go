package evolve

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/llm"
	"parley/world"
)

// smallParams is a small evolution.
const smallParams = `"population_size": 8, "max_generations": 3, "elite_size": 2, "problems": {"train": 12, "test": 6, "validation": 4}, "race": {"minibatch": 4}, "fitness": {"by": "accuracy"}, "finalists": 2, "baselines": {"seeds": 2}`

// joinParams joins params. Later ones replace earlier ones.
func joinParams(params ...string) string { return "{" + strings.Join(params, ", ") + "}" }

const modelOperators = `"mutation": {"rewrite": 1, "reflect": 1, "difference": 1, "edit": 1}, "crossover": {"model": 1}`

// trials returns the trials of a run by stage.
func (l *testEvolution) trials() [][]trialRecord {
	var all [][]trialRecord
	for _, stage := range l.stages {
		var some []trialRecord
		for _, p := range stage {
			if rec, ok := readData[trialRecord](p.Outcome); ok && rec.Purpose != "" {
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
		{joinParams(smallParams), 1},
		{joinParams(smallParams, modelOperators), 1},
		{joinParams(smallParams, `"solvers": 2, "samples": 2`), 4},
		{joinParams(smallParams, `"mutation_rate": 0, "max_generations": 8`), 1},
		{joinParams(smallParams, `"islands": {"count": 2, "migration_interval": 1, "migrants": 1}`), 1},
		{joinParams(smallParams, `"preset": "random_search"`), 1},
	} {
		for seed := range uint64(2) {
			l := (&testEvolution{t: t, seed: seed}).run(c.params)
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
		l := (&testEvolution{t: t, seed: seed}).run(joinParams(smallParams, modelOperators))
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
	l := (&testEvolution{t: t, seed: 4}).run(joinParams(smallParams, modelOperators))
	set := paramsOf(t, joinParams(smallParams)).problemSet()
	part := map[string]string{}
	for _, p := range set.Validation {
		part[p.ID] = purposeValidation
	}
	for _, p := range set.Test {
		part[p.ID] = purposeTest
	}
	stages := l.trials()
	for i, stage := range stages {
		for _, rec := range stage {
			for _, r := range rec.Results {
				if want := part[r.Problem]; want != "" && rec.Purpose != want || want == "" && rec.Purpose != purposeRace {
					t.Errorf("stage %d: %s is asked in a trial for %s", i, r.Problem, rec.Purpose)
				}
			}
			if late := map[string]int{purposeTest: 2, purposeValidation: 3}[rec.Purpose]; late > 0 && i != len(stages)-late {
				t.Errorf("a trial for %s in stage %d of %d", rec.Purpose, i, len(stages))
			}
		}
	}
}

// TestElites checks that the best fitness never falls from one generation to the next.
func TestElites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		l := (&testEvolution{t: t, seed: seed}).run(joinParams(smallParams, `"max_generations": 5`))
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
		l := (&testEvolution{t: t, seed: 1}).run(joinParams(smallParams, c.params))
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
	l := (&testEvolution{t: t, answer: func(world.Call, string) world.Reply { return world.Reply{Failed: "auth"} }}).run(joinParams(smallParams))
	last := l.stages[len(l.stages)-1]
	if l.verdict.Stopped != stopFailures || l.verdict.Winner != nil || len(l.stages) != 2 || last[0].Outcome.Failed == "" || l.solved != 8*4 {
		t.Errorf("%+v after %d calls, %q", l.verdict, l.solved, last[0].Outcome.Failed)
	}
}

// TestSomeFail checks that failed calls are counted separately and do not stop evolution.
func TestSomeFail(t *testing.T) {
	t.Parallel()
	n := 0
	l := &testEvolution{t: t, seed: 2}
	l.answer = func(c world.Call, place string) world.Reply {
		if n++; n%7 == 0 {
			return world.Reply{Failed: "timeout"}
		}
		return l.sim(c, place)
	}
	l.run(joinParams(smallParams, modelOperators))
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
	l := (&testEvolution{t: t, seed: 3}).run(joinParams(smallParams, `"mutation": {"reflect": 1, "edit": 0, "insert": 0, "delete": 0, "swap": 0, "duplicate": 0}, "mutation_rate": 1, "crossover_rate": 0, "breeder_calls": 7, "failed_cases": 2`))
	var breeds, cases, written int
	texts := map[string]bool{}
	for _, stage := range l.stages {
		for _, p := range stage {
			var spec struct{ Episode Episode }
			if err := json.Unmarshal(p.Spec.Params, &spec); err != nil {
				t.Fatal(err)
			}
			if b := spec.Episode.Breed; b != nil {
				rec, _ := readData[breedingRecord](p.Outcome)
				breeds, cases, texts[rec.Text] = breeds+1, max(cases, len(b.Cases)), rec.Text != ""
			}
			if tr := spec.Episode.Trial; tr != nil && tr.Operator == mutateReflect && texts[tr.Text] {
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
		l := (&testEvolution{t: t, seed: 6}).run(joinParams(smallParams, fmt.Sprintf(`"population_size": 15, "max_generations": 4, "target_fitness": 0, "islands": {"count": 3, "migration_interval": %d, "migrants": 2}`, interval)))
		of := map[int]int{}
		for _, stage := range l.trials() {
			for _, rec := range stage {
				of[rec.ID] = rec.Island
			}
			for _, rec := range stage {
				for _, parent := range rec.Parents {
					if rec.Purpose != purposeRace || rec.Operator == "variant" {
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
	if _, err := (definition{}).Plan(paramsOf(t, joinParams(smallParams, `"max_calls": 20`)), cell, 1); err == nil || !strings.Contains(err.Error(), "params.max_calls: 20: the first round and the final test need") {
		t.Errorf("%v", err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testEvolution plays a whole evolution without an engine, in order.
type testEvolution struct {
	t       testing.TB
	model   string
	seed    uint64
	answer  func(c world.Call, place string) world.Reply // default: the stand-in
	stages  [][]world.Played
	solved  int // calls of solvers
	asked   map[promptAndQuestion]int
	verdict Verdict
}

// promptAndQuestion is a prompt and a problem.
type promptAndQuestion struct{ prompt, question string }

// paramsOf returns the defaults with the given params, as a plan file sets them.
func paramsOf(t testing.TB, params string) *Params {
	t.Helper()
	p := definition{}.Defaults()
	if err := json.Unmarshal([]byte(params), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// run plays an evolution of params.
func (l *testEvolution) run(params string) *testEvolution {
	l.t.Helper()
	if l.answer == nil {
		l.answer = l.sim
	}
	plan, err := definition{}.Plan(paramsOf(l.t, params), world.Spec{Kind: "evolve", Lineup: map[string]string{solverSeat: "a"}}, l.seed)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.follow(plan)
}

// follow plays a plan to its end.
func (l *testEvolution) follow(plan world.Stages) *testEvolution {
	l.t.Helper()
	l.asked = map[promptAndQuestion]int{}
	episode := 0
	var last []world.Played
	for {
		specs := plan.Next(last)
		if specs.Len() == 0 {
			return l
		}
		last = nil
		for _, s := range specs.All() {
			o := l.episode(s, episode)
			last = append(last, world.Played{Episode: episode, Spec: s, Outcome: o})
			episode++
		}
		if l.stages = append(l.stages, last); len(l.stages) > 5000 {
			l.t.Fatal("no end")
		}
	}
}

// episode plays one spec. Its params and its data pass through JSON.
func (l *testEvolution) episode(s world.Spec, number int) world.Outcome {
	l.t.Helper()
	p := definition{}.Defaults()
	if err := json.Unmarshal(s.Params, p); err != nil {
		l.t.Fatal(err)
	}
	w, err := definition{}.World(p, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	strand := world.Begin(w, world.Deal{Seed: l.seed, Number: s.Deal})
	defer strand.Stop()
	turn := strand.Next(nil)
	for !turn.Done {
		replies := make([]world.Reply, len(turn.Calls))
		for i, c := range turn.Calls {
			l.note(p, c, i)
			replies[i] = l.answer(c, fmt.Sprint(number, turn.Number, i))
		}
		turn = strand.Next(replies)
	}
	if turn.Panic != "" {
		l.t.Fatal(turn.Panic, turn.Stack)
	}
	if v, ok := turn.Outcome.Data.(Verdict); ok {
		l.verdict = v
	}
	raw, err := json.Marshal(turn.Outcome.Data)
	if err != nil {
		l.t.Fatal(err)
	}
	turn.Outcome.Data = json.RawMessage(raw)
	return turn.Outcome
}

// note counts the calls of solvers.
func (l *testEvolution) note(p *Params, c world.Call, i int) {
	if c.Label != "solve" {
		return
	}
	l.solved++
	t := p.Episode.Trial
	l.asked[promptAndQuestion{t.Text, t.Problems[i/(p.Solvers*p.Samples)].Question}]++
}

// sim answers like the simulated provider.
func (l *testEvolution) sim(c world.Call, place string) world.Reply {
	h := fnv.New64a()
	_, _ = h.Write([]byte(fmt.Sprint(l.seed, place)))
	for _, m := range c.Ask.Messages {
		_, _ = h.Write([]byte(m.Text()))
	}
	model := l.model
	if model == "" {
		model = "solver"
	}
	text, ok := standInAnswer(model, &c.Ask, h.Sum64())
	if !ok {
		l.t.Fatalf("the stand-in does not answer %+v", c.Ask.Messages)
	}
	if c.Ask.Schema != nil {
		return world.Reply{Text: text, JSON: json.RawMessage(text), Finish: llm.FinishStop}
	}
	return world.Reply{Text: text, Finish: llm.FinishStop}
}
