package planfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/internal/kit/yamltree"
	"parley/world"
	"parley/world/part"
	"parley/worlds"
)

const (
	keysBegin = "<!-- keys -->\n"
	keysEnd   = "<!-- end of keys -->\n"
)

// The reference has a row for every key of the table, with its default and meaning, and
// no other. -update writes the rows.
func TestReference(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "..", "docs", "reference", "plan-file.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), keysBegin)
	_, tail, ok2 := strings.Cut(rest, keysEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: the marks around the keys are missing", file)
	}
	testkit.Compare(t, file, head+keysBegin+reference()+keysEnd+tail)
}

// The plans that the text shows are plans, except for their kind.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "plan-file.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(b), "```yaml\n")[1:] {
		src, _, _ := strings.Cut(block, "```")
		if strings.HasPrefix(src, "plan:") {
			src = "kind: talk\nagents: {a: sim/a, b: sim/b, c: sim/c}\nlineup: {first: a, second: b}\n" + src
			leave := ", c: sim/c" // nobody seats it
			if strings.Contains(src, "matrix") {
				leave = "lineup: {first: a, second: b}\n" // the matrix does
			}
			src = strings.Replace(src, leave, "", 1)
		}
		if _, err := Parse(fmt.Sprintf("block %d", i+1), []byte(strings.Replace(src, "secrets", "talk", 1)), testKinds(), nil); err != nil {
			t.Error(err)
		}
	}
}

// short leaves out of the table what errors need: articles, and what a mapping is.
var short = strings.NewReplacer("a mapping (key: value)", "keys", "a mapping: ", "", " to a ", " to ", "a list: each a ", "list of ", "a list: each ", "list of ")

func reference() string {
	var b strings.Builder
	b.WriteString("| key | what it holds | default | meaning |\n|---|---|---|---|\n")
	rows(&b, PlanShape(nil, mapShape("PARAM", anyShape())), "")
	return b.String()
}

func rows(b *strings.Builder, s *Shape, prefix string) {
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	for _, k := range s.Keys {
		if k.Doc == "" { // nobody writes it
			continue
		}
		preset := k.Default
		switch {
		case k.Required:
			preset = "needed"
		case preset == "none", preset == "false", strings.HasPrefix(preset, "{"), preset == "[]": // as the page says
			preset = ""
		}
		name := prefix + k.Name
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, cell(strings.TrimPrefix(short.Replace(holds(k)), "a ")), cell(preset), cell(k.Doc))
		rows(b, k.Shape, name+".")
	}
	switch {
	case s.Free != "":
		rows(b, s.Elem, prefix+s.Free+".")
	case s.Form == yamltree.List:
		rows(b, s.Elem, strings.TrimSuffix(prefix, ".")+"[].")
	}
}

// holds describes the value of a key.
func holds(k Key) string {
	switch s := k.Shape; {
	case k.Name == "kind":
		return "the name of a kind"
	case s.Form == yamltree.List && s.Elem.Form != yamltree.Mapping && s.Elem.Form != yamltree.Anything:
		return "a list: each " + s.Elem.Describe()
	case s.Form == yamltree.Mapping && s.Free != "" && s.Elem.Form != yamltree.Mapping:
		return "a mapping: each " + s.Free + " to " + s.Elem.Describe()
	default:
		return s.Describe()
	}
}

// TestWorldsReference: the reference of the worlds has a row for every param, and every column of their tables. -update writes it.
func TestWorldsReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The params and tables of the worlds\n\nEvery key of `params` in a plan of each kind, and the tables that [`parley export\n--table`](../how-to/export.md#tables-of-kinds) writes, with `run`, `episode`, `cell` and `deal` in front. The\n[pages of the worlds](../README.md) explain them. `NAME` stands for names of yours, and `[]` for each item of a list.\n")
	for _, k := range worlds.Standard() {
		fmt.Fprintf(&b, "\n## %s\n\n| param | what it holds | default | meaning |\n|---|---|---|---|\n", k.Name)
		rows(&b, paramsShape(k), "")
		maker, ok := world.As[part.Tabulator](k)
		if !ok {
			continue
		}
		for _, table := range maker.Tables() {
			fmt.Fprintf(&b, "\n### Table `%s`: %s\n\n| column | type | is |\n|---|---|---|\n", table.Name, table.Doc)
			for _, c := range table.Columns {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Type, c.Doc)
			}
		}
	}
	testkit.Compare(t, filepath.Join("..", "..", "..", "docs", "reference", "worlds.md"), b.String())
}
