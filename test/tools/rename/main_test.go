package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files is a tree with the module's path, written PATH, wherever it can occur, and with texts that only look like it.
func files() map[string]string {
	return map[string]string{
		"go.mod":                        "module PATH\n\ngo 1.26.0\n",
		"root.go":                       "package parley\n\nimport \"PATH/llm\"\n\nvar _ = llm.X\n",
		"llm/llm.go":                    "package llm\n\n// X is of PATH/llm.\nconst X = \"parley\"\n\nfunc name() string {\n\treturn \"parley\"\n}\n",
		"cmd/p/main.go":                 "package main\n\nimport (\n\t\"fmt\"\n\n\t\"PATH\"\n\tother \"PATH\"\n\t\"PATH/llm\"\n)\n",
		"cmd/p/new.go":                  "package main\n\nconst text = `module {{.}}\n\nrequire PATH v0.0.0\n\nreplace PATH => ../..\n`\n",
		"oracle/go.mod":                 "module PATH/oracle\n\nrequire (\n\tx.example/y v1.0.0\n\tPATH v0.0.0\n)\n\nreplace PATH => ..\n",
		"oracle/bench.go":               "package oracle\n\nimport \"PATH/llm\"\n\nvar names = []string{\"parley\", \"plain\"}\n",
		"examples/a/go.mod":             "module example/a\n\nrequire PATH v0.0.0\n\nreplace PATH => ../..\n",
		"examples/a/README.md":          "Name it: `go mod edit -replace PATH=DIR`.\n\n    go run ./cmd/parley run a.yaml\n",
		"examples/a/cmd/parley/m.go":    "// Command parley is parley.\npackage main\n\nimport (\n\t\"PATH\"\n\t\"PATH/llm\"\n)\n\nfunc main() { parley.Main(llm.X) }\n",
		"internal/s/template/m.tmpl":    "// Command parley is parley with [[.Package]].\npackage main\n\nimport (\n\t\"PATH\"\n\t\"PATH/llm\"\n\t[[.Import]]\n)\n",
		"internal/s/template/w.go.tmpl": "package [[.Package]]\n\nimport (\n\t\"fmt\"\n\n\t\"PATH/llm\"\n)\n",
		".golangci.yml":                 "goimports:\n  local-prefixes: [PATH]\n",
		"docs/a.md":                     "Run `parley run` or `./cmd/parley`. Import `PATH/llm`; see parley/trusted.jsonl.\n\n    go get PATH@latest\n    go doc PATH\n\n```go\nimport \"PATH\"\n```\n",
		"docs/a.golden":                 "   \"parley\"\nPATH/llm.X()\nexample.com/parley/llm\n",
		"picture.bin":                   "\x00parley/llm",
		"llm/bad.go":                    "package llm\n\nimport \"PATH/llm\" }\n",
	}
}

// tree writes the files with a module's path, and returns the folder.
func tree(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "PATH", module)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compare checks that the files of dir are those of a module with the path.
func compare(t *testing.T, dir, module string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files())) {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(files()[name], "PATH", module); string(got) != want {
			t.Errorf("%s of %s:\n%s\nwant\n%s", name, module, got, want)
		}
	}
}

// TestRename renames a tree twice and back, and compares each result with a tree written with that path.
func TestRename(t *testing.T) {
	t.Parallel()
	at := "parley"
	dir := tree(t, at)
	for _, to := range []string{"github.com/you/parley", "parley.example/v2", "example.com/a$1b", "parley"} {
		old, n, err := rename(dir, to)
		if strings.Contains(to, "$") {
			if err == nil || !strings.Contains(err.Error(), "not a module path") {
				t.Errorf("%s: %v", to, err)
			}
			continue
		}
		if err != nil || old != at || n != len(files())-1 {
			t.Fatalf("to %s: from %s, %d files, %v", to, old, n, err)
		}
		compare(t, dir, to)
		at = to
	}
}

// TestRefusals checks that a rename that is refused changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := tree(t, "parley")
	for _, bad := range []string{"", "parley", "/x", "x/", "a//b", "a b", "../x", "https://github.com/you/parley", "é.example/x"} {
		if _, _, err := rename(dir, bad); err == nil || !strings.HasPrefix(err.Error(), "rename: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	compare(t, dir, "parley")
	if _, _, err := rename(t.TempDir(), "example.com/x"); err == nil || !strings.Contains(err.Error(), "top of the tree") {
		t.Errorf("an empty folder: %v", err)
	}
}
