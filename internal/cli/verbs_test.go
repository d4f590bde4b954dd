package cli

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/run/command"
)

var verbRE = regexp.MustCompile(`(?m)(?:^|[\s` + "`" + `/])parley ([a-z][a-z-]*)`)

// TestDocumentsUseRealVerbs checks every `parley verb` in code.
func TestDocumentsUseRealVerbs(t *testing.T) {
	t.Parallel()
	verbs := Verbs(standard())
	for _, doc := range append(documents(t), "../../ARCHITECTURE.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
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
	verbs := append(Verbs(nil), "help")
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
