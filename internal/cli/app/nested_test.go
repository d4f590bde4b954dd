package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/worlds"
)

// nestedPlan loads the example in which the instructions of an agent of another plan evolve.
func nestedPlan(t *testing.T, sets ...string) *planfile.Plan {
	t.Helper()
	sets = append(sets, "params.max_generations=1", "params.split={train: 12, validation: 4, test: 6}", "params.transfer=[sim/large]")
	plan, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", "evolve-agent.yaml"), worlds.Standard(), sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestNestedIsCutOff: an evolution of another plan's texts continues from any moment at which it is cut off, asks nothing again, and ends the
// same. Its trials are episodes of the kind of that plan.
func TestNestedIsCutOff(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole.parley")
	want := played(t, Play{Kinds: worlds.Standard(), Plan: nestedPlan(t), File: whole})
	for _, replies := range []int{1, 75, 300, want.Calls.Total - 30} {
		file := filepath.Join(t.TempDir(), "run.parley")
		stoppedAt(nestedPlan(t, "limits.concurrency=3"), replies)(t, file)
		sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
		if sum.Digest != want.Digest || sum.Calls.Total != want.Calls.Total || sum.Calls.Earlier < replies-3 {
			t.Errorf("cut off after %d replies: digest %s with %+v, want %s with %+v", replies, sum.Digest, sum.Calls, want.Digest, want.Calls)
		}
	}
	store, err := runfile.OpenRead(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	run, err := results.Fold(t.Context(), store, whole)
	if err != nil {
		t.Fatal(err)
	}
	run.Know(run.Head.Begun.KindAmong(worlds.Standard()))
	systems, kinds := map[string]bool{}, map[string]int{}
	for e := range run.All() {
		spec, _ := run.Spec(e.Number)
		kinds[spec.Kind]++
		if spec.Kind == "secrets" {
			systems[spec.Systems["quiet"]] = true
		}
	}
	if kinds["secrets"] == 0 || kinds["evolve"] == 0 || len(systems) < 3 || !systems["Be open with your partner."] {
		t.Errorf("%v, %v", kinds, systems)
	}
	asked := map[string]bool{}
	err = store.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && r.Request != nil && r.Agent == "quiet" {
			asked[r.Request.Messages[0].Text()] = true
		}
		return nil
	})
	if err != nil || len(asked) != len(systems) {
		t.Errorf("quiet was asked with %d system prompts, and %d were tried: %v", len(asked), len(systems), err)
	}
	elsewhere := 0
	for e := range run.All() {
		if spec, _ := run.Spec(e.Number); spec.Lineup["first"] == world.AgentWith("quiet", "sim/large") {
			elsewhere++
			if !strings.HasPrefix(spec.Cell, "transfer to sim/large, ") || spec.Systems[spec.Lineup["first"]] != spec.Systems["quiet"] {
				t.Errorf("%+v", spec)
			}
		}
	}
	if elsewhere != 6 && elsewhere != 12 { // the winner, and what it began with if that is another
		t.Errorf("%d episodes have another model", elsewhere)
	}
	if _, known := run.Bounds["points"]; !known {
		t.Errorf("the scores of the played kind have no bounds: %v", run.Bounds)
	}
}

// TestNestedNeeds: a plan that plays another one needs what that needs.
func TestNestedNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "..", "examples"))); err != nil {
		t.Fatal(err)
	}
	outer := filepath.Join(dir, "outer.yaml")
	text := `kind: evolve
providers: {lab: {dialect: openai, base_url: "https://lab.example/v1", key_env: LAB_KEY}}
agents: {writer: {model: lab/m}}
params:
  preset: quick
  play: task.yaml
  change: [agents.careful.system]
  maximize: reward
  split: {train: 4, validation: 2, test: 4}
  mutation: {reflect: 1}
`
	if err := os.WriteFile(outer, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	needs := func(file string) (all []string) {
		plan, err := planfile.Load(t.Context(), file, worlds.Standard(), nil, planfile.Reach{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := Needs(plan, file, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			all = append(all, n.What+" "+n.Name+" "+n.Host+" at "+n.Place)
		}
		return all
	}
	own, nested := needs(filepath.Join(dir, "task.yaml")), needs(outer)
	if len(own) < 2 || len(nested) != len(own)+1 {
		t.Errorf("%q needs %d more than %q", nested, len(nested)-len(own), own)
	}
	for _, n := range own {
		if !slices.Contains(nested, n) {
			t.Errorf("%q is not needed: %q", n, nested)
		}
	}
	if !slices.ContainsFunc(nested, func(n string) bool { return strings.Contains(n, "lab.example") }) {
		t.Errorf("the key of the breeder is not needed: %q", nested)
	}
}
