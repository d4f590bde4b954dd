package training

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestSessions: the sessions of a gateway are trajectories: groups by their names, answers joined to sequences, and the
// closing score is the reward.
func TestSessions(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	add := func(entries ...journal.Entry) {
		if err := j.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	add(&journal.Begun{Version: journal.Version, Run: "r", Kind: "gateway"})
	call := func(episode, turn int, messages []llm.Message, prompt, answer []int) {
		at := journal.Turn{Episode: episode, Turn: turn}
		resp := &llm.Response{Text: "a", Finish: llm.FinishStop, WeightVersion: "4", PromptTokenIDs: prompt, TokenIDs: answer}
		if len(answer) > 1 { // it was cut off and continued
			resp.Spans = []llm.Span{{Tokens: 1, WeightVersion: "4"}, {Tokens: 1, WeightVersion: "5"}}
		}
		add(&journal.Turned{Turn: at, Calls: 1}, &journal.Replied{
			Turn: at, Seat: "client", Agent: "client", Request: &llm.Request{Model: "lab/m", Messages: messages},
			Response: resp,
		})
	}
	for i, name := range []string{"maze-1", "maze-2", "open", "unpaid", "aborted"} {
		add(&journal.Staged{Stage: i, First: i, Specs: world.List(world.Spec{Kind: "gateway", Params: json.RawMessage(fmt.Sprintf(`{"session":%q}`, name))})})
		call(i, 0, []llm.Message{llm.User("1?")}, []int{1}, []int{2})
	}
	call(0, 1, []llm.Message{llm.User("1?"), llm.Assistant("a"), llm.User("2?")}, []int{1, 2, 3}, []int{4, 5})
	failed := &journal.Replied{Turn: journal.Turn{Episode: 0, Turn: 2}, Seat: "client", Error: &llm.Error{Kind: llm.KindServer}}
	add(&journal.Turned{Turn: failed.Turn, Calls: 1}, failed)
	scored := func(reward float64) world.Outcome {
		return world.Outcome{Data: json.RawMessage(`{"mode":"complete"}`), Scores: []world.Score{{Name: "reward", Value: reward}}}
	}
	add(
		&journal.Ended{Episode: 0, Outcome: scored(1)}, &journal.Ended{Episode: 1, Outcome: scored(0)},
		&journal.Ended{Episode: 3, Outcome: world.Outcome{Data: json.RawMessage(`{}`)}},
		&journal.Ended{Episode: 4, Outcome: world.Outcome{Failed: "aborted", Data: json.RawMessage(`{}`)}},
	)
	var got []string
	account, err := Each(t.Context(), j, Filter{Trainable: true, Unequal: true}, func(g *Group) error {
		for _, m := range g.Members {
			for _, r := range m.Rows {
				got = append(got, fmt.Sprint(r.GroupID, " ", r.Episode, " ", r.Status, " ", r.Return, " ", r.Tokens, r.LossMask, r.Starts, r.Versions, r.Rewards))
			}
		}
		return nil
	})
	want := "maze 0 completed 1 [1 2 3 4 5] [0 1 0 1 1] [1 3 4] [4 4 5] [0 0 1]\nmaze 1 completed 0 [1 2] [0 1] [1] [4] [0]"
	if err != nil || strings.Join(got, "\n") != want {
		t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), want)
	}
	if left := fmt.Sprint(account.Left); account.Groups != 4 || left != "map[equal reward:2 unfinished:1]" {
		t.Errorf("%d groups, left out: %s", account.Groups, left)
	}
	all, err := Each(t.Context(), j, Filter{}, func(*Group) error { return nil })
	if err != nil || all.Rows != 5 {
		t.Errorf("%d rows, %v", all.Rows, err)
	}
	none, err := Each(t.Context(), j, Filter{Trainable: true}, func(*Group) error { return nil })
	if err != nil || fmt.Sprint(none.Left) != "map[no rows:2 unfinished:1]" {
		t.Errorf("left out: %v, %v", none.Left, err)
	}
}
