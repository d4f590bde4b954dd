package planner_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/kit/statmath"
	"parley/internal/run/planner"
	"parley/world"
	"parley/world/part"
)

// maker makes a plan again, as every run and resume does.
type maker func() (world.Stages, error)

// follow plays a plan to its end with made-up outcomes and returns its stages.
func follow(t interface{ Fatal(...any) }, make maker, outcome func(episode int, s world.Spec) world.Outcome) [][]world.Played {
	p, err := make()
	if err != nil {
		t.Fatal(err)
	}
	var stages [][]world.Played
	var last []world.Played
	for episode := 0; ; {
		specs := p.Next(last)
		if specs.Len() == 0 {
			return stages
		}
		last = nil
		for _, s := range specs.All() {
			last = append(last, world.Played{Episode: episode, Spec: s, Outcome: outcome(episode, s)})
			episode++
		}
		if stages = append(stages, last); len(stages) > 10_000 {
			t.Fatal("no end")
		}
	}
}

// noise is an outcome that depends on the deal, the cell and a seed.
func noise(seed uint64) func(int, world.Spec) world.Outcome {
	return func(episode int, s world.Spec) world.Outcome {
		r := rand.New(rand.NewPCG(seed, uint64(episode)))
		if r.IntN(10) == 0 {
			return world.Outcome{Failed: "bad luck"}
		}
		return world.Outcome{Scores: []world.Score{
			{Seat: "first", Name: "points", Value: float64(r.IntN(4))},
			{Seat: "second", Name: "points", Value: r.NormFloat64()},
			{Seat: "first", Name: "won", Value: float64(r.IntN(2))},
			{Name: "length", Value: float64(s.Deal % 7)},
		}}
	}
}

// pairs returns a lineup for each ordered pair of agents.
func pairs(agents ...string) (lineups []map[string]string) {
	for _, a := range agents {
		for _, b := range agents {
			lineups = append(lineups, map[string]string{"first": a, "second": b})
		}
	}
	return lineups
}

func matrix() planner.Matrix {
	return planner.Matrix{
		Kind: "k", Seats: []string{"first", "second"}, Lineups: pairs("a", "b", "c"),
		Variants: []planner.Variant{{Name: "short", Params: json.RawMessage(`{"n":2}`)}, {Name: "long", Params: json.RawMessage(`{"n":9}`)}},
	}
}

// TestPlansAreFolds: the same outcomes in, the same specs out; and a plan made again that
// is given the stages so far continues as the first did.
func TestPlansAreFolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := matrix()
		m.Repetitions = rapid.IntRange(0, 4).Draw(t, "repetitions")
		u := planner.Until{
			Cells: m.Cells(), Score: rapid.SampledFrom([]string{"points", "won", "length", "none"}).Draw(t, "score"),
			Width: rapid.Float64Range(0.01, 1).Draw(t, "width"), Min: rapid.IntRange(2, 9).Draw(t, "min"), Max: 20,
			Step: rapid.IntRange(1, 9).Draw(t, "step"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "whose") {
		case 0:
			u.Seat = "first"
		case 1:
			u.Agent = "b"
		}
		spec := world.Spec{Kind: "k", Lineup: map[string]string{"first": "a"}}
		n := rapid.IntRange(0, 5).Draw(t, "n")
		outcome := noise(rapid.Uint64().Draw(t, "seed"))
		for name, make := range map[string]maker{
			"list":   func() (world.Stages, error) { return world.Repeat(spec, n), nil },
			"matrix": m.Plan,
			"until":  u.Plan,
		} {
			refolds(t, name, make, outcome)
		}
	})
}

func refolds(t *rapid.T, name string, make maker, outcome func(int, world.Spec) world.Outcome) {
	stages := follow(t, make, outcome)
	if again := follow(t, make, outcome); !reflect.DeepEqual(stages, again) {
		t.Fatal(name, "asks for something else the second time")
	}
	for k := range stages {
		p, err := make()
		if err != nil {
			t.Fatal(err)
		}
		p.Next(nil)
		for _, s := range stages[:k] {
			p.Next(s)
		}
		var next, want []world.Spec
		for _, s := range p.Next(stages[k]).All() {
			next = append(next, s)
		}
		if k+1 < len(stages) {
			for _, w := range stages[k+1] {
				want = append(want, w.Spec)
			}
		}
		if !(len(next) == 0 && len(want) == 0) && !reflect.DeepEqual(next, want) {
			t.Fatal(name, "continues differently after", k+1, "stages")
		}
	}
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	spec := world.Spec{Kind: "k", Lineup: map[string]string{"a": "x"}, Deal: 9}
	l := world.Repeat(spec, 3)
	for i, s := range l.All() {
		if s.Deal != i {
			t.Errorf("episode %d has deal %d", i, s.Deal)
		}
	}
	if reflect.ValueOf(l.At(1).Lineup).Pointer() != reflect.ValueOf(spec.Lineup).Pointer() {
		t.Error("each spec has a lineup of its own: a million need one")
	}
	for _, n := range []int{0, -1} {
		if got := world.Repeat(spec, n).Next(nil); got.Len() != 0 {
			t.Error(n, "repetitions:", got)
		}
	}
}

func TestMatrixIsPaired(t *testing.T) {
	t.Parallel()
	m := matrix()
	m.Repetitions = 3
	stages := follow(t, m.Plan, noise(1))
	if len(stages) != 1 || len(stages[0]) != 9*2*3 {
		t.Fatalf("%d stages, the first of %d", len(stages), len(stages[0]))
	}
	deals, sample := map[string][]int{}, map[string]world.Spec{}
	for _, p := range stages[0] {
		s := p.Spec
		deals[s.Cell] = append(deals[s.Cell], s.Deal)
		if was, ok := sample[s.Cell]; ok && (!reflect.DeepEqual(was.Lineup, s.Lineup) || string(was.Params) != string(s.Params)) {
			t.Errorf("cell %q holds two things", s.Cell)
		}
		sample[s.Cell] = s
	}
	for cell, d := range deals {
		if !reflect.DeepEqual(d, []int{0, 1, 2}) {
			t.Errorf("cell %q has deals %v", cell, d)
		}
	}
	if s := sample["first=a, second=c, long"]; s.Lineup["first"] != "a" || s.Lineup["second"] != "c" || string(s.Params) != `{"n":9}` {
		t.Errorf("the label does not say what is played: %+v", s)
	}
	for i, p := range stages[0][:18] {
		if p.Spec.Deal != 0 {
			t.Fatalf("episode %d: the second repetition begins before every cell had its first", i)
		}
	}
}

// TestMatrixNamesWhatVaries: a cell is named by what differs between cells, and by nothing else.
func TestMatrixNamesWhatVaries(t *testing.T) {
	t.Parallel()
	one := []map[string]string{{"x": "a", "y": "b"}}
	for want, m := range map[string]planner.Matrix{
		"":               {Lineups: one},
		"v; w":           {Lineups: one, Variants: []planner.Variant{{Name: "v"}, {Name: "w"}}},
		"y=b; y=c":       {Lineups: []map[string]string{{"x": "a", "y": "b"}, {"x": "a", "y": "c"}}},
		"x=a, v; x=b, v": {Lineups: []map[string]string{{"x": "a", "y": "b"}, {"x": "b", "y": "b"}}, Variants: []planner.Variant{{Name: "v"}}},
	} {
		m.Seats = []string{"x", "y"}
		var got []string
		for _, c := range m.Cells() {
			got = append(got, c.Cell)
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

func TestPlansAreChecked(t *testing.T) {
	t.Parallel()
	cells := []world.Spec{{Kind: "k"}}
	good := planner.Until{Cells: cells, Score: "s", Width: 0.1}
	with := func(change func(*planner.Until)) maker {
		u := good
		change(&u)
		return u.Plan
	}
	for want, make := range map[string]maker{
		"no cells":                            with(func(u *planner.Until) { u.Cells = nil }),
		"score: is empty":                     with(func(u *planner.Until) { u.Score = "" }),
		"not both":                            with(func(u *planner.Until) { u.Seat, u.Agent = "a", "b" }),
		"width: wants more than 0, found NaN": with(func(u *planner.Until) { u.Width = math.NaN() }),
		"width: wants more than 0, found 0":   with(func(u *planner.Until) { u.Width = 0 }),
		"confidence: wants more than 0 and less than 1, found 95": with(func(u *planner.Until) { u.Confidence = 95 }),
		"min 50, max 10":                   with(func(u *planner.Until) { u.Min, u.Max = 50, 10 }),
		"step: wants at least 1, found -1": with(func(u *planner.Until) { u.Step = -1 }),
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if _, err := good.Plan(); err != nil {
		t.Error(err)
	}
}

func TestUntilStopsWhenNarrow(t *testing.T) {
	t.Parallel()
	u := planner.Until{Cells: []world.Spec{{Kind: "k"}}, Score: "won", Seat: "first", Width: 0.08, Max: 5000, Min: 20, Step: 10}
	for seed := range uint64(20) {
		var xs []float64
		widths := []float64{}
		stages := follow(t, u.Plan, noise(seed))
		for _, stage := range stages {
			for _, p := range stage {
				for _, s := range p.Outcome.Scores {
					if s.Name == "won" {
						xs = append(xs, s.Value)
					}
				}
			}
			widths = append(widths, statmath.EstimateMean(xs, 0.95).Interval.Half())
		}
		for i, w := range widths {
			if last := i == len(widths)-1; (w <= u.Width) != last {
				t.Errorf("seed %d: stage %d of %d is ±%.3f", seed, i+1, len(widths), w)
			}
		}
		if len(stages[0]) != 20 || len(stages[1]) != 10 {
			t.Errorf("stages of %d and %d", len(stages[0]), len(stages[1]))
		}
	}
}

func TestUntilStopsEachCellAlone(t *testing.T) {
	t.Parallel()
	u := planner.Until{
		Cells: []world.Spec{{Cell: "steady"}, {Cell: "wild"}, {Cell: "mute"}, {Cell: "frail"}}, Score: "s",
		Width: 0.5, Min: 4, Max: 10, Step: 2,
	}
	played := map[string]int{}
	for _, stage := range follow(t, u.Plan, func(_ int, s world.Spec) world.Outcome {
		switch {
		case s.Cell == "steady", s.Cell == "frail" && s.Deal%2 == 0: // of frail, every other fails
			return world.Outcome{Scores: []world.Score{{Name: "s", Value: 5}}}
		case s.Cell == "wild":
			return world.Outcome{Scores: []world.Score{{Name: "s", Value: float64(100 * (s.Deal % 2))}}}
		default:
			return world.Outcome{Failed: "mute"}
		}
	}) {
		for _, p := range stage {
			if p.Spec.Deal != played[p.Spec.Cell] {
				t.Errorf("%s: repetition %d has deal %d", p.Spec.Cell, played[p.Spec.Cell], p.Spec.Deal)
			}
			played[p.Spec.Cell]++
		}
	}
	if want := map[string]int{"steady": 4, "wild": 10, "mute": 4, "frail": 8}; !reflect.DeepEqual(played, want) {
		t.Errorf("played %v, want %v", played, want)
	}
}

// TestUntilOfNothing: a score that no episode has ends the plan after its first stage, with what
// there is instead; episodes that only failed are no reason.
func TestUntilOfNothing(t *testing.T) {
	t.Parallel()
	scored := world.Outcome{Scores: []world.Score{{Seat: "first", Name: "points", Value: 1}, {Name: "length", Value: 2}}}
	for _, c := range []struct {
		score, seat, agent string
		failed             bool
		want               string // of the error; empty: none
	}{
		{"points", "first", "", false, ""},
		{"length", "", "", false, ""},
		{"pionts", "first", "", false, "no episode has a score pionts of seat first; there are: points of seat first, length of the whole episode"},
		{"points", "", "", false, "no episode has a score points of the whole episode; there are: points of seat first"},
		{"points", "", "b", false, "no episode has a score points of agent b"},
		{"pionts", "first", "", true, ""},
	} {
		u := planner.Until{Cells: []world.Spec{{Lineup: map[string]string{"first": "a"}}}, Score: c.score, Seat: c.seat, Agent: c.agent, Width: 1, Min: 3, Max: 9}
		p, err := u.Plan()
		if err != nil {
			t.Fatal(err)
		}
		var last []world.Played
		for _, spec := range p.Next(nil).All() {
			o := scored
			if c.failed {
				o = world.Outcome{Failed: "bad luck"}
			}
			last = append(last, world.Played{Spec: spec, Outcome: o})
		}
		if more := p.Next(last).Len(); more > 0 {
			t.Errorf("%+v: %d more", c, more)
		}
		err = p.(part.FailingStages).Err()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
