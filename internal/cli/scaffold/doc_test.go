package scaffold

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guide is the document about writing a world, and what it shows.
func guide(t *testing.T) (doc string, files map[string][]byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash("../../../docs/how-to/writing-a-world.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err = Module{Path: DefaultPath("auction"), Package: "auction", Source: here(t)}.Files()
	if err != nil {
		t.Fatal(err)
	}
	return string(b), files
}

// TestGuideShowsTheModule: every Go block of the document is part of a file of the module, word by word, and every file is
// mentioned.
func TestGuideShowsTheModule(t *testing.T) {
	t.Parallel()
	doc, files := guide(t)
	source := ""
	for name, text := range files {
		if name != "README.md" && !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("the document does not mention %s", name)
		}
		source += string(text)
	}
	blocks := strings.Split(doc, "```go\n")
	if len(blocks) < 2 {
		t.Fatal("the document shows no Go")
	}
	for _, b := range blocks[1:] {
		if code, _, _ := strings.Cut(b, "```"); !strings.Contains(source, code) {
			t.Errorf("the document shows what is not in the module:\n%s", code)
		}
	}
}

// TestGuideCounts counts the lines that the document and README.md claim.
func TestGuideCounts(t *testing.T) {
	t.Parallel()
	doc, files := guide(t)
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "auction.go", files["auction.go"], 0)
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "Play" {
			rules = set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
		}
	}
	readme, err := os.ReadFile(filepath.FromSlash("../../../README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if claim := fmt.Sprintf("rules in %d lines of Go", rules); !strings.Contains(string(readme), claim) {
		t.Errorf("README.md does not say %q", claim)
	}
	claim := fmt.Sprintf("The rules are %d lines of Go, and the whole file is %d.", rules, strings.Count(string(files["auction.go"]), "\n"))
	if !strings.Contains(strings.Join(strings.Fields(doc), " "), claim) {
		t.Errorf("the document does not say %q", claim)
	}
}

// TestReferenceNamesEveryPart compares the table of interfaces with those of the code, in their order.
func TestReferenceNamesEveryPart(t *testing.T) {
	t.Parallel()
	want := append(interfaces(t, "../../../world/kind.go", ""), interfaces(t, "../../../world/part/part.go", "part.")...)
	doc, err := os.ReadFile(filepath.FromSlash("../../../docs/reference/kind-parts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "| interface | methods | for |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| (`.*`) \\| \\S.* \\|$").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table lists\n%s\nthe code has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// interfaces returns the interfaces of a file with their methods, as rows of a table.
func interfaces(t *testing.T, file, prefix string) (rows []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok {
			var methods []string
			for _, m := range i.Methods.List {
				methods = append(methods, "`"+m.Names[0].Name+"`")
			}
			rows = append(rows, "`"+prefix+s.Name.Name+"` | "+strings.Join(methods, ", "))
		}
		return true
	})
	return rows
}
