package rollout

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// ended is an episode of a run that the test writes.
type ended struct {
	env     string
	reward  float64
	lessons []string
	failed  string
}

// record writes a run of two steps an episode.
func record(t *testing.T, plan string, episodes ...ended) journal.Journal {
	t.Helper()
	j := &journal.Memory{}
	at := time.Unix(1_800_000_000, 0)
	entries := []journal.Entry{&journal.Begun{Version: journal.Version, Run: "r", Kind: "rollout", KindVersion: 1, Plan: json.RawMessage(plan), At: at}}
	staged := &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "rollout", Params: json.RawMessage("{}"), Lineup: map[string]string{"agent": "x"}}, len(episodes))}
	entries = append(entries, staged, &journal.Opened{At: at})
	for n, e := range episodes {
		d := rules.Data{Env: e.env, Stop: rules.StopTerminated, Steps: 2, Tries: 1, Experience: e.lessons}
		for i := range 2 {
			turn := journal.Turn{Episode: n, Turn: 2*i + 1}
			entries = append(entries, &journal.Turned{Turn: turn, Calls: 1}, &journal.Replied{
				Turn: turn, Seat: "agent", Agent: "x", Request: &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.System("rules"), llm.User(fmt.Sprintf("task %d, step %d", n, i+1))}},
				Response: &llm.Response{Text: fmt.Sprintf("answer %d of %d", i+1, n), Finish: llm.FinishStop}, At: at,
			})
			d.Rows = append(d.Rows, rules.Row{Ask: i, Step: i + 1, Seat: "agent", StepReward: e.reward / 2, Reward: e.reward})
		}
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		o := world.Outcome{Data: json.RawMessage(raw), Failed: e.failed}
		if e.failed == "" {
			o.Scores = []world.Score{{Seat: "agent", Name: "reward", Value: e.reward}}
		}
		entries = append(entries, &journal.Ended{Episode: n, Outcome: o, At: at})
	}
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestOf checks that episodes with a reward above the mean of their environment become lessons, the best first.
func TestOf(t *testing.T) {
	t.Parallel()
	got, err := lessonsOf(t.Context(), record(t, `{}`,
		ended{env: "maze", reward: 0}, ended{env: "maze", reward: 1}, ended{env: "maze", reward: 2}, ended{env: "maze", failed: "lost"},
		ended{env: "word", reward: 5}, ended{env: "word", reward: 5},
	))
	if err != nil || len(got) != 1 || got[0].Name != "r-2" || got[0].Env != "maze" || got[0].Reward != 2 || got[0].Uses != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	if want := "Asked: task 2, step 1\nAnswered: answer 1 of 2\nThat paid 1.\nAnswered: answer 2 of 2\nThat paid 1.\nIn all it paid 2."; got[0].Text != want {
		t.Errorf("%s", got[0].Text)
	}
}

// TestPassedOn checks that the lessons of a run are passed on, with the rewards of the episodes that got them.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	plan := `{"params":{"experience":{"lessons":"{\"name\":\"a\",\"text\":\"A\",\"uses\":2,\"reward\":1}\n{\"name\":\"b\",\"text\":\"B\",\"reward\":9}\nnonsense\n"}}}`
	got, err := lessonsOf(t.Context(), record(t, plan, ended{env: "maze", reward: 3, lessons: []string{"a"}}, ended{env: "maze", reward: 1, lessons: []string{"a", "b"}}, ended{env: "maze", failed: "x", lessons: []string{"b"}}))
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	for i, want := range []rules.Lesson{{Name: "a", Text: "A", Uses: 4, Reward: 1.5}, {Name: "b", Text: "B", Uses: 1, Reward: 1}} {
		if got[i] != want {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
	if got[2].Name != "r-0" || got[2].Reward != 3 {
		t.Errorf("%+v", got[2])
	}
}

func TestNothingToLearn(t *testing.T) {
	t.Parallel()
	other := &journal.Memory{}
	if err := other.Append(t.Context(), &journal.Begun{Version: journal.Version, Run: "r", Kind: "secrets"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		journal journal.Journal
		want    string
	}{
		{&journal.Memory{}, "holds no run yet"},
		{other, "a run of secrets teaches nothing"},
		{record(t, `{}`, ended{env: "maze", reward: 1}, ended{env: "maze", reward: 1}), "no episode was paid more"},
	} {
		if _, err := lessonsOf(t.Context(), c.journal); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
