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
// compiled and run, or a program whose main is one.
func TestDocsAreExamples(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]bool{}
	for _, body := range bodies(t, string(src)) {
		examples[body] = true
	}
	for _, doc := range []string{"docs/how-to/library.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```go\n")
		for _, part := range parts[1:] {
			code, _, _ := strings.Cut(part, "```")
			if strings.HasPrefix(code, "package main\n") {
				code = bodies(t, code)["main"]
			}
			if !examples[code] {
				t.Errorf("%s: this is not the body of an Example in example_test.go:\n%s", doc, code)
			}
		}
		if len(parts) < 2 {
			t.Errorf("%s shows no Go", doc)
		}
	}
}

// bodies returns what the functions of a file do, by their names, without the output of an Example.
func bodies(t *testing.T, src string) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			body, _, _ := strings.Cut(src[fset.Position(f.Body.Lbrace).Offset+2:fset.Position(f.Body.Rbrace).Offset], "\t// Output:")
			all[f.Name.Name] = strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n")
		}
	}
	return all
}
