package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/worlds"
)

// folderOf reads everything that stands in a file's folder.
func folderOf(t *testing.T, file string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(file), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

// TestCompleteIsLeftAlone plays a run that is complete again: it says the same and not a
// byte changes.
func TestCompleteIsLeftAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file})
	before := folderOf(t, file)
	for name, p := range map[string]Play{
		"resume":             {File: file, MustExist: true},
		"run":                {Plan: parsed(t, conversations), File: file},
		"resume, same value": {File: file, MustExist: true, Sets: []string{"seed=5"}},
	} {
		p.Kinds = worlds.Standard()
		sum := played(t, p)
		if sum.State != journal.Complete || sum.Digest != first.Digest || sum.Calls.Asked != 0 || sum.Calls.Total != first.Calls.Total || *sum.Cost != *first.Cost {
			t.Errorf("%s: %+v", name, sum)
		}
		if after := folderOf(t, file); !maps.Equal(after, before) {
			t.Errorf("%s: the file has changed, or others stand beside it", name)
		}
	}
}

// TestCompleteWithWorkersIsLeftAlone plays a run again that is complete and was collected from the log of a hub.
func TestCompleteWithWorkersIsLeftAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "episodes=2"), File: file})
	store, err := runfile.Open(t.Context(), file, runfile.Resume)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Append(t.Context(), &journal.Opened{}, &journal.Collected{Log: 7, Through: 9}, &journal.Closed{State: journal.Complete})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	before := folderOf(t, file)
	sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true})
	if sum.State != journal.Complete || sum.Episodes != first.Episodes || sum.Digest != first.Digest || sum.Calls.Asked != 0 {
		t.Errorf("%+v", sum)
	}
	if after := folderOf(t, file); !maps.Equal(after, before) {
		t.Error("the file has changed, or others stand beside it")
	}
}

// TestCompleteNeedsNoKey plays a complete run again although its provider can no longer
// be asked.
func TestCompleteNeedsNoKey(t *testing.T) {
	server, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lab := httptest.NewServer(server)
	text := strings.ReplaceAll(conversations, "sim/large", "lab/large") + "providers:\n  lab: {dialect: openai, base_url: \"" + lab.URL + "/v1\", key_env: PARLEY_TEST_GONE_KEY}\n"
	file := filepath.Join(t.TempDir(), "run.parley")
	t.Setenv("PARLEY_TEST_GONE_KEY", "sk-here-for-now")
	first := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, text), File: file})
	lab.Close()
	t.Setenv("PARLEY_TEST_GONE_KEY", "")
	if sum := played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); sum.State != journal.Complete || sum.Digest != first.Digest {
		t.Errorf("%+v", sum)
	}
	if _, err := (Play{Kinds: worlds.Standard(), Plan: parsed(t, text), File: file + "2"}).Run(t.Context(), context.Background()); err == nil {
		t.Error("a new run needs no key either")
	}
}

// budgetIn is the budget that a run file's plan has now.
func budgetIn(t *testing.T, file string) float64 {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var plan struct{ Budget float64 }
	if err := json.Unmarshal(head.Begun.Plan, &plan); err != nil {
		t.Fatal(err)
	}
	return plan.Budget
}

// TestRaisedBudgetStays: a budget that is raised on resume applies to later processes and forks of
// the file, whether or not there was something left to play.
func TestRaisedBudgetStays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "budget=0.001"), File: file})
	if sum.State != journal.Stopped {
		t.Fatalf("%+v", sum)
	}
	for _, budget := range []float64{3, 4} { // the second time it is complete
		sum = played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{fmt.Sprintf("budget=%v", budget)}})
		if got := budgetIn(t, file); sum.State != journal.Complete || got != budget {
			t.Errorf("%s with a budget of %v, want %v", sum.State, got, budget)
		}
	}
	begun := headOf(t, file)
	fork := written(t, Fork{Kinds: worlds.Standard(), From: file, Episode: 1, Turn: 2})
	if got := budgetIn(t, fork); got != 4 {
		t.Errorf("the fork has a budget of %v", got)
	}
	if played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}); !headOf(t, file).Last.At.Equal(begun.Last.At) {
		t.Error("it was complete, and was completed again")
	}
}

// TestRoomFor wants a folder for a run file before anything else.
func TestRoomFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "nowhere", "x.parley"): "the folder " + filepath.Join(dir, "nowhere") + " does not exist",
		filepath.Join(plain, "x.parley"):          plain + " is a file, not a folder",
		dir:                                       "is a folder: name a run file in it",
	} {
		_, err := Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file}.Run(t.Context(), context.Background())
		if err == nil || !IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// TestUnpriced: a cost of zero differs from an unknown cost.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	const lab = "providers:\n  lab: {dialect: sim}\n  here: {dialect: sim, base_url: \"http://127.0.0.1:1/v1\"}\n"
	for name, c := range map[string]struct {
		sets     []string
		known    bool
		unpriced string
	}{
		"priced":          {nil, true, ""},
		"none is priced":  {[]string{"agents.small.model=lab/a", "agents.large.model=lab/b"}, false, "lab/a lab/b"},
		"one is":          {[]string{"agents.large.model=lab/b"}, true, "lab/b"},
		"on this machine": {[]string{"agents.small.model=here/a", "agents.large.model=here/a"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := parsed(t, conversations+lab, append(c.sets, "episodes=2")...)
			sum := played(t, Play{Kinds: worlds.Standard(), Plan: plan, File: filepath.Join(t.TempDir(), "run.parley")})
			if got := strings.Join(sum.Unpriced, " "); (sum.Cost != nil) != c.known || got != c.unpriced {
				t.Errorf("cost %v, unpriced %q", sum.Cost, got)
			}
			// A check gets the same error as its run.
			e, err := Check{Plan: plan}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(e.Unpriced, " "); (e.Cost != nil) != c.known || got != c.unpriced {
				t.Errorf("check: cost %v, unpriced %q", e.Cost, got)
			}
		})
	}
}
