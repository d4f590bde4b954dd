package results

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"parley/journal"
	"parley/world"
)

// tagged returns a run whose plan and agents have tags, with scores.
func tagged(t *testing.T) *Run {
	t.Helper()
	specs := []world.Spec{
		{Kind: "k", Cell: "calm, first=a, second=b", Params: json.RawMessage(`{"n":2,"set":{"turns":4,"of.it":true},"text":"` + strings.Repeat("x", 100) + `"}`), Lineup: map[string]string{"first": "a", "second": "b"}},
		{Kind: "k", Cell: "rude, first=c, second=b: part", Params: json.RawMessage(`{"n":10,"set":{"turns":8,"of.it":true},"text":"y"}`), Lineup: map[string]string{"first": "c", "second": "b"}},
		{Kind: "k", Cell: "other", Params: json.RawMessage(`{}`), Lineup: map[string]string{"first": "b", "second": "b"}},
	}
	entries := []journal.Entry{
		&journal.Begun{
			Version: 1, Run: "r", Kind: "k", Plan: json.RawMessage(`{"plan":{"matrix":{"variations":{"calm":{"tags":{"mood":"low"}},"rude":{"tags":{"mood":"high"}}}}}}`),
			Agents: []world.Agent{{Name: "a", Model: "m/x", Tags: map[string]string{"prompt": "terse"}}, {Name: "b", Model: "m/x"}, {Name: "c", Bot: "beep", Tags: map[string]string{"prompt": "long"}}},
		},
		&journal.Opened{}, &journal.Staged{Specs: world.List(specs...)},
	}
	for i := range specs {
		entries = append(entries, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Seat: "first", Name: "won", Value: float64(i)}, {Name: "all", Value: 1}}}})
	}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	r, err := Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFactors(t *testing.T) {
	t.Parallel()
	r := tagged(t)
	for _, c := range []struct {
		by, seat string
		want     [3]string // by episode; "": it has no level
	}{
		{"agent", "first", [3]string{"a", "c", "b"}},
		{"agent", "", [3]string{}}, // a whole episode's is no agent's
		{"model", "first", [3]string{"m/x", "bot beep", "m/x"}},
		{"model", "", [3]string{}},
		{"prompt", "first", [3]string{"terse", "long", ""}},
		{"prompt", "second", [3]string{}},
		{"prompt", "", [3]string{"terse", "long", ""}}, // of those that have one
		{"seat", "first", [3]string{"first", "first", "first"}},
		{"seat", "", [3]string{}},
		{"lineup", "", [3]string{"first=a", "first=c", "first=b"}},
		{"cell", "", [3]string{"calm, first=a, second=b", "rude, first=c, second=b: part", "other"}},
		{"variation", "", [3]string{"calm", "rude", ""}},
		{"mood", "first", [3]string{"low", "high", ""}},
		{"file", "", [3]string{"run.parley", "run.parley", "run.parley"}},
		{"n", "first", [3]string{"2", "10", ""}},
		{"params.n", "", [3]string{"2", "10", ""}},
		{"set.turns", "", [3]string{"4", "8", ""}},
		{"set.of.it", "", [3]string{"true", "true", ""}},
		{"text", "", [3]string{"#10a9270a", "y", ""}},
		{"prompt,n", "first", [3]string{"terse,2", "long,10", ""}},
		{"second", "", [3]string{"b", "b", ""}}, // the name of a cell has it
	} {
		f, err := FactorsOf([]*Run{r}, []string{"run.parley"}, strings.Split(c.by, ","))
		if err != nil {
			t.Fatal(err)
		}
		for i, spec := range r.Head.Stages[0].Specs.All() {
			levels, ok := f.Of(0, spec, c.seat)
			got := strings.Join(levels[:len(f.Names)], ",")
			if ok != (c.want[i] != "") || ok && got != c.want[i] {
				t.Errorf("by %s, seat %q, episode %d: %q %v, want %q", c.by, c.seat, i, got, ok, c.want[i])
			}
		}
	}
}

func TestUnknownFactor(t *testing.T) {
	t.Parallel()
	r := tagged(t)
	for by, want := range map[string]string{
		"promt":                        `unknown factor "promt"; did you mean prompt? there are: file, agent, model, seat, lineup, cell, variation, prompt, mood, n, set.turns, text, and any other param`,
		"nobody would call it that":    `unknown factor "nobody would call it that"; there are: file, agent`,
		"agent,agent":                  `"agent" is named twice`,
		"agent,model,seat,cell,lineup": "5 factors are named: at most 4 at once",
		"set.nothing":                  `unknown factor "set.nothing"`,
		"":                             `unknown factor ""`,
	} {
		_, err := FactorsOf([]*Run{r}, []string{"x"}, strings.Split(by, ","))
		if !errors.Is(err, ErrFactor) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", by, err, want)
		}
	}
}

// TestScoresBy: scores are grouped by levels, and by seat if no factor is of agents.
func TestScoresBy(t *testing.T) {
	t.Parallel()
	r := tagged(t)
	for by, want := range map[string]string{
		"prompt":      "won||terse;won||long;all||terse;all||long",
		"mood":        "won|first|low;won|first|high;all||low;all||high",
		"seat,prompt": "won||first,terse;won||first,long",
	} {
		f, err := FactorsOf([]*Run{r}, []string{"x"}, strings.Split(by, ","))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range r.ScoresBy(f) {
			got = append(got, s.Score+"|"+s.Seat+"|"+strings.Join(s.Levels[:len(f.Names)], ","))
		}
		if strings.Join(got, ";") != want {
			t.Errorf("by %s: %s, want %s", by, strings.Join(got, ";"), want)
		}
	}
	f, err := FactorsOf([]*Run{r}, []string{"x"}, []string{"n", "set.turns"})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.WithoutParams(json.RawMessage(`{"n":2,"set":{"turns":4,"rest":1},"x":3}`)); got != `{"set":{"rest":1},"x":3}` {
		t.Error(got)
	}
	if got := r.Tags()("a", "calm, x"); len(got) != 2 || got["prompt"] != "terse" || got["mood"] != "low" || r.Tags()("b", "other") != nil {
		t.Errorf("%v", got)
	}
}
