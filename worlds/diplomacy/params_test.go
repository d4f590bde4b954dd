package diplomacy

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

func TestParamsAreChecked(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		change func(*Params)
		want   string
	}{
		{"defaults", func(*Params) {}, ""},
		{"rounds", func(p *Params) { p.Rounds = 11 }, "params.rounds: wants 0 to 10, found 11"},
		{"messages", func(p *Params) { p.Messages = 0 }, "params.messages: wants 1 to 20, found 0"},
		{"year", func(p *Params) { p.MaxYear = 1900 }, "params.max_year: 1900: want 1901 to 2001"},
		{"scoring", func(p *Params) { p.Scoring = "points" }, `params.scoring: wants one of game, share, draw, welfare, found "points"`},
		{"draw", func(p *Params) { p.DrawFrom = 1950 }, "params.draw_from: 1950: want a year from 1901 to 1910, or 0"},
		{"phase", func(p *Params) { p.EndPhase = "1903" }, `params.end_phase: "1903": a phase is written like`},
		{"phase too late", func(p *Params) { p.EndPhase = "S1911M" }, "params.end_phase: S1911M: want a phase from S1901M to the end of 1910"},
		{"judge", func(p *Params) { p.Judge, p.Rounds = true, 0 }, "params.judge: there is nothing to judge"},
		{"prompts of nobody", func(p *Params) { p.Prompts = map[string]map[string]string{"france": {}} }, "params.prompts.france: unknown power; want one of AUSTRIA,"},
		{"prompt", func(p *Params) { p.Prompts = map[string]map[string]string{"FRANCE": {"orders": "a\n{{x}}"}} }, "params.prompts.FRANCE.orders: line 2: unknown variable {{x}}"},
		{"no template", func(p *Params) { p.Prompts = map[string]map[string]string{"ALL": {"dance": ""}} }, `params.prompts.ALL.dance: unknown template "dance"`},
		{"position", func(p *Params) {
			p.Position = rules.State{Name: "S1901M", Units: map[string][]string{"FRANCE": {"A XXX"}}}
		}, "params.position: "},
		{"empty position", func(p *Params) { p.Position.Name = "S1901M" }, "params.position: nobody has a unit"},
		{"not read", func(p *Params) { p.Start = "x.json" }, `params.start: "x.json" was not read`},
	}
	d := newDefinition()
	for _, c := range cases {
		changed := d.Defaults()
		c.change(changed)
		raw, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Kind().Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Kind().Seats(p)
		_, err2 := Kind().World(p, nil)
		for _, err := range []error{err, err2} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "diplomacy: "+c.want)) {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
		}
	}
	p := newDefinition().Defaults()
	p.Judge = true
	if seats, err := d.Seats(p); err != nil || len(seats) != 8 || seats[7] != judgeSeat {
		t.Errorf("%v %v", seats, err)
	}
}

// shelf holds files in memory.
type shelf map[string]string

func (s shelf) Match(pattern string) (names []string) {
	for name := range s {
		if ok, _ := path.Match(pattern, name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s shelf) Text(name string) (string, error) {
	text, ok := s[name]
	if !ok {
		return "", errors.New(name + ": there is no such file")
	}
	return text, nil
}

func (s shelf) YAML(string, any) (world.Document, error) { return nil, errors.New("no YAML here") }

func TestLoad(t *testing.T) {
	t.Parallel()
	files := shelf{
		"bold/talk.txt": "Be bold, {{power}}.\n\n{{messages}}", "ours/self.txt": "We are {{power}}.", "bad/talk.txt": "\n{{mesages}}", "odd/speak.txt": "x",
		"state.json": `{"name":"F1903M","units":{"FRANCE":["A PAR"]},"centers":{"FRANCE":["PAR"]}}`,
		"game.json":  `{"id":"x","phases":[{"name":"S1901M","state":{"name":"S1901M","units":{"ITALY":["A ROM"]}}},{"name":"F1901M","state":{"name":"F1901M","units":{"ITALY":["A VEN"]}}},{"name":"COMPLETED","state":{"name":"COMPLETED","units":{}}}]}`,
		"not.json":   `[`, "other.json": `{"a":1}`,
	}
	load := func(change func(*Params)) (*Params, error) {
		p := newDefinition().Defaults()
		change(p)
		_, err := newDefinition().Load(p, files)
		return p, err
	}
	p, err := load(func(p *Params) {
		p.Templates, p.Start, p.StartPhase = map[string]string{"ALL": "ours", "FRANCE": "bold"}, "game.json", "S1901M"
	})
	if err != nil || p.Prompts["FRANCE"]["talk"] == "" || p.Prompts["ALL"]["self"] == "" || p.Position.Units["ITALY"][0] != "A ROM" {
		t.Fatalf("%v: %+v", err, p)
	}
	for _, c := range []struct {
		change func(*Params)
		want   string
	}{
		{func(p *Params) { p.Templates = map[string]string{"ALL": "none"} }, `params.templates.ALL: no template in "none"`},
		{func(p *Params) { p.Templates = map[string]string{"Spain": "ours"} }, "params.templates.Spain: unknown power"},
		{func(p *Params) { p.Templates = map[string]string{"ALL": "bad"} }, "params.templates.ALL: bad/talk.txt: line 2: unknown variable {{mesages}}"},
		{func(p *Params) { p.Templates = map[string]string{"ALL": "odd"} }, `odd/speak.txt: unknown template "speak"; want one of rules,`},
		{func(p *Params) { p.Start = "missing.json" }, "missing.json: there is no such file"},
		{func(p *Params) { p.Start = "not.json" }, "params.start: not.json: not the JSON of a state"},
		{func(p *Params) { p.Start = "other.json" }, "neither a state"},
		{func(p *Params) { p.Start, p.StartPhase = "game.json", "S1905M" }, "has no phase S1905M; it has S1901M to F1901M"},
		{func(p *Params) { p.StartPhase = "S1905M" }, "params.start_phase: S1905M: set start to a saved game"},
		{func(p *Params) { p.Start, p.Position.Name = "state.json", "S1901M" }, "params.position: is set, but so is start"},
	} {
		if _, err := load(c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestTemplates checks that a power's own templates are used only for this power.
func TestTemplates(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, simulated, func(p *Params) {
		p.EndPhase, p.Rounds = "S1901M", 1
		p.Prompts = map[string]map[string]string{"ALL": {"talk": "Speak, {{power}}, in round {{round}}."}, "FRANCE": {"orders": "Strike!\n\n{{options}}", "decide": "Strike!\n\n{{options}}"}}
	})
	for _, c := range p.calls {
		own := c.Ask.Messages[1].Text()
		if c.Label == "message" && !strings.Contains(own, "Speak, ") || c.Label == "orders" && strings.Contains(own, "Strike!") != (c.Seat == "FRANCE") {
			t.Errorf("%s %s: %s", c.Seat, c.Label, own)
		}
	}
}

// TestExamples checks that the plans in the examples folder are valid, and that the example has every
// param.
func TestExamples(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../examples/diplomacy*.yaml")
	if err != nil || len(names) < 4 {
		t.Fatalf("%v %v", names, err)
	}
	for _, name := range names {
		plan, err := planfile.Load(t.Context(), name, []world.Kind{Kind()}, nil, planfile.Reach{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w, err := plan.World()
		if err != nil || w.Next(nil).Len() == 0 {
			t.Errorf("%s: the plan has no episodes (%v)", name, err)
		}
	}
	first, err := os.ReadFile("../../examples/diplomacy.yaml")
	if err != nil || string(first) != example {
		t.Errorf("examples/diplomacy.yaml is not the kind's example (%v)", err)
	}
	b, _ := json.Marshal(newDefinition().Defaults())
	var params map[string]any
	if err := json.Unmarshal(b, &params); err != nil {
		t.Fatal(err)
	}
	for name := range params {
		if name != "prompts" && name != "position" && !strings.Contains(example, "\n  "+name+": ") {
			t.Errorf("the example does not have %s", name)
		}
	}
}

// TestDocument checks that docs/worlds/diplomacy.md has the example and every variable, template and
// label.
func TestDocument(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/worlds/diplomacy.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	want := []string{example}
	for _, v := range variables() {
		want = append(want, "| `"+v.Name+"` | "+v.Doc+" |")
	}
	for _, name := range templateNames() {
		want = append(want, "`"+name+".txt`")
	}
	for _, s := range []string{scoreGame, scoreShare, scoreDraw, scoreWelfare} {
		want = append(want, "| `"+s+"` |")
	}
	p := playGame(t, 1, world.Lineup{}, simulated, func(p *Params) { p.MaxYear, p.Rounds, p.Planning = 1904, 1, true })
	for label := range callsByLabel(p) {
		want = append(want, "`"+label+"` |")
	}
	for _, text := range want {
		if !strings.Contains(doc, text) {
			t.Errorf("docs/worlds/diplomacy.md has no %.80q", text)
		}
	}
}

// TestTemplatesKeepSecrets checks that a template for all powers is filled with each power's own
// values, even if it is part of the shared beginning.
func TestTemplatesKeepSecrets(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, marked(), func(p *Params) {
		p.EndPhase, p.Rounds = "F1901M", 2
		p.Prompts = map[string]map[string]string{"ALL": {"board": "For {{power}} only: {{goals}}\n\n{{position}}\n\n{{diary}}\n\n{{messages}}"}}
	})
	for _, c := range p.calls {
		w, _ := rules.ParsePower(c.Seat)
		if _, own, found := strings.Cut(c.Ask.Messages[0].Text(), "\n\nFor "); found && !strings.HasPrefix(own, w.Name()+" only") {
			t.Errorf("%s %s: the prompt has the values of another power: %.40q", c.Seat, c.Label, own)
		}
	}
}
