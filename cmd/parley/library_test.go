package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryOutside follows the first part of docs/how-to/library.md in a folder outside of the tree: its program is built
// and prints what the document says.
func TestLibraryOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a whole program")
	}
	text, err := os.ReadFile(filepath.Join(tree, "docs/how-to/library.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(text), "\n## A first program\n")
	first, _, _ = strings.Cut(first, "\n## ")
	before, rest, _ := strings.Cut(first, "```go\n")
	program, after, _ := strings.Cut(rest, "```")
	after, want, ok := strings.Cut(after, "\nIt prints\n")
	if !ok {
		t.Fatal("the document does not say what its first program prints")
	}
	dir, printed := t.TempDir(), ""
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range indented(before + after) {
		words := strings.Fields(strings.ReplaceAll(command, "/path/to/parley", abs(t, tree)))
		if words[0] == "go" {
			printed = shell(t, dir, words)
		}
	}
	if want := strings.Join(indented(want), "\n") + "\n"; printed != want {
		t.Errorf("it prints\n%s\nand the document says\n%s", printed, want)
	}
}

// TestPartsOutside puts the file of docs/reference/kind-parts.md into a new module, and uses what it adds.
func TestPartsOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a whole program")
	}
	text, err := os.ReadFile(filepath.Join(tree, "docs/reference/kind-parts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```go\n")
	file, rest, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	shell(t, dir, []string{"parley", "new", "auction", "--parley", abs(t, tree)})
	dir = filepath.Join(dir, "auction")
	if err := os.WriteFile(filepath.Join(dir, "parts.go"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{} // by verb
	for _, line := range indented(rest) {
		switch words := strings.Fields(line); {
		case len(words) > 3 && words[1] == "run":
			printed[words[3]] = shell(t, dir, append([]string{built(t, dir)}, words[3:]...))
		case words[0] == "go":
			shell(t, dir, words)
		}
	}
	for verb, want := range map[string]string{"price": "40\n", "report": "Profit by seat"} {
		if !strings.Contains(printed[verb], want) {
			t.Errorf("%s prints %q, which lacks %q", verb, printed[verb], want)
		}
	}
}

// indented returns the lines of a document that are commands or output.
func indented(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, strings.TrimSuffix(code, "\n"))
		}
	}
	return lines
}
