package evolve

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestCheck checks the errors of params.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ params, want string }{
		{`{}`, ""},
		{`{"preset": "thorough", "selection": "pareto"}`, ""},
		{`{"preset": "none"}`, `params.preset: wants one of quick, standard, thorough, no_crossover, no_mutation, high_mutation, large_population, random_search, found "none"`},
		{`{"population_size": 3}`, "params.population_size: wants 4 to 1000, found 3"},
		{`{"max_generations": -1}`, "params.max_generations: wants 0 to 1000, found -1"},
		{`{"elite_size": 49}`, "params.elite_size: 49: want 0 to 48"},
		{`{"crossover_rate": 1.5}`, "params.crossover_rate: wants 0 to 1, found 1.5"},
		{`{"mutation": {"edit": -1}}`, "params.mutation.edit: wants 0 to 1000000, found -1"},
		{`{"mutation": {"mix": 1}}`, `params.mutation: unknown operator "mix"; want any of edit, insert, delete, swap, duplicate, rewrite, reflect, difference`},
		{`{"crossover": {"section": 0, "single_point": 0, "two_point": 0, "uniform": 0}}`, "params.crossover: all weights are 0"},
		{`{"selection": "luck"}`, `params.selection: wants one of tournament, roulette, rank, universal, truncation, pareto, random, found "luck"`},
		{`{"ask": "Solve."}`, `params.ask: "Solve.": want a text with {question} in it`},
		{`{"checker": {"type": "regex"}}`, "params.checker.pattern: is missing"},
		{`{"checker": {"type": "guess"}}`, `params.checker.type: wants one of number, exact, choice, regex, json, template, judge, found "guess"`},
		{`{"solvers": 0}`, "params.solvers: wants 1 to 20, found 0"},
		{`{"samples": 101}`, "params.samples: wants 1 to 100, found 101"},
		{`{"fitness": {"by": "weighted", "accuracy": 0, "consistency": 0, "efficiency": 0, "diversity": 0}}`, "params.fitness: all weights are 0"},
		{`{"fitness": {"efficiency": 0.5}}`, "params.fitness: weights and penalties have no effect with by: accuracy; set fitness.by to weighted"},
		{`{"fitness": {"by": "weighted", "efficiency": 0.5}}`, ""},
		{`{"seeds": ["a", "b", "c", "d", "e"], "population_size": 4, "elite_size": 1}`, "params.seeds: 5 prompts are more than population_size, which is 4"},
		{`{"seeds": ["a", " "]}`, "params.seeds[1]: is empty"},
		{`{"problems": {"train": 1}}`, "params.problems.train: wants 2 to 100000, found 1"},
		{`{"problems": {"difficulty": [2, 9]}}`, "params.problems.difficulty[1]: wants 1 to 8, found 9"},
		{`{"checker": {"tolerance": -1}}`, "params.checker.tolerance: wants at least 0, found -1"},
		{`{"split": {"test": 1}}`, "params.split.test: wants 2 to 100000, found 1"},
		{`{"problems": {"difficulty": [5, 2]}}`, "params.problems.difficulty[1]: 2: want 5 to 8"},
		{`{"problems": {"file": "x.jsonl"}}`, "params.problems.file: needs source: file, and source is arithmetic"},
		{`{"problems": {"source": "file"}}`, "params.problems.file: is missing"},
		{`{"problems": {"source": "file", "file": "x.jsonl"}}`, `params.problems.file: "x.jsonl" was not read: a matrix cannot vary it`},
		{`{"islands": {"count": 13}}`, "params.islands.count: 13: want 1 to 12"},
		{`{"race": {"confidence": 1}}`, "params.race.confidence: wants 0.51 to 0.9999, found 1"},
		{`{"finalists": 0}`, "params.finalists: wants 1 to 50, found 0"},
		{`{"episode": {}, "population_size": 3, "solvers": 99}`, "params.solvers: wants 1 to 20, found 99"},
	} {
		p, err := Kind().Read(json.RawMessage(c.params))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Kind().Seats(p)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.params, err, c.want)
		}
	}
}

// presets lists the names of the presets.
func presets() []string {
	f, _ := reflect.TypeFor[Params]().FieldByName("Preset")
	return strings.Split(f.Tag.Get("oneof"), ",")
}

// TestPresets checks that each preset is valid and different, and that params replace its numbers.
func TestPresets(t *testing.T) {
	t.Parallel()
	seen := map[numbers]string{}
	for _, name := range presets() {
		p := paramsOf(t, `{"preset": "`+name+`"}`)
		if err := p.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		n := p.numbers()
		if seen[n] != "" {
			t.Errorf("%s is the same as %s", name, seen[n])
		}
		seen[n] = name
		over := paramsOf(t, `{"preset": "`+name+`", "population_size": 33, "crossover_rate": 0, "target_fitness": 0, "problems": {"train": 7}}`).numbers()
		if over.population != 33 || over.crossover != 0 || over.target != 0 || over.train != 7 || over.generations != n.generations {
			t.Errorf("%s: %+v", name, over)
		}
	}
}

// TestSeats checks which seats the params need.
func TestSeats(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{}`:                             "solver",
		`{"solvers": 3}`:                 "solver1 solver2 solver3",
		`{"mutation": {"reflect": 1}}`:   "solver breeder",
		`{"crossover": {"model": 1}}`:    "solver breeder",
		`{"checker": {"type": "judge"}}`: "solver judge",
	} {
		got, err := definition{}.Seats(paramsOf(t, params))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v", params, got, err)
		}
	}
}

// TestSpecIsComplete checks that the params of an episode hold all that it needs.
func TestSpecIsComplete(t *testing.T) {
	t.Parallel()
	l := (&testEvolution{t: t}).run(joinParams(smallParams, modelOperators, `"ask": "{prompt} {question}", "checker": {"type": "number", "tolerance": 3}, "samples": 2`))
	for _, stage := range l.stages {
		for _, played := range stage {
			p := definition{}.Defaults()
			if err := json.Unmarshal(played.Spec.Params, p); err != nil {
				t.Fatal(err)
			}
			if p.Ask != "{prompt} {question}" || p.Checker.Tolerance != 3 || p.Samples != 2 || p.Fitness.By != "accuracy" || p.Problems.Set != nil {
				t.Fatalf("%+v", p.asking())
			}
			if got, err := (definition{}).Seats(p); err != nil || strings.Join(got, " ") != "solver breeder" {
				t.Fatalf("%v, %v", got, err)
			}
		}
	}
}

// TestDocumentedPresets checks the table of presets in the documentation.
func TestDocumentedPresets(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "worlds", "evolve.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range presets() {
		n := preset(name)
		row := fmt.Sprintf("| `%s` | %d | %d | %d | %d | %v | %d | %v | %v |\n", name, n.population, n.generations, n.elite, n.train, n.target, n.patience, n.crossover, n.mutation)
		if !strings.Contains(string(b), row) {
			t.Errorf("docs/worlds/evolve.md does not have the row %s", row)
		}
	}
}
