package runfile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

// reader is a connection that reads.
type reader struct {
	conn   *sqlite.Conn
	keys   []*contentKeys // of the writer, by file; may be empty
	shards int            // how many the run has
	byKey  byKey
	texts  *recent[int64, *sqliteText]
	hasher contentHasher
	scores scoreReader
	lost   *Losses // nil: damage is an error

	onSkip func(error) // gets the error when a scan skips rows; may be nil
}

// readAtOnce is how many entries are read from one state of the file.
const readAtOnce = 2048

// chunks calls f for every n entries after the given one, each time with one state of the
// file, and then calls then without one. t is from the beginning.
func (s *Store) chunks(ctx context.Context, after, n int64, f func(r *reader, in span, t totals) error, then func() error) error {
	var t totals
	if err := s.read(func(r *reader) (err error) { t, err = readTotals(r.conn); return err }); err != nil {
		return err
	}
	for ; after < t.seq; after += n {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		in := span{after, min(after+n, t.seq)}
		if err := s.read(func(r *reader) error { return f(r, in, t) }); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

// Head reads everything that is needed to resume a run except the calls.
func (s *Store) Head(ctx context.Context) (h *journal.Head, err error) {
	err = s.read(func(r *reader) error {
		h, err = r.head(ctx)
		return err
	})
	return h, err
}

func (r *reader) head(ctx context.Context) (*journal.Head, error) {
	h := &journal.Head{}
	keep := func(seq int64, e journal.Entry) {
		switch e := e.(type) {
		case *journal.Batched:
			h.Batch(int(seq), e)
		case *journal.Ended:
			h.End(int(seq), e)
		default:
			h.Add(e)
		}
	}
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		read func(span, keepFunc) (int64, error)
		want int64
		what string
	}{{r.events, t.events, "events"}, {r.stages, t.stages, "stages"}, {r.ends, t.outcomes, "outcomes"}} {
		n, err := part.read(everything(), keep)
		if err := cmp.Or(context.Cause(ctx), err, r.complete(n, part.want, part.what)); err != nil {
			return nil, err
		}
	}
	h.Calls += int(t.calls)
	h.Collected = journal.Collected{Log: t.log, Through: t.collected}
	h.Spent = h.Spent.Plus(max(0, llm.Money(t.spent)))
	return h, cmp.Or(context.Cause(ctx), r.live(h, t.states[statePlaying]), r.checkBegun(h.Begun, t))
}

// checkBegun returns an error if the first entry of a damaged run is lost.
func (r *reader) checkBegun(b *journal.Begun, t totals) error {
	if b == nil && t.seq > 0 && r.lost != nil {
		return fmt.Errorf("%w: the beginning of the run cannot be read", ErrDamaged)
	}
	return nil
}

// Read reads the entries of a span that exist when it begins.
func (s *Store) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	if in.To > 0 {
		return s.episodes(ctx, in, each)
	}
	var entries []journal.Entry
	fill := func(r *reader, in span, _ totals) error {
		entries = make([]journal.Entry, in.to-in.after)
		return r.entries(in, entries)
	}
	// No state of the file is held while each runs, so a slow consumer does not make the log grow.
	return s.chunks(ctx, max(0, int64(in.Since)-1), readAtOnce, fill, func() error {
		for _, e := range entries {
			if e == nil {
				continue // it is damaged and left out
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := each(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReadPart reads up to limit entries after an entry, and returns the number of the last. Damaged entries that Salvage leaves out
// count, and each does not get them.
func (s *Store) ReadPart(ctx context.Context, after, limit int, each func(journal.Entry) error) (last int, err error) {
	var entries []journal.Entry
	last = after
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		if err != nil || int64(after) >= t.seq {
			return err
		}
		in := span{int64(after), min(int64(after)+int64(limit), t.seq)}
		last, entries = int(in.to), make([]journal.Entry, in.to-in.after)
		return r.entries(in, entries)
	})
	for _, e := range entries {
		if err = cmp.Or(err, context.Cause(ctx)); err == nil && e != nil {
			err = each(e)
		}
	}
	return last, err
}

// entries reads a span into out.
func (r *reader) entries(in span, out []journal.Entry) error {
	keep := func(seq int64, e journal.Entry) { out[seq-in.after-1] = e }
	for _, read := range []func(span, keepFunc) (int64, error){r.events, r.stages, r.turns, r.replies, r.outcomes} {
		if _, err := read(in, keep); err != nil {
			return err
		}
	}
	if i := slices.Index(out, nil); i >= 0 && r.lost == nil {
		return errMissing("entry %d", in.after+int64(i)+1)
	}
	return nil
}

// live reads the episodes that are being played. Their number shows whether one is missing;
// reading all episodes would take longer.
func (r *reader) live(h *journal.Head, want int64) error {
	n := int64(0)
	err := r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND NOT ended AND first ORDER BY episode`, everything(), func(c rowReader) error {
		p, err := readProgress(c)
		if err != nil || r.lost.Has(p.episode) {
			return err
		}
		n++
		h.Live(p.episode, p.Progress)
		return nil
	})
	return cmp.Or(err, r.complete(n, want, "episodes being played"))
}

// keepFunc receives an entry and its number.
type keepFunc func(seq int64, e journal.Entry)

const stagesSQL = `SELECT seq, sum, stage, first, count FROM stages ` + inSpan

// readStage reads a row of stagesSQL.
func readStage(c rowReader) (e *journal.Staged, count int, err error) {
	c.Begin(rowStages, 1)
	e = &journal.Staged{Stage: c.Int(), First: c.Int()}
	count = c.Int()
	return e, count, c.Check()
}

func (r *reader) stages(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(stagesSQL, in, func(c rowReader) error {
		e, count, err := readStage(c)
		if err != nil {
			return err
		}
		if err := r.specs(e, count); err != nil {
			return err
		}
		n++
		keep(c.Key, e)
		return nil
	})
	return n, err
}

const (
	turnColumns = `seq, sum, prev, episode, attempt, strand, turn, calls, digest`
	turnsSQL    = `SELECT ` + turnColumns + `, notes FROM turns `
	repliesSQL  = `SELECT ` + repliedColumns + ` FROM replies `
)

func (r *reader) turns(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(turnsSQL+inSpan, in, func(c rowReader) error {
		e, _, err := readTurned(c)
		if err != nil || r.lost.Has(e.Episode) {
			return err
		}
		n++
		keep(c.Key, e)
		return nil
	})
	return n, err
}

func (r *reader) replies(in span, keep keepFunc) (n int64, err error) {
	var all []unfilled
	err = r.scan(repliesSQL+inSpan, in, func(c rowReader) error {
		p, _, err := readReplied(c, true)
		if err != nil || r.lost.Has(p.Episode) {
			return err
		}
		all = append(all, p)
		keep(c.Key, p.Replied)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int64(len(all)), r.fillAll(all)
}

// readTurnCore reads turnColumns.
func readTurnCore(c *rowReader, e *journal.Turned) (prev int64, err error) {
	c.Begin(rowTurns, 1)
	prev = c.Int64()
	*e = journal.Turned{Turn: readTurn(c), Calls: c.Int()}
	c.Bytes(e.Digest[:])
	return prev, c.Check()
}

// readTurned reads a row of turnsSQL.
func readTurned(c rowReader) (e *journal.Turned, prev int64, err error) {
	e = &journal.Turned{}
	if prev, err = readTurnCore(&c, e); err != nil {
		return nil, 0, err
	}
	notes := c.Optional()
	if err := c.Check(); err != nil {
		return nil, 0, withEpisode(e.Episode, err)
	}
	if notes != "" {
		if err := json.Unmarshal([]byte(notes), &e.Notes); err != nil {
			return nil, 0, c.Bad("has notes that cannot be read: " + err.Error())
		}
	}
	return e, prev, nil
}
