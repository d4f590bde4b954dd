package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"parley/journal"
	"parley/world"
)

// putSpecs stores the episodes of a stage, group by group. A block of one round is stored as a
// block for each of its groups, so that a reader finds one without the others.
func (w *writer) putSpecs(first int, specs world.Specs) error {
	for b := range specs.Blocks() {
		at := first
		row := spec{block: int64(first), rounds: int64(b.Rounds)}
		for _, g := range b.Groups {
			row.round += int64(g.Size)
		}
		for i := range b.Groups {
			g := &b.Groups[i]
			row.episode, row.size = int64(at), int64(g.Size)
			if b.Rounds == 1 {
				row.block, row.round = row.episode, row.size
			}
			if err := w.putSpec(row, &g.Spec); err != nil {
				return fmt.Errorf("episode %d: %w", at, err)
			}
			at += g.Size
		}
		first += (at - first) * b.Rounds
	}
	return nil
}

func (w *writer) putSpec(at spec, spec *world.Spec) error {
	var params int64
	if spec.Params != nil {
		var err error
		if params, err = w.shared(string(spec.Params)); err != nil {
			return err
		}
	}
	lineup, err := encode(spec.Lineup)
	if err != nil {
		return err
	}
	lineupID, err := w.shared(lineup)
	if err != nil {
		return err
	}
	s, err := w.conn.Prepare(`INSERT INTO specs (` + specColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	r := row{s: s}
	r.begin(tableSpecs, at.episode, 1)
	r.int(at.size)
	r.int(at.block)
	r.int(at.round)
	r.int(at.rounds)
	r.str(spec.Kind)
	r.id(params)
	r.id(lineupID)
	r.int(int64(spec.Deal))
	r.opt(spec.Cell)
	r.seal()
	return r.do()
}

const (
	specColumns = `episode, sum, size, block, round, rounds, kind, params, lineup, deal, cell`
	specsSQL    = `SELECT ` + specColumns + ` FROM specs `
)

// spec is a row of specsSQL: the episodes of a group.
type spec struct {
	episode, size        int64 // in the first round
	block, round, rounds int64 // see schema.sql
	kind, cell           string
	params, lineup       int64 // texts
	deal                 int
}

// readSpec reads a row of specsSQL.
func readSpec(c columns) (spec, error) {
	s := spec{episode: c.key(tableSpecs, 1), size: c.int64(), block: c.int64(), round: c.int64(), rounds: c.int64()}
	s.kind, s.params, s.lineup, s.deal, s.cell = c.str(), c.int64(), c.int64(), c.int(), c.opt()
	if err := c.check(); err != nil {
		return s, err
	}
	const most = world.MaxEpisodes
	sound := s.lineup > 0 && s.deal <= math.MaxInt-int(s.rounds) && 0 <= s.block && s.block <= s.episode && 0 < s.size && s.size <= s.round && 0 < s.rounds &&
		s.round <= most && s.rounds <= most && s.block <= most-s.round*s.rounds && s.episode-s.block <= s.round-s.size
	if !sound {
		return s, &rowError{table: tableSpecs, key: s.episode, why: "cannot be: its numbers do not fit together"}
	}
	return s, nil
}

// end is the first episode after the block.
func (s *spec) end() int64 { return s.block + s.round*s.rounds }

// lost says whether the row was made up: every row that was written has a lineup.
func (s *spec) lost() bool { return s.lineup == 0 }

// assembly puts blocks together from their rows, which come in order.
type assembly struct {
	next int64  // the episode that the next block begins with
	rows []spec // of a block that is not complete
	pad  bool   // groups that are missing are made up; else they are an error
	each func(block []spec) error
}

// add takes in a row.
func (a *assembly) add(s spec) error {
	if len(a.rows) > 0 && s.block != a.rows[0].block {
		if err := a.fill(a.rows[0].block + a.rows[0].round); err != nil {
			return err
		}
	}
	at := s.block
	var fits bool
	if n := len(a.rows); n == 0 {
		if err := a.skip(s.block); err != nil {
			return err
		}
		fits = s.block == a.next
	} else {
		last := &a.rows[n-1]
		at = last.episode + last.size
		fits = s.episode >= at && s.round == last.round && s.rounds == last.rounds
	}
	if !fits {
		return &rowError{table: tableSpecs, key: s.episode, why: "does not fit the one before it"}
	}
	if s.episode > at {
		lost := spec{episode: at, size: s.episode - at, block: s.block, round: s.round, rounds: s.rounds}
		if err := a.missing(lost); err != nil {
			return err
		}
	}
	a.rows = append(a.rows, s)
	return a.flush()
}

// skip goes on with the block that begins with an episode.
func (a *assembly) skip(episode int64) error {
	if a.next >= episode {
		return nil
	}
	n := episode - a.next
	return a.missing(spec{episode: a.next, size: n, block: a.next, round: n, rounds: 1})
}

// fill completes a block up to the end of its first round.
func (a *assembly) fill(to int64) error {
	lost := a.rows[len(a.rows)-1]
	lost = spec{episode: lost.episode + lost.size, block: lost.block, round: lost.round, rounds: lost.rounds}
	lost.size = to - lost.episode
	return a.missing(lost)
}

// finish completes what there is up to an episode.
func (a *assembly) finish(to int64) error {
	if len(a.rows) > 0 {
		if err := a.fill(a.rows[0].block + a.rows[0].round); err != nil {
			return err
		}
	}
	return a.skip(to)
}

// missing makes up a group that is missing.
func (a *assembly) missing(s spec) error {
	if !a.pad {
		return &rowError{table: tableSpecs, key: s.episode, why: "is missing"}
	}
	a.rows = append(a.rows, s)
	return a.flush()
}

// flush hands on a block that is complete.
func (a *assembly) flush() error {
	last := &a.rows[len(a.rows)-1]
	if last.episode+last.size < last.block+last.round {
		return nil
	}
	a.next = last.end()
	err := a.each(a.rows)
	a.rows = a.rows[:0]
	return err
}

// specs reads the episodes of a stage. Params and lineups are shared between groups.
func (r *reader) specs(e *journal.Staged, count int) error {
	const most = world.MaxEpisodes
	if count < 0 || count > most || e.First < 0 || e.First > most-count {
		return fmt.Errorf("%w: stage %d has %d episodes from %d on, and a run has at most %d", ErrDamaged, e.Stage, count, e.First, most)
	}
	var blocks []world.Block
	known := newKnownSpecs()
	a := assembly{next: int64(e.First), pad: r.lost != nil}
	a.each = func(rows []spec) error {
		rounds := int(rows[0].rounds)
		if n := len(blocks); n == 0 || rounds > 1 || blocks[n-1].Rounds > 1 {
			blocks = append(blocks, world.Block{Rounds: rounds})
		}
		b := &blocks[len(blocks)-1]
		for i := range rows {
			s, err := r.world(&rows[i], known)
			if err != nil {
				return err
			}
			b.Groups = append(b.Groups, world.Group{Spec: s, Size: int(rows[i].size)})
		}
		return nil
	}
	to := int64(e.First + count)
	err := r.scanFew(specsSQL+inSpanOfRuns, span{int64(e.First) - 1, to - 1}, func(c columns) error {
		row, err := readSpec(c)
		if err == nil && row.end() > to {
			err = &rowError{table: tableSpecs, key: row.episode, why: "goes on after its stage"}
		}
		if err != nil {
			return err
		}
		return a.add(row)
	})
	if err == nil {
		err = a.finish(to)
	}
	if err != nil {
		return err
	}
	if e.Specs, err = world.Blocks(blocks...); err != nil {
		return errors.Join(ErrDamaged, err)
	}
	return nil
}

// knownSpecs is what specs have in common: texts and names that were read before.
type knownSpecs struct {
	params  map[int64]json.RawMessage
	lineups map[int64]map[string]string
	names   map[string]string
}

func newKnownSpecs() *knownSpecs {
	return &knownSpecs{map[int64]json.RawMessage{}, map[int64]map[string]string{}, map[string]string{}}
}

// world is what a row describes. Where damage is left out and a text of it is lost, that is
// nothing, as if the row were missing.
func (r *reader) world(row *spec, known *knownSpecs) (s world.Spec, err error) {
	if row.lost() {
		return s, nil
	}
	s = world.Spec{Kind: intern(known.names, row.kind), Deal: row.deal, Cell: intern(known.names, row.cell)}
	if s.Params, err = readOnce(known.params, row.params, r.params); err == nil {
		s.Lineup, err = readOnce(known.lineups, row.lineup, r.lineup)
	}
	if err != nil {
		return world.Spec{}, r.left(err)
	}
	return s, nil
}
