package worldtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Imports checks that the package in dir, and those in folders below it, import and do nothing impure. Allowed imports
// are parley/world, its packages program and worldsim, parley/llm, packages below dir, github.com/goccy/go-yaml, and packages of
// the standard library that read no clock, open nothing and draw no chance. Go statements, channels, printing, and the global functions of
// math/rand/v2 are refused.
//
// Package main is not checked: no package can import it.
//
// It reads only the source. Exercise finds what depends on the order of a map.
func Imports(t testing.TB, dir string) {
	t.Helper()
	e := exercise{Options: Options{Dir: dir}}
	for _, err := range e.imports() {
		t.Error(err)
	}
}

// imports returns the errors in the kind's package.
func (e *exercise) imports() (bad []error) {
	problems, err := impurities(e.Dir)
	if err != nil {
		return []error{fmt.Errorf("worldtest: imports: %w", err)}
	}
	for _, p := range problems {
		bad = append(bad, errors.New(p))
	}
	return bad
}

// pure lists the packages of the standard library that a world may import.
func pure() []string {
	return []string{
		"bufio", "bytes", "cmp", "container/heap", "container/list", "container/ring", "context", "crypto/sha256", "embed", "encoding/base64",
		"encoding/binary", "encoding/csv", "encoding/hex", "encoding/json", "encoding/xml", "errors", "fmt", "hash/crc32", "hash/fnv", "html", "io",
		"iter", "maps", "math", "math/big", "math/bits", "math/cmplx", "math/rand/v2", "path", "regexp", "regexp/syntax", "slices", "sort",
		"strconv", "strings", "text/template", "unicode", "unicode/utf16", "unicode/utf8",
	}
}

// drawn lists the names of math/rand/v2 that a world may use: those that take a seed, and types.
func drawn() []string {
	return []string{"ChaCha8", "New", "NewChaCha8", "NewPCG", "NewZipf", "PCG", "Rand", "Source", "Zipf"}
}

// impurities returns the errors in the packages in and below dir.
func impurities(dir string) ([]string, error) {
	own, err := importPath(dir)
	if err != nil {
		return nil, err
	}
	var problems []string
	files, programs := 0, 0
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != dir && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if f.Name.Name == "main" {
			programs++
			return nil
		}
		files++
		problems = append(problems, impure(set, f, own)...)
		return nil
	})
	switch {
	case err != nil || files > 0:
	case programs > 0:
		err = fmt.Errorf("only package main is in %s, and programs are not checked: move the kind to a package of its own", dir)
	default:
		err = fmt.Errorf("no Go files in %s", dir)
	}
	return problems, err
}

// importPath returns the import path of dir, from the go.mod above it.
func importPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		b, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil {
			rel, err := filepath.Rel(at, abs)
			if err != nil {
				return "", err
			}
			for line := range strings.Lines(string(b)) {
				if module, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
					return path.Join(strings.Trim(strings.TrimSpace(module), `"`), filepath.ToSlash(rel)), nil
				}
			}
			return "", errors.New("the go.mod names no module")
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is in no module: there is no go.mod above it", dir)
		}
	}
}

// impure returns the errors in one file of the package own, or of one below it.
func impure(set *token.FileSet, f *ast.File, own string) (problems []string) {
	say := func(at token.Pos, format string, args ...any) {
		problems = append(problems, set.Position(at).String()+": "+fmt.Sprintf(format, args...))
	}
	names := map[string]string{} // of imports in this file, to their paths
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p))
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
		ours := slices.Contains([]string{"parley/world", "parley/world/exhibit", "parley/world/part", "parley/world/program", "parley/world/rubric", "parley/world/worldsim", "parley/llm", "parley/stats", "github.com/goccy/go-yaml"}, p) || strings.HasPrefix(p, own+"/")
		if !ours && !slices.Contains(pure(), p) {
			say(i.Pos(), "imports %s: a world may import parley/world and its packages exhibit, part and rubric, parley/llm, parley/stats, packages of its own, github.com/goccy/go-yaml, and pure ones of the standard library", p)
		}
		if name == "." {
			say(i.Pos(), "imports %s as a dot: what is used of it cannot be seen", p)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n.Pos(), "a go statement: a world starts no goroutine; use Table.Fork")
		case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			say(n.Pos(), "a channel: a world waits only for its table")
		case *ast.SelectorExpr:
			if why := impureUse(names, n); why != "" {
				say(n.Pos(), "%s", why)
			}
		}
		return true
	})
	return problems
}

// impureUse returns the error in a use of an allowed package, or "".
func impureUse(names map[string]string, n *ast.SelectorExpr) string {
	what := n.Sel.Name
	if what == "ParseFiles" || what == "ParseGlob" {
		return what + ": a world reads no files; its kind's loader does before play"
	}
	x, ok := n.X.(*ast.Ident)
	if !ok {
		return ""
	}
	switch p := names[x.Name]; {
	case p == "math/rand/v2" && !slices.Contains(drawn(), what):
		return "rand." + what + ": a world draws from Table.Rand only"
	case p == "fmt" && (strings.HasPrefix(what, "Print") || strings.HasPrefix(what, "Scan")):
		return "fmt." + what + ": a world speaks through its table"
	}
	return ""
}
