package label

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/world"
)

func read(t *testing.T, run string) *Set {
	t.Helper()
	s, err := Read(t.Context(), run, "r1")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, run string, labels ...Label) {
	t.Helper()
	for _, l := range labels {
		l.Run = "r1"
		if err := Add(run, l); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScores checks what labels count as: only episodes that people looked at have scores.
func TestScores(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	if s := read(t, run); len(s.All) > 0 || len(scores(s, 9)) > 0 {
		t.Errorf("%+v", s)
	}
	add(t, run,
		Label{Episode: 1, Verdict: Pass}, Label{Episode: 1, Verdict: Fail}, Label{Episode: 1, Verdict: unsure},
		Label{Episode: 2, Call: "0:0", Verdict: Fail, Tag: "rude"},
		Label{Episode: 3, Note: "dull"},
		Label{Episode: 4, Tag: "rude"}, Label{Episode: 4, Verdict: Fail},
		Label{Episode: 5, Tag: " odd "},
	)
	s := read(t, run)
	if err := Remove(run, s.Of(5)[0]); err != nil {
		t.Fatal(err)
	}
	s = read(t, run)
	if got, want := fmt.Sprint(scores(s, 9)), "map[1:[{ label/verdict 0.5} { label/rude 0}] 2:[{ label/rude 1}] 3:[{ label/rude 0}] 4:[{ label/verdict 0} { label/rude 1}]]"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if other, err := Read(t.Context(), run, "r2"); err != nil || len(other.All) != 0 {
		t.Errorf("labels of another run: %+v %v", other, err)
	}
}

// scores returns the scores of a run with some episodes.
func scores(s *Set, episodes int) map[int][]world.Score {
	out, _ := s.Scores(episodes)
	return out
}

// TestBound checks that a file of a stranger makes no more scores than a run has episodes, and MaxTags for each.
func TestBound(t *testing.T) {
	t.Parallel()
	s := &Set{}
	for i := range 2000 {
		s.Add(Label{Episode: i, Tag: fmt.Sprintf("t%04d", i)})
		s.Add(Label{Episode: 1 << 40, Tag: "nowhere"})
	}
	s.Add(Label{Episode: 0, Tag: "t0099"})
	all, left := s.Scores(100)
	if len(all) != 100 || left != 50 {
		t.Fatalf("%d episodes, %d tags left", len(all), left)
	}
	for episode, list := range all {
		if len(list) != MaxTags || list[0].Name != "label/t0000" || list[48].Name != "label/t0048" || list[49].Name != "label/t0099" {
			t.Errorf("episode %d: %v", episode, list)
		}
	}
	if tags, left := s.Tags(); len(tags) != MaxTags || left != 1951 || tags[0] != "nowhere" {
		t.Errorf("%v, %d left", tags, left)
	}
}

// TestTogether checks that nothing is lost if several people label at once.
func TestTogether(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				if err := Add(run, Label{Run: "r1", Episode: i, Tag: fmt.Sprint(j), Note: strings.Repeat("x", 3000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s := read(t, run); len(s.All) != 160 || s.Damaged > 0 {
		t.Errorf("%d labels, %d damaged lines", len(s.All), s.Damaged)
	}
}

// TestDamaged checks that a line of a process that was killed spoils no other.
func TestDamaged(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	add(t, run, Label{Episode: 1, Tag: "a"})
	b, err := os.ReadFile(run + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, `{"episode":-5,"tag":"x","run":"r1"}`+"\n"+`{"episode":2,"tag":"x","run":"r1","verdict":"great"}`+"\n\x00\xff\n"+`{"id":"cut off`...)
	if err := os.WriteFile(run+Suffix, b, 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, run, Label{Episode: 2, Tag: "b"})
	if s := read(t, run); len(s.All) != 2 || s.Damaged != 4 || s.All[1].Tag != "b" {
		t.Errorf("%+v", s)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run.parley")
	for want, l := range map[string]Label{
		"needs a tag":            {Tag: "  "},
		"is the name of a score": {Tag: "verdict"},
		"not the name of a call": {Tag: "a", Call: "x"},
		"unknown verdict":        {Verdict: "good"},
		"the tag has 201 bytes":  {Tag: strings.Repeat("x", 201)},
		"the note has":           {Note: strings.Repeat("x", 20_001)},
		"a control character":    {Tag: "a\nb"},
		"the name is not UTF-8":  {Tag: "a", By: "\xff"},
		"there is no episode -1": {Tag: "a", Episode: -1},
	} {
		if err := Add(run, l); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := os.Mkdir(run+Suffix, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Add(run, Label{Tag: "a"}); err == nil {
		t.Error("a folder takes a label")
	}
	if _, err := Read(t.Context(), run, "r1"); err == nil {
		t.Error("a folder has labels")
	}
}
