package runfile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/journal/journaltest"
)

// goldenEnv makes TestGolden write the files of this format version, if they do not exist.
// Files of a released version are never written again: they are what users have.
const goldenEnv = "PARLEY_WRITE_GOLDEN"

// TestGolden reads a stored file entry by entry, and resumes a stored run that was stopped.
func TestGolden(t *testing.T) {
	t.Parallel()
	base := filepath.Join("testdata", fmt.Sprintf("v%d", journal.Version))
	if os.Getenv(goldenEnv) != "" {
		writeGolden(t, base)
	}
	want, err := os.ReadFile(base + "-entries.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(t, mustOpen(t, copied(t, base+"-entries.parley"), Resume)); got != string(want) {
		t.Errorf("the entries differ; the first difference:\n%s", testkit.Difference(got, string(want)))
	}
	want, err = os.ReadFile(base + "-talk.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, copied(t, base+"-talk.parley"), Resume)
	res, err := engine.Run(t.Context(), benchRun(s, 20))
	if err != nil || res.Digest != strings.TrimSpace(string(want)) || res.Replayed == 0 || res.Made.Calls == 0 {
		t.Errorf("resumed: %+v, %v; want digest %s", res, err, want)
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
	c.Drain, c.Models, c.Settings.Pace = drain, &until{left: 130, stop: stop}, "wave"
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

// TestReasons: a reason keeps its kind whatever its text is.
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
}
