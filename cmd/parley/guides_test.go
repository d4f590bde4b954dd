package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTutorial follows docs/tutorial.md in an empty folder: it saves the plan, runs every command of the console
// blocks in order, and looks for the output that the page shows. A line that is only "…" stands for any lines, and "…"
// at the end of a line for the rest of it.
func TestTutorial(t *testing.T) {
	t.Parallel()
	often(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "study.yaml"), []byte(block(t, &text, "```yaml\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for strings.Contains(text, "```console\n") {
		for command := range strings.SplitSeq(strings.TrimPrefix(block(t, &text, "```console\n"), "$ "), "\n$ ") {
			line, shown, _ := strings.Cut(command, "\n")
			shows(t, line, output(t, dir, line), shown)
			ran++
		}
	}
	if ran < 8 {
		t.Errorf("%d commands found", ran)
	}
}

// block takes the next block that begins with a mark from a text.
func block(t *testing.T, text *string, mark string) string {
	t.Helper()
	_, rest, ok := strings.Cut(*text, mark)
	body, after, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatalf("no block after %q", mark)
	}
	*text = after
	return body
}

// output runs a command line of the program in a folder and returns what it prints.
func output(t *testing.T, dir, line string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, strings.Fields(line)[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), beParley+"=1")
	var exit *exec.ExitError
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// shows checks that an output has the lines that a page shows, in their order.
func shows(t *testing.T, line, got, shown string) {
	t.Helper()
	rest := got
	for want := range strings.Lines(shown) {
		want, _, _ = strings.Cut(strings.TrimSuffix(want, "\n"), "…")
		if want == "" {
			continue
		}
		i := strings.Index(rest, want)
		if i < 0 {
			t.Errorf("%s: the page shows %q; the program printed\n%s", line, want, got)
			return
		}
		rest = rest[i+len(want):]
	}
}

// TestGuide runs commands of docs/how-to/run.md as they are written, in the order of the page, in a folder that has the examples.
// What needs a key, another kind, the plan of its own section or a running process is left out.
func TestGuide(t *testing.T) {
	t.Parallel()
	often(t)
	runs := []string{ // the commands begin with these
		"parley init secrets", "parley worlds", "parley run secrets.yaml", "parley run examples/secrets.yaml --out", "parley run examples/secrets.yaml --set",
		"parley run other.parley", "parley report secrets.parley", "parley ctl study.parley wait", "parley fork secrets.parley --episode 3 --turn 4",
		"parley fork secrets.parley --episode 3 --turn 2 --repeat", "parley fork rounds.parley", "parley compare same.parley",
	}
	dir, ran := t.TempDir(), 0
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(tree, "examples"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(tree, "docs/how-to/run.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "    ")
		if ok && slices.ContainsFunc(runs, func(begin string) bool { return strings.HasPrefix(command, begin) }) {
			shell(t, dir, quotedWords(command))
			ran++
		}
	}
	if want := 18; ran != want {
		t.Errorf("%d commands were found, want %d", ran, want)
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
