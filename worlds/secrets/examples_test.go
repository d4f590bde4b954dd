package secrets_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/worlds"
	"parley/worlds/secrets"
)

// episode is an episode of a run with the simulated provider.
type episode struct {
	cell   string
	deal   int
	lineup map[string]string
	record secrets.Game
	models map[string]map[string]bool // the agents that were called, by seat
}

// run plays a plan from examples, as `parley run` does, and reads it back.
func run(t *testing.T, name string, sets ...string) (*app.Summary, []episode) {
	t.Helper()
	p, err := planfile.Load(t.Context(), filepath.Join("..", "..", "examples", name), worlds.Standard(), sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.parley")
	sum, err := app.Play{Plan: p, File: file}.Run(t.Context(), context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if sum.State != journal.Complete || sum.Episodes.Failed > 0 || sum.Calls.Failed > 0 {
		t.Fatalf("%s: %+v", name, sum)
	}
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []episode
	err = s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Staged:
			for _, spec := range e.Specs.All() {
				all = append(all, episode{cell: spec.Cell, deal: spec.Deal, lineup: spec.Lineup, models: map[string]map[string]bool{}})
			}
		case *journal.Replied:
			seat := all[e.Episode].models[e.Seat]
			if seat == nil {
				seat = map[string]bool{}
				all[e.Episode].models[e.Seat] = seat
			}
			seat[e.Agent] = true
		case *journal.Ended:
			data, _ := e.Outcome.Data.(json.RawMessage)
			return json.Unmarshal(data, &all[e.Episode].record)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		for seat, agents := range e.models {
			if len(agents) != 1 || !agents[e.lineup[seat]] {
				t.Errorf("%s: episode %d: calls for seat %s went to %v, want only %s", name, i, seat, agents, e.lineup[seat])
			}
		}
	}
	return sum, all
}

// shared checks that all cells of a deal have the same secrets in the same seats, and that deals
// differ.
func shared(t *testing.T, all []episode) {
	t.Helper()
	first := map[int]string{}
	words := map[string]bool{}
	for _, e := range all {
		b, err := json.Marshal(e.record.Secrets)
		if err != nil {
			t.Fatal(err)
		}
		if first[e.deal] == "" {
			first[e.deal] = string(b)
			words[string(b)] = true
		}
		if first[e.deal] != string(b) {
			t.Errorf("deal %d: cell %s has the secrets %s, want %s", e.deal, e.cell, b, first[e.deal])
		}
	}
	if len(words) != len(first) {
		t.Errorf("%d different lists of secrets in %d deals", len(words), len(first))
	}
}

func TestFirstExample(t *testing.T) {
	t.Parallel()
	sum, all := run(t, "secrets.yaml")
	shared(t, all)
	if len(all) != 100 || sum.Calls.Total != 600 {
		t.Errorf("%d conversations and %d calls, want 100 and 600", len(all), sum.Calls.Total)
	}
	forms := map[string]int{}
	for _, e := range all {
		for _, r := range e.record.Conversations[0].Reveals {
			forms[string(r.Form)]++
		}
	}
	if forms["said"] == 0 || len(forms) < 3 {
		t.Errorf("secrets were given away in the forms %v, want 3 or more with %q", forms, "said")
	}
}

func TestCompareExample(t *testing.T) {
	t.Parallel()
	for set, cells := range map[string]int{"plan.matrix.self=false": 12, "plan.matrix.self=true": 16} {
		sum, all := run(t, "secrets-compare.yaml", set, "plan.matrix.repeat=3")
		shared(t, all)
		seen := map[string]int{}
		for _, e := range all {
			seen[e.lineup["first"]+" "+e.lineup["second"]]++
		}
		if len(seen) != cells || len(all) != 3*cells || sum.Calls.Total != len(all)*10 {
			t.Errorf("%s: %d pairs, %d conversations, %d calls", set, len(seen), len(all), sum.Calls.Total)
		}
		if cells == 16 && (seen["small small"] != 3 || seen["small large"] != seen["large small"]) {
			t.Errorf("%v", seen)
		}
	}
}

func TestModesExample(t *testing.T) {
	t.Parallel()
	_, all := run(t, "secrets-modes.yaml", "plan.matrix.repeat=2")
	shared(t, all)
	modes := map[string]int{}
	for _, e := range all {
		modes[e.record.Mode]++
		if len(e.record.Conversations) != 6 || (e.record.Target != "") != (e.record.Mode == "targeted") {
			t.Errorf("%s: %+v", e.cell, e.record)
		}
	}
	for _, mode := range []string{"standard", "retained", "diversity", "targeted"} {
		if modes[mode] != 2 {
			t.Errorf("episodes by mode: %v, want 2 for each", modes)
		}
	}
}

func TestTournamentExample(t *testing.T) {
	t.Parallel()
	for _, sets := range [][]string{nil, {"params.pairing=swiss", "params.rounds=3"}, {"params.players=7", "params.rounds=7", "lineup.player8=", "agents.trader="}} {
		_, all := run(t, "secrets-tournament.yaml", append(sets, "episodes=2")...)
		for _, e := range all {
			met := map[[2]string]int{}
			for _, k := range e.record.Conversations {
				pair := k.Seats
				slices.Sort(pair[:])
				if met[pair]++; met[pair] > 1 {
					t.Errorf("%v: %v met twice", sets, pair)
				}
				if slices.Contains(k.Seats[:], "player6") && !slices.Contains(k.Revealed, "player6") || slices.Contains(k.Revealed, "player7") {
					t.Errorf("%v: the teller kept its secret, or the keeper gave it away: %+v", sets, k)
				}
			}
		}
	}
}

func TestJudgeExample(t *testing.T) {
	t.Parallel()
	sum, all := run(t, "secrets-judge.yaml", "plan.matrix.repeat=20")
	for _, e := range all {
		if len(e.record.Conversations[0].Verdicts) != 2 {
			t.Errorf("%+v", e.record)
		}
	}
	var names []string
	for _, s := range sum.Agents {
		names = append(names, s.Score)
		if s.Score == "agreement" && (s.Mean < 0.5 || s.Mean >= 1) {
			t.Errorf("agreement is %v, want 0.5 or more and less than 1", s.Mean)
		}
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "agreement") || !strings.Contains(got, "judged") {
		t.Errorf("scores %s, want agreement and judged among them", got)
	}
}
