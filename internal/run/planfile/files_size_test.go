package planfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLargeText checks that a text may be larger than any plan, and that a YAML file may not.
func TestLargeText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := strings.Repeat("{\"question\": \"1+1?\"}\n", MaxSize/16)
	for name, text := range map[string]string{"set.jsonl": large, "set.yaml": "a: " + large, "odd.jsonl": "a\x00b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := beside(t, dir).Text("set.jsonl"); err != nil || got != large {
		t.Errorf("%d of %d bytes, %v", len(got), len(large), err)
	}
	if _, err := beside(t, dir).YAML("set.yaml", &struct{}{}); err == nil || !strings.Contains(err.Error(), "is larger than 1 MiB") {
		t.Errorf("%v", err)
	}
	if _, err := beside(t, dir).Text("odd.jsonl"); err == nil {
		t.Error("a file that is not text was read as text")
	}
}

// TestFilesTogether checks the limit of all files together.
func TestFilesTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large, err := os.Create(filepath.Join(dir, "large.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := large.WriteString(strings.Repeat("x\n", 1000)); err != nil || large.Close() != nil {
		t.Fatal(err)
	}
	f := beside(t, dir)
	if _, err := f.Text("large.txt"); err != nil {
		t.Error(err)
	}
	*f.read = maxBeside - 1999
	if _, err := f.Text("large.txt"); err == nil || !strings.Contains(err.Error(), "are larger than 256 MiB together") {
		t.Error(err)
	}
}

// beside returns the files that a plan in dir may name.
func beside(t *testing.T, dir string) *Files {
	t.Helper()
	f, err := NewFiles(t.Context(), filepath.Join(dir, "plan.yaml"), Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
