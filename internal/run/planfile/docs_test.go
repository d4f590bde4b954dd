package planfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/internal/kit/yamltree"
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

func reference() string {
	var b strings.Builder
	b.WriteString("| key | what it holds | default | meaning |\n|---|---|---|---|\n")
	rows(&b, PlanShape(nil, mapShape("PARAM", anyShape())), "")
	return b.String()
}

func rows(b *strings.Builder, s *Shape, prefix string) {
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	for _, k := range s.Keys {
		preset := k.Default
		switch {
		case k.Required:
			preset = "needed"
		case preset == "":
			preset = "none"
		}
		name := prefix + k.Name
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, cell(holds(k)), cell(preset), cell(k.Doc))
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
