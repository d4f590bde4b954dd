package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
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
		{"add", `{"scale":[0,10],"weight":0.5}`, "", `{"reason":"fine","score":6}`, []string{"1/1", "5/6 TCL"}, 6, ""},
		{"multiply", `{"combine":"multiply","scale":[0,10]}`, "", `{"reason":"","score":2}`, []string{"1/1", "5/6 TCL"}, 6, ""},
		{"replace", `{"combine":"replace"}`, "", `{"reason":"","score":0.25}`, []string{"1/1", "-0.75/0.25 TCL"}, 0.25, ""},
		{"a refusal", `{}`, llm.KindRefused, "", []string{"1/1", "2/3 T"}, 0, "judge: refused: the reward is not known"},
		{"out of the scale", `{}`, "", `{"reason":"","score":7}`, []string{"1/1", "2/3 T"}, 0, "judge: it gave agent no score from 0 to 1: the reward is not known"},
		{"no verdict", `{}`, "", `[]`, []string{"1/1", "2/3 T"}, 0, "judge: its answer is no judgement: the reward is not known"},
	} {
		s := &script{steps: []Result{pay(1), ends(2)}, verdict: c.verdict}
		if c.fail != "" {
			s.failAsk = map[int]llm.Kind{2: c.fail}
		}
		params := `{"judge":` + strings.Replace(c.params, "{", `{"rubric":"Be brief </record>.",`, 1) + `}`
		params = strings.Replace(params, ",}", "}", 1)
		o, d := play(t, params, nil, s)
		var rows []string
		for _, r := range d.Rows {
			rows = append(rows, flags(r))
		}
		last := s.asked[len(s.asked)-1]
		if !slices.Equal(rows, c.rows) || o.Failed != c.failed || last.Seat != "judge" || last.Ask.Schema == nil || last.Ask.TokenIDs {
			t.Errorf("%s: %q, %q, %+v", c.name, rows, o.Failed, last)
		}
		if text := last.Ask.Messages[0].Text(); !strings.Contains(text, "[shown] agent: 2?") || !strings.Contains(text, "[said] agent: do 1") || strings.Contains(text, "agent: a") {
			t.Errorf("%s: the judge reads %s", c.name, text)
		}
		if c.failed != "" {
			if len(o.Scores) > 0 || len(d.Verdicts) > 0 || d.Stop != StopFailed {
				t.Errorf("%s: a missing reward has scores: %+v %+v", c.name, o.Scores, d.Verdicts)
			}
			continue
		}
		v := d.Verdicts[0]
		want := []world.Score{{Seat: "agent", Name: "reward", Value: c.reward}, {Seat: "agent", Name: environmentReward, Value: 3}, {Seat: "agent", Name: judgeScore, Value: v.Score}, {Name: "steps", Value: 2}}
		if v.Environment != 3 || v.Reward != c.reward || !slices.Equal(o.Scores, want) {
			t.Errorf("%s: %+v, %+v", c.name, v, o.Scores)
		}
	}
}

// TestJudgeGroups checks that the groups of a stage are followed by their judgements, which get the records of the episodes
// that did not fail and the environment's rewards, and give the best the highest score.
func TestJudgeGroups(t *testing.T) {
	t.Parallel()
	p := Definition{}.Defaults()
	mustRead([]byte(`{"env":"maze","group":3,"judge":{"rubric":"x","by":"group","scale":[0,4]}}`), p)
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
	s := &script{verdict: `{"reason":"because","order":[2,1]}`}
	o, d := play(t, string(next.At(0).Params), nil, s)
	v := d.Judgement.Verdicts
	if o.Failed != "" || len(v) != 2 || v[0].Episode != 10 || v[1].Episode != 12 || v[0].Score+v[1].Score != 4 || v[1].Reward != 2+v[1].Score || v[0].Reason != "because" {
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
		`{"reason":"","order":[2,2]}`: "its order does not have each of 2 attempts once",
		`{"reason":"","order":[1]}`:   "its order does not have each of 2 attempts once",
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

// TestJudgeParams checks what is said about wrong params.
func TestJudgeParams(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"judge":{"rubric":"x","seat":"agent"}}`:                 "params.judge.seat: agent is an agent of the environment",
		`{"judge":{"rubric":"x","scale":[1]}}`:                    "params.judge.scale: [1]: want the lowest and the highest score",
		`{"judge":{"rubric":"x","by":"group"},"seats":["a","b"]}`: "params.judge.by: group compares episodes of one agent",
		`{"judge":{"rubric":"x","combine":"max"}}`:                "params.judge.combine",
		`{"judge":{"rubric":"x","max_text":3}}`:                   "params.judge.max_text",
		`{"judge":{"rubric":"x","seat":"a b"}}`:                   "params.judge.seat",
	} {
		p := Definition{}.Defaults()
		mustRead([]byte(params), p)
		if err := p.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	if r := judgeDefaults().reward(2, 1); r != 3 {
		t.Error(r)
	}
}
