package runfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"parley/journal"
)

// lister lists episodes. It reads only the blocks that they are in.
type lister struct {
	*reader
	want  Listing
	cache *specCache
	begun *journal.Begun // has the names of cells
	block []specRow      // that was read last
	out   []Listed
}

func (r *reader) list(ctx context.Context, want Listing) ([]Listed, error) {
	var h journal.Head
	if _, err := r.events(everything(), func(_ int64, e journal.Entry) { h.Add(e) }); err != nil {
		return nil, err
	}
	l := lister{reader: r, want: want, cache: newSpecCache(), begun: h.Begun}
	from, some := int64(want.From), []int(nil)
	var err error
	switch {
	case want.Failed:
		some, err = r.failedEpisodes()
		from = math.MaxInt64
	case want.Waiting:
		some, from, err = r.waitingEpisodes(want.From)
	}
	if err == nil && want.Among != nil {
		some, err = l.among(some, from)
		from = math.MaxInt64
	}
	for _, episode := range some {
		if err == nil && episode >= want.From && !l.full() {
			err = l.list(ctx, span{int64(episode) - 1, int64(episode)})
		}
	}
	if err == nil && from < math.MaxInt64 && !l.full() {
		err = l.list(ctx, span{from - 1, math.MaxInt64})
	}
	return l.out, err
}

// among returns those of want.Among that are some episodes, or are from a number on.
func (l *lister) among(some []int, from int64) (out []int, err error) {
	t, err := readTotals(l.conn)
	for _, episode := range l.want.Among {
		if _, found := slices.BinarySearch(some, episode); (found || int64(episode) >= from) && int64(episode) < t.episodes {
			out = append(out, episode)
		}
	}
	return out, err
}

// full reports whether no more episodes are wanted.
func (l *lister) full() bool { return l.want.Limit > 0 && len(l.out) >= l.want.Limit }

// waitingEpisodes returns the episodes that did not begin, from a number on: some before the last that began, and all from another
// number on.
func (r *reader) waitingEpisodes(from int) (some []int, rest int64, err error) {
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, 0, err
	}
	err = r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND NOT ended AND NOT first ORDER BY episode`, span{int64(from) - 1, math.MaxInt64}, func(c rowReader) error {
		p, err := readProgress(c)
		if err == nil {
			some = append(some, p.episode)
		}
		return err
	})
	return some, max(int64(from), t.begun), err
}

// failedEpisodes returns the episodes that failed. Their number shows whether one is missing.
func (r *reader) failedEpisodes() (out []int, err error) {
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, err
	}
	err = r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND ended = 2 ORDER BY episode`, everything(), func(c rowReader) error {
		p, err := readProgress(c)
		if err == nil {
			out = append(out, p.episode)
		}
		return err
	})
	return out, cmp.Or(err, r.complete(int64(len(out)), t.states[stateFailed], "failed episodes"))
}

// list lists the episodes of a span.
func (l *lister) list(ctx context.Context, in span) error {
	if len(l.block) > 0 && l.block[0].block <= in.after+1 && in.to < l.block[0].end() {
		return notStop(l.episodes(ctx, in))
	}
	t, err := readTotals(l.conn)
	if err != nil {
		return err
	}
	in.to = min(in.to, t.episodes-1)
	b := blockReader{next: l.blockOf(in.after + 1), pad: l.lost != nil}
	b.each = func(rows []specRow) error {
		l.block = append(l.block[:0], rows...)
		return l.episodes(ctx, in)
	}
	err = l.scanFew(specsSQL+inEpisodesSpan, span{b.next - 1, math.MaxInt64}, func(c rowReader) error {
		s, err := readSpec(c)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		s.cell = l.begun.Cell(s.cell)
		return b.add(s)
	})
	if err == nil {
		err = b.finish(in.to + 1)
	}
	return notStop(err)
}

// episodes lists the episodes of the block that are in a span.
func (l *lister) episodes(ctx context.Context, in span) error {
	rows := l.block
	if rows[0].end() <= in.to && !slices.ContainsFunc(rows, l.inCell) {
		return nil
	}
	for at := max(in.after+1, rows[0].block); at < rows[0].end(); at++ {
		if at > in.to {
			return errStop
		}
		s, round := groupOf(rows, at)
		if (l.lost.Has(int(at)) || s.lost()) && !l.want.Lost || !l.inCell(*s) {
			continue
		}
		spec, err := l.spec(s, l.cache)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return fmt.Errorf("episode %d: %w", at, err)
		}
		if l.want.Agent != "" && !slices.Contains(slices.Collect(maps.Values(spec.Lineup)), l.want.Agent) {
			continue
		}
		spec.Deal += round
		if l.out = append(l.out, Listed{Episode: int(at), Spec: spec}); l.want.Limit > 0 && len(l.out) == l.want.Limit {
			return errStop
		}
	}
	return nil
}

// inCell reports whether the cell of a group is wanted.
func (l *lister) inCell(s specRow) bool { return strings.Contains(s.cell, l.want.Cell) }

// blockOf returns the first episode of the block that an episode is in. If the reader leaves
// out damage, or the row is damaged, it returns 0.
func (r *reader) blockOf(episode int64) (block int64) {
	if r.lost != nil {
		return 0
	}
	err := r.scan(specsSQL+`WHERE episode > ? AND episode <= ? ORDER BY episode DESC LIMIT 1`, span{-1, episode}, func(c rowReader) error {
		s, err := readSpec(c)
		block = s.block
		return cmp.Or(err, errStop)
	})
	if !errors.Is(err, errStop) {
		return 0
	}
	return block
}

// groupOf returns the group of a block that an episode is in, and its round.
func groupOf(rows []specRow, episode int64) (s *specRow, round int) {
	first := &rows[0]
	at := first.block + (episode-first.block)%first.round
	i := sort.Search(len(rows), func(i int) bool { return at < rows[i].next() })
	return &rows[i], int((episode - first.block) / first.round)
}
