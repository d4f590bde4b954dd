package arch

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
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

// anchors returns the names by which links reach the headings of a document.
func anchors(text string) map[string]bool {
	all, code := map[string]bool{}, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if code || level == 0 || line[level] != ' ' {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(line[level:]))
		for unique, n := name, 1; ; n++ {
			if !all[unique] {
				all[unique] = true
				break
			}
			unique = name + "-" + strconv.Itoa(n)
		}
	}
	return all
}

// TestDocumentsLink checks that what the documents point at is there, headings included.
func TestDocumentsLink(t *testing.T) {
	t.Parallel()
	for _, doc := range documents(t) {
		text := read(t, doc)
		for _, m := range linkRE.FindAllStringSubmatch(text, -1) {
			target, heading, linked := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := doc
			if target != "" {
				to = path.Join(path.Dir(doc), target)
			}
			if exists(t, doc, to) && linked && path.Ext(to) == ".md" && !anchors(read(t, to))[heading] {
				t.Errorf("%s links to %s, and %s has no such heading", doc, m[1], to)
			}
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

func exists(t *testing.T, doc, target string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(root, target))
	if err != nil {
		t.Errorf("%s speaks of %s, which is not there", doc, target)
	}
	return err == nil
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
