package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

const (
	replayTurnsSQL = `SELECT seq, episode, attempt, strand, turn, calls, digest FROM turns
		WHERE seq > ? AND seq <= ? ORDER BY seq`
	replayRepliesSQL = `SELECT r.seq, r.episode, r.attempt, r.strand, r.turn, r.place, r.flags, r.cost, r.input, r.output, r.json, r.rest, r.finish, r.error, r.answer, t.text
		FROM replies r LEFT JOIN texts t ON t.id = r.answer WHERE r.seq > ? AND r.seq <= ? ORDER BY r.seq`
)

// replay reads what playing on needs of the given episodes, in one go.
func (s *Store) replay(ctx context.Context, of spots, each func(journal.Entry) error) error {
	in := of.span()
	wanted := make(map[int]bool, len(of))
	for _, p := range of {
		wanted[p.episode] = true
	}
	err := s.readers.with(func(r *reader) error {
		turns, err := r.cursor(replayTurnsSQL, in, wanted)
		if err != nil {
			return err
		}
		defer done(turns.s)
		replies, err := r.cursor(replayRepliesSQL, in, wanted)
		if err != nil {
			return err
		}
		defer done(replies.s)
		return r.merge(ctx, turns, replies, each)
	})
	if err != nil {
		return explain(s.path, "read", err)
	}
	return nil
}

// merge goes through turns and replies in the order they were written.
func (r *reader) merge(ctx context.Context, turns, replies *cursor, each func(journal.Entry) error) error {
	if err := errors.Join(turns.next(), replies.next()); err != nil {
		return err
	}
	for n := 0; !turns.over || !replies.over; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		from, read := replies, r.replyToReplay
		if replies.over || (!turns.over && turns.seq < replies.seq) {
			from, read = turns, turnToReplay
		}
		e, err := read(columns{s: from.s, i: 1})
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrDamaged, from.seq, err)
		}
		if err := errors.Join(each(e), from.next()); err != nil {
			return err
		}
	}
	return nil
}

// cursor goes through those rows of a query whose episode is wanted.
type cursor struct {
	s      *sqlite.Stmt
	wanted map[int]bool
	seq    int64
	over   bool
}

func (r *reader) cursor(query string, in span, wanted map[int]bool) (*cursor, error) {
	s, err := r.conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, in.after)
	s.BindInt64(2, in.to)
	return &cursor{s: s, wanted: wanted}, nil
}

func (c *cursor) next() error {
	for {
		found, err := c.s.Step()
		if err != nil || !found {
			c.over = true
			return err
		}
		if c.wanted[c.s.ColumnInt(1)] {
			c.seq = c.s.ColumnInt64(0)
			return nil
		}
	}
}

func turnToReplay(c columns) (journal.Entry, error) {
	e := &journal.Turned{Turn: c.turn(), Calls: c.int()}
	c.s.ColumnBytes(c.i, e.Digest[:])
	return e, nil
}

// replyToReplay reads what a world was given, and what that took. The writer is told of the answer's text,
// since the episode will say it again.
func (r *reader) replyToReplay(c columns) (journal.Entry, error) {
	e := &journal.Replied{Turn: c.turn(), Index: c.int()}
	flags := c.int64()
	trail, usage := llm.Trail{Cost: llm.Money(c.int64())}, llm.Usage{Input: c.int(), Output: c.int()}
	e.Copied = flags&flagCopied != 0
	if flags&flagFailed != 0 {
		c.skip(3)
		e.Error = &llm.Error{Kind: llm.Kind(c.str()), Trail: trail, Usage: usage}
		return e, nil
	}
	if flags&flagAnswered == 0 {
		return e, nil
	}
	a := &llm.Response{Trail: trail, Usage: usage}
	same := c.isInt() // asked before it is read as a text
	a.JSON = c.raw()
	if err := readRest(a, c.str()); err != nil {
		return nil, err
	}
	a.Finish = llm.Finish(c.str())
	c.skip(1)
	id := c.int64()
	a.Text = c.str()
	if id != 0 && r.keys != nil {
		r.keys.add(r.print.text(a.Text), id)
	}
	if same {
		a.JSON = json.RawMessage(a.Text)
	}
	e.Response = a
	return e, nil
}
