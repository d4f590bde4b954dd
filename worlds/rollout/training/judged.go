package training

import (
	"cmp"
	"context"
	"slices"

	"parley/journal"
	"parley/worlds/rollout/rules"
)

// This file gives episodes the rewards of a judge that compares the episodes of a group. Its judgements are episodes of
// their own, in a later stage.

// findJudgements finds the places of judgements.
func (s *stage) findJudgements() error {
	s.judgements = map[int]string{}
	for i, spec := range s.Specs.All() {
		name, judged, err := rules.Grouped(spec)
		if err != nil {
			return err
		}
		if judged == rules.Judgement {
			s.judgements[i] = name
		}
	}
	return nil
}

// judge gives the members of a group their rewards. It reports whether the judgement has ended.
func (g *trajectoryGroups) judge(ctx context.Context, src journal.Parts, of *Group) (ended bool, err error) {
	episode, planned := g.judgements[of.ID]
	if !planned {
		return false, nil
	}
	page, err := src.Planned(ctx, episode, 1)
	if err != nil || len(page) == 0 || page[0].Ended == nil {
		return false, err
	}
	outcome := page[0].Ended.Outcome
	verdicts := rules.Read(outcome)
	for _, t := range of.Members {
		i := slices.IndexFunc(verdicts, func(v rules.Verdict) bool { return v.Episode == t.Episode })
		switch {
		case t.Status == TrajectoryFailed:
		case i < 0:
			t.unjudged(cmp.Or(outcome.Failed, "judge: it said nothing about the episode"))
		default:
			t.judged(verdicts[i])
		}
	}
	return true, nil
}

// judged adds what a judge gave to the last answer.
func (t *Trajectory) judged(v rules.Verdict) {
	t.Data.Verdicts = []rules.Verdict{v}
	t.Return[v.Seat] = v.Reward
	for i := range slices.Backward(t.Data.Rows) {
		if r := &t.Data.Rows[i]; r.Seat == v.Seat {
			r.StepReward += v.Reward - v.Environment
			r.Reward, r.NoReward = v.Reward, false
			return
		}
	}
}

// unjudged marks an episode whose reward is not known as failed.
func (t *Trajectory) unjudged(why string) {
	t.Status, t.Failed = TrajectoryFailed, why
	for i := range t.Data.Rows {
		t.Data.Rows[i].Completed, t.Data.Rows[i].Trainable = false, false
	}
}

// verdict sets the parts of the reward of a row.
func (r *Row) verdict(t *Trajectory) {
	for _, v := range t.Data.Verdicts {
		if v.Seat == r.AgentID {
			r.EnvironmentReward, r.JudgeScore = &v.Environment, &v.Score
		}
	}
}
