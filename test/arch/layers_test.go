package arch

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is a package as ARCHITECTURE.md lists it: | 3 | `internal/ask/price` | what it is for |.
type row struct {
	layer  int
	path   string
	module bool // a nested one, without a layer
}

var rowRE = regexp.MustCompile("(?m)^\\| (\\d+|module) \\| `([^`]+)` \\| \\S.* \\|$")

// tree reads the table of packages.
func tree(t *testing.T) []row {
	t.Helper()
	var rows []row
	for _, m := range rowRE.FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1) {
		layer, _ := strconv.Atoi(m[1])
		rows = append(rows, row{layer, m[2], m[1] == "module"})
	}
	if len(rows) == 0 {
		t.Fatal("ARCHITECTURE.md has no table of packages")
	}
	return rows
}

// TestArchitectureNamesThePackages keeps the map equal to the land.
func TestArchitectureNamesThePackages(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, r := range tree(t) {
		if named[r.path] {
			t.Errorf("ARCHITECTURE.md names %s twice", r.path)
		}
		named[r.path] = true
		if _, err := os.Stat(filepath.Join(root, r.path)); err != nil && r.path != "parley" { // the root itself
			t.Errorf("ARCHITECTURE.md names %s, which is not there", r.path)
		}
		if r.module {
			if _, err := os.Stat(filepath.Join(root, r.path, "go.mod")); err != nil {
				t.Errorf("ARCHITECTURE.md calls %s a module; it has no go.mod", r.path)
			}
		}
	}
	for _, p := range packages(t) {
		if !named[p.path()] {
			t.Errorf("ARCHITECTURE.md does not name %s: add it to the table, with its layer", p.path())
		}
	}
}

// TestImportsGoDown holds the layers: a package imports only from lower ones.
func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	layer := map[string]int{}
	for _, r := range tree(t) {
		layer[r.path] = r.layer
	}
	for _, p := range packages(t) {
		for _, in := range p.inside() {
			if layer[in] < layer[p.path()] || sideways[p.path()+" -> "+in] != "" {
				continue
			}
			t.Errorf("%s (layer %d) imports %s (layer %d): imports go down only", p.path(), layer[p.path()], in, layer[in])
		}
	}
}

// TestStrangers holds rules between packages that the order of layers alone does not.
func TestStrangers(t *testing.T) {
	t.Parallel()
	never := []struct{ who, not, why string }{
		{"internal/ask/dispatch", "internal/ask/dialect", "dispatch knows llm.Model, no wire format"},
		{"internal/ask/dialect", "internal/ask/dispatch", "a dialect answers one request; who paces it is not its business"},
		{"internal/ask/dialect", "worlds", "worlds bring their stand-ins: the simulated provider knows none of them"},
		{"internal/run/results", "internal/serve", "what a gateway records is a kind like any other to readers"},
		{"internal/read/report", "internal/serve", "what a gateway records is a kind like any other to readers"},
		{"internal/read/export", "internal/serve", "what a gateway records is a kind like any other to readers"},
		{"", "test/arch", "arch is tests only"},
		{"", "cmd", "a program is imported by nobody"},
	}
	only := map[string][]string{
		"internal/cli/app": {"internal/cli", "internal/cli", "parley"},
		"internal/cli":     {"parley"},
	}
	for _, p := range packages(t) {
		for _, in := range p.inside() {
			for _, r := range never {
				if under(p.path(), r.who) && under(in, r.not) {
					t.Errorf("%s imports %s: %s", p.path(), in, r.why)
				}
			}
			if who, ok := only[in]; ok && !slices.Contains(who, p.path()) {
				t.Errorf("%s imports %s: only %v may", p.path(), in, who)
			}
		}
	}
}

// under says whether path is dir or inside it. Everything is under "".
func under(path, dir string) bool {
	return dir == "" || path == dir || strings.HasPrefix(path, dir+"/")
}

// TestWordsArePure proves that the vocabulary opens nothing, reads no clock and
// depends on nothing but the standard library.
func TestWordsArePure(t *testing.T) {
	t.Parallel()
	impure := []string{"os", "net", "syscall", "io/ioutil", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "plugin", "unsafe", "C"}
	for _, p := range packages(t) {
		if p.path() != "llm" {
			continue
		}
		for _, i := range p.Imports {
			first, _, _ := strings.Cut(i, "/")
			if slices.Contains(impure, i) || slices.Contains(impure, first) || strings.Contains(first, ".") || strings.HasPrefix(i, p.Module.Path+"/") {
				t.Errorf("%s imports %s: its types are plain words", p.path(), i)
			}
		}
	}
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	for _, s := range sources(t) {
		if s.test || filepath.ToSlash(filepath.Dir(s.path)) != "llm" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
				t.Errorf("%s:%d: time.%s: its types read no clock", s.path, s.line(n.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}

var goroutineRE = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)`: ")

// TestGoroutinesAreListed wants every package that starts goroutines in the table of
// goroutines, and no other.
func TestGoroutinesAreListed(t *testing.T) {
	t.Parallel()
	starts, listed := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		dir := path.Dir(s.path)
		if dir == "." {
			dir = "parley" // as the table calls it
		}
		if !s.test && !under(dir, "oracle") {
			starts[dir] = starts[dir] || startsGoroutine(s.file)
		}
	}
	_, table, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "## Goroutines")
	for _, m := range goroutineRE.FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
		if !starts[m[1]] {
			t.Errorf("ARCHITECTURE.md lists a goroutine of %s, which starts none", m[1])
		}
	}
	for dir, yes := range starts {
		if yes && !listed[dir] {
			t.Errorf("%s starts goroutines: say in ARCHITECTURE.md who waits for them", dir)
		}
	}
}

// startsGoroutine looks for go statements, WaitGroup.Go and AfterFunc.
func startsGoroutine(f *ast.File) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Go" || sel.Sel.Name == "AfterFunc") {
				found = true
			}
		}
		return !found
	})
	return found
}

// TestNoExceptionIsIdle keeps the list of exceptions from outliving its reasons.
func TestNoExceptionIsIdle(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, in := range p.inside() {
			used[p.path()+" -> "+in] = true
		}
	}
	for edge := range sideways {
		if !used[edge] {
			t.Errorf("exceptions_test.go: %s: nobody imports this way any more", edge)
		}
	}
	if n := len(sideways); n > 8 {
		t.Error(fmt.Sprint(n, " exceptions to the layers: give them layers instead"))
	}
}
