package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
	"parley/world/part"
)

// agenda is what the plan asks for, stage by stage, and the outcomes. Episodes are numbered by
// position. Each is taken once, in order, and the plan is asked for a stage only when all episodes
// of the previous one have ended. The scheduler's lock guards it.
type agenda struct {
	kind world.Kind
	plan world.Stages
	head *journal.Head // what earlier processes recorded
	past pastOutcomes

	stage  world.Specs
	first  int // number of the stage's first episode
	next   int // in the stage: to be taken next
	ended  int // of the stage
	stages int
	draws  *planner.Draws
	fixed  bool           // the plan does not depend on outcomes
	played []world.Played // of the stage; only one if the plan is fixed

	changes  []journal.Steered      // recorded changes that the plan was not given yet
	lot      *Lot                   // the only episodes to play; nil: all
	early    map[int]early          // ends of episodes that were not taken yet
	outcomes digest                 // of the run
	plays    map[journal.Digest]int // numbers the plays whose repetitions are copies
	copies   planner.Copies         // whether short plays are copies too
	short    map[int]journal.Digest // by episode: the short plays of the stage
}

func newAgenda(kind world.Kind, plan world.Stages, lot *Lot, head *journal.Head, read readFunc) *agenda {
	a := &agenda{kind: kind, plan: plan, lot: lot, head: head, past: pastOutcomes{read: read}, draws: planner.NewDraws(kind), outcomes: newDigest(maxWaiting), plays: map[journal.Digest]int{}, short: map[int]journal.Digest{}}
	if p, ok := plan.(part.FixedStages); ok {
		a.fixed = p.Fixed()
	}
	for _, s := range head.Steered {
		if s.Verb == journal.SteerChange {
			a.changes = append(a.changes, s)
		}
	}
	if lot != nil {
		a.first, a.stages = lot.First, lot.Stage
		a.outcomes.next = lot.First
	}
	return a
}

// more reports whether the stage has episodes that were not taken.
func (a *agenda) more() bool { return a.next < a.stage.Len() }

// number returns the number of the episode that is taken next.
func (a *agenda) number() int { return a.first + a.next }

// done reports whether all episodes of the stage have ended.
func (a *agenda) done() bool { return !a.more() && a.ended == a.stage.Len() }

// take returns the next episode. For one that ended before this process began, it counts the
// outcome and returns false. For one that the lot skips, it returns false too.
func (a *agenda) take() (st step, ok bool, err error) {
	n, spec := a.number(), a.stage.At(a.next)
	a.next++
	st = step{begins: true, number: n, spec: spec, draw: a.draws.Of(spec)}
	if a.lot != nil {
		st.draw.Nth = a.lot.nth(n - a.lot.First)
		if a.lot.Skip != nil && a.lot.Skip(n) {
			a.ended++
			return st, false, nil
		}
	}
	if e, ok := a.early[n]; ok {
		delete(a.early, n)
		a.count(e.ended, e.line)
		return st, false, nil
	}
	if a.head.Ended.Has(n) && !a.again(n) {
		e, err := a.past.take(n)
		if err == nil {
			a.count(e, outcomeLine(e))
		}
		return st, false, err
	}
	return st, true, nil
}

// again reports whether an episode has failed and is to be played again. If what the plan asks for depends on outcomes, that of an episode
// which it knew when it asked for the last stage must not change.
func (a *agenda) again(n int) bool {
	if a.head.Begun == nil || len(a.head.Begun.Again) == 0 || !a.fixed && a.stages < len(a.head.Stages) {
		return false
	}
	all := a.head.Begun.Again
	return a.head.Ended.FailedUpTo(all[len(all)-1].Through, n)
}

// count adds the outcome of an episode. line is its line in the digest.
func (a *agenda) count(e *journal.Ended, line []byte) {
	a.ended++
	a.outcomes.add(e, line)
	if a.fixed && len(a.played) > 0 {
		return
	}
	unit := world.Unit{}
	if !e.Chance && e.Play != (journal.Digest{}) {
		unit.Play = a.playNumber(e.Play)
	} else if e.Chance && e.Outcome.Failed == "" {
		a.copies.See(a.stage.At(e.Episode-a.first).Cell, e.Play)
		a.short[e.Episode] = e.Play
	}
	a.played = append(a.played, world.Played{Episode: e.Episode, Spec: a.stage.At(e.Episode - a.first), Outcome: e.Outcome, Unit: unit})
}

func (a *agenda) playNumber(play journal.Digest) int {
	if a.plays[play] == 0 {
		a.plays[play] = len(a.plays) + 1
	}
	return a.plays[play]
}

// advance asks the plan for the next stage; nil means that the plan is complete. recorded reports
// whether the journal already has the stage.
func (a *agenda) advance() (st *journal.Staged, recorded bool, err error) {
	slices.SortFunc(a.played, func(x, y world.Played) int { return x.Episode - y.Episode })
	if err := a.catchUp(); err != nil {
		return nil, false, err
	}
	for i, p := range a.played { // only now it is known whether models vary
		if play, ok := a.short[p.Episode]; ok && a.copies.Copied(p.Spec.Cell, play) {
			a.played[i].Unit.Play = a.playNumber(play)
		}
	}
	clear(a.short)
	a.first += a.stage.Len()
	a.stage = a.plan.Next(a.played)
	a.next, a.ended, a.played = 0, 0, nil
	switch n := a.stage.Len(); {
	case n == 0:
		if p, ok := a.plan.(part.FailingStages); ok {
			err = p.Err()
		}
		return nil, false, err
	case n > world.MaxEpisodes-a.first:
		a.stage = world.Specs{}
		return nil, false, fmt.Errorf("the plan asks for more than %d episodes", world.MaxEpisodes)
	}
	st = &journal.Staged{Stage: a.stages, First: a.first, Specs: a.stage}
	a.stages++
	if i := slices.IndexFunc(a.head.Stages, func(s journal.Staged) bool { return s.First == a.first }); i >= 0 {
		return st, true, sameStage(a.kind, a.head.Stages[i], *st)
	}
	return st, false, nil
}

// catchUp gives the plan the recorded changes that it was given before the next stage.
func (a *agenda) catchUp() error {
	for len(a.changes) > 0 && a.changes[0].Stage <= a.stages {
		change := a.changes[0]
		a.changes = a.changes[1:]
		plan, ok := a.plan.(part.ChangingStages)
		if !ok {
			return fmt.Errorf("%w: a change of the plan before stage %d is recorded, and the plan cannot be changed", ErrDiverged, change.Stage)
		}
		if err := plan.Change(change.Change); err != nil {
			return fmt.Errorf("%w: the change of the plan before stage %d: %w", ErrDiverged, change.Stage, err)
		}
	}
	return nil
}

// change gives the plan a new change, and returns the number of the stage that it comes before.
func (a *agenda) change(raw json.RawMessage) (stage int, err error) {
	plan, ok := a.plan.(part.ChangingStages)
	if !ok {
		return 0, errors.New("this plan cannot be changed while it is played")
	}
	if a.stages < len(a.head.Stages) {
		return 0, errors.New("the resumed run has not reached the point where it was stopped yet: try again in a moment")
	}
	if err := a.catchUp(); err != nil {
		return 0, err
	}
	return a.stages, plan.Change(raw)
}

// sameStage checks that the plan still asks for what the journal has recorded. Params that do not
// affect play may have changed.
func sameStage(kind world.Kind, was, is journal.Staged) error {
	if was.Specs.Len() != is.Specs.Len() {
		return fmt.Errorf("%w: the plan now asks for %d episodes from %d on, and asked for %d", ErrDiverged, is.Specs.Len(), is.First, was.Specs.Len())
	}
	ids := planner.NewCellIDs(kind)
	i := is.Specs.Diff(was.Specs, func(now, then world.Spec) bool {
		return now.Deal == then.Deal && now.Cell == then.Cell && ids.Of(now) == ids.Of(then)
	})
	if i >= 0 {
		return fmt.Errorf("%w: the plan's episode %d is now %s, and was %s", ErrDiverged, is.First+i, asJSON(is.Specs.At(i)), asJSON(was.Specs.At(i)))
	}
	return nil
}

func asJSON(spec world.Spec) []byte {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Append(nil, err)
	}
	return b
}

// digest folds outcomes into the digest of a run, in the order of episodes. Episodes end roughly in
// order, so few outcomes wait for those of earlier episodes, and no others are kept.
type digest struct {
	ended, failed int // episodes

	hash    hash.Hash
	next    int            // the first episode that is not folded yet
	waiting map[int][]byte // lines of later ones
	size    int            // of all lines that wait
	limit   int            // on size
	late    bool           // too many waited: the journal has the rest
}

// maxWaiting limits the memory of outcomes that wait for those of earlier episodes.
const maxWaiting = 32 << 20

func newDigest(limit int) digest {
	return digest{hash: sha256.New(), waiting: map[int][]byte{}, limit: limit}
}

// outcomeLine returns the line of an outcome in the digest.
func outcomeLine(e *journal.Ended) []byte {
	b, err := json.Marshal(e.Outcome)
	if err != nil {
		b = []byte(err.Error())
	}
	return fmt.Appendf(make([]byte, 0, len(b)+16), "%d %s\n", e.Episode, b)
}

// add adds the outcome of an episode, which is not added twice.
func (d *digest) add(e *journal.Ended, line []byte) {
	d.ended++
	if e.Outcome.Failed != "" {
		d.failed++
	}
	if d.late {
		return
	}
	d.waiting[e.Episode] = line
	d.size += len(line)
	for line, ok := d.waiting[d.next]; ok; line, ok = d.waiting[d.next] {
		d.fold(d.next, line)
		d.next++
	}
	if d.size > d.limit {
		d.waiting, d.size, d.late = nil, 0, true
	}
}

func (d *digest) fold(episode int, line []byte) {
	d.hash.Write(line)
	delete(d.waiting, episode)
	d.size -= len(line)
}

// sum returns the digest of all outcomes that were added. j is the journal that has them.
func (d *digest) sum(ctx context.Context, j journal.Journal) (string, error) {
	for _, n := range slices.Sorted(maps.Keys(d.waiting)) {
		d.fold(n, d.waiting[n])
	}
	if d.late {
		head, err := j.Head(ctx)
		if err == nil {
			err = head.Ended.Outcomes(ctx, j, d.next, world.MaxEpisodes, func(e *journal.Ended) error {
				d.hash.Write(outcomeLine(e))
				return nil
			})
		}
		if err != nil {
			return "", fmt.Errorf("the digest: %w", err)
		}
	}
	return hex.EncodeToString(d.hash.Sum(nil)), nil
}

// readFunc reads the complete ends of episodes: from the first up to, but not including, the last.
type readFunc func(from, to int, each func(*journal.Ended) error) error

// pastOutcomes reads the outcomes that earlier processes recorded, in order and some at once.
type pastOutcomes struct {
	read  readFunc
	ahead []*journal.Ended
}

// readAhead is how many episodes are read at once.
const readAhead = 256

// take returns the end of an episode that ended. Its number is above that of the last.
func (p *pastOutcomes) take(episode int) (*journal.Ended, error) {
	for len(p.ahead) > 0 && p.ahead[0].Episode < episode {
		p.ahead = p.ahead[1:]
	}
	if len(p.ahead) == 0 {
		p.ahead = make([]*journal.Ended, 0, readAhead)
		err := p.read(episode, episode+readAhead, func(e *journal.Ended) error { p.ahead = append(p.ahead, e); return nil })
		if err != nil {
			return nil, err
		}
	}
	if len(p.ahead) == 0 || p.ahead[0].Episode != episode {
		return nil, fmt.Errorf("the journal has no outcome of episode %d, which has ended", episode)
	}
	e := p.ahead[0]
	p.ahead = p.ahead[1:]
	return e, nil
}
