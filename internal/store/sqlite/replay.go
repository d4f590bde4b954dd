package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/internal/store/sqlite/row"
	"parley/journal"
	"parley/llm"
)

const (
	replayTurnsSQL   = `SELECT ` + turnColumns + ` FROM turns ` + inSpan
	replayRepliesSQL = `SELECT r.seq, r.sum, r.prev, r.flags, r.episode, r.attempt, r.strand, r.turn, r.place, r.cost, r.input, r.output, r.finish, r.error, r.answer,
		r.json, r.rest, t.sum, t.text, t.rest
		FROM replies r LEFT JOIN texts t ON t.id = r.answer WHERE r.seq > ? AND r.seq <= ? ORDER BY r.seq`
)

// replay reads what is needed to resume the given episodes, in one scan.
func (s *Store) replay(ctx context.Context, of extents, each func(journal.Entry) error) error {
	in := of.span()
	wanted := make(links, len(of))
	for _, e := range of {
		wanted[e.episode] = new(int64)
	}
	return s.read(func(r *reader) error {
		turns, err := r.cursor(replayTurnsSQL, 3, in, wanted)
		if err != nil {
			return err
		}
		defer reset(turns.stmt)
		replies, err := r.cursor(replayRepliesSQL, 4, in, wanted)
		if err != nil {
			return err
		}
		defer reset(replies.stmt)
		if err := r.merge(ctx, turns, replies, each); err != nil {
			return err
		}
		return wanted.complete(of)
	})
}

// links is the last turn or reply that was read of each episode, as in progress.last. Each
// entry names the one before it, so a missing entry is noticed.
type links map[int]*int64

// next adds an entry of an episode.
func (l links) next(episode int, at, prev int64) error {
	last := l[episode]
	if last == nil || *last != prev {
		return errMissing("an entry of episode %d before entry %d", episode, abs(at))
	}
	*last = at
	return nil
}

// complete returns an error if the last entry of an episode was not read.
func (l links) complete(of extents) error {
	for _, e := range of {
		if last := *l[e.episode]; abs(last) < abs(e.last) {
			return errMissing("entry %d, the last of episode %d,", abs(e.last), e.episode)
		}
	}
	return nil
}

// merge reads turns and replies in the order they were written.
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
		e, err := read(row.NewReader(from.stmt), from.wanted)
		if err != nil {
			return err
		}
		if err := errors.Join(each(e), from.next()); err != nil {
			return err
		}
	}
	return nil
}

// cursor reads the rows of a query whose episode is wanted.
type cursor struct {
	stmt    *sqlite.Stmt
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
	return &cursor{stmt: s, episode: episode, wanted: wanted}, nil
}

func (c *cursor) next() error {
	for {
		found, err := c.stmt.Step()
		if err != nil || !found {
			c.over = true
			return err
		}
		if c.wanted[c.stmt.ColumnInt(c.episode)] != nil {
			c.seq = c.stmt.ColumnInt64(0)
			return nil
		}
	}
}

func turnToReplay(c row.Reader, wanted links) (journal.Entry, error) {
	e, prev, err := readTurnCore(&c)
	if err != nil {
		return nil, err
	}
	return e, wanted.next(e.Episode, -c.Key, prev)
}

// replyToReplay reads what the world was given, and its cost and tokens.
func (r *reader) replyToReplay(c row.Reader, wanted links) (journal.Entry, error) {
	k, err := readCore(&c, 1)
	if err != nil {
		return nil, err
	}
	if err := wanted.next(k.turn.Episode, k.seq, k.prev); err != nil {
		return nil, err
	}
	e := &journal.Replied{Turn: k.turn, Index: k.index, Copied: k.has(flagCopied)}
	meta, usage := llm.Metadata{Cost: k.cost}, llm.Usage{Input: k.input, Output: k.output}
	if k.has(flagFailed) {
		e.Error = &llm.Error{Kind: k.failed, Metadata: meta, Usage: usage}
		return e, nil
	}
	if !k.has(flagAnswered) {
		return e, nil
	}
	a := &llm.Response{Metadata: meta, Usage: usage, Finish: k.finish}
	jsonIsText, err := readAnswer(&c, a)
	if err != nil {
		return nil, row.Of(k.turn.Episode, err)
	}
	if k.answer != 0 {
		if a.Text, err = r.answerText(&c, k.turn.Episode, k.answer); err != nil {
			return nil, fmt.Errorf("%s: %w", callName(k.turn, k.index), err)
		}
	}
	if jsonIsText {
		a.JSON = json.RawMessage(a.Text)
	}
	e.Response = a
	return e, nil
}

// answerText reads the text of an answer that is joined to its reply. The writer gets to know it,
// because the episode will use it again.
func (r *reader) answerText(c *row.Reader, episode int, id int64) (string, error) {
	c.BeginJoined(row.Texts, id, c.Column(), 1)
	text := c.Text()
	c.Optional()
	if err := c.Check(); err != nil {
		return "", err
	}
	if r.keys != nil && !r.keys.Recall(episode, text, id) {
		r.keys.Add(r.hasher.Text(text), id)
	}
	return text, nil
}
