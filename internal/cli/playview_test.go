package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/world"
	"parley/world/worldtest"
)

// counting is a status that counts the ended episodes by cell.
type counting struct{ cells []string }

func (c *counting) Add(p world.Played) { c.cells = append(c.cells, p.Spec.Cell) }
func (c *counting) Line() []string     { return []string{strings.Join(c.cells, "+"), "more"} }

// countingKind is a kind with that status.
type countingKind struct{ worldtest.Simple[struct{}] }

func (countingKind) Status(*struct{}) world.Status { return &counting{} }

// TestStatusOfAKind checks that the status of a kind includes episodes that ended before and those that end now,
// with the specs of their stages.
func TestStatusOfAKind(t *testing.T) {
	t.Parallel()
	kind := world.Define(countingKind{})
	plan := &planfile.Plan{Kind: kind, Params: kind.Defaults()}
	head := &journal.Head{
		Stages: []journal.Staged{{Specs: world.List(world.Spec{Cell: "a"}, world.Spec{Cell: "b"})}},
	}
	v := &runView{}
	v.Begin(app.Opened{App: &app.App{}, Plan: plan, Head: head, Past: func(f func(world.Played)) error {
		f(world.Played{Episode: 1, Spec: head.Stages[0].Specs.At(1)})
		return nil
	}})
	v.See(engine.Event{Staged: &head.Stages[0]})
	v.See(engine.Event{Ended: &journal.Ended{Episode: 0}})
	v.See(engine.Event{Staged: &journal.Staged{First: 2, Specs: world.List(world.Spec{Cell: "c"})}})
	v.See(engine.Event{Ended: &journal.Ended{Episode: 2}})
	v.See(engine.Event{Ended: &journal.Ended{Episode: 7}}) // of no stage
	if got := strings.Join(v.Says(), " "); got != "b+a+c more" {
		t.Error(got)
	}
	silentKind := &runView{}
	silentKind.Begin(app.Opened{App: &app.App{}, Plan: &planfile.Plan{}, Head: &journal.Head{}})
	silentKind.See(engine.Event{Ended: &journal.Ended{}})
	if got := silentKind.Says(); got != nil {
		t.Errorf("%v", got)
	}
}

// evolution is a plan that runs in a moment.
const evolution = `kind: evolve
agents: {a: sim/solver}
params:
  population_size: 6
  max_generations: 2
  target_fitness: 0
  elite_size: 1
  problems: {train: 10, validation: 4, test: 6}
  baselines: {seeds: 1}
`

// TestEvolutionSummary checks that a run of prompts ends with its result and a command that writes the best
// prompt to a file, and that resuming the complete run prints the same.
func TestEvolutionSummary(t *testing.T) {
	t.Parallel()
	sequential(t)
	file := filepath.Join(t.TempDir(), "mine.parley")
	plan := write(t, "plan.yaml", evolution)
	got := parley(t, State{}, "run", plan, "--out", file).want(t, exit.OK).stdout
	folder := strings.TrimSuffix(file, ".parley")
	for _, want := range []string{"stopped by max generations after generation 2,\nthe best prompt solves ", " than the best baseline (", fmt.Sprintf("parley export %s --format folder --out %s\n", file, folder)} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	again := parley(t, State{}, "resume", file).want(t, exit.OK).stdout
	if _, end, _ := strings.Cut(got, "stopped by max"); !strings.HasSuffix(again, end) {
		t.Errorf("%s\nand then\n%s", got, again)
	}
	parley(t, State{}, "export", file, "--format", "folder", "--out", folder).want(t, exit.OK)
	there := strings.Fields(folderOf(t, folder))
	if len(there) != 4 || !strings.HasPrefix(there[0], "episode-") {
		t.Fatalf("want the folder of the verdict and three tables: %v", there)
	}
	if best := read(t, filepath.Join(folder, there[0], "best.txt")); strings.TrimSpace(best) == "" {
		t.Errorf("%q", best)
	}
	if _, err := os.Stat(filepath.Join(folder, there[0], "best.json")); err != nil {
		t.Error(err)
	}
}

// TestCheckOfParts checks that a plan that creates episodes during the run is estimated as a whole, part by
// part.
func TestCheckOfParts(t *testing.T) {
	t.Parallel()
	sequential(t)
	got := parley(t, State{}, "check", write(t, "plan.yaml", evolution)).want(t, exit.OK).stdout
	for _, want := range []string{"\nPART ", "\ngeneration 0 ", "\ngenerations 1 to 2 ", "0 to 100", "\nvalidation ", "\nfinal test ", "\nall ", "the kind makes the plan during play"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

// TestEvolutionsCompared compares two evolutions by how their winners solve the same test problems.
func TestEvolutionsCompared(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan, dir := write(t, "plan.yaml", evolution), t.TempDir()
	a, b := filepath.Join(dir, "a.parley"), filepath.Join(dir, "b.parley")
	parley(t, State{}, "run", plan, "--out", a, "--quiet").want(t, exit.OK)
	parley(t, State{}, "run", plan, "--out", b, "--quiet", "--set", "params.preset=random_search").want(t, exit.OK)
	got := parley(t, State{}, "compare", a, b, "--score", "accuracy_test").want(t, exit.OK).stdout
	if !strings.Contains(got, "accuracy_test of a: ") || !strings.Contains(got, "paired, 6 deals") {
		t.Error(got)
	}
}
