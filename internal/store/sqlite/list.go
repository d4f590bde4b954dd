package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Outline is a run without its episodes.
type Outline struct {
	// Begun is nil where nothing was written yet.
	Begun *journal.Begun
	// Last is the end of the last sitting; Open means that it has none: the run is being
	// played, or was cut off.
	Last journal.Closed
	Open bool

	Episodes               int // that the plan asked for so far
	Ended, Failed, Playing int // of them
	Calls                  int // that were answered or failed
	Spent                  llm.Money
	Batches                int // that are with their providers
}

// Outline reads what there is to say about a run in a moment, however long it is: no call
// is looked at, and of episodes only what is counted.
func (s *Store) Outline(ctx context.Context) (o Outline, err error) {
	err = s.readers.with(func(r *reader) error {
		var h journal.Head
		t, err := readTotals(r.conn)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		n, err := r.events(everything(), func(_ int64, e journal.Entry) { h.Add(e) })
		o = Outline{
			Begun: h.Begun, Last: h.Last, Open: h.Cut, Calls: int(t.calls), Spent: max(0, llm.Money(t.spent)), Batches: len(h.Batches),
			Episodes: int(t.episodes), Playing: int(t.states[statePlaying]), Ended: int(t.states[stateEnded]), Failed: int(t.states[stateFailed]),
		}
		return cmp.Or(err, r.complete(n, t.events, "events"), r.begun(h.Begun, t))
	})
	if err != nil {
		return Outline{}, explain(s.path, "read", err)
	}
	return o, nil
}

// Stages reads the stages after the first so many.
func (s *Store) Stages(ctx context.Context, after int) (out []journal.Staged, err error) {
	err = s.readers.with(func(r *reader) error {
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
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return out, nil
}

// Ends lists the ends of episodes from entry number since on, in order. It looks at nothing
// else: reading all entries for them would cost as much as playing did.
func (s *Store) Ends(ctx context.Context, since int) (out []journal.End, err error) {
	err = s.readers.with(func(r *reader) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		out = nil
		return r.scanFew(`SELECT seq, sum, episode, attempt FROM outcomes `+inSpan, span{int64(since) - 1, everything().to}, func(c columns) error {
			e := journal.End{Entry: int(c.key(tableOutcomes, 1)), Episode: c.int()}
			c.int64()
			if err := c.check(); err != nil || r.lost.has(e.Episode) {
				return err
			}
			out = append(out, e)
			return nil
		})
	})
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return out, nil
}

// Listing says which episodes to list.
type Listing struct {
	From   int    // the first
	Limit  int    // the most of them. Default: all.
	Failed bool   // only those that failed
	Cell   string // only those whose cell has this in it
	Lost   bool   // also those that are damaged, see Salvage, as if they waited
}

// Listed is an episode without its turns and replies.
type Listed struct {
	Episode, Stage int
	Spec           world.Spec
	Begun          bool // it is being played, or was
	Attempt        int
	Ended          *journal.Ended // nil: it did not end yet

	last int64 // as progress.last
}

// The states of an episode.
const (
	Waiting = "waiting"
	Playing = "playing"
	Ended   = "ended"
	Failed  = "failed"
)

// State is how far the episode has come.
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

// List reads episodes, in order. It looks only at those it lists, and at the outcomes that
// were written while they were played.
func (s *Store) List(ctx context.Context, want Listing) (out []Listed, err error) {
	if want.Limit < 0 || want.From < 0 {
		return nil, errors.New("sqlite: list: From and Limit must not be negative")
	}
	err = s.readers.with(func(r *reader) (err error) {
		if out, err = r.list(ctx, want); err != nil {
			return err
		}
		return cmp.Or(r.progressOf(out), r.staged(out), r.ended(out))
	})
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return out, nil
}

func (r *reader) list(ctx context.Context, want Listing) ([]Listed, error) {
	var h journal.Head
	if _, err := r.events(everything(), func(_ int64, e journal.Entry) { h.Add(e) }); err != nil {
		return nil, err
	}
	l := lister{reader: r, want: want, known: newKnownSpecs(), begun: h.Begun}
	if !want.Failed {
		err := l.list(ctx, span{int64(want.From) - 1, everything().to})
		return l.out, err
	}
	failed, err := r.failedEpisodes()
	for _, episode := range failed {
		if err == nil && episode >= want.From && (want.Limit == 0 || len(l.out) < want.Limit) {
			err = l.list(ctx, span{int64(episode) - 1, int64(episode)})
		}
	}
	return l.out, err
}

// failedEpisodes are the episodes that failed. That none is passed over is known by their
// number.
func (r *reader) failedEpisodes() (out []int, err error) {
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, err
	}
	err = r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND ended = 2 ORDER BY episode`, everything(), func(c columns) error {
		p, err := progress(c)
		if err == nil {
			out = append(out, p.episode)
		}
		return err
	})
	return out, cmp.Or(err, r.complete(int64(len(out)), t.states[stateFailed], "failed episodes"))
}

// gap says if there is an episode missing between two.
func (r *reader) gap(t table, next, is int64) error {
	if next >= is || r.lost != nil {
		return nil
	}
	return &rowError{table: t, key: next, why: "is missing"}
}

// progressOf fills in how far episodes have come.
func (r *reader) progressOf(list []Listed) error {
	if len(list) == 0 {
		return nil
	}
	t, err := readTotals(r.conn)
	if err != nil {
		return err
	}
	i := 0
	err = r.scanFew(progressSQL+inSpanOfRuns, span{int64(list[0].Episode) - 1, int64(list[len(list)-1].Episode)}, func(c columns) error {
		p, err := progress(c)
		if err != nil || i == len(list) || p.episode < list[i].Episode {
			return err // or it is not listed
		}
		for r.lost.has(list[i].Episode) && list[i].Episode < p.episode {
			i++
		}
		l := &list[i]
		if i++; r.lost.has(l.Episode) {
			return nil
		}
		if l.Episode != p.episode {
			return &rowError{table: tableProgress, key: int64(l.Episode), why: "is missing"}
		}
		l.Begun, l.Attempt, l.last = p.state() != stateNone, p.Attempt, p.last
		if p.Ended {
			l.Ended = &journal.Ended{Attempt: -1} // to be read
		}
		return nil
	})
	if err == nil && i < len(list) && int64(list[i].Episode) < t.begun && !r.lost.has(list[i].Episode) {
		err = &rowError{table: tableProgress, key: int64(list[i].Episode), why: "is missing"}
	}
	return err
}

// staged fills in the stages.
func (r *reader) staged(list []Listed) error {
	i := 0
	return r.scan(`SELECT seq, sum, stage, first, count FROM stages `+inSpan, everything(), func(c columns) error {
		c.key(tableStages, 1)
		stage, to := c.int(), c.int()+c.int()
		if err := c.check(); err != nil {
			return err
		}
		for ; i < len(list) && list[i].Episode < to; i++ {
			list[i].Stage = stage
		}
		return nil
	})
}

// ended fills in the outcomes. Nothing finds them by episode, but they are written after
// the last reply, and mostly soon.
func (r *reader) ended(list []Listed) error {
	wanted := map[int]*Listed{}
	after := int64(1<<63 - 1)
	for i := range list {
		if l := &list[i]; l.Ended != nil {
			wanted[l.Episode], after = l, min(after, abs(l.last))
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for _, after := range []int64{after, 0} { // a reply may come late
		err := r.outcomesOf(wanted, after)
		if errors.Is(err, errFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return missing(false, fmt.Sprintf("the outcome of episode %d", slices.Min(slices.Collect(maps.Keys(wanted)))))
}

func (r *reader) outcomesOf(wanted map[int]*Listed, after int64) error {
	return r.scanFew(`SELECT `+outcomeColumns+` FROM outcomes `+inSpan, span{after, everything().to}, func(c columns) error {
		if wanted[c.s.ColumnInt(2)] == nil {
			return nil // if that is wrong, one that is wanted is missing at the end
		}
		e, err := outcome(c)
		if err != nil {
			return err
		}
		l := wanted[e.Episode]
		if l == nil || l.Attempt != e.Attempt {
			return nil
		}
		l.Ended = e
		if delete(wanted, e.Episode); len(wanted) == 0 {
			return errFound
		}
		return nil
	})
}

// Spending is what an episode took, every attempt of it.
type Spending struct {
	Calls, Failed int
	Cost          llm.Money
}

// Spent adds up what an episode took, without reading what was said in it.
func (s *Store) Spent(ctx context.Context, l *Listed) (sum Spending, err error) {
	err = s.readers.with(func(r *reader) error { sum, err = r.spent(ctx, l.last); return err })
	if err != nil {
		return sum, explain(s.path, fmt.Sprintf("read episode %d", l.Episode), err)
	}
	return sum, nil
}

func (r *reader) spent(ctx context.Context, at int64) (sum Spending, err error) {
	turn, err := r.conn.Prepare(`SELECT ` + turnCoreColumns + ` FROM turns WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	reply, err := r.conn.Prepare(`SELECT seq, sum, ` + coreColumns + ` FROM replies WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	for at != 0 {
		var prev int64
		if at < 0 {
			err = one(turn, tableTurns, -at, func(c columns) (err error) { _, prev, err = c.turned(); return err })
		} else {
			err = one(reply, tableReplies, at, func(c columns) error {
				k, err := c.core(1)
				prev = k.prev
				sum.add(&k)
				return err
			})
		}
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return sum, err
		}
		if abs(prev) >= abs(at) {
			return sum, missing(false, fmt.Sprintf("the entry before entry %d", abs(at)))
		}
		at = prev
	}
	return sum, nil
}

// add counts a reply.
func (s *Spending) add(k *core) {
	s.Calls++
	if k.flags&flagFailed != 0 {
		s.Failed++
	}
	if k.flags&flagCopied == 0 {
		s.Cost = s.Cost.Plus(max(0, k.cost))
	}
}
