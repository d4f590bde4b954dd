package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/internal/cli/exit"
)

// TestCategoriesLink checks that the examples of categories lead to the episodes of the scored run.
func TestCategoriesLink(t *testing.T) {
	t.Parallel()
	sequential(t)
	file, site := conversation(t), filepath.Join(t.TempDir(), "site")
	parley(t, State{}, "score", file, "--with", "../../examples/scores/why.yaml", "--quiet").want(t, exit.OK)
	parley(t, State{}, "view", filepath.Dir(file), "--export", site).want(t, exit.OK)
	page, err := os.ReadFile(filepath.Join(site, "run", "run.scores", "why.parley.html"))
	if err != nil {
		t.Fatal(err)
	}
	_, categories, ok := strings.Cut(string(page), "Categories of reasons")
	links := regexp.MustCompile(`<a href="\.\./\.\./(run/run\.parley/episodes/[0-9]+\.html)">[0-9]+</a>`).FindAllStringSubmatch(categories, -1)
	if !ok || len(links) < 3 {
		t.Fatalf("%v:\n%s", links, page)
	}
	for _, l := range links {
		if _, err := os.Stat(filepath.Join(site, filepath.FromSlash(l[1]))); err != nil {
			t.Error(err)
		}
	}
}
