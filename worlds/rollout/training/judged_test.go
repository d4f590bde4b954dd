package training

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// compared writes a run of two groups of two episodes, whose judgements are episodes 4 and 5. Only the entries up to a
// number are written.
func compared(t *testing.T, upTo int) *journal.Memory {
	t.Helper()
	j := &journal.Memory{}
	written := 0
	write := func(e journal.Entry) {
		if written++; written <= upTo {
			if err := j.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	data := func(d rules.Data) json.RawMessage {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	of := func(params string) (specs []world.Spec) {
		for deal := range 2 {
			specs = append(specs, world.Spec{Kind: "rollout", Params: json.RawMessage(fmt.Sprintf(`{"env":"maze","judge":{"rubric":"x","by":"group"}%s}`, params)), Deal: deal})
		}
		return specs
	}
	var groups []world.Specs
	for _, s := range of("") {
		list, err := world.Blocks(world.Block{Groups: []world.Group{{Spec: s, Size: 2}}, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, list)
	}
	write(&journal.Begun{Run: "r1", Kind: "rollout"})
	write(&journal.Staged{Specs: world.Join(groups...)})
	for n := range 4 {
		write(&journal.Replied{Turn: journal.Turn{Episode: n, Turn: 1}, Seat: "agent", Agent: "x", Request: &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("?")}}, Response: &llm.Response{Text: "!", Finish: llm.FinishStop}})
		row := rules.Row{Step: 1, Seat: "agent", StepReward: 1, Reward: 1, Terminal: true, Completed: true, Trainable: true}
		write(&journal.Ended{Episode: n, Outcome: world.Outcome{Data: data(rules.Data{Env: "maze", Stop: rules.StopTerminated, Rows: []rules.Row{row}, Record: "r"}), Scores: []world.Score{{Seat: "agent", Name: "environment_reward", Value: 1}}}})
	}
	write(&journal.Staged{Stage: 1, First: 4, Specs: world.List(of(`,"judgement":{"members":[]}`)...)})
	verdicts := []rules.Verdict{{Seat: "agent", Episode: 2, Environment: 1, Score: 1, Reward: 2}, {Seat: "agent", Episode: 3, Environment: 1, Score: 0, Reward: 1}}
	write(&journal.Ended{Episode: 5, Outcome: world.Outcome{Data: data(rules.Data{Env: "maze", Judgement: &rules.Ordered{Verdicts: verdicts}})}})
	write(&journal.Ended{Episode: 4, Outcome: world.Outcome{Data: data(rules.Data{Env: "maze", Judgement: &rules.Ordered{}}), Failed: "judge: refused"}})
	return j
}

// TestJudged checks that a group that a judge compares is complete when it was judged, that its rows have the whole reward
// and its parts, and that a judgement that failed leaves rewards missing.
func TestJudged(t *testing.T) {
	t.Parallel()
	for upTo := 2; upTo <= 13; upTo++ { // 11: the stage of judgements; 12 and 13: their ends
		j := compared(t, upTo)
		g := &trajectoryGroups{}
		if err := g.Update(t.Context(), journal.InParts(j)); err != nil {
			t.Fatal(err)
		}
		planned, complete := g.Count()
		if planned != 2 || complete != max(0, upTo-11) {
			t.Errorf("after %d entries, %d of %d groups are complete", upTo, complete, planned)
		}
		if bound, ok := g.Bound(1); !ok || bound != 6 {
			t.Errorf("after %d entries, the first group and its judgement are below %d", upTo, bound)
		}
		kept := 0
		account, err := Each(t.Context(), j, Filter{}, func(*Group) error { kept++; return nil })
		if err != nil || account.Groups != 2 || kept != complete || account.Left[leftUnfinished] != 2-complete {
			t.Errorf("after %d entries: %+v, %v", upTo, account, err)
		}
	}
	var rows []string
	_, err := Each(t.Context(), compared(t, 100), Filter{}, func(g *Group) error {
		for _, m := range g.Members {
			for _, r := range m.Rows {
				text := fmt.Sprint(g.ID, " ", r.Episode, " ", r.StepReward, " ", r.Return, " ", r.Status, " ", r.IsTrainable, " ", r.Failed)
				if r.JudgeScore != nil {
					text += fmt.Sprint(*r.EnvironmentReward, "+", *r.JudgeScore)
				}
				rows = append(rows, text)
			}
		}
		return nil
	})
	want := []string{"maze:1 0 1 0 failed false judge: refused", "maze:1 1 1 0 failed false judge: refused", "maze:2 2 2 2 completed true 1+1", "maze:2 3 1 1 completed true 1+0"}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("%v\n%q\n%q", err, rows, want)
	}
}
