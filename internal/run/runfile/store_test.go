package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/files"
	"parley/internal/kit/testkit"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

func TestMain(m *testing.M) { testkit.Main(m, writeUntilKilled) }

func mustOpen(t *testing.T, path string, mode Mode) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, mode)
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

func mustAppend(t *testing.T, s *Store, entries ...journal.Entry) {
	t.Helper()
	if err := s.Append(context.Background(), entries...); err != nil {
		t.Fatal(err)
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	journaltest.Exercise(t, func(t *testing.T) (journal.Journal, func() journal.Journal) {
		path := filepath.Join(t.TempDir(), "run.db")
		s := mustOpen(t, path, Create)
		return s, func() journal.Journal {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, path, Resume)
			return s
		}
	})
}

func TestFencing(t *testing.T) {
	t.Parallel()
	unlocked := func(string) (*files.Guard, error) { return nil, nil }
	journaltest.Fencing(t, func(t *testing.T) (first, second journal.Journal) {
		path := filepath.Join(t.TempDir(), "run.db")
		for _, j := range []*journal.Journal{&first, &second} {
			s, err := open(t.Context(), path, Either, unlocked)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			*j = s
		}
		return first, second
	})
}

// TestOneFile: after a run is closed there is one file, and anybody can read it while it is played.
func TestOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run?with#odd%20name.db")
	s := mustOpen(t, path, Create)
	entries := journaltest.Run(1, 300)
	mustAppend(t, s, entries...)
	r, err := OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Same(t, r, entries)
	if err := r.Append(t.Context(), entries[0]); err == nil {
		t.Error("a file that was opened for reading was written")
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("beside the run file there is %v", names)
	}
	if r, err = OpenRead(path); err != nil {
		t.Fatal(err)
	}
	journaltest.Same(t, r, entries)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("reading left %v", names)
	}
	if err := s.Append(t.Context(), entries[0]); err == nil {
		t.Error("a closed file was written")
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func TestModes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	if _, err := Open(t.Context(), path, Resume); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("resuming what is not there: %v", err)
	}
	if _, err := OpenRead(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
	s := mustOpen(t, path, Either)
	if _, err := Open(t.Context(), path, Create); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating what is there: %v", err)
	}
	if _, err := Open(t.Context(), path, Resume); !errors.Is(err, ErrPlaying) {
		t.Errorf("opening what is being played: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, Resume)
}

// TestOddValues: values that JSON cannot represent, and values that only the types allow, are kept.
func TestOddValues(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, filepath.Join(t.TempDir(), "run.db"), Create)
	e := &journal.Ended{Outcome: world.Outcome{Data: map[string]int{"a": 1}}}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.Copysign(0, -1)} {
		e.Outcome.Scores = append(e.Outcome.Scores, world.Score{Name: "odd", Value: v})
	}
	mustAppend(t, s, e)
	h, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	head, _ := h.Ended.Of(0)
	whole := journaltest.Ends(t, s)[0]
	if len(head.Outcome.Scores) != len(e.Outcome.Scores) || len(whole.Outcome.Scores) != len(e.Outcome.Scores) {
		t.Fatalf("%d and %d scores came back", len(head.Outcome.Scores), len(whole.Outcome.Scores))
	}
	for i, got := range slices.Concat(head.Outcome.Scores, whole.Outcome.Scores) {
		i %= len(e.Outcome.Scores)
		want := e.Outcome.Scores[i].Value
		if math.Float64bits(got.Value) != math.Float64bits(want) && !(math.IsNaN(got.Value) && math.IsNaN(want)) {
			t.Errorf("score %v came back as %v", want, got.Value)
		}
	}
	if got := whole.Outcome.Data; !reflect.DeepEqual(got, json.RawMessage(`{"a":1}`)) {
		t.Errorf("data came back as %s", got)
	}
	for name, bad := range map[string]journal.Entry{
		"both":    &journal.Replied{Response: &llm.Response{}, Error: &llm.Error{}},
		"notes":   &journal.Turned{Notes: []world.Note{{Data: json.RawMessage("{")}}},
		"outcome": &journal.Ended{Outcome: world.Outcome{Data: func() {}}},
		"twice":   &journal.Staged{Specs: world.List(make([]world.Spec, 1)...)},
		"nothing": nil,
	} {
		if name == "twice" {
			mustAppend(t, s, bad)
		}
		before := count(t, s)
		if err := s.Append(t.Context(), &journal.Turned{Calls: 5}, bad); err == nil {
			t.Errorf("%s: an entry that cannot be kept was taken", name)
		}
		if got := count(t, s); got != before {
			t.Errorf("%s: it failed, and %d entries were written", name, got-before)
		}
	}
	mustAppend(t, s, &journal.Turned{Calls: 1})
}

func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.Read(t.Context(), journal.Whole(), func(journal.Entry) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTextsOnce: a repeated text is stored once, even after a resume.
func TestTextsOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	for i := range 3 {
		e := talk(0, i)
		mustAppend(t, s, e[:]...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Resume)
	if _, err := journal.Episode(t.Context(), s, 0); err != nil { // as the engine does to resume
		t.Fatal(err)
	}
	for i := 3; i < talkCalls; i++ {
		e := talk(0, i)
		mustAppend(t, s, e[:]...)
	}
	rows := query(t, s, `SELECT count(*), count(DISTINCT text) FROM texts`)
	if rows[0][0] != rows[0][1] {
		t.Errorf("%s texts are stored, and %s are different", rows[0][0], rows[0][1])
	}
	want := 2 + 1 + talkCalls + (talkCalls - 1) // system prompts, settings, answers, and each but the last as it is quoted
	if rows[0][0] != itoa(want) {
		t.Errorf("%s texts are stored, and there are %d", rows[0][0], want)
	}
}

// TestLogStaysSmall: the log does not grow with the run, even if somebody always reads.
func TestLogStaysSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	stop := errors.New("enough")
	mustAppend(t, s, journaltest.Run(1, 50)...)
	var written int64
	err := s.Read(t.Context(), journal.Whole(), func(journal.Entry) error { // a reader that never gets to the end
		for range 48 {
			mustAppend(t, s, &journal.Turned{Notes: []world.Note{{Kind: "large", Data: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}}})
			written += 1 << 20
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(foldPages * PageSize * 2); info.Size() > limit {
		t.Errorf("%d bytes were written and the log is %d long, more than %d", written, info.Size(), limit)
	}
}

// TestGone: a writer notices that its file was deleted, moved, replaced or truncated, and writes nothing more.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"cut":       func(path string) error { return os.Truncate(path, 4096) },
		"moved":     func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("another"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.parley")
			s, err := Open(t.Context(), path, Create)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := change(path); err != nil {
				t.Skip("the system does not allow it:", err)
			}
			for range 2 {
				if err := s.Append(t.Context(), &journal.Opened{}); !errors.Is(err, ErrGone) {
					t.Errorf("%v, want %v", err, ErrGone)
				}
			}
		})
	}
}

// TestGoneAtClose: a file that is deleted or truncated after the last entry is noticed when it is closed, and only once.
func TestGoneAtClose(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 0) },
	} {
		for _, noticed := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "run.parley")
			s, err := Open(t.Context(), path, Create)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Append(t.Context(), &journal.Opened{}); err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Skip("the system does not allow it:", err)
			}
			if noticed {
				s.writer.checked = time.Time{}
				if err := s.Append(t.Context(), &journal.Opened{}); !errors.Is(err, ErrGone) {
					t.Errorf("%s: %v, want %v", name, err, ErrGone)
				}
			}
			if err := s.Close(); errors.Is(err, ErrGone) == noticed {
				t.Errorf("%s, noticed before: %t: Close returns %v", name, noticed, err)
			}
		}
	}
}
