package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"zombiezen.com/go/sqlite"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// reader is a connection that reads.
type reader struct {
	conn  *sqlite.Conn
	keys  *keys
	chain chain
	texts *recent[int64, *text]
	print printer
}

// readAtOnce is how many entries are read on one state of the file.
const readAtOnce = 2048

// Head reads all that a run needs to know to be played on but the calls.
func (s *Store) Head(ctx context.Context) (*journal.Head, error) {
	h := &journal.Head{}
	err := s.readers.with(func(r *reader) error {
		var entries []journal.Entry
		keep := func(seq int64, e journal.Entry) {
			if b, ok := e.(*journal.Batched); ok {
				h.Batch(int(seq), b)
				return
			}
			entries = append(entries, e)
		}
		if err := cmp.Or(context.Cause(ctx), r.events(everything(), keep), r.stages(everything(), keep), r.outcomes(everything(), keep)); err != nil {
			return err
		}
		for _, e := range entries {
			h.Add(e)
		}
		return cmp.Or(context.Cause(ctx), r.live(h), r.totals(h))
	})
	if err != nil {
		return nil, explain(s.path, "read", err)
	}
	return h, nil
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
	var last int64
	err := s.readers.with(func(r *reader) (err error) { last, err = r.last(); return err })
	for ; err == nil && after < last; after += readAtOnce {
		in := span{after, min(after+readAtOnce, last)}
		entries := make([]journal.Entry, in.to-in.after)
		err = s.readers.with(func(r *reader) error { return r.entries(in, entries) })
		if err != nil {
			break
		}
		for _, e := range entries {
			if err := context.Cause(ctx); err != nil {
				return err
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

// span is the entries after one and up to another.
type span struct{ after, to int64 }

func everything() span { return span{0, 1<<63 - 1} }

// entries reads a span.
func (r *reader) entries(in span, out []journal.Entry) error {
	keep := func(seq int64, e journal.Entry) { out[seq-in.after-1] = e }
	if err := cmp.Or(r.events(in, keep), r.stages(in, keep), r.turns(in, keep), r.replies(in, keep), r.outcomes(in, keep)); err != nil {
		return err
	}
	if i := slices.Index(out, nil); i >= 0 {
		return missing(false, fmt.Sprintf("entry %d", in.after+int64(i)+1))
	}
	return nil
}

// rows runs a query with numbers and calls each for every row.
func (r *reader) rows(query string, args []int64, each func(c columns) error) error {
	s, err := r.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer done(s)
	for i, n := range args {
		s.BindInt64(i+1, n)
	}
	for {
		found, err := s.Step()
		if err != nil || !found {
			return err
		}
		if err := each(columns{s: s}); err != nil {
			return err
		}
	}
}

func (r *reader) last() (seq int64, err error) {
	err = r.rows(`SELECT seq FROM state`, nil, func(c columns) error { seq = c.int64(); return nil })
	return seq, err
}

func (r *reader) totals(h *journal.Head) error {
	return r.rows(`SELECT calls, spent FROM state`, nil, func(c columns) error {
		h.Calls += c.int()
		h.Spent = h.Spent.Plus(max(0, llm.Money(c.int64())))
		return nil
	})
}

func (r *reader) live(h *journal.Head) error {
	return r.rows(`SELECT episode, attempt, open, entries FROM progress WHERE NOT ended`, nil, func(c columns) error {
		h.Live(c.int(), journal.Progress{Attempt: c.int(), Open: c.int(), Entries: c.int()})
		return nil
	})
}

type keepFunc func(seq int64, e journal.Entry)

func (r *reader) events(in span, keep keepFunc) error {
	return r.rows(`SELECT seq, what, at, data, plan FROM events WHERE seq > ? AND seq <= ? ORDER BY seq`, []int64{in.after, in.to}, func(c columns) error {
		seq := c.int64()
		e, err := event(c)
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrDamaged, seq, err)
		}
		keep(seq, e)
		return nil
	})
}

func event(c columns) (journal.Entry, error) {
	what, at, data, plan := c.str(), c.time(), []byte(c.str()), c.raw()
	switch what {
	case "begun":
		var d begunData
		err := json.Unmarshal(data, &d)
		seed, serr := strconv.ParseUint(d.Seed, 10, 64)
		return &journal.Begun{
			Version: d.Version, Run: d.Run, Tool: d.Tool, At: at, Kind: d.Kind, KindVersion: d.KindVersion,
			Seed: seed, Agents: d.Agents, Fork: d.Fork, Plan: plan,
		}, errors.Join(err, serr)
	case "opened":
		var d openedData
		err := json.Unmarshal(data, &d)
		return &journal.Opened{At: at, Lost: d.Lost, Cost: llm.Money(d.Cost)}, err
	case "closed":
		var d closedData
		err := json.Unmarshal(data, &d)
		return &journal.Closed{At: at, State: d.State, Reason: d.Reason}, err
	case "exposed":
		var d exposedData
		err := json.Unmarshal(data, &d)
		return &journal.Exposed{Calls: d.Calls, Worst: llm.Money(d.Worst)}, err
	case "batched":
		var d batchedData
		err := json.Unmarshal(data, &d)
		return &journal.Batched{
			At: at, Step: d.Step, Key: d.Key, Provider: d.Provider, Model: d.Model, Lines: d.Lines,
			Worst: llm.Money(d.Worst), Dearest: llm.Money(d.Dearest), File: d.File, Batch: d.Batch, Why: d.Why,
		}, err
	default:
		return nil, fmt.Errorf("%q is no entry", what)
	}
}

func (r *reader) stages(in span, keep keepFunc) error {
	return r.rows(`SELECT seq, stage, first, count FROM stages WHERE seq > ? AND seq <= ? ORDER BY seq`, []int64{in.after, in.to}, func(c columns) error {
		seq := c.int64()
		e := &journal.Staged{Stage: c.int(), First: c.int()}
		count := c.int()
		err := r.specs(e, count)
		if err == nil && len(e.Specs) != count {
			err = missing(false, "an episode of a stage")
		}
		keep(seq, e)
		return err
	})
}

// specs reads the episodes of a stage. Most have the params and the lineup of others: these
// are shared, since a run may have a million episodes.
func (r *reader) specs(e *journal.Staged, count int) error {
	e.Specs = make([]world.Spec, 0, min(count, 1<<20))
	allParams, lineups, cells := map[int64]json.RawMessage{}, map[int64]map[string]string{}, map[string]string{}
	return r.rows(`SELECT kind, params, lineup, deal, cell FROM specs WHERE episode >= ? AND episode < ? ORDER BY episode`, []int64{int64(e.First), int64(e.First + count)}, func(c columns) error {
		s := world.Spec{Kind: intern(cells, c.str())}
		var err error
		if s.Params, err = readOnce(allParams, c.int64(), r.params); err != nil {
			return err
		}
		if s.Lineup, err = readOnce(lineups, c.int64(), r.lineup); err != nil {
			return err
		}
		s.Deal, s.Cell = c.int(), intern(cells, c.str())
		e.Specs = append(e.Specs, s)
		return nil
	})
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

func (r *reader) outcomes(in span, keep keepFunc) error {
	return r.rows(`SELECT seq, episode, attempt, at, failed, scores, data, stack FROM outcomes WHERE seq > ? AND seq <= ? ORDER BY seq`, []int64{in.after, in.to}, func(c columns) error {
		seq := c.int64()
		e := &journal.Ended{Episode: c.int(), Attempt: c.int(), At: c.time(), Outcome: world.Outcome{Failed: c.str()}}
		scores, err := decodeScores(c.str())
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrDamaged, seq, err)
		}
		e.Outcome.Scores, e.Outcome.Data, e.Stack = scores, json.RawMessage(c.raw()), c.str()
		keep(seq, e)
		return nil
	})
}

func decodeScores(text string) ([]world.Score, error) {
	if text == "" {
		return nil, nil
	}
	var in []struct {
		Seat, Name string
		Value      json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, err
	}
	out := make([]world.Score, len(in))
	for i, s := range in {
		text := string(s.Value)
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		out[i] = world.Score{Seat: s.Seat, Name: s.Name, Value: value}
	}
	return out, nil
}

const (
	turnsSQL   = `SELECT seq, prev, episode, attempt, strand, turn, calls, notes, digest FROM turns `
	repliesSQL = `SELECT ` + repliedColumns + ` FROM replies `
	inSpan     = `WHERE seq > ? AND seq <= ? ORDER BY seq`
)

func (r *reader) turns(in span, keep keepFunc) error {
	return r.rows(turnsSQL+inSpan, []int64{in.after, in.to}, func(c columns) error {
		e, _, err := turned(c)
		keep(c.s.ColumnInt64(0), e)
		return err
	})
}

func (r *reader) replies(in span, keep keepFunc) error {
	var all []partial
	err := r.rows(repliesSQL+inSpan, []int64{in.after, in.to}, func(c columns) error {
		p, _, err := replied(c)
		all = append(all, p)
		keep(c.s.ColumnInt64(0), p.Replied)
		return err
	})
	if err != nil {
		return err
	}
	return r.complete(all)
}

func turned(c columns) (e *journal.Turned, prev int64, err error) {
	seq, prev := c.int64(), c.int64()
	e = &journal.Turned{Turn: c.turn(), Calls: c.int()}
	if notes := c.str(); notes != "" {
		if err := json.Unmarshal([]byte(notes), &e.Notes); err != nil {
			return nil, 0, fmt.Errorf("%w: entry %d: %w", ErrDamaged, seq, err)
		}
	}
	c.s.ColumnBytes(c.i, e.Digest[:])
	return e, prev, nil
}
