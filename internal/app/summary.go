package app

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"parley/engine"
	"parley/internal/dispatch"
	"parley/internal/replica"
	"parley/internal/stats"
	"parley/internal/view"
	"parley/internal/view/failure"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Summary is how a run stands at the end of a sitting. Episodes, Distinct, Copies, Fault, Failures, Calls.Total, Cost,
// Digest and Scores are of the whole run; the rest is of this sitting.
type Summary struct {
	File  string        `json:"file"`
	State journal.State `json:"state"`
	// Reason is why the run is not complete.
	Reason journal.Reason `json:"reason"`
	// Cause is the failed call that stopped the run. It is not among Failures, since it is asked
	// again. Nil: something else did.
	Cause *failure.Failure `json:"cause"`
	// AttemptFailure is what attempts of this sitting failed of most often, if the run was stopped
	// otherwise and no call is recorded as failed. Its Calls counts attempts. Nil: there is none.
	AttemptFailure *failure.Failure `json:"attempt_failure"`

	Episodes struct {
		Total    int `json:"total"`
		Complete int `json:"complete"`
		Failed   int `json:"failed"`
	} `json:"episodes"`
	// Distinct is how many different plays the complete episodes are, and Copies how many of them
	// are copies of another: see view.Distinct.
	Distinct int `json:"distinct"`
	Copies   int `json:"copies"`
	// Grown is set where the plan asked for more than was recorded before this sitting.
	Grown *Growth `json:"grown,omitempty"`
	// CopiesNote says why there are copies and what to do; empty where there are none.
	CopiesNote string `json:"copies_note"`
	// Unreached says which cells ended though their score is not known as well as plan.until asks.
	Unreached []string `json:"unreached,omitempty"`

	Fault *failure.Fault `json:"fault"` // what episodes failed of most often; nil: none failed
	// Failures are the calls that failed, by model and kind, the commonest first.
	Failures []failure.Failure `json:"failures"`
	Calls    struct {
		Total    int `json:"total"`    // recorded
		Earlier  int `json:"earlier"`  // of them: recorded by earlier processes, or copied by a fork
		Asked    int `json:"asked"`    // made by this process, to models and environments; bots are not asked
		Replayed int `json:"replayed"` // read back instead of asked for
		Cached   int `json:"cached"`   // answered by the cache
		Failed   int `json:"failed"`   // of those asked: recorded as failures, asks and acts alike
		Repeated int `json:"repeated"` // were in flight when the last sitting was cut off, and asked again
	} `json:"calls"`
	Attempts    int `json:"attempts"`
	RateLimited int `json:"rate_limited"`
	Tokens      struct {
		Input  int `json:"input"`
		Cached int `json:"cached"`
		Output int `json:"output"`
	} `json:"tokens"`
	// Cost leaves out the models of Unpriced, whose price is not known. It is nil where no
	// model's is.
	Cost     *llm.Money `json:"cost_usd"`
	Unpriced []string   `json:"unpriced"`
	Batches  int        `json:"batches_open"` // are with their providers, and are collected when the run is resumed
	Risked   llm.Money  `json:"risked_usd"`   // what calls may have cost besides that were cut off in flight; it counts against the budget
	Servers  []Server   `json:"servers"`      // of models that have several
	Wall     float64    `json:"wall_s"`
	Digest   string     `json:"digest"`
	Scores   []Score    `json:"scores"`
	Agents   []Score    `json:"agents"` // the same, by agent alone
}

// Server is what one of several servers of a model did.
type Server struct {
	URL     string `json:"url"`
	Calls   int    `json:"calls"`  // that it was sent, tries that failed included
	Failed  int    `json:"failed"` // of them, by its fault
	Resting bool   `json:"resting"`
}

func serversOf(states []replica.State) []Server {
	out := make([]Server, 0, len(states))
	for _, s := range states {
		out = append(out, Server{URL: s.Name, Calls: s.Asked, Failed: s.Failed, Resting: s.Resting})
	}
	return out
}

// Score is the mean of one score in a group of episodes, with a 95% interval.
type Score struct {
	Cell  string `json:"cell,omitempty"`
	Agent string `json:"agent,omitempty"`
	Seat  string `json:"seat,omitempty"`
	Score string `json:"score"`
	// Tags are those of the agent and of the cell's variation.
	Tags map[string]string `json:"tags,omitempty"`
	// Episodes is how many have the score, and N how many independent units they are: episodes
	// with the same deal, and copies of one play, are one.
	Episodes int            `json:"episodes"`
	N        int            `json:"n"`
	Mean     float64        `json:"mean"`
	SD       float64        `json:"sd"` // of the observations
	Interval stats.Interval `json:"interval"`
	Method   string         `json:"method"`
}

func summarize(file string, kind world.Kind, r engine.Result, d dispatch.Snapshot, head *journal.Head) *Summary {
	s := &Summary{File: file, State: r.State, Reason: r.Reason, Attempts: int(d.Attempts), RateLimited: int(d.RateLimited), Digest: r.Digest, Risked: head.Risked, Wall: r.Wall.Seconds()}
	s.Batches = len(head.Batches)
	s.Episodes.Total, s.Episodes.Failed = r.Episodes, r.Failed
	s.Episodes.Complete = r.Ended - r.Failed
	s.Calls.Total, s.Calls.Asked, s.Calls.Replayed = head.Calls, r.Asked, r.Replayed
	s.Calls.Cached, s.Calls.Failed, s.Calls.Repeated = int(d.Cached), r.FailedCalls, r.Lost
	s.Tokens.Input, s.Tokens.Cached, s.Tokens.Output = d.Usage.Input, d.Usage.Cached, d.Usage.Output
	outcomes := view.Outcomes(head, kind)
	s.Distinct, s.Copies = view.Distinct(head)
	s.CopiesNote = view.CopiesNote(head)
	s.Scores, s.Agents = Scores(outcomes), ByAgent(outcomes)
	return s
}

// explain says what failed in the run in j and, if the run did not complete, what stood in its way.
func (s *Summary) explain(ctx context.Context, j journal.Journal, head *journal.Head, cause *journal.Replied, d dispatch.Snapshot) error {
	var faultErr, failErr error
	s.Fault, faultErr = failure.Commonest(ctx, j, head)
	s.Failures, failErr = failure.List(ctx, j)
	switch {
	case s.State == journal.Complete:
	case cause != nil:
		s.Cause = failure.Of(cause)
	case len(s.Failures) == 0:
		s.AttemptFailure = commonestAttempt(d)
	}
	return errors.Join(faultErr, failErr)
}

// commonestAttempt is what attempts failed of most often, or nil if none did.
func commonestAttempt(d dispatch.Snapshot) (most *failure.Failure) {
	for _, name := range d.Names() {
		m := d.Models[name]
		for _, kind := range llm.Kinds() {
			if n := int(m.Errors[kind]); n > 0 && kind != llm.KindCanceled && (most == nil || n > most.Calls) {
				most = failure.OfAttempts(name, kind, n, m.Said[kind])
			}
		}
	}
	return most
}

// charge says what the run has cost, as far as the prices of its models are known.
func (s *Summary) charge(spent llm.Money, models, unpriced []string) {
	s.Unpriced = unpriced
	if len(models) == 0 || len(unpriced) < len(models) {
		s.Cost = &spent
	}
}

// Scores folds the outcomes of a run by cell, agent, seat and score.
func Scores(r *view.Run) []Score {
	return scores(r, func(g view.Group) view.Group { g.Model = ""; return g })
}

// ByAgent folds them by agent and score alone, wherever the agent sat.
func ByAgent(r *view.Run) []Score {
	return scores(r, func(g view.Group) view.Group { return view.Group{Score: g.Score, Agent: g.Agent} })
}

// scores are sorted by cell, seat and agent.
func scores(r *view.Run, by func(view.Group) view.Group) []Score {
	all := r.Scores(by)
	tags := r.Tags()
	out := make([]Score, len(all))
	for i, s := range all {
		q := s.Estimate()
		out[i] = Score{
			Cell: s.Cell, Agent: s.Agent, Seat: s.Seat, Score: s.Score, Tags: tags(s.Agent, s.Cell), Episodes: s.Sample.Episodes(), N: q.N,
			Mean: q.Value, SD: s.Sample.SD(), Interval: q.Interval, Method: q.Method,
		}
	}
	slices.SortStableFunc(out, func(a, b Score) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.Agent, b.Agent))
	})
	return out
}
