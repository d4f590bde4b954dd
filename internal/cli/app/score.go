package app

import (
	"cmp"
	"slices"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
)

// Score is the mean of one score in a group of episodes, with a 95% interval.
type Score struct {
	Cell  string `json:"cell,omitempty"`
	Agent string `json:"agent,omitempty"`
	Seat  string `json:"seat,omitempty"`
	Score string `json:"score"`
	// Tags are those of the agent and of the cell's variation.
	Tags map[string]string `json:"tags,omitempty"`
	// Episodes counts the episodes that have the score. N counts independent units: episodes with the
	// same deal, and copies of one play, are one unit.
	Episodes int               `json:"episodes"`
	N        int               `json:"n"`
	Mean     float64           `json:"mean"`
	SD       float64           `json:"sd"` // of the observations
	Interval statmath.Interval `json:"interval"`
	Method   string            `json:"method"`
}

// Scores folds the outcomes of a run by cell, agent, seat and score.
func Scores(r *results.Run) []Score {
	return scores(r, func(g results.Group) results.Group { g.Model = ""; return g })
}

// ByAgent folds the outcomes of a run by agent and score, over all seats and cells.
func ByAgent(r *results.Run) []Score {
	return scores(r, func(g results.Group) results.Group { return results.Group{Score: g.Score, Agent: g.Agent} })
}

// scores returns the scores sorted by cell, seat and agent.
func scores(r *results.Run, by func(results.Group) results.Group) []Score {
	tags := r.Tags()
	out := []Score{}
	r.EachScore(by, func(s results.Score) {
		q := s.Estimate()
		out = append(out, Score{
			Cell: s.Cell, Agent: s.Agent, Seat: s.Seat, Score: s.Score, Tags: tags(s.Agent, s.Cell), Episodes: s.Sample.Episodes(), N: q.N,
			Mean: q.Value, SD: s.Sample.SD(), Interval: q.Interval, Method: q.Method,
		})
	})
	slices.SortStableFunc(out, func(a, b Score) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.Agent, b.Agent))
	})
	return out
}
