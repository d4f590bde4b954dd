package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReplace: the file has the new contents and the mode, and no other file remains, even
// after a failure.
func TestReplace(t *testing.T) {
	t.Parallel()
	testReplace(t, Replace)
	testReplace(t, Publish)
}

func testReplace(t *testing.T, replace func(string, fs.FileMode, []byte) error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	for _, text := range []string{"first", "second"} {
		if err := replace(path, 0o600, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v; want %q", b, err, text)
		}
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replace(folder, 0o600, []byte("text")); err == nil {
		t.Error("a folder was replaced")
	}
	if err := replace(filepath.Join(dir, "missing", "a.txt"), 0o600, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v remain, %v", all, err)
	}
}
