package planfile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/kit/testkit"
	"parley/llm"
	"parley/world"
)

func load(t *testing.T, name string) *Plan {
	t.Helper()
	file := filepath.Join("testdata", "good", name+".yaml")
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(t.Context(), file, testKinds(), setsIn(src), Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bare drops what cannot be compared: a kind holds functions, and places are of one file. What
// params are is in their JSON.
func bare(p *Plan) Plan {
	q := *p
	q.Places, q.Params, q.checker = nil, world.Params{}, nil
	q.Kind = world.Kind{About: world.About{Name: p.Kind.Name}}
	return q
}

func TestSmall(t *testing.T) {
	t.Parallel()
	temperature := 0.7
	sim, _ := provider.Lookup("sim")
	got := bare(load(t, "small"))
	want := Plan{
		Kind: world.Kind{About: world.About{Name: "talk"}}, Seed: 7, Episodes: 100,
		Agents: []world.Agent{
			{Name: "bold", Model: "lab/any", System: "You are bold."},
			{Name: "quiet", Model: "sim/small", Temperature: &temperature},
		},
		Lineup:     map[string]string{"first": "quiet", "second": "bold"},
		Seats:      []string{"first", "second"},
		ParamsJSON: json.RawMessage(`{"judge":false,"messages":6,"mode":"standard","pause":3,"style":{"tone":"dry"}}`),
		Providers: []provider.Provider{
			{Name: "lab", Dialect: "openai", BaseURL: "http://127.0.0.1:8080/v1", KeyEnv: "LAB_KEY", Limits: provider.Limits{RPM: 3000, TPM: 2000000}},
			sim,
		},
		Settings: settings.New(settings.Plan),
	}
	want.Budget = 5 * llm.Dollar
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// Every good plan, recorded and read back, is the same plan; and what is recorded is
// stable and itself a plan file.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, file := range planFiles(t, "good") {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t, name)
			testkit.Compare(t, strings.TrimSuffix(file, ".yaml")+".json", string(p.JSON())+"\n")
			fromJSON, err := FromJSON(p.JSON(), testKinds(), nil)
			if err != nil {
				t.Fatal(err)
			}
			fromYAML, err := Parse("recorded", p.JSON(), testKinds(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, again := range []*Plan{fromJSON, fromYAML} {
				if !reflect.DeepEqual(bare(again), bare(p)) {
					t.Errorf("got\n%+v\nwant\n%+v", bare(again), bare(p))
				}
				if string(again.JSON()) != string(p.JSON()) {
					t.Errorf("got\n%s\nwant\n%s", again.JSON(), p.JSON())
				}
			}
			if _, err := p.World(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFromJSONErrors(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{``, `{`, `[1]`, `{"kind":"talk","kind":"solo"}`, `{"kind":"talk"}`, `{"error":"x"}`, strings.Repeat("[", 1000)} {
		if _, err := FromJSON(json.RawMessage(bad), testKinds(), nil); err == nil {
			t.Errorf("%.20s: no error", bad)
		}
	}
	p, err := FromJSON(load(t, "small").JSON(), testKinds(), []string{"agents.bold.model=sim/other", "seed=9"})
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := p.Agent("bold"); !ok || a.Model != "sim/other" || p.Seed != 9 {
		t.Errorf("overrides are not in %s", p.JSON())
	}
	if _, ok := p.Agent("nobody"); ok {
		t.Error("there is an agent nobody")
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge.yaml")
	if err := os.WriteFile(huge, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		dir:                             "is a directory",
		filepath.Join(dir, "none.yaml"): "no such file",
		huge:                            "is larger than 1 MiB",
	} {
		_, err := Load(t.Context(), name, testKinds(), nil, Reach{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

func TestWorld(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		episodes int
		cells    []string // the first few
	}{
		"least":           {1, []string{""}},
		"small":           {100, []string{""}},
		"matrix":          {9 * 4 * 50, []string{"first=a, second=a, messages=4, mode=standard", "first=a, second=b, messages=4, mode=standard"}},
		"matrix-one-seat": {2, []string{"second=b", "second=c"}},
		"matrix-within": {16, []string{
			"first=a, style.tone=dry, weights.of.words=0.1", "first=b, style.tone=dry, weights.of.words=0.1", "first=a, style.tone=dry, weights.of.words=0.5",
		}},
		"matrix-params-only": {4, []string{"messages=2, style.tone=dry", "messages=2, style.tone=warm"}},
		"matrix-sets-all":    {2, []string{"messages=2", "messages=4"}},
		"until":              {50, []string{""}},
		"matrix-until":       {30, []string{""}},
	} {
		plan, err := load(t, name).World()
		if err != nil {
			t.Fatal(err)
		}
		specs := plan.Next(nil)
		if specs.Len() != want.episodes {
			t.Errorf("%s: %d episodes, want %d", name, specs.Len(), want.episodes)
		}
		for i, cell := range want.cells {
			if specs.At(i).Cell != cell {
				t.Errorf("%s: cell %d is %q, want %q", name, i, specs.At(i).Cell, cell)
			}
		}
	}
}

// TestMatrixWithin: a path with dots changes the value there, and not its neighbours.
func TestMatrixWithin(t *testing.T) {
	t.Parallel()
	plan, err := load(t, "matrix-within").World()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, spec := range plan.Next(nil).All() {
		params, err := world.Define(talk()).Read(spec.Params)
		if err != nil {
			t.Fatal(err)
		}
		p := params.Pointer().(*talkParams)
		if p.Weights["letters"] != 1 || len(p.Weights) != 2 || p.Mode != "standard" {
			t.Errorf("%s: %+v", spec.Cell, p)
		}
		got[fmt.Sprint(p.Style.Tone, p.Weights["of.words"])] = true
	}
	if len(got) != 4 || !got["warm0.5"] {
		t.Errorf("%v", got)
	}
}

// TestParamZero checks that a param set to zero stays zero although its field is marked omitempty.
func TestParamZero(t *testing.T) {
	t.Parallel()
	p := load(t, "everything")
	again, err := p.Kind.Read(p.ParamsJSON)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, p.Params) || again.Pointer().(*talkParams).Pause != 0 {
		t.Errorf("got %+v, want %+v", again, p.Params)
	}
}

// TestUnseated checks that agents without a seat are left out where the plan may have them.
func TestUnseated(t *testing.T) {
	t.Parallel()
	const two = "kind: talk\nagents: {quiet: sim/small, bold: sim/large}\nlineup: {first: quiet, second: bold}\n"
	for name, c := range map[string]struct {
		src  string
		sets []string
		want string
	}{
		"the lineup is another":    {two, []string{"lineup.second=quiet"}, "quiet"},
		"a new agent with a seat":  {two, []string{"agents.new.model=sim/new", "lineup.second=new"}, "new quiet"},
		"a matrix instead":         {two, []string{"lineup=", "plan.matrix={agents: [quiet], self: true}"}, "quiet"},
		"a pattern for the others": {"kind: talk\nagents: {base: &base {model: sim/small}, warm: {<<: *base, temperature: 1}}\nlineup: {first: warm, second: warm}\n", nil, "warm"},
		"agents as a whole":        {two, []string{"agents={quiet: sim/a, bold: sim/b}"}, "bold quiet"},
	} {
		p, err := Parse("plan.yaml", []byte(c.src), testKinds(), c.sets)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var names []string
		for _, a := range p.Agents {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestUnreachable reads how long a provider is waited for, which a run file keeps.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const plan = "kind: talk\nagents: {a: sim/a, b: sim/b}\nlineup: {first: a, second: b}\n"
	for text, want := range map[string]time.Duration{"": 10 * time.Minute, "retry: {unreachable: 90s}\n": 90 * time.Second, "retry: {unreachable: 0s}\n": 0} {
		p, err := Parse("plan.yaml", []byte(plan+text), testKinds(), nil)
		if err != nil || p.Retry.Unreachable != want {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := FromJSON(p.JSON(), testKinds(), nil)
		if err != nil || again.Retry.Unreachable != want {
			t.Errorf("%q is read back as %v, %v", text, again, err)
		}
	}
	for _, text := range []string{"-1s", "10", "soon"} {
		_, err := Parse("plan.yaml", []byte(plan+"retry: {unreachable: "+text+"}\n"), testKinds(), nil)
		if err == nil || !strings.Contains(err.Error(), "retry.unreachable") || !strings.Contains(err.Error(), "or 0s") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
