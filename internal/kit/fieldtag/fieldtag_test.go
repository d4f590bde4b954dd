package fieldtag_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/fieldtag"
)

type mode string

type inner struct {
	Rate float64 `json:"rate" range:"0..1"`
}

type base struct {
	Shared int `json:"shared" range:"1..9"`
}

type settings struct {
	base
	*inner
	Count    int                `json:"count" range:"2..20"`
	Free     int                `json:"free"`
	Small    uint8              `json:"small" range:"1..1099511627776"`
	Width    float64            `json:"width" range:">0"`
	Share    float64            `json:"share" range:">0..<1"`
	Pause    time.Duration      `json:"pause" range:"1ms..24h"`
	Mode     mode               `json:"mode" oneof:",calm,bold"`
	Name     string             `json:"name,omitempty" filled:"true"`
	Set      *int               `json:"set,omitempty" range:"4..8"`
	Parts    []string           `json:"parts" filled:"true" oneof:"a,b"`
	Steps    [2]int             `json:"steps" range:"1..8"`
	Weights  map[string]float64 `json:"weights" range:"0..10"`
	Places   map[string][]inner `json:"places"`
	Given    inner              `json:"given,omitzero"`
	Within   *settings          `json:"within"`
	Hidden   int                `json:"-" range:"5..6"`
	internal int                `range:"5..6"`
	Unnamed  int                `range:"0"`
}

func good() settings {
	return settings{base: base{1}, Count: 2, Small: 1, Width: 1e300, Share: 0.5, Pause: time.Second, Steps: [2]int{1, 8}}
}

// TestCheck: every value that breaks a rule is found, wherever it is, and no other.
func TestCheck(t *testing.T) {
	t.Parallel()
	five, three := 5, 3
	for want, change := range map[string]func(s *settings){
		"": func(s *settings) {
			s.Mode, s.Name, s.Set, s.Parts, s.Weights, s.inner = "calm", "x", &five, []string{"a", "b"}, map[string]float64{"x": 10}, &inner{1}
			s.internal, s.Hidden = 1, 1
		},
		"count: wants 2 to 20, found 1":                                          func(s *settings) { s.Count = 1 },
		"shared: wants 1 to 9, found 10":                                         func(s *settings) { s.Shared = 10 },
		"rate: wants 0 to 1, found 2":                                            func(s *settings) { s.inner = &inner{2} },
		"small: wants at least 1, found 0":                                       func(s *settings) { s.Small = 0 },
		"width: wants more than 0, found 0":                                      func(s *settings) { s.Width = 0 },
		"width: wants more than 0, found NaN":                                    func(s *settings) { s.Width = math.NaN() },
		"width: wants more than 0, found +Inf":                                   func(s *settings) { s.Width = math.Inf(1) },
		"share: wants more than 0 and less than 1, found 1":                      func(s *settings) { s.Share = 1 },
		"pause: wants 1ms to 24h, found 25h0m0s":                                 func(s *settings) { s.Pause = 25 * time.Hour },
		`mode: wants one of calm, bold, found "clam"; did you mean calm?`:        func(s *settings) { s.Mode = "clam" },
		"set: wants 4 to 8, found 3":                                             func(s *settings) { s.Set = &three },
		"parts[1]: is empty: want a text":                                        func(s *settings) { s.Parts = []string{"a", ""} },
		"steps[1]: wants 1 to 8, found 9":                                        func(s *settings) { s.Steps[1] = 9 },
		"weights.x: wants 0 to 10, found -1\nweights.z: wants 0 to 10, found 11": func(s *settings) { s.Weights = map[string]float64{"z": 11, "y": 0, "x": -1} },
		`places."my room"[1].rate: wants 0 to 1, found 7`:                        func(s *settings) { s.Places = map[string][]inner{"my room": {{1}, {7}}} },
		"given.rate: wants 0 to 1, found -1":                                     func(s *settings) { s.Given.Rate = -1 },
		"Unnamed: wants at least 0, found -1":                                    func(s *settings) { s.Unnamed = -1 },
		"within.within.count: wants 2 to 20, found 0": func(s *settings) {
			once, twice := good(), good()
			twice.Count = 0
			once.Within, s.Within = &twice, &once
		},
	} {
		s := good()
		change(&s)
		for _, v := range []any{s, &s} {
			var got []string
			for _, f := range fieldtag.Check(v) {
				got = append(got, f.String())
			}
			if strings.Join(got, "\n") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	if f := fieldtag.Check(&settings{Places: map[string][]inner{"a.b": {{7}}}}); !slices.ContainsFunc(f, func(f fieldtag.Fault) bool { return slices.Equal(f.Path, []string{"places", "a.b", "[0]", "rate"}) }) {
		t.Errorf("%v", f)
	}
}

// TestNoRules: types without rules have none, whatever is in them.
func TestNoRules(t *testing.T) {
	t.Parallel()
	type tree struct {
		Left, Right *tree
		Text        map[string]any
	}
	for _, v := range []any{tree{Left: &tree{}, Text: map[string]any{"x": 1}}, struct{}{}, 1, map[string]int{"a": 1}, []any{nil, 1}, (*settings)(nil)} {
		if f := fieldtag.Check(v); f != nil {
			t.Errorf("%v: %v", v, f)
		}
	}
	var none *fieldtag.Rules
	if f := none.Check(settings{}); f != nil {
		t.Error(f)
	}
}

// TestBadRange: a range that cannot be read is found when rules are made.
func TestBadRange(t *testing.T) {
	t.Parallel()
	for _, bounds := range []string{"1-20", "1..x", "..5", "a lot", ">"} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "want a range such as") {
					t.Errorf("%s: %v", bounds, v)
				}
			}()
			fieldtag.Of(reflect.StructTag(`range:"` + bounds + `"`))
		}()
	}
}
