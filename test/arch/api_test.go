package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// exportData returns the compiler's export data of the module's packages and all that they need: import path to file.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	files := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
}

// TestNothingInternalIsShown wants the exported API of every public package to be usable from another module: no
// type in it is of a package under internal/, under no name.
func TestNothingInternalIsShown(t *testing.T) {
	t.Parallel()
	files := exportData(t)
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(files[path])
	})
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if isInternal(p.ImportPath) || under(p.path(), "cmd") {
			continue
		}
		pkg, err := load.Import(p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		for at, what := range shown(pkg, p.Module.Path) {
			if at = strings.TrimPrefix(at, p.Module.Path+"/"); shows[at] == "" {
				t.Errorf("%s shows %s, which no other module can name", at, what)
			}
			seen[at] = true
		}
	}
	for at := range shows {
		if !seen[at] {
			t.Errorf("exceptions_test.go: %s: it shows nothing internal any more", at)
		}
	}
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

// shown returns what exported names of a package show of packages under internal/ of its module, by name.
func shown(pkg *types.Package, module string) map[string]string {
	w := &walker{pkg: pkg, module: module, seen: map[types.Type]bool{}, found: map[string]string{}}
	for _, name := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(name); o.Exported() {
			w.at = pkg.Path() + "." + name
			w.walk(o.Type())
		}
	}
	return w.found
}

// walker walks the types that somebody reaches who imports a package. Those of other public packages are looked at
// there.
type walker struct {
	pkg    *types.Package
	module string
	at     string
	seen   map[types.Type]bool
	found  map[string]string
}

func (w *walker) walk(t types.Type) {
	if t == nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		w.named(t.Obj())
		w.walk(types.Unalias(t))
	case *types.Named:
		w.named(t.Obj())
		for a := range t.TypeArgs().Types() {
			w.walk(a)
		}
		if t.Obj().Pkg() != w.pkg {
			return
		}
		at := w.at
		for m := range t.Methods() {
			if m.Exported() {
				w.at = at + "." + m.Name()
				w.walk(m.Type())
			}
		}
		w.at = at
		w.walk(t.Underlying())
	case *types.Struct:
		at := w.at
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				w.at = at + "." + f.Name()
				w.walk(f.Type())
			}
		}
		w.at = at
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			w.walk(m.Type())
		}
		for e := range t.EmbeddedTypes() {
			w.walk(e)
		}
	case *types.Union:
		for term := range t.Terms() {
			w.walk(term.Type())
		}
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			w.walk(p)
		}
		w.walk(t.Params())
		w.walk(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			w.walk(v.Type())
		}
	case *types.Map:
		w.walk(t.Key())
		w.walk(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.walk(t.Elem())
	case *types.TypeParam:
		w.walk(t.Constraint())
	}
}

// named notes a name that is of a package under internal/ of this module.
func (w *walker) named(o *types.TypeName) {
	if p := o.Pkg(); p != nil && isInternal(p.Path()) && strings.HasPrefix(p.Path(), w.module+"/") {
		w.found[w.at] = p.Path() + "." + o.Name()
	}
}
