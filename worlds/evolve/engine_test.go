package evolve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/sim"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/part"
	"parley/worlds/evolve"
	"parley/worlds/secrets"
	"parley/worlds/task"
)

// run plays a plan through the engine.
func run(t *testing.T, plan *planfile.Plan, calls int, wave bool, log journal.Journal) engine.Result {
	t.Helper()
	model, err := sim.New(sim.Config{StandIns: sim.StandIns(plan.Kind.All()...)})
	if err != nil {
		t.Fatal(err)
	}
	models, err := dispatch.New(dispatch.Config{Open: func(name string) (dispatch.Lane, error) {
		return dispatch.Lane{Provider: provider.Provider{Name: name, Dialect: "sim", Limits: provider.Limits{Concurrency: calls}}, Model: model}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	stages, err := plan.World()
	if err != nil {
		t.Fatal(err)
	}
	if reads, ok := stages.(part.TranscriptStages); ok {
		reads.Transcripts(func(n int) ([]world.TranscriptEntry, error) { return results.Entries(t.Context(), log, n) })
	}
	how := &settings.Settings{Limits: settings.Limits{Concurrency: calls}}
	if wave {
		how.Pace = "wave"
	}
	res, err := engine.Run(t.Context(), engine.Config{
		Settings: how, Journal: log, Kind: plan.Kind, Plan: stages, Models: models,
		Begun: journal.Begun{Version: journal.Version, Run: "test", Kind: plan.Kind.Name, KindVersion: plan.Kind.Version, Seed: plan.Seed, Agents: plan.Agents, Plan: plan.JSON(),
			Nested: plan.NestedKind().Name, NestedVersion: plan.NestedKind().Version},
	})
	if err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	return res
}

// load reads an example.
func load(t *testing.T, name string, sets ...string) *planfile.Plan {
	t.Helper()
	p, err := planfile.Load(t.Context(), filepath.Join("..", "..", "examples", name), []world.Kind{evolve.Kind(), secrets.Kind(), task.Kind()}, sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSameResult checks that the digest is the same at any concurrency, with a model that breeds.
func TestSameResult(t *testing.T) {
	t.Parallel()
	for name, sets := range map[string][]string{
		"evolve-reflect.yaml": {"params.max_generations=3", "params.problems.test=10", "params.problems.train=20"},
		"evolve-agent.yaml":   {"params.max_generations=2", "params.split={train: 20, validation: 5, test: 10}"},
	} {
		sameResult(t, load(t, name, sets...))
	}
}

func sameResult(t *testing.T, p *planfile.Plan) {
	t.Helper()
	want := run(t, p, 1, false, &journal.Memory{})
	for _, c := range []struct {
		calls int
		wave  bool
	}{{7, false}, {200, false}, {64, true}} {
		if got := run(t, p, c.calls, c.wave, &journal.Memory{}); got.Digest != want.Digest || got.Made.Calls != want.Made.Calls {
			t.Errorf("%+v: digest %s of %d calls, want %s of %d", c, got.Digest, got.Made.Calls, want.Digest, want.Made.Calls)
		}
	}
	log := &journal.Memory{}
	run(t, p, 16, false, log)
	if again := run(t, p, 16, false, log); again.Digest != want.Digest || again.Made.Calls != 0 {
		t.Errorf("played again from its journal: digest %s, %d asked", again.Digest, again.Made.Calls)
	}
}

// TestExamples checks that every example ends with a verdict, and reports a gain if there is one.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "evolve*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && filepath.Base(file) != "evolve.yaml" {
				t.Skip("the others play the same")
			}
			var sets []string
			if strings.Contains(file, "against-random") {
				sets = append(sets, "plan.matrix.repeat=2", "params.max_generations=4")
			}
			log := &journal.Memory{}
			res := run(t, load(t, filepath.Base(file), sets...), 100, false, log)
			head, err := log.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			gain, verdicts := 0.0, 0
			for e := range head.Ended.All() {
				for _, s := range e.Outcome.Scores {
					switch s.Name {
					case "generations":
						verdicts++
					case "gain":
						gain += s.Value
					}
				}
			}
			if verdicts == 0 || gain <= 0 && !strings.Contains(file, "file") {
				t.Errorf("%d verdicts, gain %v, %+v", verdicts, gain, res)
			}
		})
	}
}

// TestFiles checks that problems are read from files of each format and recorded with the run.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"set.jsonl": `{"question": "1+1?", "answer": "It is\n#### 2"}` + "\n" + `{"question": "1+2?", "answer": "#### 3"}` + "\n" + `{"question": "1+3?", "answer": "4"}` + "\n" + `{"question": "1+4?", "answer": 5}`,
		"set.csv":   "question,answer\n1+1?,2\n1+2?,3\n1+3?,4\n1+4?,5\n",
		"set.yaml":  "problems:\n  - {question: 1+1?, answer: 2}\n  - {question: 1+2?, answer: \"3\"}\n  - {question: 1+3?, answer: 4.0}\n  - {question: 1+4?, answer: 5}\n",
		"bad.jsonl": `{"question": "1+1?", "answer": "two"}` + "\n" + `{"question": "1+2?", "answer": "3"}` + "\n" + `{"question": "1+3?", "answer": "4"}` + "\n" + `{"question": "1+4?", "answer": "5"}`,
		"odd.jsonl": `{"q": "1+1?", "answer": "2"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(file, more string) (*planfile.Plan, error) {
		src := "kind: evolve\nagents: {a: sim/solver}\nparams:\n  problems: {source: file, file: " + file + ", train: 2, test: 2" + more + "}\n"
		return planfile.Parse(filepath.Join(dir, "plan.yaml"), []byte(src), []world.Kind{evolve.Kind(), secrets.Kind(), task.Kind()}, nil)
	}
	for _, file := range []string{"set.jsonl", "set.csv", "set.yaml"} {
		p, err := parse(file, "")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if n := strings.Count(string(p.ParamsJSON), `"question":"1+`); n != 4 {
			t.Errorf("%s: %d problems are recorded: %s", file, n, p.ParamsJSON)
		}
		if again, err := planfile.FromJSON(p.JSON(), []world.Kind{evolve.Kind(), secrets.Kind(), task.Kind()}, nil); err != nil || string(again.ParamsJSON) != string(p.ParamsJSON) {
			t.Errorf("%s: resumed without the file: %v", file, err)
		}
	}
	for _, c := range []struct{ file, more, want string }{
		{"none.jsonl", "", "plan.yaml:4:"},
		{"set.jsonl", ", validation: 1", "problems.file: set.jsonl: 4 different problems are too few for train 2, validation 1 and test 2"},
		{"bad.jsonl", "", `checker.type: line-1: the answer "two" holds no number`},
		{"odd.jsonl", "", `problems.file: odd.jsonl: line 1: field "question" is to hold a question; there are: answer, q`},
		{"set.txt", "", "there is no such file"},
		{"set.yaml", ", test_file: odd.jsonl", "problems.test_file: odd.jsonl: line 1"},
		{`""`, "", "params.problems.file: is missing"},
	} {
		if _, err := parse(c.file, c.more); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
}
