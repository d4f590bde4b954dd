package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
)

// reader is a connection that reads.
type reader struct {
	conn  *sqlite.Conn
	keys  *keys
	chain chain
	texts *recent[int64, *text]
	print printer
	lost  *Losses // nil: damage is an error

	passed func(error) // is told what a scan passed over; may be nil
}

// readAtOnce is how many entries are read on one state of the file.
const readAtOnce = 2048

// Head reads all that a run needs to know to be played on but the calls.
func (s *Store) Head(ctx context.Context) (h *journal.Head, err error) {
	err = s.readers.with(func(r *reader) error {
		h, err = r.head(ctx)
		return err
	})
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return h, nil
}

func (r *reader) head(ctx context.Context) (*journal.Head, error) {
	h := &journal.Head{}
	var entries []journal.Entry
	keep := func(seq int64, e journal.Entry) {
		if b, ok := e.(*journal.Batched); ok {
			h.Batch(int(seq), b)
			return
		}
		entries = append(entries, e)
	}
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		read func(span, keepFunc) (int64, error)
		want int64
		what string
	}{{r.events, t.events, "events"}, {r.stages, t.stages, "stages"}, {r.outcomes, t.outcomes, "outcomes"}} {
		n, err := part.read(everything(), keep)
		if err := cmp.Or(context.Cause(ctx), err, r.complete(n, part.want, part.what)); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		h.Add(e)
	}
	h.Calls += int(t.calls)
	h.Spent = h.Spent.Plus(max(0, llm.Money(t.spent)))
	return h, cmp.Or(context.Cause(ctx), r.live(h, t.states[statePlaying]), r.begun(h.Begun, t))
}

// begun makes sure that what is left of a damaged run is known to be of it.
func (r *reader) begun(b *journal.Begun, t totals) error {
	if b == nil && t.seq > 0 && r.lost != nil {
		return fmt.Errorf("%w: how the run began cannot be read", ErrDamaged)
	}
	return nil
}

// Read reads what is there of a span when it begins.
func (s *Store) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	if in.To > 0 {
		return s.episodes(ctx, in, each)
	}
	return s.since(ctx, max(0, int64(in.Since)-1), each)
}

// since reads every entry after one in order. It holds no state of the file while each runs, so a
// slow reader does not make the file's log grow.
func (s *Store) since(ctx context.Context, after int64, each func(journal.Entry) error) error {
	t, err := s.totals()
	for ; err == nil && after < t.seq; after += readAtOnce {
		in := span{after, min(after+readAtOnce, t.seq)}
		entries := make([]journal.Entry, in.to-in.after)
		err = s.readers.with(func(r *reader) error { return r.entries(in, entries) })
		if err != nil {
			break
		}
		for _, e := range entries {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if e == nil {
				continue // it is damaged, and to be left out
			}
			if err := each(e); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return explain(s.path, "read", err)
	}
	return nil
}

// totals reads the state of the run.
func (s *Store) totals() (t totals, err error) {
	err = s.readers.with(func(r *reader) (err error) { t, err = readTotals(r.conn); return err })
	return t, err
}

// entries reads a span.
func (r *reader) entries(in span, out []journal.Entry) error {
	keep := func(seq int64, e journal.Entry) { out[seq-in.after-1] = e }
	for _, read := range []func(span, keepFunc) (int64, error){r.events, r.stages, r.turns, r.replies, r.outcomes} {
		if _, err := read(in, keep); err != nil {
			return err
		}
	}
	if i := slices.Index(out, nil); i >= 0 && r.lost == nil {
		return missing(false, fmt.Sprintf("entry %d", in.after+int64(i)+1))
	}
	return nil
}

// live reads the episodes that are being played. That none is passed over is known by
// their number, since looking at all would take longer.
func (r *reader) live(h *journal.Head, want int64) error {
	n := int64(0)
	err := r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND NOT ended AND first ORDER BY episode`, everything(), func(c columns) error {
		p, err := progress(c)
		if err != nil || r.lost.has(p.episode) {
			return err
		}
		n++
		h.Live(p.episode, p.Progress)
		return nil
	})
	return cmp.Or(err, r.complete(n, want, "episodes being played"))
}

type keepFunc func(seq int64, e journal.Entry)

func (r *reader) stages(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(`SELECT seq, sum, stage, first, count FROM stages `+inSpan, in, func(c columns) error {
		seq := c.key(tableStages, 1)
		e := &journal.Staged{Stage: c.int(), First: c.int()}
		count := c.int()
		if err := c.check(); err != nil {
			return err
		}
		if err := r.specs(e, count); err != nil {
			return err
		}
		n++
		keep(seq, e)
		return nil
	})
	return n, err
}

// readOnce returns what read makes of a text, and reads it once.
func readOnce[V any](known map[int64]V, id int64, read func(int64) (V, error)) (v V, err error) {
	v, ok := known[id]
	if !ok {
		if v, err = read(id); err == nil {
			known[id] = v
		}
	}
	return v, err
}

// intern returns the first text that was equal.
func intern(known map[string]string, text string) string {
	if first, ok := known[text]; ok {
		return first
	}
	known[text] = text
	return text
}

func (r *reader) params(id int64) (json.RawMessage, error) {
	t, err := r.text(id)
	if err != nil || t.words == "" {
		return nil, err
	}
	return json.RawMessage(t.words), nil
}

func (r *reader) lineup(id int64) (lineup map[string]string, err error) {
	t, err := r.text(id)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(t.words), &lineup); err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	return lineup, nil
}

const (
	turnCoreColumns = `seq, sum, prev, episode, attempt, strand, turn, calls, digest`
	turnsSQL        = `SELECT ` + turnCoreColumns + `, notes FROM turns `
	repliesSQL      = `SELECT ` + repliedColumns + ` FROM replies `
)

func (r *reader) turns(in span, keep keepFunc) (n int64, err error) {
	err = r.scan(turnsSQL+inSpan, in, func(c columns) error {
		e, _, err := turned(c)
		if err != nil || r.lost.has(e.Episode) {
			return err
		}
		n++
		keep(c.row, e)
		return nil
	})
	return n, err
}

func (r *reader) replies(in span, keep keepFunc) (n int64, err error) {
	var all []partial
	err = r.scan(repliesSQL+inSpan, in, func(c columns) error {
		p, _, err := replied(c, true)
		if err != nil || r.lost.has(p.Episode) {
			return err
		}
		all = append(all, p)
		keep(c.row, p.Replied)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int64(len(all)), r.fillAll(all)
}

// turned reads turnCoreColumns.
func (c *columns) turned() (e *journal.Turned, prev int64, err error) {
	c.key(tableTurns, 1)
	prev = c.int64()
	e = &journal.Turned{Turn: c.turn(), Calls: c.int()}
	c.bytes(e.Digest[:])
	return e, prev, c.check()
}

// turned reads a row of turnsSQL.
func turned(c columns) (e *journal.Turned, prev int64, err error) {
	if e, prev, err = c.turned(); err != nil {
		return nil, 0, err
	}
	notes := c.opt()
	if err := c.check(); err != nil {
		return nil, 0, of(e.Episode, err)
	}
	if notes != "" {
		if err := json.Unmarshal([]byte(notes), &e.Notes); err != nil {
			return nil, 0, &rowError{table: tableTurns, key: c.sum.key, why: "has notes that cannot be read: " + err.Error()}
		}
	}
	return e, prev, nil
}
