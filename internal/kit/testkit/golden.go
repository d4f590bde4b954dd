package testkit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// Update reports whether the test writes its files again.
func Update() bool { return *update }

// Compare compares got with a file. With -update it writes got to the file first.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if Update() {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it differs from %s: run with -update and look at the change. %s\nall of it:\n%s", file, Difference(got, string(want)), got)
	}
}

// Difference returns the first line in which two texts differ.
func Difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: got\n%s\nwant\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(a), len(b))
}
