package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents lists README.md and everything else people read.
func documents(t *testing.T) []string {
	t.Helper()
	docs := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	more, err := fs.Glob(os.DirFS(root), "docs/*.md")
	deeper, err2 := fs.Glob(os.DirFS(root), "docs/*/*.md")
	if err != nil || err2 != nil || len(deeper) == 0 {
		t.Fatal("docs/ has no documents", err, err2)
	}
	return slices.Concat(docs, more, deeper)
}

var (
	linkRE = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pathRE = regexp.MustCompile("(?:^|[\\s`(\"'])((?:\\./)?(?:cmd|docs|examples|internal|llm|test|testdata|\\.ci)/[A-Za-z0-9_./-]*)")
)

// TestDocumentsLink checks that what the documents point at is there.
func TestDocumentsLink(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		text := read(t, doc)
		for _, m := range linkRE.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			exists(t, doc, path.Join(path.Dir(doc), target))
		}
		if doc == "CHANGELOG.md" { // it speaks of what was there
			continue
		}
		for _, m := range pathRE.FindAllStringSubmatch(text, -1) {
			// A run file is made by whoever follows the document.
			if target := strings.TrimRight(m[1], "./"); target != "" && !strings.Contains(m[1], "...") && path.Ext(target) != ".parley" {
				exists(t, doc, target)
			}
		}
	}
}

func exists(t *testing.T, doc, target string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		t.Errorf("%s speaks of %s, which is not there", doc, target)
	}
}

// TestNothingOfOneMachine checks that no file holds a path of the machine it was
// written on, or the address of a package registry.
func TestNothingOfOneMachine(t *testing.T) {
	t.Parallel()
	// Spelled in halves, or this file would find itself.
	folders := []string{"/wo" + "rk/", "/ro" + "ot/"}
	hosts := []string{
		"proxy" + ".golang.org", "sum" + ".golang.org", "gopro" + "xy.", "registry" + ".npmjs", "pypi" + ".org",
		"files" + ".pythonhosted", "index" + ".crates", "artifact" + "ory",
	}
	paths := regexp.MustCompile(`(^|[\s"'=(:,` + "`" + `])(` + strings.Join(folders, "|") + `)`)
	holds := func(text []byte, words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
	}
	err := walk(func(path string, text []byte) error {
		if bytes.IndexByte(text, 0) >= 0 || !holds(text, folders) && !holds(text, hosts) {
			return nil // not a text, or nothing to look for in its lines
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if m := paths.Find(line); m != nil {
				t.Errorf("%s:%d: a path of one machine: %s", path, i+1, m)
			}
			if holds(line, hosts) {
				t.Errorf("%s:%d: the address of a package registry: %s", path, i+1, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var requireRE = regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+/\S+|\S+\.\S+) v\S+( // indirect)?$`)

// TestDependencies checks every direct dependency against the list of licences.
func TestDependencies(t *testing.T) {
	t.Parallel()
	present := map[string]bool{}
	for _, m := range requireRE.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		present[m[1]] = true
		if direct := m[2] == ""; direct && modules[m[1]] == "" {
			t.Errorf("go.mod requires %s: add it to modules in exceptions_test.go with its licence", m[1])
		}
	}
	for m, licence := range modules {
		if !present[m] {
			t.Errorf("exceptions_test.go lists %s, which go.mod does not require", m)
		}
		if strings.Contains(licence, "GPL") {
			t.Errorf("%s is under %s, which does not go together with Apache-2.0", m, licence)
		}
	}
}
