package rules

import (
	"encoding/json"
	"fmt"

	"parley/world"
)

// Scores of episodes with a judge: the parts of the reward.
const (
	environmentReward = "environment_reward"
	judgeScore        = "judge_score"
)

// judge asks the judge about the agents that are trained and answered, and pays them what it adds. A judge that gives no
// score fails the episode: its rewards are not known.
func (p *try) judge(t *world.Table) {
	if !p.Judge.On() || p.Judge.OfGroups() || p.stop == StopFailed {
		return
	}
	var seats []string
	for _, seat := range p.Seats {
		if p.trains[seat] && p.rewards.Acted(seat) {
			seats = append(seats, seat)
		}
	}
	if len(seats) == 0 {
		return // nobody did anything
	}
	scores, reason, failed := p.Judge.Score(t, p.record, seats)
	if failed != "" {
		p.fail("judge: %s: the reward is not known", failed)
		return
	}
	for _, seat := range seats {
		v := Verdict{Seat: seat, Environment: p.rewards.Total[seat], Score: scores[seat], Reason: reason}
		v.Reward = p.Judge.Reward(v.Environment, v.Score)
		p.verdicts = append(p.verdicts, v)
		p.rewards.Add(seat, v.Reward-v.Environment)
	}
}

// judged returns a plan of groups with judgements of them.
func (p *Params) judged(of world.Plan) (world.Plan, error) {
	if list, ok := of.(world.Specs); ok {
		for b := range list.Blocks() {
			for _, g := range b.Groups {
				if g.Size < 2 {
					return nil, wrong("group", "judge.by: group compares the episodes of a group: set group to at least 2")
				}
			}
		}
	}
	return judgedPlan(of, member, p.judgement), nil
}

// judgement returns the spec of the judgement of a group with the episodes of spec.
func (p *Params) judgement(spec world.Spec, g Group) (world.Spec, error) {
	var of Params
	if err := json.Unmarshal(spec.Params, &of); err != nil {
		return spec, fmt.Errorf("rollout: params: %w", err)
	}
	of.Judgement = &g
	var err error
	spec.Params, err = json.Marshal(of)
	return spec, err
}

// member returns what a judge of groups gets of an outcome.
func member(o world.Outcome) (m Member, ok bool) {
	raw, _ := o.Data.(json.RawMessage)
	var d Data
	if json.Unmarshal(raw, &d) != nil || d.Record == "" {
		return m, false
	}
	for _, s := range o.Scores {
		if s.Name == environmentReward {
			return Member{Seat: s.Seat, Environment: s.Value, Text: d.Record}, true
		}
	}
	return m, false
}

// judgement is an episode in which the judge puts the episodes of a group in order.
type judgement struct{ *Params }

// Play asks the judge once. The reward of the judgement is the mean of those that it gives.
func (j *judgement) Play(t *world.Table) world.Outcome {
	verdicts, failed := j.Judge.Order(t, *j.Judgement)
	if failed != "" {
		return world.Outcome{Data: Data{Env: j.Env, Judgement: &Ordered{}}, Failed: fmt.Sprintf("judge: %s: the rewards of the group are not known", failed)}
	}
	mean := 0.0
	for i, v := range verdicts {
		mean += (v.Reward - mean) / float64(i+1)
	}
	return world.Outcome{
		Data:   Data{Env: j.Env, Judgement: &Ordered{Verdicts: verdicts}},
		Scores: []world.Score{{Seat: j.Seats[0], Name: "reward", Value: mean}},
	}
}
