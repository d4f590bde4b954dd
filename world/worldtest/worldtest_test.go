package worldtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/world/program"
)

type params struct {
	Rounds int `json:"rounds" doc:"How many rounds are played."`
}

// simple is a good definition of two seats around a way to play.
func simple(play func(p *params, t *world.Table) world.Outcome) Simple[params] {
	return Simple[params]{
		Kind:   world.About{Name: "test", Version: 1, Doc: "A kind for tests.", Example: "kind: test\nparams:\n  rounds: 3\n"},
		Params: params{Rounds: 3}, Sits: []string{"a", "b"}, Play: play,
		Players: map[string]world.Bot{"yes": func(world.Call) world.Reply { return world.Reply{Text: "yes"} }},
	}
}

func kindOf(play func(p *params, t *world.Table) world.Outcome) world.Kind {
	return world.Define(simple(play))
}

// without is a definition whose params have no defaults.
type without struct{ Simple[params] }

func (without) Defaults() *params { return nil }

func call(seat, text string) world.Call {
	return world.Call{Seat: seat, Label: "message", Ask: llm.Request{Messages: []llm.Message{llm.User(text)}}}
}

// good asks, forks, forks within a fork, draws and notes.
func good(p *params, t *world.Table) world.Outcome {
	said := ""
	for i := range p.Rounds {
		for _, r := range t.Ask(call("a", fmt.Sprint(i, said)), call("b", "?")) {
			if r.OK() {
				said += r.Text[:min(20, len(r.Text))]
			}
		}
		t.Note("said", "", said)
	}
	parts := make([]string, 3)
	t.Fork(3, func(i int, t *world.Table) {
		for range i + 1 {
			parts[i] += t.One(call("b", fmt.Sprint(i, parts[i], t.Rand().IntN(10)))).Text
			t.Note("part", "b", i)
		}
		t.Fork(2, func(j int, t *world.Table) { t.One(call("a", fmt.Sprint(i, j, len(parts[i])))) })
	})
	return world.Outcome{Scores: []world.Score{{Seat: "a", Name: "length", Value: float64(len(said))}}, Data: parts}
}

func TestExercisePasses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/game\n")
	write(t, dir, "game.go", "package game\n")
	Exercise(t, kindOf(good), Options{Dir: dir, Params: `{"rounds": 2}`, EmptyIsAMove: true})
}

// TestExerciseFinds plays worlds that break a promise each.
func TestExerciseFinds(t *testing.T) {
	t.Parallel()
	none := world.Outcome{}
	plays := 0 // state shared by worlds
	asks := func(t *world.Table, text string) world.Reply { return t.One(call("a", text)) }
	for _, c := range []struct {
		check, want string
		play        func(p *params, t *world.Table) world.Outcome
	}{
		{"plays twice the same", "in one play", func(_ *params, t *world.Table) world.Outcome {
			plays++
			asks(t, fmt.Sprint(plays))
			return none
		}},
		{"plays twice the same", "the outcome", func(_ *params, t *world.Table) world.Outcome {
			m := map[int]bool{}
			for i := range 100 {
				m[i] = true
			}
			var first []int
			for k := range m { // in the order of the map
				first = append(first, k)
			}
			asks(t, "?")
			return world.Outcome{Data: first}
		}},
		{"plays twice the same", "asks seat \"c\"", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("c", "?"))
			return none
		}},
		{"plays twice the same", "no messages", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a"})
			return none
		}},
		{"plays twice the same", "calls and no end", func(_ *params, t *world.Table) world.Outcome {
			for {
				asks(t, "again")
			}
		}},
		{"plays twice the same", "changed a request after asking", func(_ *params, t *world.Table) world.Outcome {
			ms := []llm.Message{llm.User("one")}
			t.One(world.Call{Seat: "a", Label: "message", Ask: llm.Request{Messages: ms}})
			ms[0] = llm.User("two")
			return none
		}},
		{"plays twice the same", "want a number", func(*params, *world.Table) world.Outcome {
			return world.Outcome{Scores: []world.Score{{Name: "s", Value: math.NaN()}}}
		}},
		{"plays twice the same", "scores seat", func(*params, *world.Table) world.Outcome {
			return world.Outcome{Scores: []world.Score{{Seat: "z", Name: "s"}}}
		}},
		{"plays twice the same", "not JSON", func(*params, *world.Table) world.Outcome { return world.Outcome{Data: math.Inf} }},
		{"plays twice the same", "world: note n", func(_ *params, t *world.Table) world.Outcome {
			t.Note("n", "", make(chan int))
			return none
		}},
		{"joins in any order", "in one play", func(_ *params, t *world.Table) world.Outcome {
			shared := ""
			t.Fork(3, func(i int, t *world.Table) {
				asks(t, shared)
				shared += fmt.Sprint(i)
			})
			return none
		}},
		{"joins in any order", "in one play", func(_ *params, t *world.Table) world.Outcome {
			r := t.Rand() // the parent's, in its forks
			t.Fork(3, func(_ int, t *world.Table) { asks(t, fmt.Sprint(r.IntN(1000))) })
			return none
		}},
		{"survives failures", "every call fails", func(_ *params, t *world.Table) world.Outcome {
			return world.Outcome{Data: asks(t, "?").Text[0]}
		}},
		{"survives failures", "only call 2 fails", func(_ *params, t *world.Table) world.Outcome {
			if !asks(t, "?").OK() {
				return none
			}
			return world.Outcome{Data: asks(t, "?").Text[0]}
		}},
		{"survives nonsense", "replies are empty", func(_ *params, t *world.Table) world.Outcome {
			if r := asks(t, "?"); r.OK() {
				return world.Outcome{Data: strings.Fields(r.Text)[0]}
			}
			return none
		}},
		{"survives nonsense", "replies are an object of nulls", func(_ *params, t *world.Table) world.Outcome {
			var v struct{ Message *string }
			if json.Unmarshal(asks(t, "?").JSON, &v) == nil && v.Message == nil {
				return world.Outcome{Data: *v.Message}
			}
			return none
		}},
	} {
		wants(t, c.check, c.want, kindOf(c.play))
	}
}

// TestExerciseFindsUnmeasured plays worlds that score what was not measured.
func TestExerciseFindsUnmeasured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		play func(p *params, t *world.Table) world.Outcome
	}{
		{"answers an empty text: not one of 1 calls said anything", func(_ *params, t *world.Table) world.Outcome {
			return world.Outcome{Scores: []world.Score{{Name: "length", Value: float64(len(t.One(call("a", "?")).Text))}}}
		}},
		{"but has scores", func(_ *params, t *world.Table) world.Outcome {
			return world.Outcome{Scores: []world.Score{{Name: "length", Value: float64(len(t.One(call("a", "?")).Text))}}, Failed: "too short"}
		}},
		{"does not name how its calls failed: invalid", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Label: "message", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}, Schema: &llm.Schema{JSON: json.RawMessage("{}")}}})
			if t.One(call("a", "?")).Text == "" {
				return world.Outcome{Failed: "nothing was said"}
			}
			return world.Outcome{}
		}},
	} {
		wants(t, "scores only what is measured", c.want, kindOf(c.play))
	}
}

// TestExerciseFindsKinds exercises kinds that are wrong themselves.
func TestExerciseFindsKinds(t *testing.T) {
	t.Parallel()
	with := func(change func(*Simple[params])) world.Kind {
		d := simple(good)
		change(&d)
		return world.Define(d)
	}
	drawn := 0
	left := 0 // what was begun and not ended
	shared := ""
	for _, c := range []struct {
		check, want string
		kind        world.Kind
	}{
		{"describes itself", "one line", with(func(d *Simple[params]) { d.Kind.Doc = "a\nb" })},
		{"describes itself", "no example", with(func(d *Simple[params]) { d.Kind.Example = "" })},
		{"describes itself", "the example is not a plan: line 1", with(func(d *Simple[params]) { d.Kind.Example = "kind: [" })},
		{"describes itself", "the example is not a plan", with(func(d *Simple[params]) { d.Kind.Example = "Play a game." })},
		{"describes itself", "has 2 documents", with(func(d *Simple[params]) { d.Kind.Example += "---\n" + d.Kind.Example })},
		{"describes itself", `it says kind: "chess", want kind: test`, with(func(d *Simple[params]) { d.Kind.Example = "kind: chess" })},
		{"describes itself", "lacks params: rounds", with(func(d *Simple[params]) { d.Kind.Example = "kind: test # has rounds\n" })},
		{"describes itself", `params: unknown field "round"; did you mean rounds? want one of rounds`, with(func(d *Simple[params]) { d.Kind.Example = "kind: test\nparams: {round: 1}\n" })},
		{"describes itself", "params: rounds: found string, want whole number", with(func(d *Simple[params]) { d.Kind.Example = "kind: test\nparams: {rounds: many}\n" })},
		{"describes itself", "the param rounds has no doc tag", world.Define(Simple[struct {
			Rounds int `json:"rounds"`
		}]{Sits: []string{"a"}, Kind: simple(good).Kind})},
		{"describes itself", `the kind test: the command "pay": the field Move: enum value`, world.Define(commanding{simple(good), &wrongVerb{}})},
		{"plays once", "the stand-in does not recognise the prompt", world.Define(standing{simple(good), func(string, *llm.Request, uint64) (string, bool) { return "", false }})},
		{"describes itself", "the name \"calls\" of a table is taken", world.Define(tabling{simple(good), part.NoteTable{Name: "calls"}})},
		{"describes itself", "the table bids has two columns deal", world.Define(tabling{simple(good), part.NoteTable{
			Name: "bids", Rows: noRows, Columns: []part.NoteColumn{{Name: "deal", Type: part.NoteInteger}},
		}})},
		{"describes itself", `has the type "money": want text, integer`, world.Define(tabling{simple(good), part.NoteTable{
			Name: "bids", Rows: noRows, Columns: []part.NoteColumn{{Name: "paid", Type: "money"}},
		}})},
		{"plays once", "a row of the table bids of deal 0: the cell of the column paid is a string, and the column is of type integer", world.Define(tabling{
			simple(good), part.NoteTable{
				Name: "bids", Columns: []part.NoteColumn{{Name: "paid", Type: part.NoteInteger}},
				Rows: func(world.Played, []world.Note) [][]any { return [][]any{{nil}, {7}, {"7"}} },
			},
		})},
		{"plays once", "a row of the table bids of deal 0: it has 2 cells; want 1", world.Define(tabling{simple(good), part.NoteTable{
			Name: "bids", Columns: []part.NoteColumn{{Name: "paid", Type: part.NoteInteger}},
			Rows: func(world.Played, []world.Note) [][]any { return [][]any{{1, 2}} },
		}})},
		{"plays once", "the table bids of deal 0: Rows panicked", world.Define(tabling{simple(good), part.NoteTable{
			Name: "bids", Rows: func(world.Played, []world.Note) [][]any { panic("no bid") },
		}})},
		{"describes itself", "Defaults returns nil", world.Define(without{simple(good)})},
		{"describes itself", "not known", world.Kind{}},
		{"describes itself", "different ones", with(func(d *Simple[params]) { d.Sits = []string{"a", "a"} })},
		{"describes itself", "Seats panicked", with(func(d *Simple[params]) {
			d.SeatsOf = func(p *params) ([]string, error) { return []string{d.Sits[p.Rounds]}, nil }
		})},
		{"plays twice the same", "does not declare", with(func(d *Simple[params]) {
			d.Scores = []world.Measure{{Name: "length"}} // of the whole episode
		})},
		{"plays twice the same", "does not declare", with(func(d *Simple[params]) { d.Scores = []world.Measure{} })},
		{"plays twice the same", "its declared range is 0 to 0.5", with(func(d *Simple[params]) {
			d.Scores = []world.Measure{{Name: "length", Seats: []string{"a"}, Bounds: world.Bounds{High: 0.5}}}
		})},
		{"plays the same beside another", "beside deal 1", kindOf(func(_ *params, t *world.Table) world.Outcome {
			shared = fmt.Sprint(t.Rand().IntN(1000))
			t.One(call("a", "?"))
			t.One(call("a", shared))
			return world.Outcome{}
		})},
		{"refolds from any point", "refolded", kindOf(func(_ *params, t *world.Table) world.Outcome {
			left++
			t.One(call("a", "?"))
			t.One(call("a", fmt.Sprint(left)))
			left--
			return world.Outcome{}
		})},
		{"has pure bots", "answers", with(func(d *Simple[params]) {
			d.Players = map[string]world.Bot{"odd": func(world.Call) world.Reply { drawn++; return world.Reply{Text: fmt.Sprint(drawn)} }}
		})},
		{"has pure bots", "wrote to the call", with(func(d *Simple[params]) {
			d.Players = map[string]world.Bot{"odd": func(c world.Call) world.Reply {
				c.Ask.Messages[0] = llm.User("!")
				return world.Reply{}
			}}
		})},
	} {
		wants(t, c.check, c.want, c.kind)
	}
}

type tabling struct {
	Simple[params]
	table part.NoteTable
}

func (t tabling) Tables() []part.NoteTable { return []part.NoteTable{t.table} }

func noRows(world.Played, []world.Note) [][]any { return nil }

// wants runs one check and looks for what it must find.
func wants(t *testing.T, name, want string, k world.Kind) {
	t.Helper()
	first, rest := checks()
	for _, c := range append(first, rest...) {
		if c.name != name {
			continue
		}
		got := errors.Join(c.run(&exercise{kind: k, Options: Options{MaxCalls: 100}.resolved()})...)
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: found %.300v, want %q", name, got, want)
		}
		return
	}
	t.Errorf("no check %q", name)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1: 1, 7: 7, points: points, 1000: points} {
		got := spread(n)
		if len(got) != want || want > 0 && (got[0] != 1 || got[want-1] > n) {
			t.Errorf("spread(%d) = %v", n, got)
		}
	}
}

func TestProse(t *testing.T) {
	t.Parallel()
	one := Prose(world.Call{}, rand.New(rand.NewPCG(1, 2)))
	if again := Prose(world.Call{}, rand.New(rand.NewPCG(1, 2))); one.Text != again.Text || one.Text == "" {
		t.Errorf("%q, then %q", one.Text, again.Text)
	}
}

// TestExercisePlaysOnce plays worlds that end badly.
func TestExercisePlaysOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		play func(p *params, t *world.Table) world.Outcome
	}{
		{"turn 0, call 0: the call of seat \"a\" has no Label", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}}})
			return world.Outcome{}
		}},
		{"deal 0: turn 1: panic: lost", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", "?"))
			panic("lost")
		}},
		{"every play fails (nothing was said)", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", "?"))
			return world.Outcome{Failed: "nothing was said"}
		}},
		{"the call \"bid\" has a schema: give Options.Answer, or give the kind a stand-in", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Label: "bid", Ask: llm.Request{Messages: []llm.Message{llm.User("?")}, Schema: &llm.Schema{JSON: json.RawMessage("{}")}}})
			return world.Outcome{}
		}},
		{"the call \"step\" is an act: give Options.Answer", func(_ *params, t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "a", Label: "step", Act: &world.Act{Name: "step"}})
			return world.Outcome{}
		}},
	} {
		wants(t, "plays once", c.want, kindOf(c.play))
	}
}

// commanding is a definition with a command.
type commanding struct {
	Simple[params]
	verb program.Verb
}

func (c commanding) Commands() []program.Command {
	return []program.Command{{Name: "pay", Doc: "Pay.", Verb: c.verb}}
}

type wrongVerb struct {
	Move string `enum:"up,down"`
}

func (*wrongVerb) Run(context.Context, *program.Program) error { return nil }

// TestExerciseOnce: every problem is reported once, however many plays and checks find it.
func TestExerciseOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		play func(p *params, t *world.Table) world.Outcome
		want int
	}{
		{"an undeclared score", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", "?"))
			return world.Outcome{Scores: []world.Score{{Name: "gain"}}}
		}, 1},
		{"two plays that differ", func(_ *params, t *world.Table) world.Outcome {
			t.One(call("a", fmt.Sprint(rand.Uint64())))
			return world.Outcome{}
		}, 1},
		{"a panic on failures, and one on empty replies", func(_ *params, t *world.Table) world.Outcome {
			r := t.One(call("a", "?"))
			if !r.OK() {
				panic(fmt.Sprint("failed ", rand.Uint64()))
			}
			return world.Outcome{Data: strings.Fields(r.Text)[0]}
		}, 2},
	} {
		d := simple(c.play)
		d.Scores = []world.Measure{{Name: "length"}}
		var reported []string
		first, rest := checks()
		found := &findings{}
		for i, check := range append(first[1:], rest...) { // but imports
			for _, err := range check.run(&exercise{kind: world.Define(d), Options: Options{}.resolved()}) {
				if found.add(check.name, err) == "" {
					reported = append(reported, err.Error())
				}
			}
			if i+1 < len(first) && reported != nil {
				break
			}
		}
		if len(reported) != c.want {
			t.Errorf("%s: %d reports, want %d:\n%s", c.name, len(reported), c.want, strings.Join(reported, "\n"))
		}
	}
}

// TestDiffer: a difference is shown without what is the same after it.
func TestDiffer(t *testing.T) {
	t.Parallel()
	ask := func(text string) string { return describe(call("a", text)) }
	long := strings.Repeat("much of the same, ", 20)
	for _, c := range []struct{ a, b, want string }{
		{ask("It is worth 12 to you."), ask("It is worth 34 to you."), `"user: It is worth 12…" in one play, "user: It is worth 34…" in another`},
		{ask("Hi.\nSecond."), ask("Hi.\nThird."), `"Secon…" in one play, "Thir…" in another`},
		{long + "x", long + "y", `"…f the same, much of the same, x" in one play, "…f the same, much of the same, y" in another`},
		{"one", "one\ntwo", `"" in one play, "two" in another`},
		{"", "a", `"" in one play, "a" in another`},
	} {
		if got := differ(c.a, c.b); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
