package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

const (
	replayTurnsSQL = `SELECT ` + turnColumns + ` FROM turns ` + inSpan
	// It is for one file. The text of an answer is in the file of its reply.
	replayRepliesSQL = `SELECT r.seq, r.sum, r.prev, r.flags, r.episode, r.attempt, r.strand, r.turn, r.place, r.cost, r.input, r.output, r.finish, r.error, r.answer,
		r.json, r.rest, t.sum, t.text, t.rest
		FROM %[1]s.replies r LEFT JOIN %[1]s.texts t ON t.id = r.answer WHERE r.seq > ?1 AND r.seq <= ?2`
)

// replay reads what is needed to resume the given episodes, in one scan.
func (s *Store) replay(ctx context.Context, of extents, each func(journal.Entry) error) error {
	in := of.span()
	return s.read(func(r *reader) error {
		p := replayScan{reader: r, wanted: newLinks(of)}
		if err := p.turns.open(r, replayTurnsSQL, 3, in); err != nil {
			return err
		}
		defer reset(p.turns.stmt)
		if err := p.replies.open(r, r.union(replayRepliesSQL, false)+` ORDER BY 1`, 4, in); err != nil {
			return err
		}
		defer reset(p.replies.stmt)
		if err := p.merge(ctx, each); err != nil {
			return err
		}
		return p.wanted.complete(of)
	})
}

// links is the last turn or reply that was read of each episode, as in progress.last. Each
// entry names the one before it, so a missing entry is noticed.
type links struct {
	first int     // episode
	last  []int64 // by episode from first; unwanted: it is not read
}

const unwanted = math.MinInt64

// newLinks returns links without an entry for the given episodes.
func newLinks(of extents) links {
	l := links{of[0].episode, make([]int64, of.episodes())}
	for i := range l.last {
		l.last[i] = unwanted
	}
	for _, e := range of {
		l.last[e.episode-l.first] = 0
	}
	return l
}

// of returns the last entry of an episode, or nil if it is not wanted.
func (l links) of(episode int) *int64 {
	i := episode - l.first
	if i < 0 || i >= len(l.last) || l.last[i] == unwanted {
		return nil
	}
	return &l.last[i]
}

// next adds an entry of an episode.
func (l links) next(episode int, at, prev int64) error {
	last := l.of(episode)
	if last == nil || *last != prev {
		return errMissing("an entry of episode %d before entry %d", episode, abs(at))
	}
	*last = at
	return nil
}

// complete returns an error if the last entry of an episode was not read.
func (l links) complete(of extents) error {
	for _, e := range of {
		if last := *l.of(e.episode); abs(last) < abs(e.last) {
			return errMissing("entry %d, the last of episode %d,", abs(e.last), e.episode)
		}
	}
	return nil
}

// replayScan reads turns and replies in the order they were written. It reads each into the same
// memory: a run that is resumed reads very many, and needs little of each.
type replayScan struct {
	*reader
	wanted         links
	turns, replies cursor

	turned   journal.Turned
	replied  journal.Replied
	response llm.Response
}

func (p *replayScan) merge(ctx context.Context, each func(journal.Entry) error) error {
	if err := errors.Join(p.turns.next(p.wanted), p.replies.next(p.wanted)); err != nil {
		return err
	}
	for n := 0; !p.turns.over || !p.replies.over; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		from, entry := &p.replies, journal.Entry(&p.replied)
		var err error
		if p.replies.over || (!p.turns.over && p.turns.seq < p.replies.seq) {
			from, entry = &p.turns, &p.turned
			err = p.readTurn(newRowReader(from.stmt))
		} else {
			err = p.readReply(newRowReader(from.stmt))
		}
		if err == nil {
			err = each(entry)
		}
		if err == nil {
			err = from.next(p.wanted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cursor reads the rows of a query whose episode is wanted.
type cursor struct {
	stmt    *sqlite.Stmt
	episode int // the column
	seq     int64
	over    bool
}

func (c *cursor) open(r *reader, query string, episode int, in span) (err error) {
	if c.stmt, err = r.conn.Prepare(query); err != nil {
		return err
	}
	c.stmt.BindInt64(1, in.after)
	c.stmt.BindInt64(2, in.to)
	c.episode = episode
	return nil
}

func (c *cursor) next(wanted links) error {
	for {
		found, err := c.stmt.Step()
		if err != nil || !found {
			c.over = true
			return err
		}
		if wanted.of(c.stmt.ColumnInt(c.episode)) != nil {
			c.seq = c.stmt.ColumnInt64(0)
			return nil
		}
	}
}

// readTurn reads a row of replayTurnsSQL.
func (p *replayScan) readTurn(c rowReader) error {
	prev, err := readTurnCore(&c, &p.turned)
	if err != nil {
		return err
	}
	return p.wanted.next(p.turned.Episode, -c.Key, prev)
}

// readReply reads a row of replayRepliesSQL: what the world was given, and its cost and tokens.
func (p *replayScan) readReply(c rowReader) error {
	k, err := readCore(&c, 1)
	if err != nil {
		return err
	}
	if err := p.wanted.next(k.turn.Episode, k.seq, k.prev); err != nil {
		return err
	}
	e, a := &p.replied, &p.response
	*e = journal.Replied{Turn: k.turn, Index: k.index, Copied: k.has(flagCopied)}
	meta, usage := llm.Metadata{Cost: k.cost}, llm.Usage{Input: k.input, Output: k.output}
	if k.has(flagFailed) {
		e.Error = &llm.Error{Kind: k.failed, Metadata: meta, Usage: usage}
		if k.failed == llm.KindRaised {
			*a = llm.Response{}
			if _, err = readAnswer(&c, a); err == nil {
				e.Error.Message, err = unquoted(a.JSON)
			}
		}
		return withEpisode(k.turn.Episode, err)
	}
	if !k.has(flagAnswered) {
		return nil
	}
	*a = llm.Response{Metadata: meta, Usage: usage, Finish: k.finish}
	jsonIsText, err := readAnswer(&c, a)
	if err != nil {
		return withEpisode(k.turn.Episode, err)
	}
	if k.answer != 0 {
		if a.Text, err = p.answerText(&c, k.turn.Episode, k.answer); err != nil {
			return fmt.Errorf("%s: %w", callName(k.turn, k.index), err)
		}
	}
	if jsonIsText {
		a.JSON = json.RawMessage(a.Text)
	}
	e.Response = a
	return nil
}

// answerText reads the text of an answer that is joined to its reply. The writer gets to know it,
// because the episode will use it again.
func (r *reader) answerText(c *rowReader, episode int, id int64) (string, error) {
	c.BeginJoined(rowTexts, id, c.Column(), 1)
	text := c.Text()
	c.Optional()
	if err := c.Check(); err != nil {
		return "", err
	}
	if k := r.keysOf(id); k != nil && !k.Recall(episode, text, id) {
		k.Add(r.hasher.Text(text), id)
	}
	return text, nil
}
