package runfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/journal"
	"parley/world"
)

const stagesSQL = `SELECT seq, sum, stage, first, count FROM stages ` + inSpan

func (w *writer) putStaged(e *journal.Staged) error {
	r, err := w.rows.Row(`INSERT INTO stages (seq, sum, stage, first, count) VALUES (?, ?, ?, ?, ?)`, tableStages, w.totals.seq, 1)
	if err != nil {
		return err
	}
	r.Int(int64(e.Stage))
	r.Int(int64(e.First))
	r.Int(int64(e.Specs.Len()))
	r.Seal()
	w.totals.stages++
	w.totals.episodes += int64(e.Specs.Len())
	if err := r.Do(); err != nil {
		return err
	}
	return w.putSpecs(e.First, e.Specs)
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

// readStage reads a row of stagesSQL.
func readStage(c rowReader) (e *journal.Staged, count int, err error) {
	c.Begin(tableStages, 1)
	e = &journal.Staged{Stage: c.Int(), First: c.Int()}
	count = c.Int()
	return e, count, c.Check()
}

const (
	specColumns = `episode, sum, size, block, round, rounds, kind, params, lineup, more, deal, cell`
	specsSQL    = `SELECT ` + specColumns + ` FROM specs `
)

// specRow is a row of specs: a group of episodes.
type specRow struct {
	episode, size        int64 // in the first round
	block, round, rounds int64 // see schema.sql
	kind, cell           string
	params, lineup, more int64 // ids of texts
	deal                 int
}

// end returns the first episode after the block.
func (s *specRow) end() int64 { return s.block + s.round*s.rounds }

// specMore is what few specs have.
type specMore struct {
	Systems map[string]string `json:"systems,omitempty"`
	Remark  json.RawMessage   `json:"remark,omitempty"`
}

// next returns the first episode after the group, in the first round.
func (s *specRow) next() int64 { return s.episode + s.size }

// lost reports whether the row stands for a missing one: every stored row has a lineup.
func (s *specRow) lost() bool { return s.lineup == 0 }

// putSpecs stores the episodes of a stage, group by group. It stores a block of one round as a
// block for each of its groups, so that a reader finds one without the others.
func (w *writer) putSpecs(first int, specs world.Specs) error {
	for b := range specs.Blocks() {
		at := first
		s := specRow{block: int64(first), rounds: int64(b.Rounds)}
		for _, g := range b.Groups {
			s.round += int64(g.Size)
		}
		for i := range b.Groups {
			g := &b.Groups[i]
			s.episode, s.size = int64(at), int64(g.Size)
			if b.Rounds == 1 {
				s.block, s.round = s.episode, s.size
			}
			if err := w.putSpec(s, &g.Spec); err != nil {
				return fmt.Errorf("episode %d: %w", at, err)
			}
			at += g.Size
		}
		first += (at - first) * b.Rounds
	}
	return nil
}

func (w *writer) putSpec(s specRow, spec *world.Spec) (err error) {
	if spec.Params != nil {
		if s.params, err = w.textID(string(spec.Params)); err != nil {
			return err
		}
	}
	lineup, err := encode(spec.Lineup)
	if err != nil {
		return err
	}
	if s.lineup, err = w.textID(lineup); err != nil {
		return err
	}
	if len(spec.Systems) > 0 || spec.Remark != nil {
		more, err := encode(specMore{spec.Systems, spec.Remark})
		if err != nil {
			return err
		}
		if s.more, err = w.textID(more); err != nil {
			return err
		}
	}
	r, err := w.rows.Row(`INSERT INTO specs (`+specColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, tableSpecs, s.episode, 1)
	if err != nil {
		return err
	}
	for _, n := range []int64{s.size, s.block, s.round, s.rounds} {
		r.Int(n)
	}
	r.Text(spec.Kind)
	r.ID(s.params)
	r.ID(s.lineup)
	r.ID(s.more)
	r.Int(int64(spec.Deal))
	r.Optional(spec.Cell)
	r.Seal()
	return r.Do()
}

// readSpec reads a row of specsSQL.
func readSpec(c rowReader) (specRow, error) {
	c.Begin(tableSpecs, 1)
	s := specRow{episode: c.Key, size: c.Int64(), block: c.Int64(), round: c.Int64(), rounds: c.Int64()}
	s.kind, s.params, s.lineup, s.more, s.deal, s.cell = c.Text(), c.Int64(), c.Int64(), c.Int64(), c.Int(), c.Optional()
	if err := c.Check(); err != nil {
		return s, err
	}
	const limit = world.MaxEpisodes
	valid := s.lineup > 0 && s.deal <= math.MaxInt-int(s.rounds) && 0 <= s.block && s.block <= s.episode && 0 < s.size && s.size <= s.round && 0 < s.rounds &&
		s.round <= limit && s.rounds <= limit && s.block <= limit-s.round*s.rounds && s.episode-s.block <= s.round-s.size
	if !valid {
		return s, c.Bad("is impossible: its numbers do not fit together")
	}
	return s, nil
}

// blockReader puts blocks together from their rows, which come in order.
type blockReader struct {
	next int64     // the first episode of the next block
	rows []specRow // of an incomplete block
	pad  bool      // add rows for missing groups; otherwise these are an error
	each func(block []specRow) error
}

// add adds a row.
func (b *blockReader) add(s specRow) error {
	if len(b.rows) > 0 && s.block != b.rows[0].block {
		if err := b.completeRound(); err != nil {
			return err
		}
	}
	at := s.block
	var fits bool
	if n := len(b.rows); n == 0 {
		if err := b.skip(s.block); err != nil {
			return err
		}
		fits = s.block == b.next
	} else {
		last := &b.rows[n-1]
		at = last.next()
		fits = s.episode >= at && s.round == last.round && s.rounds == last.rounds
	}
	if !fits {
		return &rowError{Table: tableSpecs, Key: s.episode, Why: "does not fit the one before it"}
	}
	if s.episode > at {
		if err := b.missing(specRow{episode: at, size: s.episode - at, block: s.block, round: s.round, rounds: s.rounds}); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, s)
	return b.flush()
}

// skip continues with the block that begins with an episode.
func (b *blockReader) skip(episode int64) error {
	n := episode - b.next
	if n <= 0 {
		return nil
	}
	return b.missing(specRow{episode: b.next, size: n, block: b.next, round: n, rounds: 1})
}

// completeRound completes a block up to the end of its first round.
func (b *blockReader) completeRound() error {
	last := b.rows[len(b.rows)-1]
	at := last.next()
	return b.missing(specRow{episode: at, size: last.block + last.round - at, block: last.block, round: last.round, rounds: last.rounds})
}

// finish completes the blocks up to an episode.
func (b *blockReader) finish(to int64) error {
	if len(b.rows) > 0 {
		if err := b.completeRound(); err != nil {
			return err
		}
	}
	return b.skip(to)
}

// missing adds a row for a missing group.
func (b *blockReader) missing(s specRow) error {
	if !b.pad {
		return rowMissing(tableSpecs, s.episode)
	}
	b.rows = append(b.rows, s)
	return b.flush()
}

// flush passes a complete block to each.
func (b *blockReader) flush() error {
	last := &b.rows[len(b.rows)-1]
	if last.next() < last.block+last.round {
		return nil
	}
	b.next = last.end()
	err := b.each(b.rows)
	b.rows = b.rows[:0]
	return err
}

// specs reads the episodes of a stage. Groups share their params and lineups.
func (r *reader) specs(e *journal.Staged, count int) error {
	const limit = world.MaxEpisodes
	if count < 0 || count > limit || e.First < 0 || e.First > limit-count {
		return fmt.Errorf("%w: stage %d has %d episodes starting at %d, and a run has at most %d", ErrDamaged, e.Stage, count, e.First, limit)
	}
	var blocks []world.Block
	cache := newSpecCache()
	b := blockReader{next: int64(e.First), pad: r.lost != nil}
	b.each = func(rows []specRow) error {
		rounds := int(rows[0].rounds)
		if n := len(blocks); n == 0 || rounds > 1 || blocks[n-1].Rounds > 1 {
			blocks = append(blocks, world.Block{Rounds: rounds})
		}
		last := &blocks[len(blocks)-1]
		for i := range rows {
			s, err := r.spec(&rows[i], cache)
			if err != nil {
				return err
			}
			last.Groups = append(last.Groups, world.Group{Spec: s, Size: int(rows[i].size)})
		}
		return nil
	}
	to := int64(e.First + count)
	err := r.scanFew(specsSQL+inEpisodesSpan, span{int64(e.First) - 1, to - 1}, func(c rowReader) error {
		s, err := readSpec(c)
		if err == nil && s.end() > to {
			err = &rowError{Table: tableSpecs, Key: s.episode, Why: "extends beyond its stage"}
		}
		if err != nil {
			return err
		}
		return b.add(s)
	})
	if err == nil {
		err = b.finish(to)
	}
	if err != nil {
		return err
	}
	if e.Specs, err = world.Blocks(blocks...); err != nil {
		return errors.Join(ErrDamaged, err)
	}
	return nil
}

// specCache holds what specs share: texts and names that were read before.
type specCache struct {
	params  map[int64]json.RawMessage
	lineups map[int64]map[string]string
	more    map[int64]specMore
	names   map[string]string
}

func newSpecCache() *specCache {
	return &specCache{map[int64]json.RawMessage{}, map[int64]map[string]string{}, map[int64]specMore{}, map[string]string{}}
}

// spec returns the spec of a row. If the reader leaves out damage and a text of the row is
// lost, the spec is empty, as for a missing row.
func (r *reader) spec(s *specRow, cache *specCache) (spec world.Spec, err error) {
	if s.lost() {
		return spec, nil
	}
	spec = world.Spec{Kind: intern(cache.names, s.kind), Deal: s.deal, Cell: intern(cache.names, s.cell)}
	if spec.Params, err = readOnce(cache.params, s.params, r.params); err == nil {
		spec.Lineup, err = readOnce(cache.lineups, s.lineup, r.lineup)
	}
	if err == nil && s.more > 0 {
		var more specMore
		more, err = readOnce(cache.more, s.more, r.more)
		spec.Systems, spec.Remark = more.Systems, more.Remark
	}
	if err != nil {
		return world.Spec{}, r.tolerate(err)
	}
	return spec, nil
}

// readOnce returns the value of a text, and reads it once.
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

// Lineup is the agents in the seats of some episodes.
type Lineup struct {
	Seats     map[string]string // agents by seat
	LastBegun int               // the last of these episodes that is not after the last one that began; -1: none
}

// Lineups lists the different lineups of a run. It reads no episodes, only their groups.
func (s *Store) Lineups(ctx context.Context) (out []Lineup, err error) {
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		if err != nil {
			return err
		}
		last := map[int64]int64{} // by text; one more than LastBegun
		err = r.scanFew(specsSQL+inEpisodesSpan, everything(), func(c rowReader) error {
			s, err := readSpec(c)
			if err := cmp.Or(context.Cause(ctx), err); err != nil {
				return err
			}
			last[s.lineup] = max(last[s.lineup], s.lastBefore(t.begun)+1)
			return nil
		})
		out = nil
		for _, id := range slices.Sorted(maps.Keys(last)) {
			if err != nil {
				return err
			}
			var seats map[string]string
			if seats, err = r.lineup(id); err == nil {
				out = append(out, Lineup{Seats: seats, LastBegun: int(last[id]) - 1})
			}
			err = r.tolerate(err)
		}
		return err
	})
	return out, err
}

// lastBefore returns the last episode of the group before another one; -1: none.
func (s *specRow) lastBefore(episode int64) int64 {
	if episode <= s.episode {
		return -1
	}
	first := s.episode + min(s.rounds-1, (episode-1-s.episode)/s.round)*s.round
	return min(first+s.size, episode) - 1
}
