package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
	"parley/worlds"
)

// drought is the example scenario, played a few times.
func drought(t *testing.T, sets ...string) *planfile.Plan {
	t.Helper()
	p, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", "scenario", "plan.yaml"), worlds.Standard(), append([]string{"episodes=3", "params.turns=3"}, sets...), planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func inFolder(t *testing.T) string { return filepath.Join(t.TempDir(), "run.parley") }

// TestScenarioOneDigest plays a scenario at several concurrencies and wants one digest.
func TestScenarioOneDigest(t *testing.T) {
	t.Parallel()
	want := ""
	for _, set := range []string{"limits.concurrency=1", "limits.concurrency=5", "limits.concurrency=500", "pace=wave", "limits.live=1"} {
		sum := played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, set), File: inFolder(t)})
		if sum.State != journal.Complete {
			t.Fatalf("%s: %+v", set, sum)
		}
		if want == "" {
			want = sum.Digest
		}
		if sum.Digest != want {
			t.Errorf("%s: %s, want %s", set, sum.Digest, want)
		}
	}
}

// TestScenarioStopsInsideATurn: when the budget ends, some actors have decided and others
// have not. With more money the run continues there: no actor is asked twice, and the outcomes are
// those of an undisturbed run.
func TestScenarioStopsInsideATurn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it plays much, and others play the same")
	}
	bounded := []string{"episodes=1", "agents.policy.max_tokens=400", "agents.clerk.max_tokens=200"}
	whole := played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, bounded...), File: inFolder(t)})
	halves := 0
	for percent := 20; percent <= 80; percent += 15 {
		file, budget := inFolder(t), whole.Cost.Dollars()*float64(percent)/100
		sum := played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, append(bounded, fmt.Sprintf("budget=%.9f", budget))...), File: file})
		if sum.State != journal.Stopped || sum.Reason.Kind != journal.ByBudget || sum.Cost.Dollars() > budget {
			t.Fatalf("%d%%: %+v", percent, sum)
		}
		if insideATurn(t, file) {
			halves++
		}
		sum = played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, append(bounded, "budget=5")...), File: file})
		// What it costs may differ by what the provider's cache of prompts has forgotten.
		if c := sum.Calls; sum.State != journal.Complete || sum.Digest != whole.Digest || c.Total != whole.Calls.Total || c.Asked+c.Replayed != c.Total || c.Replayed == 0 {
			t.Errorf("%d%%: resumed: %s, %+v, %s, want %+v, %s", percent, sum.State, c, sum.Digest, whole.Calls, whole.Digest)
		}
	}
	if halves == 0 {
		t.Error("it never stopped inside a turn: the test sees nothing")
	}
}

// insideATurn says whether the calls of some turn were answered in part.
func insideATurn(t *testing.T, file string) bool {
	t.Helper()
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	asked, answered := map[journal.Turn]int{}, map[journal.Turn]int{}
	err = store.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Turned:
			asked[e.Turn] = e.Calls
		case *journal.Replied:
			answered[e.Turn]++
		}
		return nil
	})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	for turn, n := range answered {
		if n < asked[turn] {
			return true
		}
	}
	return false
}

// TestScenarioEpisodeBudget: an episode never exceeds its budget. It stops at the same call
// however the run is played, and a fork with more money continues.
func TestScenarioEpisodeBudget(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it plays much, and others play the same")
	}
	bounded := []string{"agents.policy.max_tokens=400", "agents.clerk.max_tokens=200"}
	whole := played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, bounded...), File: inFolder(t)})
	budget := whole.Cost.Dollars() / 3 // what an episode costs on average, and so too little for most
	bounded = append(bounded, fmt.Sprintf("episode_budget=%.9f", budget))
	want := ""
	for _, how := range []string{"limits.concurrency=1", "limits.concurrency=500", "pace=wave", "limits.live=1", "budget=0.0001"} {
		file := inFolder(t)
		sum := played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, append(bounded, how)...), File: file, Tool: "test"})
		if how == "budget=0.0001" { // of the whole run, and far too little: it stops, and continues with more
			if sum.State != journal.Stopped || sum.Episodes.Failed > 0 {
				t.Fatalf("%+v", sum)
			}
			sum = played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{"budget=100"}, Tool: "test"})
		}
		if want == "" {
			want = sum.Digest
		}
		if sum.State != journal.Complete || sum.Digest != want || sum.Episodes.Failed == 0 {
			t.Errorf("%s: %s, %+v, %s; want %s", how, sum.State, sum.Episodes, sum.Digest, want)
		}
		for n, e := range endsOf(t, file) {
			if cost := costOf(t, file, n); cost.Dollars() > budget {
				t.Errorf("%s: episode %d cost %v", how, n, cost)
			}
			if e.Outcome.Failed != "" && !strings.HasPrefix(e.Outcome.Failed, "budget: an episode may cost") {
				t.Errorf("%s: episode %d: %s", how, n, e.Outcome.Failed)
			}
		}
	}
	file := inFolder(t)
	played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, bounded...), File: file, Tool: "test"})
	if _, err := (Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{"episode_budget=9"}}).Run(t.Context(), t.Context()); !IsUsage(err) || !strings.Contains(err.Error(), "episode_budget") {
		t.Errorf("where episodes end was changed: %v", err)
	}
	more := written(t, Fork{Kinds: worlds.Standard(), From: file, Episode: 0, Turn: 0, Repeat: 1, Sets: []string{"episode_budget=9"}})
	if sum := played(t, Play{Kinds: worlds.Standard(), File: more, MustExist: true, Tool: "test"}); sum.Episodes.Complete != 1 {
		t.Errorf("%+v", sum)
	}
}

func headOf(t *testing.T, file string) *journal.Head {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Head(t.Context())
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return head
}

// endsOf returns the ends of the episodes in a run file.
func endsOf(t *testing.T, file string) map[int]journal.Ended {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return journaltest.Ends(t, s)
}

func costOf(t *testing.T, file string, episode int) (cost llm.Money) {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := journal.Episode(t.Context(), s, episode)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok {
			cost += r.Cost()
		}
	}
	return cost
}

// TestScenarioBranch: a branch at turn 3 has the same world at turn 2, and the change from then
// on: an event that always happens.
func TestScenarioBranch(t *testing.T) {
	t.Parallel()
	from := inFolder(t)
	played(t, Play{Kinds: worlds.Standard(), Plan: drought(t, "params.turns=4"), File: from, Tool: "test"})
	file := written(t, Fork{Kinds: worlds.Standard(), From: from, Episode: 1, Turn: 4, Repeat: 2, Sets: []string{"params.set.events.council_session.turns=[4]"}})
	played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true, Tool: "test"})
	was, is := readRun(t, from), readRun(t, file)
	worlds := func(r recordedRun, episode int) (all []string) {
		for turn := range 12 {
			var notes []world.Note
			text := r.notes[fmt.Sprintf("%d %d", episode, turn)]
			if text == "" {
				continue
			}
			if err := json.Unmarshal([]byte(text), &notes); err != nil {
				t.Fatal(err)
			}
			for _, n := range notes {
				var data struct{ State, Name string }
				_ = json.Unmarshal(n.Data, &data) // the name of a phase is not an object
				if n.Kind == "world" {
					all = append(all, data.State)
				}
				if n.Kind == "event" && data.Name == "council_session" {
					all = append(all, "council")
				}
			}
		}
		return all
	}
	before := worlds(was, 1)
	for i := range 2 {
		after := worlds(is, i)
		if len(after) != 5 || len(before) != 5 || after[0] != before[0] || after[1] != before[1] || after[2] == before[2] {
			t.Errorf("branch %d: %q\nwas %q", i, after, before)
		}
		if before[2] != "council" || after[3] != "council" {
			t.Errorf("branch %d: the council meets at another time: %q", i, after)
		}
	}
}
