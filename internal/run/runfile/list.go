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
	"parley/llm"
	"parley/world"
)

// Outline is a run without its episodes.
type Outline struct {
	// Begun is nil if nothing is recorded yet.
	Begun *journal.Begun
	// Last is how the last process that played the run closed it. Open means that it did
	// not: the run is being played, or was cut off.
	Last journal.Closed
	Open bool

	Episodes journal.EpisodeCounts
	Replies  int // to calls, acts and bots' calls; failures too
	Spent    llm.Money
	AtRisk   llm.Money // what calls without a recorded reply may have cost, those of a process that plays it included
	Batches  int       // that are open, and that their providers have accepted
	Intended int       // that are open, accepted or not
	Steered  []journal.Steered
	// Paused, Draining and Stopping are who holds a run that is Open, and since when. Nil: nobody does.
	Paused, Draining, Stopping *journal.Steered
}

// steer applies what the process that has the run open was told.
func (o *Outline) steer(e journal.Entry) {
	switch e := e.(type) {
	case *journal.Opened, *journal.Closed:
		o.Paused, o.Draining, o.Stopping = nil, nil, nil
	case *journal.Steered:
		switch e.Verb {
		case journal.SteerPause:
			o.Paused = cmp.Or(o.Paused, e)
		case journal.SteerResume:
			o.Paused = nil
		case journal.SteerDrain:
			o.Draining = e
		case journal.SteerStop:
			o.Stopping = e
		}
	}
}

// Outline reads an Outline. It takes a moment, however long the run is: it reads no calls and
// no episodes.
func (s *Store) Outline(ctx context.Context) (o Outline, err error) {
	err = s.read(func(r *reader) error {
		var h journal.Head
		t, err := readTotals(r.conn)
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return err
		}
		o = Outline{
			Replies: int(t.calls), Spent: max(0, llm.Money(t.spent)),
			Episodes: journal.NewEpisodeCounts(int(t.episodes), int(t.states[stateEnded]), int(t.states[stateFailed]), int(t.states[statePlaying])),
		}
		n, err := r.events(everything(), func(_ int64, e journal.Entry) {
			h.Add(e)
			o.steer(e)
		})
		o.Begun, o.Last, o.Open, o.Batches, o.Intended, o.Steered = h.Begun, h.Last, h.Cut, h.Accepted(), len(h.Batches), h.Steered
		o.AtRisk = h.Risked.Plus(h.Owed)
		return cmp.Or(err, r.complete(n, t.events, "events"), r.checkBegun(h.Begun, t))
	})
	if err != nil {
		return Outline{}, err
	}
	return o, nil
}

// stages reads the stages after the first so many.
func (s *Store) stages(ctx context.Context, after int) (out []journal.Staged, err error) {
	err = s.read(func(r *reader) error {
		t, err := readTotals(r.conn)
		if err := cmp.Or(context.Cause(ctx), err); err != nil || int64(after) >= t.stages {
			return err
		}
		n, err := r.stages(everything(), func(_ int64, e journal.Entry) {
			if st, ok := e.(*journal.Staged); ok {
				out = append(out, *st)
			}
		})
		out = out[min(after, len(out)):]
		return cmp.Or(err, r.complete(n, t.stages, "stages"))
	})
	return out, err
}

// Plan reads the stages after the first so many and, if after is 0, the first entry.
func (s *Store) Plan(ctx context.Context, after int) (*journal.Begun, []journal.Staged, error) {
	stages, err := s.stages(ctx, after)
	if err != nil || after > 0 {
		return nil, stages, err
	}
	o, err := s.Outline(ctx)
	return o.Begun, stages, err
}

// End is the end of an episode.
type End struct {
	Entry   int // its number in the journal, from 1
	Episode int
}

// Ends lists the ends of episodes starting at entry number since, in order. It reads nothing
// else: reading all entries would take as long as playing did.
func (s *Store) Ends(ctx context.Context, since int) (out []End, err error) {
	return s.EndsUntil(ctx, since, math.MaxInt)
}

// EndsUntil is Ends up to entry number last.
func (s *Store) EndsUntil(ctx context.Context, since, last int) (out []End, err error) {
	err = s.read(func(r *reader) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		out = nil
		return r.scanFew(`SELECT seq, sum, episode, attempt FROM outcomes `+inSpan, span{int64(since) - 1, int64(last)}, func(c rowReader) error {
			c.Begin(tableOutcomes, 1)
			e := End{Entry: int(c.Key), Episode: c.Int()}
			c.Int64()
			if err := c.Check(); err != nil || r.lost.Has(e.Episode) {
				return err
			}
			out = append(out, e)
			return nil
		})
	})
	return out, err
}

// Listing says which episodes to list.
type Listing struct {
	From  int    // the first
	Limit int    // how many at most. Default: all.
	State string // only those in this state
	Cell  string // only those whose cell contains this text
	Agent string // only those with this agent
	Among []int  // only these, in order; nil: all
	Lost  bool   // also damaged ones that Salvage leaves out, as if they waited
}

// Listed is an episode without its turns and replies.
type Listed struct {
	Episode, Stage int
	Spec           world.Spec
	Begun          bool // it is being played, or was
	Attempt        int
	Ended          *journal.Ended // nil: it did not end yet

	last int64 // as in progress
}

// The states of an episode.
const (
	Waiting = "waiting"
	Playing = "playing"
	Ended   = "ended"
	Failed  = "failed"
)

// State returns the state of the episode.
func (l *Listed) State() string { return StateOf(l.Begun, l.Ended) }

// StateOf returns the state of an episode. end is nil if it did not end yet.
func StateOf(begun bool, end *journal.Ended) string {
	switch {
	case end != nil && end.Outcome.Failed != "":
		return Failed
	case end != nil:
		return Ended
	case begun:
		return Playing
	default:
		return Waiting
	}
}

// List reads episodes, in order. It reads only those that it lists, and the outcomes that
// were written while these were played.
func (s *Store) List(ctx context.Context, want Listing) (out []Listed, err error) {
	if want.Limit < 0 || want.From < 0 {
		return nil, errors.New("list: From and Limit must not be negative")
	}
	err = s.read(func(r *reader) (err error) {
		if out, err = r.list(ctx, want); err != nil {
			return err
		}
		return cmp.Or(r.addProgress(out), r.addStages(out), r.addOutcomes(out))
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// addProgress fills in how far episodes are.
func (r *reader) addProgress(list []Listed) error {
	if len(list) == 0 {
		return nil
	}
	t, err := readTotals(r.conn)
	if err != nil {
		return err
	}
	i := 0
	err = r.scanFew(progressSQL+inEpisodesSpan, span{int64(list[0].Episode) - 1, int64(list[len(list)-1].Episode)}, func(c rowReader) error {
		p, err := readProgress(c)
		if err != nil || i == len(list) || p.episode < list[i].Episode {
			return err // or it is not listed
		}
		for r.lost.Has(list[i].Episode) && list[i].Episode < p.episode {
			i++
		}
		l := &list[i]
		if i++; r.lost.Has(l.Episode) {
			return nil
		}
		if l.Episode != p.episode {
			return rowMissing(tableProgress, int64(l.Episode))
		}
		l.Begun, l.Attempt, l.last = p.state() != stateNone, p.Attempt, p.last
		if p.Ended {
			l.Ended = &journal.Ended{Attempt: -1} // addOutcomes reads it
		}
		return nil
	})
	if err == nil && i < len(list) && int64(list[i].Episode) < t.begun && !r.lost.Has(list[i].Episode) {
		err = rowMissing(tableProgress, int64(list[i].Episode))
	}
	return err
}

// addStages fills in the stages.
func (r *reader) addStages(list []Listed) error {
	i := 0
	return r.scan(stagesSQL, everything(), func(c rowReader) error {
		e, count, err := readStage(c)
		if err != nil {
			return err
		}
		for ; i < len(list) && list[i].Episode < e.First+count; i++ {
			list[i].Stage = e.Stage
		}
		return nil
	})
}

// addOutcomes fills in the outcomes. They have no index by episode, but they are written
// after the last reply, usually soon.
func (r *reader) addOutcomes(list []Listed) error {
	wanted := map[int]*Listed{}
	after := int64(math.MaxInt64)
	for i := range list {
		if l := &list[i]; l.Ended != nil {
			wanted[l.Episode], after = l, min(after, abs(l.last))
		}
	}
	for _, after := range []int64{after, 0} { // a reply may come after the outcome
		if len(wanted) == 0 {
			return nil
		}
		if err := notStop(r.findOutcomes(wanted, after)); err != nil {
			return err
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return errMissing("the outcome of episode %d", slices.Min(slices.Collect(maps.Keys(wanted))))
}

func (r *reader) findOutcomes(wanted map[int]*Listed, after int64) error {
	return r.scanFew(outcomesSQL, span{after, math.MaxInt64}, func(c rowReader) error {
		if wanted[c.Peek(2)] == nil {
			return nil // if the column is wrong, a wanted outcome is missing at the end
		}
		e, err := r.readOutcome(c, true)
		if err != nil {
			return err
		}
		l := wanted[e.Episode]
		if l == nil || l.Attempt != e.Attempt {
			return nil
		}
		l.Ended = e
		if delete(wanted, e.Episode); len(wanted) == 0 {
			return errStop
		}
		return nil
	})
}

// Spent adds up the spending of all attempts at an episode, without reading any texts. Of its tokens it knows only input and output.
func (s *Store) Spent(ctx context.Context, l *Listed) (sum journal.Spending, err error) {
	err = s.readers.with(func(r *reader) error { sum, err = r.spent(ctx, l.last); return err })
	return sum, explain(s.path, fmt.Sprintf("read episode %d", l.Episode), err)
}

func (r *reader) spent(ctx context.Context, last int64) (sum journal.Spending, err error) {
	turn, err := r.conn.Prepare(`SELECT ` + turnColumns + ` FROM turns WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	reply, err := r.conn.Prepare(`SELECT seq, sum, ` + coreColumns + ` FROM replies WHERE seq = ?`)
	if err != nil {
		return sum, err
	}
	err = follow(ctx, last, func(at int64) (prev int64, err error) {
		if at < 0 {
			err = findRow(turn, tableTurns, -at, func(c rowReader) (err error) { prev, err = readTurnCore(&c, &journal.Turned{}); return err })
			return prev, err
		}
		err = findRow(reply, tableReplies, at, func(c rowReader) error {
			k, err := readCore(&c, 1)
			prev = k.prev
			sum.Add(k.counted())
			return err
		})
		return prev, err
	})
	return sum, err
}

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
	switch want.State {
	case "":
	case Failed:
		some, err = r.episodesIn(stateFailed, "ended = 2", "failed episodes")
		from = math.MaxInt64
	case Ended:
		some, err = r.episodesIn(stateEnded, "ended = 1", "ended episodes")
		from = math.MaxInt64
	case Playing:
		some, err = r.episodesIn(statePlaying, "NOT ended AND first", "episodes that have begun and did not end")
		from = math.MaxInt64
	case Waiting:
		some, from, err = r.waitingEpisodes(want.From)
	default:
		err = fmt.Errorf("list: unknown state %q; want %s, %s, %s or %s", want.State, Waiting, Playing, Ended, Failed)
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

// episodesIn returns the episodes in a state, which a condition finds. Their number shows whether one is missing.
func (r *reader) episodesIn(state episodeState, where, what string) (out []int, err error) {
	t, err := readTotals(r.conn)
	if err != nil {
		return nil, err
	}
	err = r.scan(progressSQL+`WHERE episode > ? AND episode <= ? AND `+where+` ORDER BY episode`, everything(), func(c rowReader) error {
		p, err := readProgress(c)
		if err == nil {
			out = append(out, p.episode)
		}
		return err
	})
	return out, cmp.Or(err, r.complete(int64(len(out)), t.states[state], what))
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
