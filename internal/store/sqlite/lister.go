package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"parley/journal"
)

// lister lists episodes: it reads the blocks that they are in.
type lister struct {
	*reader
	want  Listing
	known *knownSpecs
	begun *journal.Begun // says what cells are called
	block []spec         // that was read last
	out   []Listed
}

// list lists the episodes of a span.
func (l *lister) list(ctx context.Context, in span) error {
	if len(l.block) > 0 && l.block[0].block <= in.after+1 && in.to < l.block[0].end() {
		return found(l.episodes(ctx, in))
	}
	t, err := readTotals(l.conn)
	if err != nil {
		return err
	}
	in.to = min(in.to, t.episodes-1)
	a := assembly{next: l.blockOf(in.after + 1), pad: l.lost != nil}
	a.each = func(rows []spec) error {
		l.block = append(l.block[:0], rows...)
		return l.episodes(ctx, in)
	}
	err = l.scanFew(specsSQL+inSpanOfRuns, span{a.next - 1, everything().to}, func(c columns) error {
		row, err := readSpec(c)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		row.cell = l.begun.Cell(row.cell)
		return a.add(row)
	})
	if err == nil {
		err = a.finish(in.to + 1)
	}
	return found(err)
}

// found is nil where a scan ended since nothing more is wanted.
func found(err error) error {
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}

// episodes lists what a span has of the block.
func (l *lister) episodes(ctx context.Context, in span) error {
	rows := l.block
	if rows[0].end() <= in.to && !slices.ContainsFunc(rows, l.named) {
		return nil
	}
	for at := max(in.after+1, rows[0].block); at < rows[0].end(); at++ {
		if at > in.to {
			return errFound
		}
		row, round := groupOf(rows, at)
		if (l.lost.has(int(at)) || row.lost()) && !l.want.Lost || !l.named(*row) {
			continue
		}
		s, err := l.world(row, l.known)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return fmt.Errorf("episode %d: %w", at, err)
		}
		s.Deal += round
		if l.out = append(l.out, Listed{Episode: int(at), Spec: s}); l.want.Limit > 0 && len(l.out) == l.want.Limit {
			return errFound
		}
	}
	return nil
}

// named says whether the cell of a group is wanted.
func (l *lister) named(s spec) bool { return strings.Contains(s.cell, l.want.Cell) }

// blockOf is the first episode of the block that an episode is in. Where damage is left out, and
// where there is some, it is the first of all.
func (r *reader) blockOf(episode int64) (block int64) {
	if r.lost != nil {
		return 0
	}
	err := r.scan(specsSQL+`WHERE episode > ? AND episode <= ? ORDER BY episode DESC LIMIT 1`, span{-1, episode}, func(c columns) error {
		row, err := readSpec(c)
		block = row.block
		return cmp.Or(err, errFound)
	})
	if !errors.Is(err, errFound) {
		return 0
	}
	return block
}

// groupOf is the group of a block that an episode is in, and in which round.
func groupOf(rows []spec, episode int64) (row *spec, round int) {
	first := &rows[0]
	at := first.block + (episode-first.block)%first.round
	i := sort.Search(len(rows), func(i int) bool { return at < rows[i].episode+rows[i].size })
	return &rows[i], int((episode - first.block) / first.round)
}
