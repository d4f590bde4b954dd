package worlds_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

func TestStandardIsInOrder(t *testing.T) {
	t.Parallel()
	var names []string
	for _, k := range worlds.Standard() {
		names = append(names, k.Name)
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("want each once, by name: %v", names)
	}
}

// TestExamplesArePlans checks that the plans that `parley init` writes can be played unchanged.
func TestExamplesArePlans(t *testing.T) {
	t.Parallel()
	for _, k := range worlds.Standard() {
		p, err := planfile.Load(t.Context(), written(t, k), worlds.Standard(), nil, planfile.Reach{})
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		plan, err := p.World()
		if err != nil || plan.Next(nil).Len() == 0 {
			t.Errorf("%s: plays nothing (%v)", k.Name, err)
		}
	}
}

// TestSecretsPlaysAHundred checks what the README promises of its first command.
func TestSecretsPlaysAHundred(t *testing.T) {
	t.Parallel()
	p, err := planfile.Load(t.Context(), filepath.Join("..", "examples", "secrets.yaml"), worlds.Standard(), nil, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.World()
	if err != nil {
		t.Fatal(err)
	}
	specs := plan.Next(nil)
	deals := map[string][]int{}
	for _, s := range specs.All() {
		deals[s.Cell] = append(deals[s.Cell], s.Deal)
	}
	if specs.Len() != 100 || len(deals) != 2 || !reflect.DeepEqual(deals["first=small, second=large"], deals["first=large, second=small"]) {
		t.Errorf("%d episodes in %d cells: %v", specs.Len(), len(deals), deals)
	}
}

// TestEveryWorldIsPure checks all packages of worlds, and the documents of each kind.
func TestEveryWorldIsPure(t *testing.T) {
	t.Parallel()
	for _, k := range worlds.Standard() {
		if k.Name == "rollout" { // its environments and servers are beside its rules
			worldtest.Imports(t, "rollout/rules")
		} else {
			worldtest.Imports(t, k.Name)
		}
		doc, err := os.ReadFile(filepath.Join("..", "docs", "worlds", k.Name+".md"))
		if err != nil || !strings.Contains(string(doc), "(../reference/worlds.md#"+k.Name+")") {
			t.Errorf("docs/worlds/%s.md does not say where the params are (%v)", k.Name, err)
		}
		if shown := strings.Contains(string(doc), k.Example); !shown && !strings.Contains(strings.Join(strings.Fields(string(doc)), " "), "parley init "+k.Name) {
			t.Errorf("docs/worlds/%s.md does not say how to get a plan", k.Name)
		}
	}
}

// written writes a kind's example as init does, and returns the plan's path.
func written(t *testing.T, k world.Kind) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"plan.yaml": k.Example}
	maps.Copy(files, k.ExampleFiles)
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "plan.yaml")
}
