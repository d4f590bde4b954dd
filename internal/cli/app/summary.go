// Part summary sums up a run after a process played it: its state, failures, cost and scores.

package app

import (
	"context"
	"errors"
	"fmt"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/run/engine"
	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
)

// Summary is the state of a run at the end of a process. Episodes, Distinct, Copies, Fault, Failures, Calls.Total, Cost,
// Digest and Scores are about the whole run. The rest is about this process.
type Summary struct {
	File  string        `json:"file"`
	State journal.State `json:"state"`
	// Reason is why the run is not complete.
	Reason journal.Reason `json:"reason"`
	// Cause is the failed call that stopped the run. Failures leaves it out, since it is asked again. Nil: something
	// else stopped the run.
	Cause *results.Failure `json:"cause"`
	// AttemptFailure is the commonest failure of this process's attempts, if something else stopped the run and no call
	// is recorded as failed. Its Calls counts attempts. Nil: no attempt failed.
	AttemptFailure *results.Failure `json:"attempt_failure"`

	Episodes struct {
		Total    int `json:"total"`
		Complete int `json:"complete"`
		Failed   int `json:"failed"`
	} `json:"episodes"`
	// Distinct is how many different plays the complete episodes are, and Copies how many of them
	// are copies of another: see results.Distinct.
	Distinct int `json:"distinct"`
	Copies   int `json:"copies"`
	// Grown is set if the plan asked for more than was recorded before this process.
	Grown *growth.Growth `json:"grown,omitempty"`
	// CopiesNote says why there are copies and what to do. Empty: there are no copies.
	CopiesNote string `json:"copies_note"`
	// Unreached names the cells that ended before their score was as precise as plan.until asks.
	Unreached []string `json:"unreached,omitempty"`

	Fault *results.Fault `json:"fault"` // the commonest failure of episodes; nil: no episode failed
	// Failures are the failed calls, by model and kind, the commonest first.
	Failures []results.Failure `json:"failures"`
	// Calls are questions to models and people.
	Calls struct {
		Total    int `json:"total"`    // recorded
		Earlier  int `json:"earlier"`  // of them: recorded by earlier processes, or copied by a fork
		Asked    int `json:"asked"`    // made by this process
		Replayed int `json:"replayed"` // read back instead of asked for; acts and answers of bots too
		Cached   int `json:"cached"`   // answered by the cache
		Failed   int `json:"failed"`   // of those asked: recorded as failures
		Repeated int `json:"repeated"` // had no recorded reply when the last process, or a worker, was cut off; acts too
	} `json:"calls"`
	// Acts are requests to environments, and to other things outside of the world.
	Acts struct {
		Total  int `json:"total"`  // recorded
		Asked  int `json:"asked"`  // made by this process
		Failed int `json:"failed"` // of those asked: recorded as failures
	} `json:"acts"`
	Bots        int `json:"bots"` // recorded answers of bots
	Attempts    int `json:"attempts"`
	RateLimited int `json:"rate_limited"`
	Tokens      struct {
		Input  int `json:"input"`
		Cached int `json:"cached"`
		Output int `json:"output"`
	} `json:"tokens"`
	// Cost leaves out the models of Unpriced, whose price is not known. Nil: no price is known.
	Cost     *llm.Money `json:"cost_usd"`
	Unpriced []string   `json:"unpriced"`
	// Repriced are the models whose price is not that of the beginning of the run.
	Repriced []string  `json:"repriced,omitempty"`
	Saved    llm.Money `json:"saved_usd"`    // by the providers' prompt caches, in this process; negative where writing to them cost more
	Batches  int       `json:"batches_open"` // still with their providers; the run collects them when it is resumed
	Risked   llm.Money `json:"risked_usd"`   // the most that calls cut off in flight may have cost; it counts against the budget
	Servers  []Server  `json:"servers"`      // of models that have several
	Wall     float64   `json:"wall_s"`
	Digest   string    `json:"digest"`
	Scores   []Score   `json:"scores"`
	Agents   []Score   `json:"agents"` // the same, by agent alone
}

// Server counts the calls of one of several servers of a model.
type Server struct {
	URL     string `json:"url"`
	Calls   int    `json:"calls"`  // sent to it, including attempts that failed
	Failed  int    `json:"failed"` // of them, by its fault
	Resting bool   `json:"resting"`
}

// process is what one process did with a run.
type process struct {
	File   string
	Plan   *planfile.Plan
	Result engine.Result
	// Earlier counts the calls of models and people that were recorded before the process.
	Earlier int
	Grown   *growth.Growth
	Stats   dispatch.Snapshot
	Servers []replica.State
	// Models are those of the plan, and Unpriced those whose price is not known.
	Models, Unpriced []string
	// Repriced are those whose price is not that of the beginning of the run.
	Repriced []string
}

// Summarize sums up the run in j. A summary that comes with an error lacks only failures.
func (p process) Summarize(ctx context.Context, j journal.Journal) (*Summary, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Begun == nil { // the first entry was not written
		return nil, fmt.Errorf("summary: the journal %w", results.ErrEmpty)
	}
	recorded, err := journal.Count(ctx, j)
	if err != nil {
		return nil, err
	}
	s := p.counts(head, recorded)
	outcomes := results.Outcomes(head, p.Plan.Kind)
	s.Distinct, s.Copies = results.Distinct(head)
	s.CopiesNote = results.CopiesNote(head)
	s.Scores, s.Agents = Scores(outcomes), ByAgent(outcomes)
	if p.Plan.Until != nil && s.State == journal.Complete {
		s.Unreached = unreached(outcomes, p.Plan)
	}
	s.Servers = make([]Server, 0, len(p.Servers))
	for _, r := range p.Servers {
		s.Servers = append(s.Servers, Server{URL: r.Name, Calls: r.Asked, Failed: r.Failed, Resting: r.Resting})
	}
	if len(p.Models) == 0 || len(p.Unpriced) < len(p.Models) {
		s.Cost = &head.Spent
	}
	return s, s.explain(ctx, j, head, p.Result.Cause, p.Stats)
}

// counts returns a summary with the figures that need no reading of outcomes and failures.
func (p process) counts(head *journal.Head, recorded journal.Counts) *Summary {
	r, d := p.Result, p.Stats
	s := &Summary{
		File: p.File, State: r.State, Reason: r.Reason, Grown: p.Grown, Unpriced: p.Unpriced, Repriced: p.Repriced, Saved: d.Saved, Batches: len(head.Batches), Risked: head.Risked,
		Attempts: int(d.Attempts), RateLimited: int(d.RateLimited), Digest: r.Digest, Wall: r.Wall.Seconds(),
	}
	s.Episodes.Total, s.Episodes.Failed = r.Episodes, r.Failed
	s.Episodes.Complete = r.Ended - r.Failed
	s.Calls.Total, s.Calls.Earlier, s.Calls.Asked, s.Calls.Replayed = recorded.Asks, p.Earlier, r.Asked, r.Replayed
	s.Acts.Total, s.Acts.Asked, s.Acts.Failed, s.Bots = recorded.Acts, r.Acted, r.FailedActs, recorded.Bots
	s.Calls.Cached, s.Calls.Failed, s.Calls.Repeated = int(d.Cached), r.FailedCalls, r.Lost
	s.Tokens.Input, s.Tokens.Cached, s.Tokens.Output = d.Usage.Input, d.Usage.Cached, d.Usage.Output
	return s
}

// explain adds what failed in the run in j and, if the run is not complete, what stopped it.
func (s *Summary) explain(ctx context.Context, j journal.Journal, head *journal.Head, cause *journal.Replied, d dispatch.Snapshot) error {
	var faultErr, failErr error
	s.Fault, faultErr = results.Commonest(ctx, j, head)
	s.Failures, failErr = results.List(ctx, j)
	switch {
	case s.State == journal.Complete:
	case cause != nil:
		s.Cause = results.Of(cause)
	case len(s.Failures) == 0:
		s.AttemptFailure = commonestAttempt(d)
	}
	return errors.Join(faultErr, failErr)
}

// commonestAttempt returns the commonest failure of attempts, or nil if none failed.
func commonestAttempt(d dispatch.Snapshot) (commonest *results.Failure) {
	for _, name := range d.Names() {
		m := d.Models[name]
		for _, kind := range llm.Kinds() {
			if n := int(m.Errors[kind]); n > 0 && kind != llm.KindCanceled && (commonest == nil || n > commonest.Calls) {
				commonest = results.OfAttempts(name, kind, n, m.Said[kind])
			}
		}
	}
	return commonest
}
