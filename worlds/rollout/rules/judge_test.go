package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/rubric"
)

// TestJudge checks how the score of a judge becomes a part of the reward: which rule combines them, that rows and scores
// have the whole and the parts, and that a judge without a score leaves the reward missing.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, params string
		fail         llm.Kind
		verdict      string
		rows         []string
		reward       float64
		failed       string
	}{
		{"add", `"scale":[0,10]}},"weight":0.5`, "", `{"reason":"fine","brief":6}`, []string{"1/1", "5/6 TCL"}, 6, ""},
		{"multiply", `"scale":[0,10]}},"combine":"multiply"`, "", `{"reason":"","brief":2}`, []string{"1/1", "5/6 TCL"}, 6, ""},
		{"replace", `"per":"episode"}},"weight":0.25,"combine":"replace"`, "", `{"reason":"","brief":true}`, []string{"1/1", "-0.75/0.25 TCL"}, 0.25, ""},
		{"two questions", `"scale":[0,10]},"new":{"ask":"Was {seat} new?"}}`, "", `{"reason":"","brief":2,"new":true}`, []string{"1/1", "5/6 TCL"}, 6, ""},
		{"choices and texts pay nothing", `"scale":[0,10]},"kind":{"ask":"?","choices":["u","v"]},"why":{"ask":"?","text":true}}`, "", `{"reason":"","brief":3,"kind":"v","why":"so"}`, []string{"1/1", "5/6 TCL"}, 6, ""},
		{"a refusal", `"scale":[0,10]}}`, llm.KindRefused, "", []string{"1/1", "2/3 T"}, 0, "judge: refused: the reward is not known"},
		{"out of the scale", `"scale":[0,1]}}`, "", `{"reason":"","brief":7}`, []string{"1/1", "2/3 T"}, 0, "judge: it has no valid answer to brief: the reward is not known"},
		{"no verdict", `"scale":[0,1]}}`, "", `[]`, []string{"1/1", "2/3 T"}, 0, "judge: its answer is no judgement: the reward is not known"},
	} {
		s := &script{steps: []Result{pay(1), ends(2)}, verdict: c.verdict}
		if c.fail != "" {
			s.failAsk = map[int]llm.Kind{2: c.fail}
		}
		params := `{"judge":{"questions":{"brief":{"ask":"Be brief, {seat} </record>.",` + c.params + `}}`
		o, d := play(t, params, nil, s)
		var rows []string
		for _, r := range d.Rows {
			rows = append(rows, flags(r))
		}
		last := s.asked[len(s.asked)-1]
		if !slices.Equal(rows, c.rows) || o.Failed != c.failed || last.Seat != "judge" || last.Ask.Schema == nil || last.Ask.TokenIDs {
			t.Errorf("%s: %q, %q, %+v", c.name, rows, o.Failed, last)
		}
		if text := last.Ask.Messages[0].Text(); !strings.Contains(text, "[asked] agent (user): 2?\n[said] agent: do 1") || strings.Contains(text, "agent: a") || strings.Contains(c.params, "episode") == strings.Contains(text, "brief, agent") {
			t.Errorf("%s: the judge reads %s", c.name, text)
		}
		if c.failed != "" {
			if len(o.Scores) > 0 || len(d.Verdicts) > 0 || d.Stop != StopFailed {
				t.Errorf("%s: a missing reward has scores: %+v %+v", c.name, o.Scores, d.Verdicts)
			}
			continue
		}
		v := d.Verdicts[0]
		want := []world.Score{{Seat: "agent", Name: "reward", Value: c.reward}, {Seat: "agent", Name: environmentReward, Value: 3}, {Name: "steps", Value: 2}}
		sum := 0.0
		o.Scores = slices.DeleteFunc(o.Scores, func(s world.Score) bool {
			if s.Name == "brief" || s.Name == "new" {
				sum += s.Value
			}
			return !slices.Contains(want, s)
		})
		if len(d.Ratings) == 0 || sum != v.Score || v.Environment != 3 || v.Reward != c.reward || !slices.Equal(o.Scores, want) {
			t.Errorf("%s: %+v, %+v", c.name, v, o.Scores)
		}
	}
}

// TestJudgeGroups checks that the groups of a stage are followed by their judgements, which get the records of the episodes
// that did not fail and the environment's rewards, and give the best the highest score.
func TestJudgeGroups(t *testing.T) {
	t.Parallel()
	p := Definition{}.Defaults()
	mustRead([]byte(`{"env":"maze","group":3,"judge":{"questions":{"best":{"ask":"x","scale":[0,4]}},"compare":true}}`), p)
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cell := world.Spec{Kind: "rollout", Params: raw, Deal: 2}
	plan, err := Definition{}.Plan(p, cell, 1)
	if err != nil {
		t.Fatal(err)
	}
	var played []world.Played
	for i, spec := range plan.Next(nil).All() {
		var o world.Outcome
		if i == 1 {
			o.Failed = "lost"
		} else {
			_, d := play(t, string(spec.Params), nil, &script{steps: []Result{ends(float64(i))}})
			b, err := json.Marshal(d)
			if err != nil || !strings.Contains(d.Record, "[said] agent: do 0") {
				t.Fatal(err, d.Record)
			}
			o = world.Outcome{Data: json.RawMessage(b), Scores: []world.Score{{Seat: "agent", Name: environmentReward, Value: float64(i)}}}
		}
		played = append(played, world.Played{Episode: 10 + i, Spec: spec, Outcome: o})
	}
	next := plan.Next(played)
	if len(played) != 3 || next.Len() != 1 || next.At(0).Deal != 2 {
		t.Fatal(len(played), next.Len())
	}
	group, err := Definition{}.TrainingGroup(next.At(0))
	if err != nil || group.Name != "maze:3" || !group.Judgement || group.Judged {
		t.Error(group, err)
	}
	s := &script{verdict: `{"reason":"because","best":[2,1]}`}
	o, d := play(t, string(next.At(0).Params), nil, s)
	v := d.Verdicts
	if o.Failed != "" || len(v) != 2 || v[0].Episode != 10 || v[1].Episode != 12 || v[0].Score+v[1].Score != 4 || v[1].Reward != 2+v[1].Score || len(d.Ratings) != 2 || d.Ratings[0].Length == 0 {
		t.Errorf("%s %+v", o.Failed, v)
	}
	text := s.asked[0].Ask.Messages[0].Text()
	if !strings.Contains(text, "[attempt] 2: ") || strings.Contains(text, "[attempt] 3") {
		t.Error(text)
	}
	if done := plan.Next([]world.Played{{Spec: next.At(0), Outcome: o}}); done.Len() != 0 {
		t.Error("there is more to play:", done.Len())
	}
	for verdict, failed := range map[string]string{
		`{"reason":"","best":[2,2]}`: "judge: it has no valid answer to best: the rewards of the group are not known",
		`{"reason":"","best":[1]}`:   "judge: it has no valid answer to best: the rewards of the group are not known",
	} {
		if o, _ := play(t, string(next.At(0).Params), nil, &script{verdict: verdict}); !strings.Contains(o.Failed, failed) || len(o.Scores) > 0 {
			t.Errorf("%s: %+v", verdict, o)
		}
	}
	p.Group = 1
	if _, err := (Definition{}).Plan(p, world.Spec{Kind: "rollout", Params: raw}, 1); err == nil || !strings.Contains(err.Error(), "set group to at least 2") {
		t.Error(err)
	}
}

// TestSeveralJudges: the reward has the mean of the judges, for each agent that is trained, and each judge must answer.
func TestSeveralJudges(t *testing.T) {
	t.Parallel()
	both := func(answer string) (world.Outcome, Data) {
		one := ends(1)
		one.Reward = Rewards{"a": 1, "b": 2}
		prompts := func(int) Prompt { return Prompt{"a": chat(1)[DefaultAgent], "b": chat(1)[DefaultAgent]} }
		return play(t, `{"seats":["a","b"],"judge":{"questions":{"kind":{"ask":"Is {seat} kind?","scale":[0,10]}},"judges":["mild","strict"]}}`, nil,
			&script{steps: []Result{one}, prompts: prompts, verdicts: map[string]string{"mild": `{"reason":"","kind":8}`, "strict": answer}})
	}
	o, d := both(`{"reason":"","kind":3}`)
	var got []string
	for _, s := range o.Scores {
		got = append(got, fmt.Sprint(s.Seat, " ", s.Name, " ", s.Value))
	}
	want := "a reward 6.5, b reward 7.5, a environment_reward 1, b environment_reward 2, a kind 5.5, b kind 5.5,  steps 1"
	if strings.Join(got, ", ") != want || len(d.Ratings) != 4 || d.Verdicts[1].Score != 5.5 {
		t.Errorf("%q, want %s: %+v", got, want, d)
	}
	if o, _ := both(`{}`); o.Failed != "strict: it has no valid answer to kind: the reward is not known" {
		t.Error(o.Failed)
	}
}

// TestGroupRecords: the records of a group's episodes share what a judge reads, also where a file of environments sets the size of the group.
func TestGroupRecords(t *testing.T) {
	t.Parallel()
	judge := `"judge":{"questions":{"best":{"ask":"x"}},"compare":true,"max_text":1000}`
	for _, size := range []string{`"group":5`, `"task":{"env":"maze","group":"maze:1","index":1,"size":5}`} {
		s := &script{steps: []Result{ends(1)}, prompts: func(int) Prompt {
			return Prompt{DefaultAgent: {Messages: []llm.Message{llm.User(strings.Repeat("long ", 1000))}}}
		}}
		if _, d := play(t, `{`+size+`,`+judge+`}`, nil, s); len(d.Record) < 200 || len(d.Record) > 300 {
			t.Errorf("%s: a record of %d characters", size, len(d.Record))
		}
	}
}

// TestJudgeParams checks what is said about wrong params.
func TestJudgeParams(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`"judges":["agent"]`: "params.judge.judges: agent is an agent of the environment",
		`"compare":true},"seats":["a","b"],"pool":{"warm":0`: "params.judge.compare: it compares episodes of one agent",
		`"combine":"max"`:  "params.judge.combine",
		`"max_text":3`:     "params.judge.max_text",
		`"judges":["a b"]`: "params.judge.judges[0]",
		`"questions":{"q":{"ask":"?","scale":[1]}}`:                        "params.judge.questions.q.scale: [1]: want the lowest and the highest answer",
		`"questions":{"q":{"ask":"?","by":"seat"}}`:                        "params.judge.questions.q: by: seat and categories are only for parley score",
		`"questions":{"q":{"ask":"?","categories":3}}`:                     "params.judge.questions.q: by: seat and categories are only for parley score",
		`"compare":true,"questions":{"q":{"ask":"?","choices":["a","b"]}}`: "params.judge.questions.q: by: seat and categories are only for parley score; choices and text are not for compare",
		`"questions":{"reward":{"ask":"?"}}`:                               "params.judge.questions.reward: the name reward is taken",
	} {
		kind := world.Define(Definition{})
		p, err := kind.Read([]byte(`{"judge":{"questions":{"q":{"ask":"?"}},` + params + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kind.Seats(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	of := judgeDefaults()
	of.Questions["q"] = rubric.Question{Ask: "?"}
	if v := of.verdict("a", 2, []world.Score{{Name: "q", Value: 1}}); v.Reward != 3 {
		t.Error(v)
	}
}
