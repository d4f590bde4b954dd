package planfile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
	"parley/world"
	"parley/world/worldtest"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	return compiledFor(t, testKinds())
}

func compiledFor(t *testing.T, kinds []world.Kind) *jsonschema.Schema {
	t.Helper()
	b, err := Schema(kinds)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance reads a plan as plain YAML, knowing no key, as an editor does.
func instance(t *testing.T, src []byte) (any, bool) {
	t.Helper()
	rep := newPlanReport("plan.yaml", src)
	if len(rep.Errs) > 0 {
		return nil, false
	}
	root := parseYAML(rep)
	if root == nil {
		return nil, false
	}
	plain, _ := (&checker{report: rep}).Anything(root, nil)
	b, err := json.Marshal(plain)
	if err != nil {
		return nil, false
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	return v, err == nil
}

func TestSchemaAcceptsGoodPlans(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for _, file := range append(planFiles(t, "good"), goodRecords(t)...) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := instance(t, src)
		if !ok {
			t.Errorf("%s: not YAML", file)
		} else if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, k := range testKinds() {
		src := Init(k.Example)
		if v, ok := instance(t, src); !ok || s.Validate(v) != nil {
			t.Errorf("%s: its example does not validate", k.Name)
		}
		if _, err := Parse("plan.yaml", src, testKinds(), nil); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(string(src), "# yaml-language-server: $schema="+SchemaName+"\n") {
			t.Errorf("%s: the first line does not name the schema", k.Name)
		}
	}
}

func goodRecords(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "good", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What is wrong in form is wrong for the schema too: an editor shows it.
func TestSchemaRefusesBrokenPlans(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	formal := []string{"unknown key", "is missing: ", "wants a ", "wants one of", "wants true", "is empty", "cannot be combined with", "is an empty"}
	tried := 0
	for _, file := range planFiles(t, "broken") {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse("plan.yaml", src, testKinds(), nil)
		if err == nil || !slices.ContainsFunc(formal, func(f string) bool { return strings.Contains(err.Error(), f) }) {
			continue
		}
		v, ok := instance(t, src)
		// Only a kind knows that its seats need a lineup, what a preset brings, and that
		// until and repeat exclude each other.
		semantic := []string{"no-lineup.yaml", "provider-incomplete.yaml", "matrix-until-repeat.yaml", "set-removes-needed.yaml"}
		if !ok || slices.Contains(semantic, filepath.Base(file)) {
			continue
		}
		tried++
		if s.Validate(v) == nil {
			t.Errorf("%s: the schema accepts it, the decoder says:\n%v", file, err)
		}
	}
	if tried < 20 {
		t.Errorf("only %d plans were tried", tried)
	}
}

// timed are params that are times.
type timed struct {
	Free    world.Duration `json:"free"`
	Bounded world.Duration `json:"bounded" range:"1ms..24h"`
}

// TestSchemaDurations: the schema accepts the times that a plan can have.
func TestSchemaDurations(t *testing.T) {
	t.Parallel()
	kind := worldtest.Simple[timed]{Kind: world.About{Name: "timed", Version: 1}, Params: timed{0, world.Second}, Sits: []string{"player"}}
	kinds := []world.Kind{world.Define(kind)}
	s := compiledFor(t, kinds)
	for _, text := range []string{".5s", "5.s", "1.5h", "1h30m", "+5s", "0s", "0", "0.0m", "10us", "10µs", "10μs", "", "5", "-5s", ".s", "s", "5 s", "5d", "1h30", "++5s", "0h00.0m", "0m0.1s"} {
		for _, key := range []string{"params: {free: %q}", "params: {bounded: %q}", "retry: {unreachable: %q}", "batch: {deadline: %q}"} {
			src := "kind: timed\nagents: {a: sim/a}\n" + fmt.Sprintf(key, text) + "\n"
			if key == "params: {bounded: %q}" && strings.HasPrefix(text, "10") {
				continue // less than 1ms, which a pattern cannot say
			}
			_, err := Parse("plan.yaml", []byte(src), kinds, nil)
			v, ok := instance(t, []byte(src))
			if refused := s.Validate(v); !ok || (refused == nil) != (err == nil) {
				t.Errorf("%s: the schema says %v, the decoder %v", src, refused, err)
			}
		}
	}
}

// open has a range without its ends.
type open struct {
	Count int `json:"count" range:">2..<5"`
}

// TestSchemaOpenRange: the schema, the decoder and the kind agree on the ends of a range of whole numbers.
func TestSchemaOpenRange(t *testing.T) {
	t.Parallel()
	kind := worldtest.Simple[open]{Kind: world.About{Name: "open", Version: 1}, Params: open{3}, Sits: []string{"player"}}
	kinds := []world.Kind{world.Define(kind)}
	s := compiledFor(t, kinds)
	for n := range 8 {
		src := fmt.Sprintf("kind: open\nagents: {a: sim/a}\nparams: {count: %d}\n", n)
		_, err := Parse("plan.yaml", []byte(src), kinds, nil)
		v, _ := instance(t, []byte(src))
		params, readErr := kinds[0].Read(fmt.Appendf(nil, `{"count": %d}`, n))
		if readErr != nil {
			t.Fatal(readErr)
		}
		_, seatsErr := kinds[0].Seats(params)
		if good := n > 2 && n < 5; (err == nil) != good || (s.Validate(v) == nil) != good || (seatsErr == nil) != good {
			t.Errorf("%d: decoder %v, schema %v, kind %v", n, err, s.Validate(v), seatsErr)
		}
	}
}

// casting is a kind that names a model itself.
type casting struct{ worldtest.Simple[struct{}] }

func (casting) Models(*struct{}) map[string]string { return map[string]string{"player": "sim/small"} }

// TestSchemaAgentsByKind: a kind whose files may name the models needs no agents, and others
// do, as it is when a plan is read.
func TestSchemaAgentsByKind(t *testing.T) {
	t.Parallel()
	named := casting{solo()}
	named.Kind.Name = "named"
	kinds := append(testKinds(), world.Define(named))
	s := compiledFor(t, kinds)
	for src, want := range map[string]bool{
		"kind: named\n": true, "kind: named\nagents: {}\n": true, "kind: named\nagents: {a: sim/a}\n": true,
		"kind: solo\n": false, "kind: solo\nagents: {}\n": false, "kind: solo\nagents: {a: sim/a}\n": true,
	} {
		_, err := Parse("plan.yaml", []byte(src), kinds, nil)
		v, ok := instance(t, []byte(src))
		if !ok || (s.Validate(v) == nil) != want || (err == nil) != want {
			t.Errorf("%q: the schema says %v, the decoder %v", src, s.Validate(v), err)
		}
	}
}

// The schema has exactly the keys of the table, and each says what it is.
func TestSchemaKeys(t *testing.T) {
	t.Parallel()
	b, err := Schema(testKinds())
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	table := PlanShape([]string{"solo", "talk"}, mapShape("PARAM", anyShape()))
	sameKeys(t, nil, table, doc)
	for _, branch := range doc["allOf"].([]any) {
		name := branch.(map[string]any)["if"].(map[string]any)["properties"].(map[string]any)["kind"].(map[string]any)["const"]
		then := branch.(map[string]any)["then"].(map[string]any)["properties"].(map[string]any)
		for _, k := range testKinds() {
			if k.Name == name {
				sameKeys(t, yamltree.Path{"params"}, paramsShape(k), then["params"].(map[string]any))
			}
		}
	}
}

func sameKeys(t *testing.T, p yamltree.Path, s *Shape, schema map[string]any) {
	t.Helper()
	if forms, ok := schema["anyOf"].([]any); ok {
		schema = forms[1].(map[string]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) != len(s.Keys) {
		t.Errorf("%s: the schema has %d keys, the table %d", p, len(properties), len(s.Keys))
	}
	for _, k := range s.Keys {
		one, ok := properties[k.Name].(map[string]any)
		if !ok {
			t.Errorf("%s is not in the schema", p.To(k.Name))
			continue
		}
		if d, _ := one["description"].(string); k.Doc != "" && !strings.HasPrefix(d, k.Doc) {
			t.Errorf("%s: described as %q", p.To(k.Name), d)
		}
		sameKeys(t, p.To(k.Name), k.Shape, one)
	}
	switch {
	case s.Free != "" && s.Elem.Form != yamltree.Anything:
		sameKeys(t, p.To(s.Free), s.Elem, schema["additionalProperties"].(map[string]any))
	case s.Form == yamltree.List:
		sameKeys(t, p.To("[]"), s.Elem, schema["items"].(map[string]any))
	}
}

// The table has exactly the fields of the structs it is decoded into.
func TestTableMatchesStructs(t *testing.T) {
	t.Parallel()
	root := PlanShape(nil, mapShape("PARAM", anyShape()))
	for _, c := range []struct {
		name  string
		shape *Shape
		of    any
		not   []string
	}{
		{"root", root, decodedPlan{}, nil},
		{"plan", root.Key("plan").Shape, planSection{}, nil},
		{"matrix", root.Key("plan").Shape.Key("matrix").Shape, Matrix{}, nil},
		{"until", root.Key("plan").Shape.Key("until").Shape, planner.Until{}, nil},
		{"limits", root.Key("limits").Shape, settings.Limits{}, nil},
		{"agent", root.Key("agents").Shape.Elem, world.Agent{}, []string{"name"}},
		{"provider", root.Key("providers").Shape.Elem, provider.Provider{}, []string{"name"}},
		{"provider limits", root.Key("providers").Shape.Elem.Key("limits").Shape, provider.Limits{}, nil},
		{"capability", root.Key("providers").Shape.Elem.Key("capabilities").Shape.Elem, provider.Capability{}, nil},
		{"recorded", root, recorded{}, nil},
	} {
		var fields []string
		typ := reflect.TypeOf(c.of)
		for _, field := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.Anonymous && name != "-" && !slices.Contains(c.not, name) {
				fields = append(fields, name)
			}
		}
		names := c.shape.Names()
		slices.Sort(names)
		slices.Sort(fields)
		if !slices.Equal(names, fields) {
			t.Errorf("%s: the table has %v, the struct %v", c.name, names, fields)
		}
		for _, k := range c.shape.Keys {
			if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
				t.Errorf("%s.%s: doc %q", c.name, k.Name, k.Doc)
			}
		}
	}
}
