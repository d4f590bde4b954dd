// Package scaffold makes a small Go module with a new world: the world and its kind, a test, a plan, and a program that
// plays it.
//
// What it promises: the module builds, passes its tests and plays without changes. It is written completely or not at
// all. The files of examples/auction are its result for that name; a test checks this.
//
// For plan files of existing kinds, use planfile.Init.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed template
var templates embed.FS

// Module is a module to write.
type Module struct {
	// Path is its import path.
	Path string
	// Package is the name of its package and of its kind: see Package.
	Package string
	// Source is where it gets Parley from.
	Source Source
}

var (
	nameRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	// shortRE matches the short names that Windows makes of long ones: Go refuses these too.
	shortRE = regexp.MustCompile(`^[^.]*~[0-9]+(\.|$)`)
	pathRE  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.~-]*(/[A-Za-z0-9_][A-Za-z0-9_.~-]*)*$`)
)

// Package returns the package name for a module called name: in lower case, without - and _.
func Package(name string) (string, error) {
	if !nameRE.MatchString(name) {
		return "", fmt.Errorf("%.80q cannot be the name of a world: want a letter, then up to 63 letters, digits, - and _, such as my-game", name)
	}
	pkg := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
	var why string
	switch {
	case token.IsKeyword(pkg):
		why = "a word of Go"
	case slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, pkg):
		why = "a word that YAML does not read as a text"
	case slices.Contains([]string{"main", "init", "append", "parley", "worlds"}, pkg):
		why = "a name that the new program uses itself"
	case slices.Contains([]string{"cmd", "internal", "std", "testdata", "toolchain", "vendor"}, pkg), isDevice(pkg):
		why = "a name that Go or Windows gives another meaning"
	default:
		return pkg, nil
	}
	return "", fmt.Errorf("%q makes the package %s, which is %s: choose another name, such as %s-game", name, pkg, why, pkg)
}

// isDevice reports whether Windows takes a file name for a device, with any extension. Go refuses these in module paths.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if slices.Contains([]string{"con", "prn", "aux", "nul"}, name) {
		return true
	}
	port := strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")
	return port && len(name) == 4 && name[3] >= '1' && name[3] <= '9'
}

// DefaultPath returns the path of a module that nobody else imports. Go reserves paths that begin with example for this,
// so it conflicts with no package of Go.
func DefaultPath(name string) string { return "example/" + name }

// checkPath returns what is wrong with a module's path.
func checkPath(module string) error {
	if !pathRE.MatchString(module) || strings.HasSuffix(module, ".") || strings.Contains(module, "./") {
		return fmt.Errorf("%.80q is not the path of a module: want one such as github.com/you/my-game", module)
	}
	if isWithin(module, modulePath()) {
		return fmt.Errorf("%s belongs to Parley itself: name a path of your own, such as github.com/you/my-game", module)
	}
	parts := strings.Split(module, "/")
	if !strings.Contains(parts[0], ".") && parts[0] != "example" && parts[0] != "test" {
		return fmt.Errorf("%s: Go keeps paths whose first part has no dot for its own packages: name a path such as github.com/you/my-game or example/my-game", module)
	}
	for _, part := range parts {
		if isDevice(part) || shortRE.MatchString(part) {
			return fmt.Errorf("%s: Go refuses the part %s, which has another meaning on Windows: name a path such as github.com/you/my-game", module, part)
		}
	}
	return nil
}

// Files returns the files of the module by name, with slashes.
func (m Module) Files() (map[string][]byte, error) {
	if err := checkPath(m.Path); err != nil {
		return nil, err
	}
	if taken := m.Source.required(m.Path); taken != "" {
		return nil, fmt.Errorf("%s belongs to %s, which Parley needs: name a path of your own, such as github.com/you/my-game", m.Path, taken)
	}
	all := map[string]string{
		"README.md":            "README.md.tmpl",
		m.Package + ".go":      "world.go.tmpl",
		m.Package + "_test.go": "world_test.go.tmpl",
		m.Package + ".yaml":    "plan.yaml.tmpl",
		"cmd/parley/main.go":   "main.go.tmpl",
	}
	t, err := template.New("").Delims("[[", "]]").ParseFS(templates, "template/*")
	if err != nil {
		return nil, err
	}
	files := m.Source.goFiles(m.Path)
	for name, from := range all {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, from, m); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// Import returns the line that imports the package.
func (m Module) Import() string {
	if path.Base(m.Path) == m.Package {
		return fmt.Sprintf("%q", m.Path)
	}
	return fmt.Sprintf("%s %q", m.Package, m.Path)
}

// Parley returns the path of Parley's module.
func (m Module) Parley() string { return modulePath() }

// Local reports whether Parley is taken from a folder.
func (m Module) Local() bool { return m.Source.dir != "" }

// Free returns why a folder cannot be made.
func Free(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already: choose another name, or move it away", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return fmt.Errorf("the folder %s does not exist: make it first, or choose another place", parent)
	}
	return nil
}

// Write writes files into a new folder, all or none.
func Write(dir string, files map[string][]byte) (err error) {
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".parley-new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(temp, 0o750); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}
