// Package runfiletest makes run files for the tests of other packages.
//
// It is for tests only.
package runfiletest

import (
	"errors"
	"path/filepath"
	"testing"

	"parley/internal/run/runfile"
	"parley/journal"
)

// File writes entries to a run file and returns its path.
func File(t testing.TB, entries ...journal.Entry) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.parley")
	w, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(t.Context(), entries...), w.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// Open writes entries to a run file and opens it for reading, until the test ends.
func Open(t testing.TB, entries ...journal.Entry) *runfile.Store {
	t.Helper()
	s, err := runfile.OpenRead(File(t, entries...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
