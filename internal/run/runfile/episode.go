package runfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

// byKey holds statements that find rows by key. They are kept, because looking up a prepared
// statement by its query takes as long as reading a row.
type byKey struct{ turn, reply, text, texts *sqlite.Stmt }

func (r *reader) newByKey() (k byKey, err error) {
	for _, s := range []struct {
		stmt  **sqlite.Stmt
		query string
	}{
		{&k.turn, turnsSQL + `WHERE seq = ?`},
		{&k.reply, repliesSQL + `WHERE seq = ?`},
		{&k.text, `SELECT id, sum, text, rest FROM texts WHERE id = ?`},
		{&k.texts, `SELECT t.id, t.sum, t.text, t.rest FROM json_each(?1) j JOIN texts t ON t.id = j.value`},
	} {
		if *s.stmt, err = r.conn.Prepare(s.query); err != nil {
			return byKey{}, err
		}
	}
	return k, nil
}

// episodes reads the turns and replies of some episodes: one after the other, or in one scan
// if they are close together in the file.
func (s *Store) episodes(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	var all extents
	err := s.read(func(r *reader) (err error) { all, err = r.extents(in); return err })
	if err != nil {
		return err
	}
	if in.Replay && all.dense() && s.readers.leftOut() == nil {
		return s.replay(ctx, all, each)
	}
	for _, e := range all {
		var entries []journal.Entry
		err := s.readers.with(func(r *reader) (err error) {
			entries, _, err = r.episode(ctx, e, 0, true)
			return err
		})
		if err != nil {
			return explain(s.path, fmt.Sprintf("read episode %d", e.episode), err)
		}
		for _, e := range entries {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// extent is where an episode is in the file.
type extent struct {
	episode     int
	entries     int64
	first, last int64 // as in progress
}

func newExtent(p *progress) extent { return extent{p.episode, int64(p.Entries), p.first, p.last} }

type extents []extent

func (r *reader) extents(in journal.Span) (out extents, err error) {
	next, gap := int64(in.From), int64(-1)
	err = r.scanFew(progressSQL+inEpisodesSpan, span{int64(in.From) - 1, int64(in.To) - 1}, func(c rowReader) error {
		p, err := readProgress(c)
		if err != nil {
			return err
		}
		if int64(p.episode) > next && gap < 0 {
			gap = next
		}
		next = int64(p.episode) + 1
		if (!p.Ended || !in.Replay) && !r.lost.Has(p.episode) {
			out = append(out, newExtent(&p))
		}
		return nil
	})
	if gap < 0 && next < int64(in.To) {
		gap = next
	}
	if err != nil || gap < 0 || r.lost != nil {
		return out, err
	}
	t, err := readTotals(r.conn) // an episode that did not begin has no row
	if err == nil && gap < min(int64(in.To), t.begun) {
		err = rowMissing(tableProgress, gap)
	}
	return out, err
}

// span returns the part of the file that the episodes are in.
func (all extents) span() span {
	in := span{after: math.MaxInt64}
	for _, e := range all {
		in.after, in.to = min(in.after, e.first-1), max(in.to, abs(e.last))
	}
	return in
}

// episodes returns how many episodes there are from the first to the last.
func (all extents) episodes() int { return all[len(all)-1].episode - all[0].episode + 1 }

// dense reports whether a scan takes less time than looking up every entry: skipping a row
// takes about a tenth of the time to look one up.
func (all extents) dense() bool {
	var wanted int64
	for _, e := range all {
		wanted += e.entries
	}
	in := all.span()
	return len(all) > 1 && in.to-in.after < 10*wanted && int64(all.episodes()) < 10*wanted
}

// Sparing reads the turns and replies of one episode, in order, without the messages of requests: in a long episode
// nearly all that is stored is messages that are repeated in every request. fill reads those of some replies.
func (s *Store) Sparing(ctx context.Context, episode int) (out []journal.Entry, fill func(...*journal.Replied) error, err error) {
	out, keys, _, err := s.Since(ctx, episode, 0)
	return out, func(replies ...*journal.Replied) error { return s.Fill(episode, keys, replies...) }, err
}

// Since reads what an episode has after the entry that an earlier Since returned as last, as Sparing does; 0 is the beginning.
// keys has the number of the entry of each reply, for Fill.
func (s *Store) Since(ctx context.Context, episode int, after int64) (out []journal.Entry, keys map[*journal.Replied]int64, last int64, err error) {
	last = after
	err = s.readers.with(func(r *reader) error {
		all, err := r.extents(journal.Span{From: episode, To: episode + 1})
		if err != nil || len(all) == 0 {
			return err
		}
		last = all[0].last
		out, keys, err = r.episode(ctx, all[0], after, false)
		return err
	})
	return out, keys, last, explain(s.path, fmt.Sprintf("read episode %d", episode), err)
}

// Fill reads the messages of requests that Since or Window left out.
func (s *Store) Fill(episode int, keys map[*journal.Replied]int64, replies ...*journal.Replied) error {
	err := s.readers.with(func(r *reader) error { return r.fillPrompts(keys, replies) })
	return explain(s.path, fmt.Sprintf("read episode %d", episode), err)
}

// Window reads a part of one episode as Sparing does: so many replies up to the entry at, and so many after it, with their
// turns. 0 is the beginning. keys has the number of the entry of each reply; first and last report whether the part has
// the beginning and the end of the episode. It takes a moment, however long the episode is.
func (s *Store) Window(ctx context.Context, episode int, at int64, before, after int) (out []journal.Entry, keys map[*journal.Replied]int64, fill func(...*journal.Replied) error, first, last bool, err error) {
	err = s.readers.with(func(r *reader) error {
		all, err := r.extents(journal.Span{From: episode, To: episode + 1})
		if err != nil || len(all) == 0 {
			first, last = true, true
			return err
		}
		of, n := all[0], after
		if at > 0 && r.lost == nil {
			var found int
			if of.first, found, err = r.back(ctx, all[0], min(at, abs(of.last)), before); err != nil {
				return err
			}
			n += found
		}
		first = of.first == all[0].first
		out, keys, last, err = r.beginning(ctx, of, n)
		return err
	})
	fill = func(replies ...*journal.Replied) error { return s.Fill(episode, keys, replies...) }
	return out, keys, fill, first, last, explain(s.path, fmt.Sprintf("read episode %d", episode), err)
}

// back returns the entry of an episode that is so many replies before at, or its first, and how many replies there are
// from that one to at.
func (r *reader) back(ctx context.Context, of extent, at int64, replies int) (from int64, found int, err error) {
	const up = `SELECT seq FROM replies WHERE seq <= ? AND seq >= ? AND episode = ? ORDER BY seq DESC LIMIT ?`
	lowest := max(of.first, at-int64(replies)-maxForeign)
	err = r.queryRows(ctx, up, []int64{at, lowest, int64(of.episode), int64(replies)}, func(c rowReader) error {
		from, found = c.Key, found+1
		return nil
	})
	if found < replies { // there are no more; or too many others are in between, and the rest is left out
		from = lowest
	}
	return from, found, err
}

// maxForeign is how many entries of other episodes beginning passes before it looks up the episode's own.
const maxForeign = 20_000

// beginning reads the entries of an episode from of.first on, up to so many replies. end reports whether no more follow. It
// may return all entries.
func (r *reader) beginning(ctx context.Context, of extent, replies int) (out []journal.Entry, keys map[*journal.Replied]int64, end bool, err error) {
	keys = map[*journal.Replied]int64{}
	if r.lost != nil { // the entries between may be lost
		out, keys, err = r.episode(ctx, of, 0, false)
		return out, keys, true, err
	}
	const own = `WHERE seq > ? AND seq <= ? AND episode = ? ORDER BY seq LIMIT ?`
	until := min(abs(of.last), of.first+int64(replies)+maxForeign)
	var all []unfilled
	seqs := map[journal.Entry]int64{}
	last := of.first - 1
	err = r.queryRows(ctx, repliesSQL+own, []int64{of.first - 1, until, int64(of.episode), int64(replies)}, func(c rowReader) error {
		u, _, err := readReplied(c, false)
		if err == nil {
			all, keys[u.Replied], seqs[u.Replied], last = append(all, u), c.Key, c.Key, c.Key
			out = append(out, u.Replied)
		}
		return err
	})
	if len(all) < replies { // there are no more until the end
		last = until
	}
	if err == nil {
		err = r.queryRows(ctx, turnsSQL+own, []int64{of.first - 1, last, int64(of.episode), last}, func(c rowReader) error {
			e, _, err := readTurned(c)
			if err == nil {
				seqs[e] = c.Key
				out = append(out, e)
			}
			return err
		})
	}
	if end = last >= abs(of.last); err != nil || !end && len(all) < replies {
		out, keys, err = r.episode(ctx, of, 0, false) // too many others are in between
		return out, keys, true, err
	}
	slices.SortFunc(out, func(a, b journal.Entry) int { return cmp.Compare(seqs[a], seqs[b]) })
	return out, keys, end, r.fillAll(all)
}

// queryRows calls each for the rows of a query.
func (r *reader) queryRows(ctx context.Context, query string, args []int64, each func(c rowReader) error) error {
	s, err := r.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer reset(s)
	reset(s)
	for i, a := range args {
		s.BindInt64(i+1, a)
	}
	for {
		found, err := s.Step()
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || !found {
			return err
		}
		if err := each(newRowReader(s)); err != nil {
			return err
		}
	}
}

// fillPrompts reads the requests of replies again, with their messages.
func (r *reader) fillPrompts(keys map[*journal.Replied]int64, replies []*journal.Replied) error {
	var all []unfilled
	for _, e := range replies {
		if keys[e] == 0 || e.Request == nil {
			continue
		}
		err := findRow(r.byKey.reply, tableReplies, keys[e], func(c rowReader) error {
			u, _, err := readReplied(c, true)
			all = append(all, u)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := r.fillAll(all); err != nil {
		return err
	}
	i := 0
	for _, e := range replies {
		if keys[e] != 0 && e.Request != nil {
			e.Request = all[i].Request
			i++
		}
	}
	return nil
}

// episode follows an episode's turns and replies back from the last to the one after an entry. keys has the seq of each reply.
func (r *reader) episode(ctx context.Context, of extent, after int64, prompts bool) (out []journal.Entry, keys map[*journal.Replied]int64, err error) {
	var replies []unfilled
	if !prompts {
		keys = map[*journal.Replied]int64{}
	}
	err = follow(ctx, of.last, func(at int64) (prev int64, err error) {
		switch {
		case at == after:
			return 0, nil
		case abs(at) <= abs(after):
			return 0, errMissing("entry %d", abs(after))
		}
		if at < 0 {
			err = findRow(r.byKey.turn, tableTurns, -at, func(c rowReader) error {
				e, p, err := readTurned(c)
				out, prev = append(out, e), p
				return err
			})
			return prev, err
		}
		err = findRow(r.byKey.reply, tableReplies, at, func(c rowReader) error {
			u, p, err := readReplied(c, prompts)
			out, replies, prev = append(out, u.Replied), append(replies, u), p
			if keys != nil {
				keys[u.Replied] = at
			}
			return err
		})
		return prev, err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(out)
	return out, keys, r.fillAll(replies)
}

// follow visits the turns and replies of an episode from the last to the first. Each visit
// gets the seq of a reply, or minus the seq of a turn, and returns the one before it.
func follow(ctx context.Context, last int64, visit func(at int64) (prev int64, err error)) error {
	for at := last; at != 0; {
		prev, err := visit(at)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		if abs(prev) >= abs(at) {
			return errMissing("the entry before entry %d", abs(at))
		}
		at = prev
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

const (
	replayTurnsSQL   = `SELECT ` + turnColumns + ` FROM turns ` + inSpan
	replayRepliesSQL = `SELECT r.seq, r.sum, r.prev, r.flags, r.episode, r.attempt, r.strand, r.turn, r.place, r.cost, r.input, r.output, r.finish, r.error, r.answer,
		r.json, r.rest, t.sum, t.text, t.rest
		FROM replies r LEFT JOIN texts t ON t.id = r.answer WHERE r.seq > ?1 AND r.seq <= ?2 ORDER BY 1`
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
		if err := p.replies.open(r, replayRepliesSQL, 4, in); err != nil {
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
	c.BeginJoined(tableTexts, id, c.Column(), 1)
	text := c.Text()
	c.Optional()
	if err := c.Check(); err != nil {
		return "", err
	}
	if k := r.keys; k != nil && !k.Recall(episode, text, id) {
		k.Add(r.hasher.Text(text), id)
	}
	return text, nil
}
