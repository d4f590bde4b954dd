package runfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/journal"
	"parley/journal/journaltest"
)

// closedFile makes a run file and returns its contents.
func closedFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	mustAppend(t, s, journaltest.Run(2, 300)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, path)
}

func script(t *testing.T, path, text string) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sqlitex.ExecuteScript(c, text, nil), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// refusal is a file that cannot be played.
type refusal struct {
	make func(t *testing.T, path string)
	is   error
	says string
}

func refusals(whole []byte) map[string]refusal {
	return map[string]refusal{
		"text":           {func(t *testing.T, p string) { writeFile(t, p, []byte(strings.Repeat("dear diary ", 999))) }, ErrForeign, "name another file"},
		"short text":     {func(t *testing.T, p string) { writeFile(t, p, []byte("dear diary")) }, ErrForeign, "name another file"},
		"empty":          {func(t *testing.T, p string) { writeFile(t, p, nil) }, ErrForeign, "it is empty"},
		"other database": {func(t *testing.T, p string) { script(t, p, "CREATE TABLE a (b);") }, ErrForeign, "of another program"},
		"cut short":      {func(t *testing.T, p string) { writeFile(t, p, whole[:len(whole)/2]) }, ErrDamaged, "malformed"},
		"only a header":  {func(t *testing.T, p string) { writeFile(t, p, whole[:100]) }, nil, ""},
		"another version": {func(t *testing.T, p string) {
			writeFile(t, p, whole)
			script(t, p, "PRAGMA user_version = 999;")
		}, ErrVersion, "(999; this program reads version 1): open it with the parley that wrote it"},
		"no version": {func(t *testing.T, p string) {
			writeFile(t, p, whole)
			script(t, p, "PRAGMA user_version = 0;")
		}, ErrDamaged, "format version is 0"},
		"no tables": {func(t *testing.T, p string) {
			script(t, p, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; CREATE TABLE a (b);", application, journal.Version))
		}, ErrDamaged, "a table or view is missing"},
		"folder": {func(t *testing.T, p string) {
			if err := os.Mkdir(p, 0o755); err != nil {
				t.Fatal(err)
			}
		}, nil, "is a folder"},
		"no page": {func(t *testing.T, p string) {
			spoiled := slices.Clone(whole)
			for i := 200; i < 16384; i++ {
				spoiled[i] = 0xAA
			}
			writeFile(t, p, spoiled)
		}, ErrDamaged, ".recover"},
	}
}

// TestRefused: a file that cannot be played is refused with an error that helps, and neither it nor the
// files beside it are changed.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range refusals(closedFile(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "run.db")
			test.make(t, path)
			before, _ := os.ReadFile(path)
			names := list(t, dir)
			_, err := Open(t.Context(), path, Either)
			check := func(err error) {
				t.Helper()
				if err == nil || (test.is != nil && !errors.Is(err, test.is)) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
					t.Errorf("the error should be %v, name the file and say %q: %v", test.is, test.says, err)
				}
			}
			check(err)
			if r, err := OpenRead(path); err == nil { // some damage is found when it is read
				_, err = r.Head(t.Context())
				check(errors.Join(err, r.Close()))
			} else {
				check(err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if after := list(t, dir); !slices.Equal(after, names) {
				t.Errorf("there was %v and now is %v", names, after)
			}
		})
	}
}

// TestSpoiled: a damaged file is read as far as possible, or refused; it never causes a panic.
func TestSpoiled(t *testing.T) {
	t.Parallel()
	whole := closedFile(t)
	r := rand.New(rand.NewPCG(8, 8))
	for range 60 {
		spoiled := slices.Clone(whole)
		for range 1 + r.IntN(40) {
			spoiled[100+r.IntN(len(spoiled)-100)] = byte(r.Uint32())
		}
		path := filepath.Join(t.TempDir(), "run.db")
		writeFile(t, path, spoiled)
		s, err := OpenRead(path)
		if err != nil {
			continue
		}
		_, err = s.Head(t.Context())
		for i := range 30 {
			_, eerr := journal.Episode(t.Context(), s, i)
			err = errors.Join(err, eerr)
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
		_ = s.Close()
	}
}

// TestNoRoomToWrite: on a read-only folder, creating and playing fail with an error that helps, and
// reading works.
func TestNoRoomToWrite(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("needs a user whom permissions bind")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "run.db")
	writeFile(t, path, closedFile(t))
	for _, p := range []string{path, dir} {
		if err := os.Chmod(p, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	for _, p := range []string{path, filepath.Join(dir, "new.db")} {
		if _, err := Open(t.Context(), p, Either); err == nil || !strings.Contains(err.Error(), "cannot be written") || !strings.Contains(err.Error(), p) {
			t.Errorf("the error should name the file and the cause: %v", err)
		}
	}
	s, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Same(t, s, journaltest.Run(2, 300))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+"-wal", []byte("of a run that was cut off"))
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRead(path); err == nil || !strings.Contains(err.Error(), path+"-wal") {
		t.Errorf("the error should name the log: %v", err)
	}
}
