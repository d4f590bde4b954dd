package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/world"
)

// repeats are n episodes of each of the cells.
func repeats(n int, turns ...int) (l world.Specs) {
	for _, k := range turns {
		l = world.Join(l, world.Repeat(world.Spec{
			Kind: "crowd", Params: fmt.Appendf(nil, `{"turns":%d}`, k), Cell: fmt.Sprint(k),
			Lineup: map[string]string{"a": "alice", "b": "bob", "bot": "polly"},
		}, n))
	}
	return l
}

// growInto resumes the run in j with a plan.
func growInto(t *testing.T, m Models, j journal.Journal, plan world.Specs) (Result, error) {
	t.Helper()
	c := config(m, j)
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var recorded []world.Specs
	for _, st := range head.Stages {
		recorded = append(recorded, st.Specs)
	}
	if c.Plan, err = planner.Grow(c.Kind, recorded, plan); err != nil {
		t.Fatal(err)
	}
	return Run(t.Context(), c)
}

// outcomes are the outcomes of episodes, by what they played.
func outcomes(t *testing.T, j journal.Journal) map[string]string {
	t.Helper()
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, ends := map[string]string{}, journaltest.Ends(t, j)
	for _, st := range head.Stages {
		for i, s := range st.Specs.All() {
			out[fmt.Sprint(s.Cell, " ", s.Deal)] = string(ends[st.First+i].Outcome.Data.(json.RawMessage))
		}
	}
	return out
}

// TestGrowthCutAnywhere kills a growing run at every entry. Resumed, its episodes have the same
// outcomes as in a run of the larger plan, though they have other numbers there.
func TestGrowthCutAnywhere(t *testing.T) {
	t.Parallel()
	small, large := repeats(2, 2), repeats(3, 1, 2)
	atOnce, base := &journal.Memory{}, &journal.Memory{}
	for j, plan := range map[*journal.Memory]world.Specs{atOnce: large, base: small} {
		if _, err := growInto(t, &models{width: 1, faults: 5}, j, plan); err != nil {
			t.Fatal(err)
		}
	}
	want, entries := outcomes(t, atOnce), 0
	_ = atOnce.Read(t.Context(), journal.Whole(), func(journal.Entry) error { entries++; return nil })
	for cut := range entries {
		synctest.Test(t, func(t *testing.T) {
			j := &cutJournal{left: cut}
			_ = base.Read(t.Context(), journal.Whole(), func(e journal.Entry) error { return j.Memory.Append(t.Context(), e) })
			_, err := growInto(t, &models{width: 4, faults: 5, pause: time.Second}, j, large)
			if err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			if err != nil {
				_, err = growInto(t, &models{width: 9, faults: 5, pause: time.Second}, &j.Memory, large)
			}
			if got := outcomes(t, &j.Memory); err != nil || !maps.Equal(got, want) {
				t.Fatalf("cut after %d entries: %v\n%v\nat once\n%v", cut, err, got, want)
			}
		})
	}
}
