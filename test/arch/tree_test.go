package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the project's top folder, seen from this package's.
const root = "../.."

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string   `json:"ImportPath"`
	Imports    []string `json:"Imports"`
	Module     struct {
		Path string `json:"Path"`
	} `json:"Module"`
}

// path is the import path without the module. The package in the top folder is parley, whatever the module's path.
func (p goPackage) path() string {
	if p.ImportPath == p.Module.Path {
		return "parley"
	}
	return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
}

// inside returns the packages of this module that p imports, without the module.
func (p goPackage) inside() []string {
	var in []string
	for _, i := range p.Imports {
		if i == p.Module.Path || strings.HasPrefix(i, p.Module.Path+"/") {
			in = append(in, goPackage{ImportPath: i, Module: p.Module}.path())
		}
	}
	return in
}

var listOnce = sync.OnceValues(func() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Module", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

// packages lists the packages of the module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// source is a parsed Go file.
type source struct {
	path string // from the top folder, with slashes
	test bool
	fset *token.FileSet
	file *ast.File
}

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

var sourcesOnce = sync.OnceValues(func() ([]source, error) {
	var all []source
	err := walk(func(path string, text []byte) error {
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{
			path: path, test: strings.HasSuffix(path, "_test.go"), fset: fset, file: f,
		})
		return nil
	})
	return all, err
})

// sources lists the Go files of the project, those of nested modules included.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := sourcesOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// walk visits the files that belong to the project: neither git's nor what is built.
func walk(visit func(path string, text []byte) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains([]string{".git", "dist"}, rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || slices.Contains([]string{".git", "parley", "parley.exe"}, rel) ||
			strings.HasSuffix(rel, ".test") || strings.HasSuffix(rel, ".prof") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return visit(rel, text)
	})
}

// read returns the text of a file of the project.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
