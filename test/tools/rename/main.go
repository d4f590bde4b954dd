// Command rename changes the module's path: in imports, in the go.mod of every module of the
// tree, in documents and in the linter's settings.
//
//	go run ./test/tools/rename github.com/you/parley
//
// It changes the files below the current folder, which must be the top of the tree. Renaming back
// restores them. The name of the program, parley, does not change.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/tools/rename ADDRESS (such as github.com/you/parley)")
		os.Exit(2)
	}
	old, n, err := rename(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "renamed %s to %s in %d files\n", old, os.Args[1], n)
}

var (
	moduleRE  = regexp.MustCompile(`(?m)^module[ \t]+"?([^\s"]+)"?[ \t]*(?://.*)?\r?$`)
	addressRE = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9_.~-]*(/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*$`)
)

// change is the new content of a file.
type change struct {
	path string
	text []byte
}

// rename changes the path of the module in dir and returns the old path and the number of changed
// files. The top go.mod is written last, so a rename that failed half-way can be repeated.
func rename(dir, address string) (old string, files int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", 0, fmt.Errorf("rename: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	text, err := root.ReadFile("go.mod")
	if err != nil {
		return "", 0, fmt.Errorf("rename: %w: run it at the top of the tree", err)
	}
	m := moduleRE.FindSubmatch(text)
	if m == nil {
		return "", 0, errors.New("rename: go.mod names no module")
	}
	old = string(m[1])
	switch {
	case !addressRE.MatchString(address):
		return "", 0, fmt.Errorf("rename: %q is not a module path: want one such as github.com/you/parley", address)
	case address == old:
		return "", 0, fmt.Errorf("rename: the module's path is %s already", old)
	}
	changes, err := plan(root.FS(), old, address)
	if err != nil {
		return "", 0, fmt.Errorf("rename: %w", err)
	}
	if i := slices.IndexFunc(changes, func(c change) bool { return c.path == "go.mod" }); i >= 0 {
		last := len(changes) - 1
		changes[i], changes[last] = changes[last], changes[i]
	}
	for _, c := range changes {
		if err := root.WriteFile(c.path, c.text, 0o600); err != nil {
			return "", 0, fmt.Errorf("rename: %w: run the same command again to finish", err)
		}
	}
	return old, len(changes), nil
}

// plan returns the files that change, with their new content.
func plan(tree fs.FS, old, address string) ([]change, error) {
	all := map[string][]byte{}
	folders := map[string]bool{} // at the top, with Go files
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == "dist"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil // not a text
		}
		all[path] = text
		if first, _, inside := strings.Cut(path, "/"); inside && filepath.Ext(path) == ".go" {
			folders[first] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		return nil, errors.New("no folder here holds Go files: run it at the top of the tree")
	}
	r := newRewriter(old, address, folders)
	var changes []change
	for path, text := range all {
		if now := r.rewrite(filepath.Base(path), text); !bytes.Equal(now, text) {
			changes = append(changes, change{path, now})
		}
	}
	return changes, nil
}

// rewriter replaces the module's path in a text. A path that is one word, such as parley, is also
// the name of a program, a folder and a user agent, so the surroundings decide what is the module.
type rewriter struct {
	address string
	pkg     *regexp.Regexp // the path of a package of ours
	imports *regexp.Regexp // of the package at the top
	command *regexp.Regexp // lines of a go.mod, and go commands, anywhere
	word    *regexp.Regexp // the path as a word, where it can be nothing else
}

func newRewriter(old, address string, folders map[string]bool) rewriter {
	var names []string
	for name := range folders {
		names = append(names, regexp.QuoteMeta(name))
	}
	slices.Sort(names)
	q := regexp.QuoteMeta(old)
	return rewriter{
		address: address,
		pkg:     regexp.MustCompile(`(?m)(^|[^\w./~-])` + q + `(/(?:` + strings.Join(names, "|") + `)\b)`),
		imports: regexp.MustCompile(`(?m)(^[ \t]*import[ \t]+(?:[\w.]+[ \t]+)?"|^[ \t]+(?:[\w.]+[ \t]+)?")` + q + `("[ \t]*(?://.*)?\r?$)`),
		command: regexp.MustCompile(`(?m)(\b(?:module|require|replace|go get|go install|go doc)[ \t]+)` + q + `((?:[ \t]+(?:v\d|=>)|[@=])|[ \t]*$)`),
		word:    regexp.MustCompile(`(?m)(^|[\s\[,])` + q + `([\s\],]|$)`),
	}
}

func (r rewriter) rewrite(name string, text []byte) []byte {
	with := []byte("${1}" + strings.ReplaceAll(r.address, "$", "$$") + "${2}")
	out := r.pkg.ReplaceAll(text, with)
	out = r.command.ReplaceAll(out, with)
	if ext := filepath.Ext(name); ext == ".go" || ext == ".md" || ext == ".tmpl" {
		out = r.imports.ReplaceAllFunc(out, func(line []byte) []byte {
			if first := bytes.Fields(line)[0]; string(first) == "return" || string(first) == "case" {
				return line
			}
			return r.imports.ReplaceAll(line, with)
		})
	}
	if strings.HasPrefix(name, "go.mod") || name == ".golangci.yml" {
		out = r.word.ReplaceAll(out, with)
	}
	if filepath.Ext(name) == ".go" && !bytes.Equal(out, text) {
		if sorted, err := format.Source(out); err == nil { // a broken file in testdata stays as it is
			out = sorted
		}
	}
	return out
}
