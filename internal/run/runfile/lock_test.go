package runfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/journal"
	"parley/journal/journaltest"
)

// otherNames returns further names of a run file.
func otherNames(t *testing.T, path string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	symbolic, folder := filepath.Join(dir, "symbolic.db"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Symlink(path, symbolic), os.Symlink(filepath.Dir(path), folder)); err != nil {
		t.Skip(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, path)
	if err != nil {
		t.Skip(err)
	}
	return map[string]string{"itself": path, "a symbolic link": symbolic, "a linked folder": filepath.Join(folder, filepath.Base(path)), "a relative path": relative}
}

// TestOneWriter: a run that is being played cannot be opened again by any name, and can be read by all
// names.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	entries := journaltest.Run(3, 50)
	mustAppend(t, s, entries...)
	for name, other := range otherNames(t, path) {
		if _, err := Open(t.Context(), other, Either); !errors.Is(err, ErrPlaying) || !strings.Contains(err.Error(), other) {
			t.Errorf("by %s: %v, want %v", name, err, ErrPlaying)
		}
		r, err := OpenRead(other)
		if err != nil {
			t.Fatalf("by %s: %v", name, err)
		}
		journaltest.Same(t, r, entries)
		closed(t, r)
	}
	closed(t, s)
	for name, other := range otherNames(t, path) {
		s, err := Open(t.Context(), other, Resume)
		if err != nil {
			t.Fatalf("by %s, when nobody plays it: %v", name, err)
		}
		mustAppend(t, s, &journal.Opened{})
		closed(t, s)
	}
	if got := list(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("there is %v, and should be the file alone", got)
	}
}

// TestMovedWhilePlayed: the lock still holds if a run file is moved while it is played.
func TestMovedWhilePlayed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be moved there")
	}
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "run.db"), filepath.Join(dir, "moved.db")
	s := mustOpen(t, path, Create)
	mustAppend(t, s, journaltest.Run(3, 50)...)
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), moved, Either); !errors.Is(err, ErrPlaying) {
		t.Errorf("%v, want %v", err, ErrPlaying)
	}
	if err := os.Rename(moved, path); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
}

// TestHardLinks: the name of SQLite's log depends on the name of the file, so a file with two names is
// refused by both.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, second := filepath.Join(dir, "run.db"), filepath.Join(t.TempDir(), "second.db")
	s := mustOpen(t, path, Create)
	if err := os.Link(path, second); err != nil {
		t.Skip(err)
	}
	if _, err := Open(t.Context(), second, Either); err == nil || !strings.Contains(err.Error(), "2 names") {
		t.Errorf("while it is played: %v", err)
	}
	mustAppend(t, s, journaltest.Run(3, 50)...)
	closed(t, s)
	for _, name := range []string{path, second} {
		if _, err := Open(t.Context(), name, Resume); err == nil || !strings.Contains(err.Error(), "2 names") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	closed(t, mustOpen(t, path, Resume))
}

// TestOtherProcess: the lock of another process is noticed by every name.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	closed(t, mustOpen(t, path, Create))
	names := otherNames(t, path)
	writer := testkit.Start(t, names["a symbolic link"])
	if line := writer.Line(t); line != "0" {
		t.Fatal(line)
	}
	for name, other := range names {
		if _, err := Open(t.Context(), other, Either); !errors.Is(err, ErrPlaying) {
			t.Errorf("by %s: %v, want %v", name, err, ErrPlaying)
		}
	}
	writer.Kill()
	writer.Wait()
	closed(t, mustOpen(t, names["a linked folder"], Resume))
}
