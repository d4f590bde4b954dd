package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGuides runs commands of the guides as they are written, in the order of the page, in a folder that has the examples.
// first makes what a page takes for granted. What needs a key, another kind or a running process is left out.
func TestGuides(t *testing.T) {
	t.Parallel()
	often(t)
	for _, c := range []struct {
		page, first string
		runs        []string // the commands begin with these
		want        int
	}{
		{"start-a-plan.md", "", []string{"parley worlds", "parley init secrets"}, 5},
		{"steer.md", "", []string{"parley run examples/secrets.yaml --out", "parley wait"}, 2},
		{"fork.md", "init secrets; run secrets.yaml", []string{"parley run", "parley fork secrets.parley --episode 3 --turn 2 --set lineup", "parley fork secrets.parley --episode 3 --turn 4", "parley fork rounds.parley"}, 4},
	} {
		t.Run(c.page, func(t *testing.T) {
			t.Parallel()
			dir, ran := t.TempDir(), 0
			if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(tree, "examples"))); err != nil {
				t.Fatal(err)
			}
			for command := range strings.SplitSeq(c.first, "; ") {
				if command != "" {
					shell(t, dir, append([]string{"parley"}, strings.Fields(command)...))
				}
			}
			text, err := os.ReadFile(filepath.Join(tree, "docs/how-to", c.page))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				command, ok := strings.CutPrefix(line, "    ")
				if ok && slices.ContainsFunc(c.runs, func(begin string) bool { return strings.HasPrefix(command, begin) }) {
					shell(t, dir, quotedWords(command))
					ran++
				}
			}
			if ran != c.want {
				t.Errorf("%d commands were found, want %d", ran, c.want)
			}
		})
	}
}

// quotedWords splits a command. Quotes hold words together.
func quotedWords(command string) (words []string) {
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
