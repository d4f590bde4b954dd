package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/replica"
	"parley/internal/read/report"
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

	// Recorded is all that is counted of the run: Calls and the rest of it are parts.
	Recorded journal.Spending `json:"-"`

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
	// Again has an entry for each time that failed episodes were played again.
	Again []journal.Again `json:"again,omitempty"`
	// CopiesNote says why there are copies and what to do. Empty: there are no copies.
	CopiesNote string `json:"copies_note"`
	// MeasuresNote names scores that were declared after the episodes were played. Empty: there are none.
	MeasuresNote string `json:"measures_note,omitempty"`
	// CountedNote says which episodes that ended are not in Scores and Agents, and why. Empty: all are.
	CountedNote string `json:"counted_note"`
	// Unreached names the cells that ended before their score was as precise as plan.until asks.
	Unreached []string `json:"unreached,omitempty"`

	Fault *results.Fault `json:"fault"` // the commonest failure of episodes; nil: no episode failed
	// Failures are the failed calls, by model and kind, the commonest first.
	Failures []results.Failure `json:"failures"`
	// Calls are questions to models and people.
	Calls struct {
		Total    int `json:"total"`    // recorded
		Earlier  int `json:"earlier"`  // of them: recorded by earlier processes, or copied by a fork or for another attempt
		Asked    int `json:"asked"`    // made by this process
		Replayed int `json:"replayed"` // read back instead of asked for; acts and answers of bots too
		Cached   int `json:"cached"`   // answered by the cache
		Failed   int `json:"failed"`   // of those asked: recorded as failures
		Programs int `json:"programs"` // calls of programs that the run file answered: these were not made again
		Repeated int `json:"repeated"` // had no recorded reply when the last process, or a worker, was cut off; acts too
	} `json:"calls"`
	// Acts are requests to environments, and to other things outside of the world.
	Acts struct {
		Total  int `json:"total"`  // recorded
		Asked  int `json:"asked"`  // made by this process
		Failed int `json:"failed"` // of those asked: recorded as failures
	} `json:"acts"`
	Bots        int `json:"bots"`     // recorded answers of bots
	Programs    int `json:"programs"` // recorded answers of programs
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
	Repriced []string           `json:"repriced,omitempty"`
	Saved    llm.Money          `json:"saved_usd"`     // by the providers' prompt caches, in this process; negative where writing to them cost more
	Batches  int                `json:"batches_open"`  // still with their providers; the run collects them when it is resumed
	AtRisk   llm.Money          `json:"at_risk_usd"`   // the most that calls cut off in flight may have cost; it counts against the budget
	Aside    llm.Money          `json:"set_aside_usd"` // for open batches
	Budget   llm.Money          `json:"budget_usd,omitempty"`
	Servers  []Server           `json:"servers"` // of models that have several
	Wall     float64            `json:"wall_s"`
	Digest   string             `json:"digest"`
	Scores   []results.Estimate `json:"scores"`
	Agents   []results.Estimate `json:"agents"` // the same, by agent alone
}

// Sums returns the money of the run.
func (s *Summary) Sums() budget.Sums {
	m := budget.Sums{AtRisk: s.AtRisk, Aside: s.Aside, Limit: s.Budget}
	if s.Cost != nil {
		m.Spent = *s.Cost
	}
	return m
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
	file   string
	plan   *planfile.Plan
	result engine.Result
	// earlier counts the calls of models and people that were recorded before the process.
	earlier int
	grown   *growth.Growth
	stats   dispatch.Snapshot
	money   budget.Sums // of its budget, as it was at the end
	servers []replica.State
	// models are those of the plan, and unpriced those whose price is not known.
	models, unpriced []string
	// repriced are those whose price is not that of the beginning of the run.
	repriced []string
}

// summarize sums up the run in j. A summary that comes with an error lacks only failures.
func (p process) summarize(ctx context.Context, j journal.Journal) (*Summary, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Begun == nil { // the first entry was not written
		return nil, fmt.Errorf("the journal %w", results.ErrEmpty)
	}
	recorded, err := journal.Count(ctx, j)
	if err != nil {
		return nil, err
	}
	s := p.counts(head, recorded)
	outcomes := results.Outcomes(head, p.plan.Kind)
	s.Distinct, s.Copies = results.Distinct(head)
	s.Again = head.Begun.Again
	s.CopiesNote, s.CountedNote, s.MeasuresNote = results.CopiesNote(head), outcomes.CountedNote(), outcomes.MeasuresNote()
	s.Scores, s.Agents = Scores(outcomes), ByAgent(outcomes)
	if p.plan.Until != nil && s.State == journal.Complete {
		s.Unreached = unreached(outcomes, p.plan)
	}
	s.Servers = make([]Server, 0, len(p.servers))
	for _, r := range p.servers {
		s.Servers = append(s.Servers, Server{URL: r.Name, Calls: r.Asked, Failed: r.Failed, Resting: r.Resting})
	}
	if len(p.models) == 0 || len(p.unpriced) < len(p.models) {
		s.Cost = &recorded.Cost
	}
	return s, s.explain(ctx, j, head, p.result.Cause, p.stats)
}

// counts returns a summary with the figures that need no reading of outcomes and failures.
func (p process) counts(head *journal.Head, recorded journal.Spending) *Summary {
	r, d := p.result, p.stats
	s := &Summary{
		File: p.file, State: r.State, Reason: r.Reason, Grown: p.grown, Unpriced: p.unpriced, Repriced: p.repriced, Saved: d.Saved, Batches: head.Accepted(), AtRisk: atRiskOf(head), Aside: p.money.Aside, Budget: p.money.Limit,
		Recorded: recorded, Attempts: int(d.Attempts), RateLimited: int(d.RateLimited), Digest: r.Digest, Wall: r.Wall.Seconds(),
	}
	s.Episodes.Total, s.Episodes.Failed = r.Episodes, r.Failed
	s.Episodes.Complete = r.Ended - r.Failed
	s.Calls.Total, s.Calls.Earlier, s.Calls.Asked, s.Calls.Replayed = recorded.Calls, p.earlier+r.Copied, r.Made.Calls, r.Replayed
	s.Acts.Total, s.Acts.Asked, s.Acts.Failed, s.Bots = recorded.Acts, r.Made.Acts, r.Made.FailedActs, recorded.Bots
	s.Programs = recorded.Programs
	s.Calls.Cached, s.Calls.Failed, s.Calls.Programs, s.Calls.Repeated = int(d.Cached), r.Made.FailedCalls, r.Repeated, r.Lost
	used := r.Made.Usage
	s.Tokens.Input, s.Tokens.Cached, s.Tokens.Output = used.Input, used.Cached, used.Output
	return s
}

// explain adds what failed in the run in j and, if the run is not complete, what stopped it.
func (s *Summary) explain(ctx context.Context, j journal.Journal, head *journal.Head, cause *journal.Replied, d dispatch.Snapshot) error {
	var faultErr, failErr error
	s.Fault, faultErr = results.CommonestFault(ctx, j, head)
	s.Failures, failErr = results.Failures(ctx, j)
	switch {
	case s.State == journal.Complete:
	case cause != nil:
		s.Cause = results.FailureOf(cause)
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
				commonest = results.AttemptsFailure(name, kind, n, m.LastError[kind])
			}
		}
	}
	return commonest
}

// Scores returns the estimates of a run by cell, agent, seat and score.
func Scores(r *results.Run) []results.Estimate {
	return estimates(r, func(g results.Group) results.Group { g.Model = ""; return g })
}

// ByAgent returns the estimates of a run by agent and score, over all seats and cells.
func ByAgent(r *results.Run) []results.Estimate {
	return estimates(r, func(g results.Group) results.Group { return results.Group{Score: g.Score, Agent: g.Agent} })
}

// estimates returns estimates sorted by cell, seat and agent.
func estimates(r *results.Run, by func(results.Group) results.Group) []results.Estimate {
	out := r.Estimates(by)
	slices.SortStableFunc(out, func(a, b results.Estimate) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.Agent, b.Agent))
	})
	return out
}

// unreached names the cells of a run whose score is less precise than plan.until asks.
func unreached(r *results.Run, plan *planfile.Plan) (out []string) {
	u := plan.Until
	by := func(g results.Group) results.Group {
		if u.Agent != "" {
			return results.Group{Score: g.Score, Cell: g.Cell, Agent: g.Agent}
		}
		return results.Group{Score: g.Score, Cell: g.Cell, Seat: g.Seat}
	}
	for _, s := range r.Scores(by) {
		q := s.Sample.Estimate(u.Confidence)
		if s.Score != u.Score || s.Agent != u.Agent || u.Agent == "" && s.Seat != u.Seat || q.Half() <= u.Width {
			continue
		}
		known := fmt.Sprintf("known to ±%.3g", q.Half())
		if math.IsInf(q.Half(), 0) {
			known = report.UnknownInterval(q)
		}
		text := fmt.Sprintf("%s is %s after %d episodes, and plan.until asks for ±%g", s.Score, known, s.Sample.Episodes(), u.Width)
		if s.Cell != "" {
			text = s.Cell + ": " + text
		}
		out = append(out, text)
	}
	return out
}
