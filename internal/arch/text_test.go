package arch

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli"
	"parley/internal/command"
	"parley/worlds"
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
	pathRE = regexp.MustCompile("(?:^|[\\s`(\"'])((?:\\./)?(?:cmd|docs|examples|internal|llm|oracle|testdata|\\.ci)/[A-Za-z0-9_./-]*)")
	verbRE = regexp.MustCompile(`(?m)(?:^|[\s` + "`" + `/])parley ([a-z][a-z-]*)`)
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

// TestDocumentsUseRealVerbs checks every `parley verb` in code.
func TestDocumentsUseRealVerbs(t *testing.T) {
	t.Parallel()
	verbs := cli.Verbs(worlds.Standard())
	for _, doc := range documents(t) {
		for _, code := range codeOf(read(t, doc)) {
			for _, m := range verbRE.FindAllStringSubmatch(code, -1) {
				if !slices.Contains(verbs, m[1]) {
					t.Errorf("%s speaks of parley %s; the verbs are %v", doc, m[1], verbs)
				}
			}
		}
	}
}

// TestOwnCommands: what the tests of kinds know of the command line's own verbs is all of them.
func TestOwnCommands(t *testing.T) {
	t.Parallel()
	own := slices.Sorted(maps.Keys(command.Own()))
	verbs := append(cli.Verbs(nil), "help")
	slices.Sort(verbs)
	if !slices.Equal(own, verbs) {
		t.Errorf("command.Own lists %v, the verbs are %v", own, verbs)
	}
}

// codeOf returns the code of a Markdown text: its blocks, and what stands between
// backticks.
func codeOf(text string) []string {
	var code []string
	for i, block := range strings.Split(text, "```") {
		if i%2 == 1 {
			code = append(code, block)
			continue
		}
		for j, span := range strings.Split(block, "`") {
			if j%2 == 1 {
				code = append(code, span)
			}
		}
	}
	return code
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
