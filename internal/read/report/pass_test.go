package report

import (
	"encoding/json"
	"math"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
	"parley/stats"
	"parley/world"
)

// TestDrawAll compares the formula with all ways to draw.
func TestDrawAll(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 9; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				draws, good := 0, 0
				for set := range 1 << n { // plays that are drawn; the first c passed
					size, passed := 0, 0
					for i := range n {
						if set>>i&1 == 1 {
							size++
							if i < c {
								passed++
							}
						}
					}
					if size == k {
						draws++
						if passed == k {
							good++
						}
					}
				}
				if got, want := drawAll(n, c, k), float64(good)/float64(draws); math.Abs(got-want) > 1e-12 {
					t.Errorf("n=%d c=%d k=%d: %v, want %v", n, c, k, got, want)
				}
			}
		}
	}
	for _, n := range []int{1000, 100_000} {
		if got := drawAll(n, n-1, n/2); math.IsNaN(got) || got < 0 || got > 1 {
			t.Errorf("%d: %v", n, got)
		}
	}
}

// solved returns a run in which solver plays each deal as often as it has values, in a cell, and a score that is not 0 or 1.
func solved(t *testing.T, fork *journal.Origin, deals ...[]float64) Source {
	t.Helper()
	return solvedIn(t, "maze", fork, deals...)
}

// solvedIn does the same in a run of a kind that plays episodes of maze.
func solvedIn(t *testing.T, kind string, fork *journal.Origin, deals ...[]float64) Source {
	t.Helper()
	var specs []world.Spec
	var ends []journal.Entry
	for deal, values := range deals {
		for _, v := range values {
			o := world.Outcome{Scores: []world.Score{{Seat: "s", Name: "solved", Value: v}, {Seat: "s", Name: "steps", Value: v + 2}}}
			if v < 0 {
				o = world.Outcome{Failed: "no"}
			}
			ends = append(ends, &journal.Ended{Episode: len(specs), Outcome: o})
			specs = append(specs, world.Spec{Kind: "maze", Lineup: map[string]string{"s": "solver"}, Cell: "c", Deal: deal})
		}
	}
	j := &journal.Memory{}
	entries := append([]journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: kind, KindVersion: 1, Fork: fork, Plan: json.RawMessage(`{"kind":"` + kind + `"}`), Agents: []world.Agent{{Name: "solver", Model: "lab/a"}}},
		&journal.Opened{}, &journal.Staged{Specs: world.List(specs...)},
	}, ends...)
	if err := j.Append(t.Context(), append(entries, &journal.Closed{State: journal.Complete})...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "m.parley")
	if err != nil {
		t.Fatal(err)
	}
	return Source{Run: r, Journal: j}
}

// TestPasses: a deal has one value for each k, the interval is that of any mean, and deals with fewer plays are not in the rows of a larger k.
func TestPasses(t *testing.T) {
	t.Parallel()
	_, tables := built(t, Options{}, solved(t, nil, []float64{1, 1, 0, 0}, []float64{1, -1, 0, 0, 0}, []float64{0, 0, 0, 0}, []float64{1, 1}))
	table := tables["passes"]
	if table == nil || len(table.Rows) != 4 {
		t.Fatalf("%+v", table)
	}
	// Of the deals, the chances that one of k draws is a pass, and that all are.
	want := map[int][2][]float64{
		1: {{0.5, 0.25, 0, 1}, {0.5, 0.25, 0, 1}}, 2: {{5. / 6, 0.5, 0, 1}, {1. / 6, 0, 0, 1}}, 3: {{1, 0.75, 0}, {0, 0, 0}}, 4: {{1, 1, 0}, {0, 0, 0}},
	}
	for i, row := range table.Rows {
		k := i + 1
		for j, values := range want[k] {
			var s world.Sample
			s.Bounds = world.Share()
			for deal, v := range values {
				s.Add(world.Unit{Deal: deal + 1}, v)
			}
			if got, want := row[4+j].Value.(stats.Quantity), s.Estimate(results.Confidence); math.Abs(got.Value-want.Value) > 1e-12 || math.Abs(got.Interval.Low-want.Interval.Low) > 1e-12 || math.Abs(got.Interval.High-want.Interval.High) > 1e-12 || got.N != want.N {
				t.Errorf("k=%d: %+v, want %+v", k, got, want)
			}
		}
	}
	if row := table.Rows[2]; row[0].Text != "solved" || row[1].Text != "c" || row[2].Text != "solver" || row[3].Text != "3" || row[6].Text != "12" || row[7].Text != "3" {
		t.Errorf("%+v", row)
	}
	for name, s := range map[string]Source{
		"one play a deal": solved(t, nil, []float64{1}, []float64{0}), "other values": solved(t, nil, []float64{1, 0.5}), "trials in an evolution": solvedIn(t, "evolve", nil, []float64{1, 0}), "a fork": solved(t, &journal.Origin{Run: "x"}, []float64{1, 0}), "nothing": solved(t, nil),
	} {
		if _, tables := built(t, Options{}, s); tables["passes"] != nil {
			t.Errorf("%s: %+v", name, tables["passes"])
		}
	}
}
