package arch

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// districts lists the folders of the tree in the order in which they may import: a package imports its own district and those before it.
// Packages outside them are bound by other rules: worlds by TestWorldsArePublic, and nobody imports cmd and test.
var districts = [][]string{
	{"stats"},
	{"internal/kit"},
	{"llm", "world", "journal"},
	{"internal/ask"},
	{"internal/run"},
	{"internal/read"},
	{"internal/serve"},
	{"internal/cli"},
	{"parley"},
}

// district returns the place of a package among the districts, or -1. The suites of tests that authors of models, worlds and journals
// use are outside: they check what they check with parts of any district.
func district(pkg string) int {
	if strings.HasSuffix(pkg, "test") {
		return -1
	}
	return slices.IndexFunc(districts, func(folders []string) bool {
		return slices.ContainsFunc(folders, func(dir string) bool { return under(pkg, dir) })
	})
}

// TestImportsGoDown wants imports to go down the districts, and every package to be in one or to be outside on purpose.
func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		own := district(p.path())
		if own < 0 {
			if under(p.path(), "internal") && !strings.HasSuffix(p.path(), "test") {
				t.Errorf("%s is in no district: put it into one of %v", p.path(), districts)
			}
			continue
		}
		for _, in := range p.inside() {
			switch other := district(in); {
			case p.path() == "parley" && in == "worlds": // the kinds that come with it
			case other < 0:
				t.Errorf("%s imports %s, which is not for it", p.path(), in)
			case other > own:
				t.Errorf("%s imports %s: imports go down the districts, from %v to %v", p.path(), in, districts[own], districts[other])
			}
		}
	}
}

// TestStrangers holds rules between packages that the order of districts alone does not.
func TestStrangers(t *testing.T) {
	t.Parallel()
	never := []struct{ who, not, why string }{
		{"internal/ask/dispatch", "internal/ask/dialect", "dispatch knows llm.Model, no wire format"},
		{"internal/ask/dialect", "internal/ask/dispatch", "a dialect answers one request; who paces it is not its business"},
		{"", "test", "what checks the project is imported by nobody"},
		{"", "cmd", "a program is imported by nobody"},
	}
	only := map[string][]string{
		"internal/cli/app": {"internal/cli", "parley"},
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
