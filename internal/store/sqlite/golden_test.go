package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/engine"
	"parley/journal"
	"parley/journal/journaltest"
)

// goldenEnv makes TestOldFormats write the files of this version, if there are none yet.
// Those of a version that was released are never written again: they are what users have.
const goldenEnv = "PARLEY_WRITE_GOLDEN"

// TestOldFormats reads a file of every version that can be read, entry by entry, and plays one on
// that was stopped in the middle.
func TestOldFormats(t *testing.T) {
	t.Parallel()
	for version := oldest; version <= journal.Version; version++ {
		base := filepath.Join("testdata", fmt.Sprintf("v%d", version))
		if os.Getenv(goldenEnv) != "" && version == journal.Version {
			writeGolden(t, base)
		}
		t.Run(fmt.Sprintf("entries of version %d", version), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(base + "-entries.txt")
			if err != nil {
				t.Fatal(err)
			}
			if got := dump(t, mustOpen(t, copied(t, base+"-entries.parley"), Resume)); got != string(want) {
				t.Errorf("the entries are not what they were; the first to differ:\n%s", firstDifference(got, string(want)))
			}
		})
		t.Run(fmt.Sprintf("a run of version %d", version), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(base + "-talk.txt")
			if err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, copied(t, base+"-talk.parley"), Resume)
			res, err := engine.Run(t.Context(), benchRun(s, 20))
			if err != nil || res.Digest != strings.TrimSpace(string(want)) || res.Replayed == 0 || res.Asked == 0 {
				t.Errorf("played on: %+v, %v; want digest %s", res, err, want)
			}
		})
	}
}

func copied(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "run.parley")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// dump writes every entry as a line.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	var b strings.Builder
	err := s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		text, err := json.Marshal(e)
		fmt.Fprintf(&b, "%T %s\n", e, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("got  %s\nwant %s", a[i], b[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(a), len(b))
}

// writeGolden writes the files of this version.
func writeGolden(t *testing.T, base string) {
	t.Helper()
	for _, name := range []string{"-entries.parley", "-talk.parley"} {
		if _, err := os.Stat(base + name); err == nil {
			t.Fatalf("%s is there already, and is what users have", base+name)
		}
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, base+"-entries.parley", Create)
	mustAppend(t, s, journaltest.Run(7, 250)...)
	golden(t, base+"-entries.txt", dump(t, s))
	closed(t, s)

	whole := mustOpen(t, filepath.Join(t.TempDir(), "whole.parley"), Create)
	res, err := engine.Run(t.Context(), benchRun(whole, 20))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, base+"-talk.txt", res.Digest+"\n")
	half := mustOpen(t, base+"-talk.parley", Create)
	c := benchRun(half, 20)
	drain, stop := context.WithCancel(t.Context())
	defer stop()
	c.Drain, c.Models, c.Wave = drain, &until{left: 130, stop: stop}, true
	if _, err := engine.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	closed(t, half)
}

func golden(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReasons: the kind of a reason is kept whatever its words are, and read from the words where a
// file has no kinds yet.
func TestReasons(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, filepath.Join(t.TempDir(), "run.parley"), Either)
	for _, want := range []journal.Reason{
		{}, {Kind: journal.ByGrowth}, {Kind: journal.ByBudget, Detail: "$1 is spent"},
		{Kind: journal.ByCall, Detail: "budget: says the server"}, {Kind: journal.ByUser, Detail: "enough"}, {Kind: journal.ByError, Detail: "stopped by a signal"},
	} {
		if err := s.Append(t.Context(), &journal.Closed{State: journal.Stopped, Reason: want}); err != nil {
			t.Fatal(err)
		}
		if head, err := s.Head(t.Context()); err != nil || head.Last.Reason != want {
			t.Errorf("%+v, %v; want %+v", head.Last.Reason, err, want)
		}
	}
	for data, want := range map[string]journal.Reason{
		`{"state":"complete"}`:                                      {},
		`{"state":"stopped","reason":"budget: $1 is spent"}`:        {Kind: journal.ByBudget, Detail: "$1 is spent"},
		`{"state":"stopped","reason":"aborted by a second signal"}`: {Kind: journal.ByUser, Detail: "aborted by a second signal"},
		`{"state":"failed","reason":"budget: it broke"}`:            {Kind: journal.ByError, Detail: "budget: it broke"},
	} {
		e, err := decodeEvent("closed", time.Time{}, []byte(data), nil)
		if closed, ok := e.(*journal.Closed); err != nil || !ok || closed.Reason != want {
			t.Errorf("%s: %+v, %v", data, e, err)
		}
	}
}
