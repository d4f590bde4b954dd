package planfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/internal/run/planfile"
	"parley/worlds"
)

// TestParamsAllAtOnce: everything that is wrong with the params of a kind is reported at once, each
// at its key.
func TestParamsAllAtOnce(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		params string
		want   []string // keys, in order of place
	}{
		"secrets": {
			"{mode: standrd, rounds: 0, messages: 0, words: [ab, cde, CDE], persona: {no body: x}, points: {bogus: 1}}",
			[]string{"params.mode", "params.rounds", "params.messages", "params.words[0]", "params.words[2]", `params.persona."no body"`, "params.points.bogus"},
		},
		"diplomacy": {
			`{rounds: 20, messages: 0, scoring: best, templates: {FRANCE: nowhere, MARS: x}, start: none.json, prompts: {ALL: {orders: "{power}", talk: "{{gaols}}", plan: '{"power": 1}'}}}`,
			[]string{"params.rounds", "params.messages", "params.scoring", "params.templates.FRANCE", "params.templates.MARS", "params.start", "params.prompts.ALL.orders", "params.prompts.ALL.talk"},
		},
		"rollout": {
			`{env: "a b", servers: [ftp://x, http://a, http://a], max_steps: 0, seats: [x, x], pool: {timeout: 0s}}`,
			[]string{"params.env", "params.servers[0]", "params.servers[2]", "params.max_steps", "params.seats[1]", "params.pool.timeout"},
		},
		"scenario": {
			`{folder: drought, set: {nothing: 1, events.hot_summer.probability: 7, metrics: {none: {unit: x}}}}`,
			[]string{"params.set.nothing", `params.set."events.hot_summer.probability"`, "params.set.metrics.none.unit"},
		},
		"evolve": {
			`{population_size: 1, islands: {count: 99}, ask: "{{question}}", problems: {source: file, file: none.jsonl, test: 0}}`,
			[]string{"params.population_size", "params.islands.count", "params.ask", "params.problems.file", "params.problems.test"},
		},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("../../../examples/scenario")); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "bad.yaml")
		if err := os.WriteFile(file, []byte("kind: "+kind+"\nagents: {a: {model: sim/small}}\nparams: "+c.params+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := planfile.Load(t.Context(), file, worlds.Standard(), nil, planfile.Reach{})
		var all planfile.Errors
		if !errors.As(err, &all) {
			t.Fatalf("%s: %v", kind, err)
		}
		var keys []string
		for _, e := range all {
			keys = append(keys, e.Key)
			if e.Line != 3 || e.Column < 10 {
				t.Errorf("%s: %s is at %d:%d", kind, e.Key, e.Line, e.Column)
			}
		}
		if !slices.Equal(keys, c.want) {
			t.Errorf("%s: %q\nwant %q\n%v", kind, keys, c.want, err)
		}
	}
}

// TestVersionAdvice: only an address without a version is reported, at its key.
func TestVersionAdvice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	plan := `kind: secrets
agents: {a: {model: lab/x}}
providers:
  lab: {dialect: openai, base_url: "http://localhost:8000/"}
  two: {dialect: openai, base_urls: ["http://a:1/v1", "http://b:1"]}
  fine: {dialect: openai, base_url: "https://h/api/paas/v4"}
  vllm: {base_url: "http://localhost:9000/v1"}
`
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := planfile.Load(t.Context(), file, worlds.Standard(), nil, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		file + `:4:36: providers.lab.base_url: the address names no API version: most servers answer at http://localhost:8000/v1`,
		file + `:5:55: providers.two.base_urls[1]: the address names no API version: most servers answer at http://b:1/v1`,
	}
	if !slices.Equal(p.Advice, want) {
		t.Errorf("%q\nwant %q", p.Advice, want)
	}
}
