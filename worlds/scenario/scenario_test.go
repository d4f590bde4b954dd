package scenario

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds/scenario/script"
)

// planned writes the good scenario with another plan, and loads it.
func planned(t *testing.T, plan string, changed map[string]string, sets ...string) (*planfile.Plan, error) {
	t.Helper()
	files := map[string]string{"plan.yaml": plan}
	maps.Copy(files, changed)
	return planfile.Load(t.Context(), filepath.Join(folderOf(t, files), "plan.yaml"), []world.Kind{Kind()}, sets, planfile.Reach{})
}

// TestARunNeedsNoFiles checks that the recorded plan equals the original without the files.
func TestARunNeedsNoFiles(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, nil)
	p, err := planfile.Load(t.Context(), filepath.Join(dir, "plan.yaml"), []world.Kind{Kind()}, nil, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	again, err := planfile.FromJSON(p.JSON(), []world.Kind{Kind()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(again.JSON()) != string(p.JSON()) || !reflect.DeepEqual(again.Params, p.Params) {
		t.Errorf("got  %s\nwant %s", again.JSON(), p.JSON())
	}
	if strings.Contains(string(p.JSON()), filepath.ToSlash(dir)) {
		t.Error("the plan that is recorded depends on where its files stood")
	}
	branch, err := planfile.FromJSON(p.JSON(), []world.Kind{Kind()}, []string{"params.set={actors.east.goals: [Build another]}"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := branch.Params.Pointer().(*Params).script()
	if err != nil || !reflect.DeepEqual(s.Actors[0].Goals, []string{"Build another"}) {
		t.Errorf("a branch with other goals: %v, %v", s, err)
	}
}

// TestVariations: models by seat and any key of the scenario can be varied, in every
// combination.
func TestVariations(t *testing.T) {
	t.Parallel()
	p, err := planned(t, `kind: scenario
agents: {small: sim/small, large: sim/large}
lineup: {west: small, narrator: small, analyst: small, validator: small}
plan:
  matrix:
    seats: [east]
    agents: [small, large]
    params:
      turns: [1, 2]
      set: [{}, {actors.west.constraints: [No tolls], metrics.tension.range: [0, 5]}]
    repeat: 3
params: {folder: s}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.World()
	if err != nil {
		t.Fatal(err)
	}
	specs := plan.Next(nil)
	cells := map[string]bool{}
	for _, s := range specs.All() {
		cells[s.Cell] = true
		params := &Params{}
		if err := json.Unmarshal(s.Params, params); err != nil {
			t.Fatal(err)
		}
		got, err := params.script()
		if err != nil {
			t.Fatal(err)
		}
		if changed := strings.Contains(s.Cell, "No tolls"); changed != (len(got.Actors[1].Constraints) > 0) || changed != (got.Metrics[0].Range[1] == 5) {
			t.Errorf("%s: %+v", s.Cell, got.Actors[1])
		}
	}
	if len(cells) != 8 || specs.Len() != 24 {
		t.Errorf("%d cells, %d episodes", len(cells), specs.Len())
	}
	_, err = planned(t, "kind: scenario\nagents: {all: sim/small}\nplan: {matrix: {agents: [all], self: true, params: {folder: [s, other]}}}\nparams: {folder: s}\n", nil)
	if err == nil || !strings.Contains(err.Error(), "a matrix can vary turns and set, not the folder") {
		t.Error(err)
	}
}

// TestModelsOfTheFiles checks that the models of the files play only the seats that the plan leaves empty.
func TestModelsOfTheFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"s/scenario.yaml":    parts(t, filepath.Join("testdata", "good.txt"))["s/scenario.yaml"] + "world_state_model: sim/world\n",
		"s/actors/east.yaml": "name: East\nshort_name: east\nmodel: sim/east\n",
		"s/actors/west.yaml": "name: West\nshort_name: west\nmodel: sim/west:free\n",
	}
	for plan, want := range map[string]string{
		"kind: scenario\nparams: {folder: s}\n":                                            "sim/east sim/west_free sim/world sim/world sim/world",
		"kind: scenario\nagents: {a: sim/a}\nlineup: {west: a}\nparams: {folder: s}\n":     "sim/east a sim/world sim/world sim/world",
		"kind: scenario\nagents: {a: sim/a}\nparams: {folder: s}\n":                        "a a a a a",
		"kind: scenario\nagents: {a: sim/a}\nlineup: {narrator: a}\nparams: {folder: s}\n": "sim/east sim/west_free a sim/world sim/world",
	} {
		p, err := planned(t, plan, files)
		if err != nil {
			t.Errorf("%s: %v", plan, err)
			continue
		}
		var got []string
		for _, seat := range p.Seats {
			got = append(got, p.Lineup[seat])
			if a, ok := p.Agent(p.Lineup[seat]); !ok || a.Name == "sim/west_free" && a.Model != "sim/west:free" {
				t.Errorf("%s: %s: %+v", plan, seat, a)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", plan, got, want)
		}
		if again, err := planfile.FromJSON(p.JSON(), []world.Kind{Kind()}, nil); err != nil || !reflect.DeepEqual(again.Lineup, p.Lineup) {
			t.Errorf("recorded: %v", err)
		}
	}
	delete(files, "s/scenario.yaml")
	_, err := planned(t, "kind: scenario\nparams: {folder: s}\n", files)
	if err == nil || !strings.Contains(err.Error(), "nobody sits in narrator, analyst, validator") {
		t.Error(err)
	}
}

func TestSeats(t *testing.T) {
	t.Parallel()
	own := numeric("own")
	own.Extraction.Model = "p/m"
	words := script.Metric{Name: "words", Extraction: script.Extraction{Type: script.ByKeyword}}
	for want, change := range map[string]func(*script.Script){
		"a0 a1 narrator":                    func(s *script.Script) { s.Metrics = []script.Metric{words} },
		"a0 a1 narrator analyst":            func(s *script.Script) { s.Metrics = []script.Metric{numeric("a")} },
		"a0 a1 narrator metric.own":         func(s *script.Script) { s.Metrics = []script.Metric{own} },
		"a0 a1 narrator validator":          func(s *script.Script) { s.Validation.Checks = []script.Check{{Name: script.CheckWorld}} },
		"a0 a1 narrator analyst metric.own": func(s *script.Script) { s.Metrics = []script.Metric{own, numeric("a")} },
	} {
		if got := strings.Join(stage(2, 1, change).Seats(), " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestExampleShowsEveryParam checks that the plan of init has every param except the one that is read from
// files.
func TestExampleShowsEveryParam(t *testing.T) {
	t.Parallel()
	for f := range reflect.TypeFor[Params]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "script" && !strings.Contains(Kind().Example, "\n  "+name+": ") {
			t.Errorf("the example does not show %s", name)
		}
	}
}

// TestTaskName checks that a scenario is the same whatever a plan changes in it, and differs from another one.
func TestTaskName(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, nil)
	of := func(sets ...string) string {
		p, err := planfile.Load(t.Context(), filepath.Join(dir, "plan.yaml"), []world.Kind{Kind()}, sets, planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		task := Kind().TaskName(p.Params)
		what, whole := task.Name, task.Whole
		if what == "" || whole {
			t.Errorf("%v: %q, %v", sets, what, whole)
		}
		return what
	}
	if as, set := of(), of("params.set={turns: 3}"); as != set {
		t.Errorf("%q and %q", as, set)
	}
	if as, other := of(), of("params.set={name: Another}"); as == other {
		t.Errorf("%q and %q", as, other)
	}
	if task := (definition{}).TaskName(&Params{}); task != (world.Task{}) {
		t.Errorf("nothing: %+v", task)
	}
}

func TestScenarioIsAWorld(t *testing.T) {
	t.Parallel()
	s := stage(3, 3, func(s *script.Script) {
		own := numeric("own")
		own.ActorSpecific = true
		words := numeric("words")
		words.Extraction = script.Extraction{Type: script.ByKeyword, Keywords: []string{"a"}, Scoring: "density"}
		s.Metrics = []script.Metric{own, words}
		s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: true, Max: 2, Rounds: 2}
		s.Window, s.Reflect, s.BlackSwan = 1, true, 0.5
		s.Events = []script.Event{{Name: "e", Description: "It happens.", Type: script.EventRandom, Probability: new(0.5)}}
		s.Validation = script.Validation{Checks: []script.Check{{Name: script.CheckWorld, Severity: "low"}}, MaxIssues: 25}
	})
	params, err := json.Marshal(Params{Set: map[string]any{}, Script: s})
	if err != nil {
		t.Fatal(err)
	}
	worldtest.Exercise(t, Kind(), worldtest.Options{Params: string(params), Deals: 1, Answer: follow})
}

// TestExampleIsTheFolder checks that the example of the kind is the one in examples/.
func TestExampleIsTheFolder(t *testing.T) {
	t.Parallel()
	files := exampleFiles()
	files["plan.yaml"] = Kind().Example
	n := 0
	root := filepath.Join("..", "..", "examples", "scenario")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		rel, _ := filepath.Rel(root, path)
		if b, err := os.ReadFile(path); err != nil || string(b) != files[filepath.ToSlash(rel)] {
			t.Errorf("examples/scenario/%s is not the kind's own (%v)", rel, err)
		}
		return nil
	})
	if err != nil || n != len(files) || n < 8 {
		t.Errorf("%d files there, %d here (%v)", n, len(files), err)
	}
}

// TestExamplesPlay: every example plays to its end with answers that follow the schemas.
func TestExamplesPlay(t *testing.T) {
	t.Parallel()
	plans, err := filepath.Glob(filepath.Join("..", "..", "examples", "scenario*", "plan.yaml"))
	if err != nil || len(plans) < 3 {
		t.Fatalf("%v, %v", plans, err)
	}
	for _, plan := range plans {
		p, s := loaded(t, plan)
		if len(p.Advice) > 0 {
			t.Errorf("%s: %v", plan, p.Advice)
		}
		out := playScript(s, 0, nil)
		if out.failure != "" || out.outcome.Failed != "" {
			t.Errorf("%s: %s%s", plan, out.failure, out.outcome.Failed)
		}
		if worlds := of[worldNote](t, out, "world"); len(worlds) == 0 || worlds[0].State == "" {
			t.Errorf("%s: nothing happened", plan)
		}
	}
}

// TestLatency counts dependent calls: with 7 actors, 9 metrics and a check a turn takes two of them, since
// measuring runs in parallel with the next decisions.
func TestLatency(t *testing.T) {
	t.Parallel()
	shape := func(turns int) *script.Script {
		return stage(7, turns, func(s *script.Script) {
			for name := range strings.FieldsSeq("m1 m2 m3 m4 m5 m6 m7 m8 m9") {
				s.Metrics = append(s.Metrics, numeric(name))
			}
			s.Validation.Checks = []script.Check{{Name: script.CheckWorld, Severity: "medium"}}
		})
	}
	const turns = 20
	out := playScript(shape(turns), 0, nil)
	if per := float64(out.ticks) / turns; per > 2.1 {
		t.Errorf("%d turns take %d latencies: %.2f a turn", turns, out.ticks, per)
	}
	if steady := out.ticks - playScript(shape(turns-1), 0, nil).ticks; steady != 2 {
		t.Errorf("one more turn takes %d latencies", steady)
	}
	// 7 decisions, an account, 9 metrics, a check; 9 metrics more at the start, and summaries.
	if n := len(out.calls) - out.count("summary") - 9; n != turns*18 {
		t.Errorf("%d calls in %d turns", n, turns)
	}
}

// TestLatencyWithTalk: with exchanges and coalitions a turn takes its critical path:
// opening, the longest strand of talk, decision, account.
func TestLatencyWithTalk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		rounds     int
		coalitions bool
		want       int
	}{
		{"one round", 1, false, 4},
		{"three rounds", 3, false, 6},
		{"a coalition", 1, true, 5},
		{"a coalition beside three rounds", 3, true, 6},
	} {
		s := stage(4, 10, func(s *script.Script) {
			s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: c.coalitions, Max: 2, Rounds: c.rounds}
			s.Metrics = []script.Metric{numeric("m")}
			s.Window = 100
		})
		out := playScript(s, 0, answers(map[string]any{
			"opening": `{"public_statement":"Hello","messages":[{"to":"a1","text":"Hi"},{"to":"a2","text":"Hi"}],"coalition":{"members":["a2","a3"],"purpose":"Peace"}}`,
			"answer":  `{"reply":"Yes."}`, "coalition": `{"answer":"Yes.","accept":true}`, "joint": `{"agreement":"So be it.","joint_statement":"We agree."}`,
		}))
		if out.ticks != 10*c.want+1 { // and the metrics of the last turn
			t.Errorf("%s: 10 turns take %d latencies, want %d a turn", c.name, out.ticks, c.want)
		}
	}
}
