package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"parley/journal"
)

// chain reads what is looked up by number: the turns and replies of an episode from the
// last to the first, and texts. Its statements are kept, since finding one by its query
// costs as much as the row.
type chain struct{ turn, reply, text, texts *sqlite.Stmt }

func newChain(c *sqlite.Conn) (k chain, err error) {
	for _, s := range []struct {
		stmt  **sqlite.Stmt
		query string
	}{
		{&k.turn, turnsSQL + `WHERE seq = ?`},
		{&k.reply, repliesSQL + `WHERE seq = ?`},
		{&k.text, `SELECT id, sum, text, rest FROM texts WHERE id = ?`},
		{&k.texts, `SELECT t.id, t.sum, t.text, t.rest FROM json_each(?) j JOIN texts t ON t.id = j.value`},
	} {
		if *s.stmt, err = c.Prepare(s.query); err != nil {
			return chain{}, err
		}
	}
	return k, nil
}

// episodes reads the turns and replies of some episodes: one after the other, or, where
// they lie close together, in one go over that part of the file.
func (s *Store) episodes(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	places, err := s.places(in)
	if err != nil {
		return err
	}
	if in.Replay && places.dense() && s.readers.leftOut() == nil {
		return s.replay(ctx, places, each)
	}
	for _, p := range places {
		var entries []journal.Entry
		err := s.readers.with(func(r *reader) (err error) {
			entries, err = r.episode(ctx, p)
			return err
		})
		if err != nil {
			return explain(s.path, fmt.Sprintf("read episode %d", p.episode), err)
		}
		for _, e := range entries {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// spot is where an episode is in the file.
type spot struct {
	episode     int
	entries     int64
	first, last int64
}

type spots []spot

func (s *Store) places(in journal.Span) (out spots, err error) {
	err = s.readers.with(func(r *reader) error {
		next, gap := int64(in.From), int64(-1)
		err := r.scanFew(progressSQL+inSpanOfRuns, span{int64(in.From) - 1, int64(in.To) - 1}, func(c columns) error {
			p, err := progress(c)
			if err != nil {
				return err
			}
			if int64(p.episode) > next && gap < 0 {
				gap = next
			}
			next = int64(p.episode) + 1
			if (!p.Ended || !in.Replay) && !r.lost.has(p.episode) {
				out = append(out, spot{p.episode, int64(p.Entries), p.first, p.last})
			}
			return nil
		})
		if gap < 0 && next < int64(in.To) {
			gap = next
		}
		if err != nil || gap < 0 {
			return err
		}
		t, err := readTotals(r.conn) // one that was never asked for has no row
		return cmp.Or(err, r.gap(tableProgress, gap, min(int64(in.To), t.begun)))
	})
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return out, nil
}

// span is the part of the file that the episodes are in.
func (p spots) span() span {
	in := span{after: 1<<63 - 1}
	for _, s := range p {
		in.after, in.to = min(in.after, s.first-1), max(in.to, abs(s.last))
	}
	return in
}

// dense says whether reading past what is not wanted costs less than looking up what is: a
// row that is passed by costs about a tenth of one that is looked up.
func (p spots) dense() bool {
	var wanted int64
	for _, s := range p {
		wanted += s.entries
	}
	in := p.span()
	return len(p) > 1 && in.to-in.after < 10*wanted
}

// episode follows an episode's turns and replies back from the last.
func (r *reader) episode(ctx context.Context, of spot) (out []journal.Entry, err error) {
	var replies []partial
	for at := of.last; at != 0; {
		e, p, prev, err := r.at(at)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return nil, err
		}
		if abs(prev) >= abs(at) {
			return nil, missing(false, fmt.Sprintf("the entry before entry %d", abs(at)))
		}
		if p.Replied != nil {
			replies = append(replies, p)
		}
		out, at = append(out, e), prev
	}
	slices.Reverse(out)
	return out, r.fillAll(replies)
}

func abs(n int64) int64 { return max(n, -n) }

// at reads a reply by its number, or a turn by minus its number, and which is before it.
func (r *reader) at(n int64) (e journal.Entry, p partial, prev int64, err error) {
	if n < 0 {
		err = one(r.chain.turn, tableTurns, -n, func(c columns) (err error) {
			e, prev, err = turned(c)
			return err
		})
		return e, p, prev, err
	}
	err = one(r.chain.reply, tableReplies, n, func(c columns) (err error) {
		p, prev, err = replied(c, true)
		return err
	})
	return p.Replied, p, prev, err
}

// one runs a query for the one row with a number.
func one(s *sqlite.Stmt, t table, n int64, each func(c columns) error) error {
	s.BindInt64(1, n)
	found, err := s.Step()
	switch {
	case err != nil:
		return err
	case !found:
		return errors.Join(&rowError{table: t, key: n, why: "is missing"}, s.Reset())
	}
	return cmp.Or(each(columns{s: s, row: n}), s.Reset())
}
