package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestDocsAreExamples wants every piece of Go in the documents about the library to be the body of an Example, which is
// compiled and run.
func TestDocsAreExamples(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "example_test.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		body, _, _ := strings.Cut(string(src[fset.Position(f.Body.Lbrace).Offset+2:fset.Position(f.Body.Rbrace).Offset]), "\t// Output:")
		bodies[strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n")] = true
	}
	for _, doc := range []string{"README.md", "docs/library.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```go\n")
		for _, part := range parts[1:] {
			code, _, _ := strings.Cut(part, "```")
			if !bodies[code] {
				t.Errorf("%s: this is not the body of an Example in example_test.go:\n%s", doc, code)
			}
		}
		if len(parts) < 2 {
			t.Errorf("%s shows no Go", doc)
		}
	}
}
