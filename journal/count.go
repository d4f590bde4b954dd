package journal

import (
	"context"

	"parley/llm"
)

// EpisodeCounts counts the episodes that a plan asked for so far by their state.
type EpisodeCounts struct {
	Total   int `json:"total"`
	Ended   int `json:"ended"`
	Failed  int `json:"failed"`
	Playing int `json:"playing"` // or they were, when the run was stopped
	Waiting int `json:"waiting"`
}

// NewEpisodeCounts returns the counts of a run. What has no other state waits.
func NewEpisodeCounts(total, ended, failed, playing int) EpisodeCounts {
	return EpisodeCounts{Total: total, Ended: ended, Failed: failed, Playing: playing, Waiting: max(0, total-ended-failed-playing)}
}

// Done returns how many episodes are over, failed or not.
func (c EpisodeCounts) Done() int { return c.Ended + c.Failed }

// Episodes counts the episodes of the run.
func (h *Head) Episodes() EpisodeCounts {
	total := 0
	for _, st := range h.Stages {
		total += st.Specs.Len()
	}
	failed := h.Ended.Failed()
	return NewEpisodeCounts(total, h.Ended.Len()-failed, failed, len(h.Playing))
}

// What was asked with a call: see Replied.Kind.
const (
	Ask = "ask" // a question to a model or a person: what a user sees as a call
	Act = "act" // an act on an environment, or on another thing outside of the world
	Bot = "bot" // a question to a bot

	Program = "program" // a question to a program, whose own questions to models are calls
)

// Kind returns what was asked: Ask, Act, Bot or Program.
func (r *Replied) Kind() string {
	switch {
	case r.Act != nil:
		return Act
	case r.Request != nil && ByProgram(r.Request.Model):
		return Program
	case r.Request != nil:
		return Ask
	default:
		return Bot
	}
}

// Metadata says how the reply was obtained.
func (r *Replied) Metadata() llm.Metadata {
	switch {
	case r.Error != nil:
		return r.Error.Metadata
	case r.Response != nil:
		return r.Response.Metadata
	default:
		return llm.Metadata{}
	}
}

// Reused reports whether the answer is not new: it was copied from another run or attempt, or no model was asked because a cache or an
// equal call had it.
func (r *Replied) Reused() bool {
	meta := r.Metadata()
	return r.Copied || meta.Cached || meta.Coalesced
}

// Usage returns the tokens that the call used in this run: none if the answer was reused.
func (r *Replied) Usage() llm.Usage {
	switch {
	case r.Reused():
		return llm.Usage{}
	case r.Error != nil:
		return r.Error.Usage
	case r.Response != nil:
		return r.Response.Usage
	default:
		return llm.Usage{}
	}
}

// Spending is how many replies there are, how many of these are failures, and what they cost: of an episode, of a run, or of a span
// of time. Everything that counts replies counts with it.
type Spending struct {
	Calls       int `json:"calls"`
	Acts        int `json:"acts,omitempty"`
	Bots        int `json:"bots,omitempty"`
	Programs    int `json:"programs,omitempty"`
	FailedCalls int `json:"failed_calls"`
	FailedActs  int `json:"failed_acts,omitempty"`
	FailedBots  int `json:"failed_bots,omitempty"`
	// FailedPrograms are answers of programs that are failures.
	FailedPrograms int       `json:"failed_programs,omitempty"`
	Usage          llm.Usage `json:"-"`
	Cost           llm.Money `json:"cost_usd"`
}

// Add counts a reply.
func (s *Spending) Add(e *Replied) { s.AddAlike(e, 1) }

// AddAlike counts n replies that differ only in their tokens and their cost: e has the sums of these.
func (s *Spending) AddAlike(e *Replied, n int) {
	all, failed := &s.Bots, &s.FailedBots
	switch e.Kind() {
	case Ask:
		all, failed = &s.Calls, &s.FailedCalls
	case Act:
		all, failed = &s.Acts, &s.FailedActs
	case Program:
		all, failed = &s.Programs, &s.FailedPrograms
	}
	*all += n
	if e.Error != nil {
		*failed += n
	}
	s.Usage, s.Cost = s.Usage.Plus(e.Usage()), s.Cost.Plus(e.Cost())
}

// Plus returns what s and o are together.
func (s Spending) Plus(o Spending) Spending {
	return Spending{
		Calls: s.Calls + o.Calls, Acts: s.Acts + o.Acts, Bots: s.Bots + o.Bots, Programs: s.Programs + o.Programs,
		FailedCalls: s.FailedCalls + o.FailedCalls, FailedActs: s.FailedActs + o.FailedActs, FailedBots: s.FailedBots + o.FailedBots, FailedPrograms: s.FailedPrograms + o.FailedPrograms,
		Usage: s.Usage.Plus(o.Usage), Cost: s.Cost.Plus(o.Cost),
	}
}

// Replies returns how many replies there are, of any kind.
func (s Spending) Replies() int { return s.Calls + s.Acts + s.Bots + s.Programs }

// Failures returns how many of them are failures.
func (s Spending) Failures() int {
	return s.FailedCalls + s.FailedActs + s.FailedBots + s.FailedPrograms
}

// Counter is a Journal that counts its replies without reading them.
type Counter interface {
	// Count returns what the replies add up to. Of their tokens it knows only input and output.
	Count(ctx context.Context) (Spending, error)
}

// Count counts the replies in j. Of their tokens only input and output are sure to be counted.
func Count(ctx context.Context, j Journal) (s Spending, err error) {
	if counter, ok := j.(Counter); ok {
		return counter.Count(ctx)
	}
	err = j.Read(ctx, Whole(), func(e Entry) error {
		if r, ok := e.(*Replied); ok {
			s.Add(r)
		}
		return nil
	})
	return s, err
}
