package planfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/worldtest"
	"parley/worlds"
)

// Every example is a plan, for the decoder and for the schema.
func TestExamples(t *testing.T) {
	t.Parallel()
	kinds := worlds.Standard()
	b, err := planfile.Schema(kinds)
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
	schema := c.MustCompile("plan.json")

	sources := map[string][]byte{}
	for _, k := range kinds {
		if len(k.ExampleFiles) == 0 { // one with files beside it is among the examples below
			sources["the example of "+k.Name] = planfile.Init(k.Example)
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plans, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*", "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, plans...)
	for _, file := range files {
		if sources[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, src := range sources {
		p, err := planfile.Parse(name, src, kinds, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(p.JSON())))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShownError: the reference shows the error of ExampleParse.
func TestShownError(t *testing.T) {
	t.Parallel()
	_, err := planfile.Parse("plan.yaml", []byte("kind: talk\nagents:\n  quiet: {model: sim/small, temprature: 0.7}\n"), []world.Kind{talkKind()}, nil)
	page, readErr := os.ReadFile("../../../docs/reference/plan-file.md")
	if readErr != nil || err == nil || !strings.Contains(string(page), "```\n"+err.Error()+"\n```") {
		t.Errorf("docs/reference/plan-file.md does not show this: %v, %v", err, readErr)
	}
}

func talkKind() world.Kind {
	return world.Define(worldtest.Simple[struct{}]{Kind: world.About{Name: "talk"}, Sits: []string{"first", "second"}})
}

func ExampleParse() {
	kind := talkKind()
	src := `kind: talk
agents:
  quiet: {model: sim/small, temprature: 0.7}
`
	_, err := planfile.Parse("plan.yaml", []byte(src), []world.Kind{kind}, nil)
	fmt.Println(err)
	// Output:
	// plan.yaml:3:29: agents.quiet.temprature: unknown key; did you mean temperature? allowed: model, bot, program, system, temperature, top_p, max_tokens, effort, tier, cached_content, seed, stop, fallbacks, trainable, tokens, deadline, fallback, tags
	//      3 |   quiet: {model: sim/small, temprature: 0.7}
	//        |                             ^
}
