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
	replayTurnsSQL   = `SELECT ` + turnCoreColumns + ` FROM turns ` + inSpan
	replayRepliesSQL = `SELECT r.seq, r.sum, r.prev, r.flags, r.episode, r.attempt, r.strand, r.turn, r.place, r.cost, r.input, r.output, r.finish, r.error, r.answer,
		r.json, r.rest, t.sum, t.text, t.rest
		FROM replies r LEFT JOIN texts t ON t.id = r.answer WHERE r.seq > ? AND r.seq <= ? ORDER BY r.seq`
)

// replay reads what playing on needs of the given episodes, in one go.
func (s *Store) replay(ctx context.Context, of spots, each func(journal.Entry) error) error {
	in := of.span()
	wanted := make(links, len(of))
	for _, p := range of {
		wanted[p.episode] = new(int64)
	}
	err := s.readers.with(func(r *reader) error {
		turns, err := r.cursor(replayTurnsSQL, 3, in, wanted)
		if err != nil {
			return err
		}
		defer done(turns.s)
		replies, err := r.cursor(replayRepliesSQL, 4, in, wanted)
		if err != nil {
			return err
		}
		defer done(replies.s)
		if err := r.merge(ctx, turns, replies, each); err != nil {
			return err
		}
		return wanted.complete(of)
	})
	if err != nil {
		return explain(s.path, "read", err)
	}
	return nil
}

// links is where each episode's turns and replies have been read up to, as progress.last
// has it. That none is passed over is known by each naming the one before it.
type links map[int]*int64

// next takes in an entry of an episode.
func (l links) next(episode int, at, prev int64) error {
	last := l[episode]
	if last == nil || *last != prev {
		return missing(false, fmt.Sprintf("an entry of episode %d before entry %d", episode, abs(at)))
	}
	*last = at
	return nil
}

// complete says if there should have been more.
func (l links) complete(of spots) error {
	for _, p := range of {
		if last := *l[p.episode]; abs(last) < abs(p.last) {
			return missing(false, fmt.Sprintf("entry %d, the last of episode %d,", abs(p.last), p.episode))
		}
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
		e, err := read(columns{s: from.s, row: from.seq}, from.wanted)
		if err != nil {
			return err
		}
		if err := errors.Join(each(e), from.next()); err != nil {
			return err
		}
	}
	return nil
}

// cursor goes through those rows of a query whose episode is wanted.
type cursor struct {
	s       *sqlite.Stmt
	episode int // the column
	wanted  links
	seq     int64
	over    bool
}

func (r *reader) cursor(query string, episode int, in span, wanted links) (*cursor, error) {
	s, err := r.conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	s.BindInt64(1, in.after)
	s.BindInt64(2, in.to)
	return &cursor{s: s, episode: episode, wanted: wanted}, nil
}

func (c *cursor) next() error {
	for {
		found, err := c.s.Step()
		if err != nil || !found {
			c.over = true
			return err
		}
		if c.wanted[c.s.ColumnInt(c.episode)] != nil {
			c.seq = c.s.ColumnInt64(0)
			return nil
		}
	}
}

func turnToReplay(c columns, wanted links) (journal.Entry, error) {
	e, prev, err := c.turned()
	if err != nil {
		return nil, err
	}
	return e, wanted.next(e.Episode, -c.sum.key, prev)
}

// replyToReplay reads what a world was given, and what that took. The writer is told of the answer's text,
// since the episode will say it again.
func (r *reader) replyToReplay(c columns, wanted links) (journal.Entry, error) {
	k, err := c.core(1)
	if err != nil {
		return nil, err
	}
	if err := wanted.next(k.turn.Episode, k.seq, k.prev); err != nil {
		return nil, err
	}
	e := &journal.Replied{Turn: k.turn, Index: k.place, Copied: k.flags&flagCopied != 0}
	trail, usage := llm.Metadata{Cost: k.cost}, llm.Usage{Input: k.input, Output: k.output}
	if k.flags&flagFailed != 0 {
		e.Error = &llm.Error{Kind: k.failed, Metadata: trail, Usage: usage}
		return e, nil
	}
	if k.flags&flagAnswered == 0 {
		return e, nil
	}
	a := &llm.Response{Metadata: trail, Usage: usage, Finish: k.finish}
	same, err := c.answered(a)
	if err != nil {
		return nil, of(k.turn.Episode, err)
	}
	if k.answer != 0 {
		if a.Text, err = r.answerText(c, k.answer); err != nil {
			return nil, fmt.Errorf("%s: %w", call(k.turn, k.place), err)
		}
	}
	if same {
		a.JSON = json.RawMessage(a.Text)
	}
	e.Response = a
	return e, nil
}

// answerText reads the text of an answer that was joined to its reply.
func (r *reader) answerText(c columns, id int64) (string, error) {
	c.begin(tableTexts, id, c.i, 1)
	text := c.str()
	c.opt()
	if err := c.check(); err != nil {
		return "", err
	}
	if r.keys != nil {
		r.keys.add(r.print.text(text), id)
	}
	return text, nil
}
