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
