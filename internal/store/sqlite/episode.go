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
		{&k.text, `SELECT id, text, rest FROM texts WHERE id = ?`},
		{&k.texts, `SELECT t.id, t.text, t.rest FROM json_each(?) j JOIN texts t ON t.id = j.value`},
	} {
		if *s.stmt, err = c.Prepare(s.query); err != nil {
			return chain{}, err
		}
	}
	return k, nil
}

// Episode reads the turns and replies of one episode, in order.
func (s *Store) Episode(ctx context.Context, episode int) (entries []journal.Entry, err error) {
	err = s.readers.with(func(r *reader) error {
		entries, err = r.episode(ctx, episode)
		return err
	})
	if err != nil {
		return nil, explain(s.path, fmt.Sprintf("read episode %d", episode), err)
	}
	return entries, nil
}

// episode follows an episode's turns and replies back from the last.
func (r *reader) episode(ctx context.Context, episode int) (out []journal.Entry, err error) {
	var at int64
	err = r.rows(`SELECT last FROM progress WHERE episode = ?`, []int64{int64(episode)}, func(c columns) error {
		at = c.int64()
		return nil
	})
	if err != nil {
		return nil, err
	}
	var replies []partial
	for at != 0 {
		e, p, prev, err := r.at(at)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return nil, err
		}
		if abs(prev) >= abs(at) {
			return nil, missing(false, fmt.Sprintf("what is before entry %d", abs(at)))
		}
		if p.Replied != nil {
			replies = append(replies, p)
		}
		out, at = append(out, e), prev
	}
	slices.Reverse(out)
	return out, r.complete(replies)
}

func abs(n int64) int64 { return max(n, -n) }

// at reads a reply by its number, or a turn by minus its number, and which is before it.
func (r *reader) at(n int64) (e journal.Entry, p partial, prev int64, err error) {
	if n < 0 {
		err = one(r.chain.turn, -n, func(c columns) (err error) {
			e, prev, err = turned(c)
			return err
		})
		return e, p, prev, err
	}
	err = one(r.chain.reply, n, func(c columns) (err error) {
		p, prev, err = replied(c)
		return err
	})
	return p.Replied, p, prev, err
}

// one runs a query for the one row with a number.
func one(s *sqlite.Stmt, n int64, each func(c columns) error) error {
	s.BindInt64(1, n)
	found, err := s.Step()
	switch {
	case err != nil:
		return err
	case !found:
		return errors.Join(missing(false, fmt.Sprintf("row %d", n)), s.Reset())
	}
	return cmp.Or(each(columns{s: s}), s.Reset())
}
