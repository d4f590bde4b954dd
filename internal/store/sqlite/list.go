package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
		if err := cmp.Or(context.Cause(ctx), r.events(everything(), func(_ int64, e journal.Entry) { h.Add(e) }), r.totals(&h)); err != nil {
			return err
		}
		o = Outline{Begun: h.Begun, Last: h.Last, Open: h.Cut, Calls: h.Calls, Spent: h.Spent, Batches: len(h.Batches)}
		return r.rows(`SELECT (SELECT count(*) FROM specs), (SELECT count(*) FROM progress WHERE NOT ended),
			(SELECT count(*) FROM progress WHERE ended), (SELECT count(*) FROM (`+failedSQL+`))`, nil, func(c columns) error {
			o.Episodes, o.Playing = c.int(), c.int()
			ended := c.int()
			o.Failed = c.int()
			o.Ended = ended - o.Failed
			return nil
		})
	})
	if err != nil {
		return Outline{}, explain(s.path, "read", err)
	}
	return o, nil
}

// End is where the journal says that an episode ended.
type End struct{ Entry, Episode int }

// Ends lists the ends of episodes from entry number since on, in order. It looks at nothing
// else: reading all entries for them would cost as much as playing did.
func (s *Store) Ends(ctx context.Context, since int) (out []End, err error) {
	err = s.readers.with(func(r *reader) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return r.rows(`SELECT seq, episode FROM outcomes WHERE seq >= ? ORDER BY seq`, []int64{int64(since)}, func(c columns) error {
			out = append(out, End{Entry: c.int(), Episode: c.int()})
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

// failedSQL are the episodes that failed.
const failedSQL = `SELECT g.episode FROM outcomes o JOIN progress g ON g.episode = o.episode AND g.ended AND g.attempt = o.attempt WHERE o.failed IS NOT NULL`

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
		return cmp.Or(r.staged(out), r.ended(out))
	})
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return out, nil
}

func (r *reader) list(ctx context.Context, want Listing) (out []Listed, err error) {
	query := `SELECT s.episode, s.kind, s.params, s.lineup, s.deal, s.cell, g.episode IS NOT NULL, g.attempt, g.ended, g.last
		FROM specs s LEFT JOIN progress g ON g.episode = s.episode
		WHERE s.episode >= ?1 AND (?2 = '' OR instr(s.cell, ?2) > 0)`
	if want.Failed {
		query += ` AND s.episode IN (` + failedSQL + `)`
	}
	stmt, err := r.conn.Prepare(query + ` ORDER BY s.episode LIMIT ?3`)
	if err != nil {
		return nil, err
	}
	defer done(stmt)
	stmt.BindInt64(1, int64(want.From))
	stmt.BindText(2, want.Cell)
	stmt.BindInt64(3, int64(cmp.Or(want.Limit, -1)))
	for {
		found, err := stmt.Step()
		if err := cmp.Or(context.Cause(ctx), err); err != nil || !found {
			return out, err
		}
		l, err := r.listed(columns{s: stmt})
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
}

func (r *reader) listed(c columns) (l Listed, err error) {
	l.Episode, l.Spec.Kind = c.int(), c.str()
	params, err := r.text(c.int64())
	if err != nil {
		return l, err
	}
	if params.words != "" {
		l.Spec.Params = json.RawMessage(params.words)
	}
	lineup, err := r.text(c.int64())
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal([]byte(lineup.words), &l.Spec.Lineup); err != nil {
		return l, fmt.Errorf("%w: the lineup of episode %d: %w", ErrDamaged, l.Episode, err)
	}
	l.Spec.Deal, l.Spec.Cell = c.int(), c.str()
	l.Begun, l.Attempt = c.int() != 0, c.int()
	if ended := c.int() != 0; ended {
		l.Ended = &journal.Ended{Attempt: -1} // to be read
	}
	l.last = c.int64()
	return l, nil
}

// staged fills in the stages.
func (r *reader) staged(list []Listed) error {
	i := 0
	return r.rows(`SELECT stage, first + count FROM stages ORDER BY first`, nil, func(c columns) error {
		stage, to := c.int(), c.int()
		for ; i < len(list) && list[i].Episode < to; i++ {
			list[i].Stage = stage
		}
		return nil
	})
}

// errFound ends a query whose further rows are of no use.
var errFound = errors.New("found")

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
		err := r.outcomesOf(wanted, after, list)
		if errors.Is(err, errFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return missing(false, "an outcome")
}

func (r *reader) outcomesOf(wanted map[int]*Listed, after int64, list []Listed) error {
	const query = `SELECT episode, attempt, at, failed, scores, data, stack FROM outcomes
		WHERE seq > ? AND episode >= ? AND episode <= ? ORDER BY seq`
	return r.rows(query, []int64{after, int64(list[0].Episode), int64(list[len(list)-1].Episode)}, func(c columns) error {
		e := &journal.Ended{Episode: c.int(), Attempt: c.int(), At: c.time(), Outcome: world.Outcome{Failed: c.str()}}
		l := wanted[e.Episode]
		if l == nil || l.Attempt != e.Attempt {
			return nil
		}
		scores, err := decodeScores(c.str())
		if err != nil {
			return fmt.Errorf("%w: the outcome of episode %d: %w", ErrDamaged, e.Episode, err)
		}
		e.Outcome.Scores, e.Outcome.Data, e.Stack = scores, json.RawMessage(c.raw()), c.str()
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
	turn, err := r.conn.Prepare(`SELECT prev FROM turns WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	reply, err := r.conn.Prepare(`SELECT prev, flags, cost FROM replies WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	for at != 0 {
		var prev int64
		if at < 0 {
			err = one(turn, -at, func(c columns) error { prev = c.int64(); return nil })
		} else {
			err = one(reply, at, func(c columns) error { prev = c.int64(); sum.add(c); return nil })
		}
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return sum, err
		}
		if abs(prev) >= abs(at) {
			return sum, missing(false, fmt.Sprintf("what is before entry %d", abs(at)))
		}
		at = prev
	}
	return sum, nil
}

// add counts a reply: its flags, and what it cost.
func (s *Spending) add(c columns) {
	flags := c.int64()
	s.Calls++
	if flags&flagFailed != 0 {
		s.Failed++
	}
	if flags&flagCopied == 0 {
		s.Cost = s.Cost.Plus(max(0, llm.Money(c.int64())))
	}
}
