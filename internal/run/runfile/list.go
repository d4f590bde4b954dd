package runfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Outline is a run without its episodes.
type Outline struct {
	// Begun is nil if nothing is recorded yet.
	Begun *journal.Begun
	// Last is how the last process that played the run closed it. Open means that it did
	// not: the run is being played, or was cut off.
	Last journal.Closed
	Open bool

	Episodes               int // that the plan asked for so far
	Ended, Failed, Playing int // of these
	Replies                int // to calls, acts and bots' calls; failures too
	Spent                  llm.Money
	Batches                int // that are open at their providers
	Steered                []journal.Steered
}

// Outline reads an Outline. It takes a moment, however long the run is: it reads no calls and
// no episodes.
func (s *Store) Outline(ctx context.Context) (o Outline, err error) {
	err = s.read(func(r *reader) error {
		var h journal.Head
		t, err := readTotals(r.conn)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		n, err := r.events(everything(), func(_ int64, e journal.Entry) { h.Add(e) })
		o = Outline{
			Begun: h.Begun, Last: h.Last, Open: h.Cut, Replies: int(t.calls), Spent: max(0, llm.Money(t.spent)), Batches: len(h.Batches), Steered: h.Steered,
			Episodes: int(t.episodes), Playing: int(t.states[statePlaying]), Ended: int(t.states[stateEnded]), Failed: int(t.states[stateFailed]),
		}
		return cmp.Or(err, r.complete(n, t.events, "events"), r.checkBegun(h.Begun, t))
	})
	if err != nil {
		return Outline{}, err
	}
	return o, nil
}

// Stages reads the stages after the first so many.
func (s *Store) Stages(ctx context.Context, after int) (out []journal.Staged, err error) {
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		if err := cmp.Or(context.Cause(ctx), err); err != nil || int64(after) >= t.stages {
			return err
		}
		n, err := r.stages(everything(), func(_ int64, e journal.Entry) {
			if st, ok := e.(*journal.Staged); ok {
				out = append(out, *st)
			}
		})
		out = out[min(after, len(out)):]
		return cmp.Or(err, r.complete(n, t.stages, "stages"))
	})
	return out, err
}

// Plan reads the stages after the first so many and, if after is 0, the first entry.
func (s *Store) Plan(ctx context.Context, after int) (*journal.Begun, []journal.Staged, error) {
	stages, err := s.Stages(ctx, after)
	if err != nil || after > 0 {
		return nil, stages, err
	}
	o, err := s.Outline(ctx)
	return o.Begun, stages, err
}

// Ends lists the ends of episodes starting at entry number since, in order. It reads nothing
// else: reading all entries would take as long as playing did.
func (s *Store) Ends(ctx context.Context, since int) (out []journal.End, err error) {
	return s.EndsUntil(ctx, since, math.MaxInt)
}

// EndsUntil is Ends up to entry number last.
func (s *Store) EndsUntil(ctx context.Context, since, last int) (out []journal.End, err error) {
	err = s.read(func(r *reader) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		out = nil
		return r.scanFew(`SELECT seq, sum, episode, attempt FROM outcomes `+inSpan, span{int64(since) - 1, int64(last)}, func(c rowReader) error {
			c.Begin(rowOutcomes, 1)
			e := journal.End{Entry: int(c.Key), Episode: c.Int()}
			c.Int64()
			if err := c.Check(); err != nil || r.lost.Has(e.Episode) {
				return err
			}
			out = append(out, e)
			return nil
		})
	})
	return out, err
}

// Listing says which episodes to list.
type Listing struct {
	From    int    // the first
	Limit   int    // how many at most. Default: all.
	Failed  bool   // only failed ones
	Waiting bool   // only those that did not begin
	Cell    string // only those whose cell contains this text
	Agent   string // only those with this agent
	Among   []int  // only these, in order; nil: all
	Lost    bool   // also damaged ones that Salvage leaves out, as if they waited
}

// Listed is an episode without its turns and replies.
type Listed struct {
	Episode, Stage int
	Spec           world.Spec
	Begun          bool // it is being played, or was
	Attempt        int
	Ended          *journal.Ended // nil: it did not end yet

	last int64 // as in progress
}

// The states of an episode.
const (
	Waiting = "waiting"
	Playing = "playing"
	Ended   = "ended"
	Failed  = "failed"
)

// State returns the state of the episode.
func (l *Listed) State() string {
	switch {
	case l.Ended != nil && l.Ended.Outcome.Failed != "":
		return Failed
	case l.Ended != nil:
		return Ended
	case l.Begun:
		return Playing
	default:
		return Waiting
	}
}

// List reads episodes, in order. It reads only those that it lists, and the outcomes that
// were written while these were played.
func (s *Store) List(ctx context.Context, want Listing) (out []Listed, err error) {
	if want.Limit < 0 || want.From < 0 {
		return nil, errors.New("sqlite: list: From and Limit must not be negative")
	}
	err = s.read(func(r *reader) (err error) {
		if out, err = r.list(ctx, want); err != nil {
			return err
		}
		return cmp.Or(r.addProgress(out), r.addStages(out), r.addOutcomes(out))
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Planned lists up to limit episodes starting at from. A damaged episode is listed as if it
// waited.
func (s *Store) Planned(ctx context.Context, from, limit int) ([]journal.Planned, error) {
	list, err := s.List(ctx, Listing{From: from, Limit: limit, Lost: true})
	if err != nil {
		return nil, err
	}
	out := make([]journal.Planned, len(list))
	for i, l := range list {
		out[i] = journal.Planned{Episode: l.Episode, Stage: l.Stage, Spec: l.Spec, Ended: l.Ended}
	}
	return out, nil
}

// addProgress fills in how far episodes are.
func (r *reader) addProgress(list []Listed) error {
	if len(list) == 0 {
		return nil
	}
	t, err := readTotals(r.conn)
	if err != nil {
		return err
	}
	i := 0
	err = r.scanFew(progressSQL+inEpisodesSpan, span{int64(list[0].Episode) - 1, int64(list[len(list)-1].Episode)}, func(c rowReader) error {
		p, err := readProgress(c)
		if err != nil || i == len(list) || p.episode < list[i].Episode {
			return err // or it is not listed
		}
		for r.lost.Has(list[i].Episode) && list[i].Episode < p.episode {
			i++
		}
		l := &list[i]
		if i++; r.lost.Has(l.Episode) {
			return nil
		}
		if l.Episode != p.episode {
			return rowMissing(rowProgress, int64(l.Episode))
		}
		l.Begun, l.Attempt, l.last = p.state() != stateNone, p.Attempt, p.last
		if p.Ended {
			l.Ended = &journal.Ended{Attempt: -1} // addOutcomes reads it
		}
		return nil
	})
	if err == nil && i < len(list) && int64(list[i].Episode) < t.begun && !r.lost.Has(list[i].Episode) {
		err = rowMissing(rowProgress, int64(list[i].Episode))
	}
	return err
}

// addStages fills in the stages.
func (r *reader) addStages(list []Listed) error {
	i := 0
	return r.scan(stagesSQL, everything(), func(c rowReader) error {
		e, count, err := readStage(c)
		if err != nil {
			return err
		}
		for ; i < len(list) && list[i].Episode < e.First+count; i++ {
			list[i].Stage = e.Stage
		}
		return nil
	})
}

// addOutcomes fills in the outcomes. They have no index by episode, but they are written
// after the last reply, usually soon.
func (r *reader) addOutcomes(list []Listed) error {
	wanted := map[int]*Listed{}
	after := int64(math.MaxInt64)
	for i := range list {
		if l := &list[i]; l.Ended != nil {
			wanted[l.Episode], after = l, min(after, abs(l.last))
		}
	}
	for _, after := range []int64{after, 0} { // a reply may come after the outcome
		if len(wanted) == 0 {
			return nil
		}
		if err := notStop(r.findOutcomes(wanted, after)); err != nil {
			return err
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return errMissing("the outcome of episode %d", slices.Min(slices.Collect(maps.Keys(wanted))))
}

func (r *reader) findOutcomes(wanted map[int]*Listed, after int64) error {
	return r.scanFew(outcomesSQL, span{after, math.MaxInt64}, func(c rowReader) error {
		if wanted[c.Peek(2)] == nil {
			return nil // if the column is wrong, a wanted outcome is missing at the end
		}
		e, err := r.readOutcome(c, true)
		if err != nil {
			return err
		}
		l := wanted[e.Episode]
		if l == nil || l.Attempt != e.Attempt {
			return nil
		}
		l.Ended = e
		if delete(wanted, e.Episode); len(wanted) == 0 {
			return errStop
		}
		return nil
	})
}

// Spending is the calls and cost of all attempts at an episode.
type Spending struct {
	journal.Counts
	Failed journal.Counts // of these
	Cost   llm.Money
}

// Spent adds up the spending of an episode, without reading any texts.
func (s *Store) Spent(ctx context.Context, l *Listed) (sum Spending, err error) {
	err = s.readers.with(func(r *reader) error { sum, err = r.spent(ctx, l.last); return err })
	return sum, explain(s.path, fmt.Sprintf("read episode %d", l.Episode), err)
}

// count counts a reply, as journal.Counts.Add does.
func (k *replyCore) count(c *journal.Counts) {
	switch {
	case k.has(flagAct):
		c.Acts++
	case k.has(flagAsked):
		c.Asks++
	default:
		c.Bots++
	}
}

func (r *reader) spent(ctx context.Context, last int64) (sum Spending, err error) {
	turn, err := r.conn.Prepare(`SELECT ` + turnColumns + ` FROM turns WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	reply, err := r.conn.Prepare(`SELECT seq, sum, ` + coreColumns + ` FROM replies WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	err = follow(ctx, last, func(at int64) (prev int64, err error) {
		if at < 0 {
			err = one(turn, rowTurns, -at, func(c rowReader) (err error) { prev, err = readTurnCore(&c, &journal.Turned{}); return err })
			return prev, err
		}
		err = one(reply, rowReplies, at, func(c rowReader) error {
			k, err := readCore(&c, 1)
			prev = k.prev
			k.count(&sum.Counts)
			if k.has(flagFailed) {
				k.count(&sum.Failed)
			}
			if !k.has(flagCopied) {
				sum.Cost = sum.Cost.Plus(max(0, k.cost))
			}
			return err
		})
		return prev, err
	})
	return sum, err
}
