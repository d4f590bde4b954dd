package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// failing returns a run of two agents, each alone, on the same deals. fails says which episodes fail, and calls how many calls of
// each episode do, of ten.
func failing(t *testing.T, deals int, fails func(agent string, deal int) bool, calls func(agent string) int) *results.Run {
	t.Helper()
	entries := []journal.Entry{
		&journal.Begun{Version: journal.Version, Run: "r", Kind: "k", Agents: []world.Agent{{Name: "a", Model: "lab/a"}, {Name: "b", Model: "lab/b"}}}, &journal.Opened{}, nil,
	}
	var specs []world.Spec
	for d := range deals {
		for _, agent := range []string{"a", "b"} {
			n := len(specs)
			specs = append(specs, world.Spec{Kind: "k", Params: json.RawMessage(`{}`), Lineup: map[string]string{"s": agent}, Deal: d, Cell: agent})
			for i := range 10 {
				r := &journal.Replied{Turn: journal.Turn{Episode: n, Turn: i}, Seat: "s", Agent: agent, Request: &llm.Request{Model: "lab/" + agent}, Response: &llm.Response{Text: "x"}}
				if i < calls(agent) {
					r.Response, r.Error = nil, &llm.Error{Kind: llm.KindTimeout}
				}
				entries = append(entries, r)
			}
			o := world.Outcome{Scores: []world.Score{{Seat: "s", Name: "x", Value: 5}}}
			if fails(agent, d) {
				o = world.Outcome{Failed: "it broke"}
			}
			entries = append(entries, &journal.Ended{Episode: n, Outcome: o})
		}
	}
	entries[2] = &journal.Staged{Specs: world.List(specs...)}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), append(entries, &journal.Closed{State: journal.Complete})...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCompareSaysWhatFailed checks that a comparison counts failed episodes, and carries a caution if they differ or many calls
// failed.
func TestCompareSaysWhatFailed(t *testing.T) {
	t.Parallel()
	none := func(string) int { return 0 }
	for _, c := range []struct {
		name    string
		fails   func(agent string, deal int) bool
		calls   func(agent string) int
		a, b    int
		caution string
	}{
		{"nothing failed", func(string, int) bool { return false }, none, 0, 0, ""},
		{"one agent failed the hard deals", func(agent string, deal int) bool { return agent == "a" && deal >= 22 }, none, 18, 0, "18 of 40 episodes of a failed and 0 of 40 episodes of b;"},
		{"both failed the same deals", func(_ string, deal int) bool { return deal < 5 }, none, 5, 5, ""},
		{"each failed others", func(agent string, deal int) bool { return (agent == "a") == (deal < 20) && deal%4 == 0 }, none, 5, 5, "in different deals"},
		{"calls failed", func(string, int) bool { return false }, func(agent string) int { return len(strings.Trim(agent, "a")) }, 0, 0, "40 of 400 calls in the episodes of b failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			result, err := Compare([]*results.Run{failing(t, 40, c.fails, c.calls)}, []string{"x"}, CompareConfig{By: ByAgent})
			if err != nil {
				t.Fatal(err)
			}
			for _, column := range result.table().Blocks[0].Table.Columns {
				if column.Detail && column.Name == "effect" {
					t.Error("people do not see the effect")
				}
			}
			one := result.Comparisons[0]
			if one.FailedA != c.a || one.FailedB != c.b || (one.Caution == "") != (c.caution == "") || !strings.Contains(one.Caution, c.caution) {
				t.Errorf("%d and %d failed: %q", one.FailedA, one.FailedB, one.Caution)
			}
			if says := one.nothing(); strings.Contains(says, "Caution: ") != (c.caution != "") || !strings.Contains(says, "exactly the same") {
				t.Errorf("%q", says)
			}
		})
	}
}

// TestCompareNamesWhatOnlyFailed checks that a group without scores is not left out silently.
func TestCompareNamesWhatOnlyFailed(t *testing.T) {
	t.Parallel()
	r := failing(t, 3, func(agent string, _ int) bool { return agent == "b" }, func(string) int { return 0 })
	if _, err := Compare([]*results.Run{r}, []string{"x"}, CompareConfig{By: ByAgent}); err == nil || !strings.Contains(err.Error(), "b is not compared: all of its episodes failed, 3") {
		t.Error(err)
	}
}

// TestReportCountsFailed checks that a report has the failed episodes of each agent and cell.
func TestReportCountsFailed(t *testing.T) {
	t.Parallel()
	r := failing(t, 4, func(agent string, deal int) bool { return agent == "b" && deal > 0 }, func(string) int { return 0 })
	_, tables := built(t, Options{}, Source{Run: r, Journal: &journal.Memory{}})
	got := ""
	for _, row := range tables["failed-episodes"].Rows {
		got += fmt.Sprint(row[0].Text, row[1].Text, row[2].Text, row[3].Text, " ")
	}
	if want := "aa40 bb43 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
