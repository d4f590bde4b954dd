package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kindNames lists the kinds that come with parley, by their folders.
func kindNames(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "worlds"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) < 5 {
		t.Fatal("worlds/ has no kinds: ", names)
	}
	return names
}

var wordRE = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// names says whether an identifier or a text of a program has a kind's name in it, as a word of its own or in the plural.
// Of a name that is an ordinary word, only a text that is nothing else counts.
func names(text, kind string) bool {
	if ordinary[kind] != "" {
		return text == `"`+kind+`"` || text == "`"+kind+"`"
	}
	for _, word := range wordRE.FindAllString(text, -1) {
		if word = strings.ToLower(word); word == kind || word == kind+"s" {
			return true
		}
	}
	return false
}

// TestWorldsArePublic: worlds use what a stranger's module can import, except what is listed.
func TestWorldsArePublic(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, in := range p.inside() {
			if !under(p.path(), "worlds") || !under(in, "internal") {
				continue
			}
			if used[in] = true; closed[in] == "" {
				t.Errorf("%s imports %s, which no module outside can: use what is public", p.path(), in)
			}
		}
	}
	for in := range closed {
		if !used[in] {
			t.Errorf("exceptions_test.go: no world imports %s any more", in)
		}
	}
}

// TestNoKindIsSpecial: nothing under internal/ imports a world or knows one by name, so that those that come with parley
// can do nothing that a stranger's cannot.
func TestNoKindIsSpecial(t *testing.T) {
	t.Parallel()
	kinds := kindNames(t)
	for _, p := range packages(t) {
		for _, in := range p.inside() {
			if under(p.path(), "internal") && under(in, "worlds") {
				t.Errorf("%s imports %s: a kind is given to it, and brings what is its own", p.path(), in)
			}
		}
	}
	for _, s := range sources(t) {
		if s.test || !under(s.path, "internal") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			text := ""
			switch n := n.(type) {
			case *ast.Ident:
				text = n.Name
			case *ast.BasicLit:
				text = n.Value
			}
			for _, k := range kinds {
				if text != "" && theirs[text] == "" && names(text, k) {
					t.Errorf("%s:%d: %s: no code here knows the kind %s", s.path, s.line(n.Pos()), text, k)
				}
			}
			return true
		})
	}
}

// TestNamesOfKinds shows what counts as a kind's name.
func TestNamesOfKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"rolloutPlan": true, "OpenRollouts": true, `"a run of rollout"`: true, "unrolloutable": false, "rolling": false, `"parley/worlds/rollout/env"`: true,
	} {
		if names(text, "rollout") != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
	for text, want := range map[string]bool{`"secrets"`: true, "secretsIn": false, `"no secrets: those go by key_env"`: false} {
		if names(text, "secrets") != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}
