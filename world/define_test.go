package world_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/world/worldtest"
)

type coins struct {
	Count int `json:"count"`
}

// simple is a definition without optional parts.
func simple() worldtest.Simple[coins] {
	return worldtest.Simple[coins]{Kind: world.About{Name: "coins", Version: 1}, Params: coins{Count: 3}, Sits: []string{"one"}}
}

// full is a definition with a part of every sort that takes params.
type full struct{ worldtest.Simple[coins] }

func (full) Measures(p *coins) []world.Measure { return make([]world.Measure, p.Count) }
func (full) Load(p *coins, _ world.Files) ([]string, error) {
	p.Count++
	return []string{"less"}, nil
}
func (full) Models(p *coins) map[string]string { return map[string]string{"one": fmt.Sprint(p.Count)} }
func (full) Plan(p *coins, cell world.Spec, _ uint64) (world.Stages, error) {
	return world.Repeat(cell, p.Count), nil
}

func (full) Forecast(p *coins, _ world.Spec, _ uint64) ([]world.Part, error) {
	return make([]world.Part, p.Count), nil
}
func (full) Uniform(p *coins) bool        { return p.Count == 3 }
func (full) TaskName(p *coins) world.Task { return world.Task{Name: fmt.Sprint(p.Count), Whole: true} }
func (full) Status(p *coins) world.Status { return status{p} }
func (full) Actor(p *coins, run string) (world.Actor, error) {
	return nil, fmt.Errorf("actor of %s: %d", run, p.Count)
}
func (full) Outside() []string   { return []string{"count"} }
func (full) Local(p *coins) bool { return p.Count == 3 }
func (full) Probe(_ context.Context, p *coins) []world.Presence {
	return make([]world.Presence, p.Count)
}
func (full) Story(world.Played, []world.TranscriptEntry) []exhibit.Exhibit { return nil }

type status struct{ *coins }

func (status) Add(world.Played) {}
func (s status) Line() []string { return []string{fmt.Sprint(s.Count)} }

// asked is all that a kind says of params.
func asked(t *testing.T, k world.Kind, p world.Params) string {
	t.Helper()
	cell := world.Spec{Kind: "coins"}
	_, err := k.World(p, nil)
	seats, err2 := k.Seats(p)
	_, actorErr := k.Actor(p, "r")
	plan, err3 := k.Plan(p, cell, 1)
	parts, err4 := k.Forecast(p, cell, 1)
	task := k.TaskName(p)
	said := fmt.Sprintf("seats %v, measures %d, chooses models %v %v, plans %v, parts %d, uniform %v, task %q %v, external %v, local %v, servers %d; %v",
		seats, len(k.Measures(p)), k.ChoosesModels(), k.Models(p), k.Plans(), len(parts), k.Uniform(p), task.Name, task.Whole, k.External(), k.Local(p), len(k.Probe(t.Context(), p)), actorErr)
	if s := k.Status(p); s != nil {
		said += fmt.Sprint("; status ", s.Line())
	}
	if plan != nil {
		said += fmt.Sprint("; plan ", plan.Next(nil).Len())
	}
	if err := errors.Join(err, err2, err3, err4); err != nil {
		said += "; " + strings.ReplaceAll(err.Error(), "\n", ", ")
	}
	return said
}

// TestKind: a kind says what its definition does, nothing where that lacks a part, and nothing of the params of
// another kind; one that is not known says nothing.
func TestKind(t *testing.T) {
	t.Parallel()
	whole, bare, none := world.Define(full{simple()}), world.Define(simple()), world.Kind{}
	const nothing = "chooses models false map[], plans false, parts 0, uniform false, task \"\" false, external false, local true, servers 0; "
	const foreign = "coins: params are *struct {}, want *world_test.coins"
	const missing = "coins: params are <nil>, want *world_test.coins"
	for _, c := range []struct {
		name   string
		kind   world.Kind
		params world.Params
		want   string
	}{
		{"all parts", whole, whole.Defaults(), `seats [one], measures 3, chooses models true map[one:3], plans true, parts 3, uniform true, task "3" true, external true, local true, servers 3; actor of r: 3; status [3]; plan 3`},
		{"no parts", bare, bare.Defaults(), "seats [one], measures 0, " + nothing + `world: the kind "coins" has no environment; plan 1`},
		{"not known", none, none.Defaults(), "seats [], measures 0, " + nothing + `world: the kind "" has no environment; plan 1; world: the kind is not known, world: the kind is not known`},
		{
			"params of another", whole, none.Defaults(),
			`seats [], measures 0, chooses models true map[], plans true, parts 0, uniform false, task "" false, external true, local false, servers 0; ` + foreign + "; " + strings.Repeat(foreign+", ", 3) + foreign,
		},
		{"no params", bare, world.Params{}, "seats [], measures 0, " + nothing + `world: the kind "coins" has no environment; plan 1; ` + missing + ", " + missing},
	} {
		if got := asked(t, c.kind, c.params); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
	p := whole.Defaults()
	advice, err := whole.Load(p, nil)
	if err != nil || len(advice) != 1 || p.Pointer().(*coins).Count != 4 {
		t.Errorf("load: %v, %v, %+v", advice, err, p.Pointer())
	}
	if _, ok := world.As[part.Storyteller](whole); !ok {
		t.Error("its story is not found")
	}
	if _, ok := world.As[part.Storyteller](none); ok {
		t.Error("a kind that is not known has a story")
	}
}

// TestRead: what was recorded is read over the defaults, and the defaults stay as they are.
func TestRead(t *testing.T) {
	t.Parallel()
	k := world.Define(simple())
	for raw, want := range map[string]string{
		`{"count":7}`: "&{7}", `{}`: "&{3}", `{"more":1}`: "&{3}", `null`: "&{3}",
		`{"count":"x"}`: "params: json: cannot unmarshal string into Go struct field coins.count of type int", ``: "params: unexpected end of JSON input",
	} {
		p, err := k.Read(json.RawMessage(raw))
		got := fmt.Sprint(p.Pointer())
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	if !reflect.DeepEqual(k.Defaults().Pointer(), &coins{3}) {
		t.Errorf("the defaults are %+v", k.Defaults().Pointer())
	}
}

// The definitions below are each wrong in one method.
type (
	misnamed   struct{ worldtest.Simple[coins] }
	extra      struct{ worldtest.Simple[coins] }
	mistyped   struct{ worldtest.Simple[coins] }
	halfway    struct{ worldtest.Simple[coins] }
	ofOthers   struct{ worldtest.Simple[coins] }
	byPointer  struct{ worldtest.Simple[coins] }
	unexported struct{ worldtest.Simple[coins] }
)

func (misnamed) Mesures(*coins) []world.Measure                       { return nil }
func (extra) Zzyzx()                                                  {}
func (mistyped) Story(world.Played, []world.Note) []exhibit.Exhibit   { return nil }
func (halfway) Plan(*coins, world.Spec, uint64) (world.Stages, error) { return nil, nil }
func (ofOthers) TaskName(*struct{}) world.Task                        { return world.Task{} }
func (*byPointer) Story(world.Played, []world.Note) []exhibit.Exhibit { return nil }
func (unexported) story()                                             {}

// TestCheckRefuses: a method that looks like a part of a kind but is not one is refused.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	unexported{}.story()
	for _, c := range []struct {
		name string
		d    world.Definition[coins]
		want string
	}{
		{"a slip in a name", misnamed{simple()}, "no part of a kind has a method Mesures: did you mean Measures?"},
		{"another purpose", extra{simple()}, "no part of a kind has a method Zzyzx: make it a function, or do not export it"},
		{"another signature", mistyped{simple()}, "the method Story does not fit part.Storyteller, which has Story(world.Played, []world.TranscriptEntry) []exhibit.Exhibit"},
		{"half of a part", halfway{simple()}, "which has Forecast(*world_test.coins, world.Spec, uint64) ([]world.Part, error) and Plan(*world_test.coins, world.Spec, uint64) (world.Stages, error)"},
		{"params of another type", ofOthers{simple()}, "which has TaskName(*world_test.coins) world.Task"},
		{"a pointer's method, of a pointer", &byPointer{simple()}, "the method Story does not fit part.Storyteller"},
		{"a pointer's method, of a value", byPointer{simple()}, "the method Story has a pointer receiver: give Define a pointer"},
		{"not exported", unexported{simple()}, ""},
	} {
		if err := part.Check(world.Define(c.d)); (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestDefineRefusesNames: what a plan file cannot name, or a run file cannot hold, stops the program when it starts.
func TestDefineRefusesNames(t *testing.T) {
	t.Parallel()
	about := func(name string, version int) string {
		return refusal(bare{is: world.About{Name: name, Version: version}})
	}
	type inner struct {
		Deep int
	}
	type Embedded struct {
		Count int `json:"count"`
	}
	type tree struct {
		Below []tree `json:"below"`
	}
	for _, c := range []struct{ got, want string }{
		{about("coins", 1), ""},
		{about("two-up_3", 7), ""},
		{about("", 1), "world: Define: kind : the name \"\": want a lower-case letter"},
		{about("My Game", 1), "the name \"My Game\""},
		{about("a/b", 1), "the name"},
		{about("a--b", 1), "the name"},
		{about("é", 1), "the name"},
		{about("coins", 0), "version 0: want 1 or more"},
		{about("coins", -1), "version -1: want 1 or more"},
		{refusal(worldtest.Simple[int]{}), "its params are int: want a struct"},
		{refusal(worldtest.Simple[json.RawMessage]{}), ""},
		{refusal(worldtest.Simple[struct{ Rounds int }]{}), "world: Define: kind test: params: the field Rounds has no json tag: add one such as `json:\"rounds\"`"},
		{refusal(worldtest.Simple[struct {
			Rounds int `json:",omitempty"`
		}]{}), "the field Rounds has no json tag"},
		{refusal(worldtest.Simple[struct{ rounds int }]{}), "the field rounds is not exported"},
		{refusal(worldtest.Simple[struct {
			Inner map[string][]*inner `json:"inner"`
		}]{}), "params.inner: the field Deep has no json tag"},
		{refusal(worldtest.Simple[struct {
			Embedded
			Other int `json:"count"`
		}]{}), "have the same json tag \"count\""},
		{refusal(worldtest.Simple[struct {
			Embedded
			Left string    `json:"-"`
			Tree tree      `json:"tree"`
			When time.Time `json:"when"`
		}]{}), ""},
	} {
		if !strings.Contains(c.got, c.want) || (c.want == "") != (c.got == "") {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// bare is a definition with any About.
type bare struct{ is world.About }

func (b bare) About() world.About                            { return b.is }
func (bare) Defaults() *coins                                { return &coins{} }
func (bare) Seats(*coins) ([]string, error)                  { return nil, nil }
func (bare) World(*coins, world.Lineup) (world.World, error) { return nil, nil }

// refusal is what Define panics with.
func refusal[P any](d world.Definition[P]) (why string) {
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Sprint(p)
		}
	}()
	world.Define(d)
	return ""
}

// bounded are params whose tags say which values are allowed.
type bounded struct {
	Count int            `json:"count" range:"1..3"`
	Pause world.Duration `json:"pause" range:"1s..1h"`
	Mode  string         `json:"mode" oneof:"calm,bold"`
}

// careless is a kind that checks nothing itself.
type careless struct{ worldtest.Simple[bounded] }

func (careless) World(*bounded, world.Lineup) (world.World, error) { return world.Func(nil), nil }
func (careless) Measures(p *bounded) []world.Measure               { return make([]world.Measure, p.Count) }

// TestTagsOfParams: no part of a kind gets params that their tags do not allow, as a run file of somebody else may have them.
func TestTagsOfParams(t *testing.T) {
	t.Parallel()
	k := world.Define(careless{worldtest.Simple[bounded]{
		Kind: world.About{Name: "careless", Version: 1}, Params: bounded{2, world.Minute, "calm"}, Sits: []string{"one"},
	}})
	for params, want := range map[string]string{
		`{}`:                                    "",
		`{"count":0}`:                           "careless: params.count: wants 1 to 3, found 0",
		`{"count":-1,"pause":"90m","mode":"x"}`: "careless: params.count: wants 1 to 3, found -1\ncareless: params.mode: wants one of calm, bold, found \"x\"\ncareless: params.pause: wants 1s to 1h, found 1h30m",
	} {
		p, err := k.Read(json.RawMessage(params))
		if err != nil {
			t.Fatal(err)
		}
		_, seats := k.Seats(p)
		_, played := k.World(p, nil)
		for _, err := range []error{seats, played} {
			if (err == nil) != (want == "") || err != nil && err.Error() != want {
				t.Errorf("%s: %v, want %s", params, err, want)
			}
		}
		if n := len(k.Measures(p)); (n == 2) != (want == "") {
			t.Errorf("%s: %d measures", params, n)
		}
	}
	if got := refusal(worldtest.Simple[struct {
		Count int `json:"count" range:"1-3"`
	}]{Kind: world.About{Name: "bad", Version: 1}}); !strings.Contains(got, `the bound "1-3"`) {
		t.Errorf("a wrong range: %q", got)
	}
}

// outsideOf is a kind whose params of these names are outside of play.
func outsideOf(names ...string) world.Kind { return world.Define(outsider{simple(), names}) }

type outsider struct {
	worldtest.Simple[coins]
	names []string
}

func (outsider) Actor(*coins, string) (world.Actor, error) { return nil, nil }
func (o outsider) Outside() []string                       { return o.names }

// TestIdentity: two plans differ in everything except params that are outside of play.
func TestIdentity(t *testing.T) {
	t.Parallel()
	k := outsideOf("servers", "pool")
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"env":"maze","servers":["x"],"pool":{"n":1}}`, `{"env":"maze","servers":["y","z"]}`, true},
		{`{"env":"maze"}`, `{"env":"word"}`, false},
		{`{"env":"maze","inner":{"servers":1}}`, `{"env":"maze","inner":{"servers":2}}`, false},
		{`no object`, `no object`, true},
	} {
		a, b := k.Identity(json.RawMessage(c.a)), k.Identity(json.RawMessage(c.b))
		if (string(a) == string(b)) != c.same {
			t.Errorf("%s and %s: %s and %s", c.a, c.b, a, b)
		}
	}
	if got := (world.Kind{}).Identity(json.RawMessage(`{"servers":1}`)); string(got) != `{"servers":1}` {
		t.Errorf("nothing is outside, and it is left out: %s", got)
	}
}
