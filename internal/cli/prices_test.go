package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
)

const pricedPlan = `kind: secrets
seed: 1
episodes: 3
agents: {a: {model: sim/small, max_tokens: 50}}
params: {mode: standard, messages: 2}
prices: p.json
cache: answers
`

// pricesOf returns a file of prices in which a call of the priced plan costs about price/1000 dollars.
func pricesOf(price string) string {
	return `{"models": {"sim/small": {"input": ` + price + `, "output": ` + price + `}}}`
}

// TestPricesFromAnyFolder: a run file finds its prices and its cache from every current folder, and only its own. A change of
// prices is told, and what was spent stays spent.
func TestPricesFromAnyFolder(t *testing.T) {
	sequential(t)
	top := t.TempDir()
	for file, text := range map[string]string{"a/m/plan.yaml": pricedPlan, "a/m/p.json": pricesOf("1000"), "b/m/p.json": pricesOf("0.001")} {
		path := filepath.Join(top, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "a"))
	sum := func(code int, args ...string) (s app.Summary, stderr string) {
		t.Helper()
		got := parley(t, State{}, append(args, "--json")...).want(t, code)
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
			t.Fatal(err)
		}
		return s, got.stderr
	}
	first, _ := sum(exit.Budget, "run", filepath.Join("m", "plan.yaml"), "--budget", "2.5")
	if first.Cost == nil || *first.Cost == 0 {
		t.Fatalf("%+v", first)
	}
	t.Chdir(filepath.Join(top, "b"))
	run := filepath.Join("..", "a", "m", "plan.parley")
	second, said := sum(exit.Budget, "resume", run, "--budget", "2.51")
	if *second.Cost < *first.Cost || second.Episodes.Complete == 3 || strings.Contains(said, "changed") || len(second.Repriced) > 0 {
		t.Errorf("another file of prices was used: %+v\n%s", second, said)
	}
	entries, err := os.ReadDir("m")
	if err != nil || len(entries) != 1 {
		t.Errorf("the cache is in the wrong folder: %v, %v", entries, err)
	}
	t.Chdir(top)
	if err := os.Rename("a", "moved"); err != nil {
		t.Fatal(err)
	}
	run = filepath.Join(top, "moved", "m", "plan.parley")
	if _, err := os.Stat(filepath.Join(filepath.Dir(run), "answers")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join("moved", "m", "p.json"), []byte(pricesOf("0.001")), 0o600); err != nil {
		t.Fatal(err)
	}
	third, said := sum(exit.OK, "resume", run, "--budget", "5")
	if *third.Cost < *second.Cost || len(third.Repriced) != 1 || strings.Count(said, "parley: warning: The price of sim/small has changed since the run began") != 1 {
		t.Errorf("%+v\n%s", third, said)
	}
	parley(t, State{}, "merge", run, filepath.Join("b", "merged.parley")).want(t, exit.Misuse).wantErr(t, "merged.parley: the plan of the run names p.json, relative to the folder of its file")
}

// TestPricesOutsideALinkedFolder: the folder of a run file may be a link, and its prices outside it.
func TestPricesOutsideALinkedFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	plan := filepath.Join(top, "work", "plan.yaml")
	for _, dir := range []string{filepath.Join(top, "disk", "deep"), filepath.Dir(plan)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	runs := filepath.Join(top, "work", "runs")
	if err := os.Symlink(filepath.Join(top, "disk", "deep"), runs); err != nil {
		t.Skip(err)
	}
	for file, text := range map[string]string{plan: pricedPlan, filepath.Join(top, "work", "p.json"): pricesOf("1000")} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(runs, "x.parley")
	parley(t, State{}, "run", plan, "--out", run, "--budget", "2.5").want(t, exit.Budget)
	parley(t, State{}, "resume", run, "--budget", "1000", "--allow-files", filepath.Dir(plan)).want(t, exit.OK)
}
