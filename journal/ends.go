package journal

import (
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"

	"parley/world"
)

// Ends holds how episodes ended, in little memory: a run may have millions. It leaves out the At
// and the Stack of an Ended and the Data of its outcome, which Journal.Outcomes reads. The zero
// value is empty.
type Ends struct {
	chunks map[int]*endChunk // by number of their first episode / endsInChunk
	size   int
	failed int
	shapes table[[]world.Score] // of scores: all but their values
	whys   table[string]        // why episodes failed
	far    map[int]place        // by episode: places that an end has no room for
	key    []byte               // of the last shape
}

// endsInChunk is small, so that a file with few ends far apart takes little memory too.
const endsInChunk = 16

// endChunk holds the ends of episodes with successive numbers.
type endChunk struct {
	has    uint16 // a bit for each
	ends   [endsInChunk]end
	values []float64 // of scores
}

// end is a compact Ended.
type end struct {
	play       Digest
	entry      uint32 // 0: see Ends.far
	values     uint32 // where its scores begin in the chunk's values
	shape, why uint32 // indices into tables
	attempt    uint16
	chance     bool
}

// place is where the end of an episode is in the journal, and of which attempt it is.
type place struct{ entry, attempt int }

// place returns the place of an end.
func (e *Ends) place(episode int, x *end) place {
	if x.entry == 0 {
		return e.far[episode]
	}
	return place{int(x.entry), int(x.attempt)}
}

// put sets the place of an end.
func (e *Ends) put(episode int, x *end, p place) {
	if p.entry > 0 && int64(p.entry) <= math.MaxUint32 && p.attempt >= 0 && p.attempt <= math.MaxUint16 {
		x.entry, x.attempt = uint32(p.entry), uint16(p.attempt)
		return
	}
	if e.far == nil {
		e.far = map[int]place{}
	}
	e.far[episode] = p
}

// table holds values by number, each once. Number 0 is the empty value.
type table[V any] struct {
	at     map[string]uint32
	values []V
}

// number returns the number of the value with this key.
func (t *table[V]) number(key []byte, value func() V) uint32 {
	if len(key) == 0 {
		return 0
	}
	n, ok := t.at[string(key)]
	if !ok {
		if t.at == nil {
			t.at = map[string]uint32{}
		}
		t.values = append(t.values, value())
		n = uint32(len(t.values))
		t.at[string(key)] = n
	}
	return n
}

// of returns the value with this number.
func (t *table[V]) of(n uint32) (value V) {
	if n == 0 {
		return value
	}
	return t.values[n-1]
}

// Len returns the number of episodes that ended.
func (e *Ends) Len() int { return e.size }

// Failed returns how many of them failed.
func (e *Ends) Failed() int { return e.failed }

// Has reports whether an episode has ended.
func (e *Ends) Has(episode int) bool { return e.end(episode) != nil }

// FailedUpTo reports whether an episode has ended and failed, by an entry up to the given one.
func (e *Ends) FailedUpTo(entry, episode int) bool {
	x := e.end(episode)
	return x != nil && x.failed() > 0 && e.place(episode, x).entry <= entry
}

// LastFailure returns how many episodes from the given one on failed, and the highest entry of their ends.
func (e *Ends) LastFailure(from int) (n, entry int) {
	for episode, x := range e.between(from, math.MaxInt) {
		if x.failed() > 0 {
			n++
			entry = max(entry, e.place(episode, x).entry)
		}
	}
	return n, entry
}

// Play returns the Play of the end of an episode.
func (e *Ends) Play(episode int) (play Digest) {
	if x := e.end(episode); x != nil {
		play = x.play
	}
	return play
}

// Of returns how an episode ended, if it did.
func (e *Ends) Of(episode int) (out Ended, ok bool) {
	x := e.end(episode)
	if x == nil {
		return out, false
	}
	return e.ended(episode, x), true
}

// All yields the ends in the order of episodes.
func (e *Ends) All() iter.Seq[Ended] {
	return func(yield func(Ended) bool) {
		for n, x := range e.between(0, math.MaxInt) {
			if !yield(e.ended(n, x)) {
				return
			}
		}
	}
}

// Put sets how an episode ended. entry is the number of its entry, for Journal.Outcomes.
func (e *Ends) Put(entry int, ended *Ended) {
	if ended.Episode < 0 {
		return // no episode has such a number
	}
	e.Delete(ended.Episode)
	c := e.chunks[ended.Episode/endsInChunk]
	if c == nil {
		if e.chunks == nil {
			e.chunks = map[int]*endChunk{}
		}
		c = &endChunk{}
		e.chunks[ended.Episode/endsInChunk] = c
	}
	at := ended.Episode % endsInChunk
	c.has |= 1 << at
	x := &c.ends[at]
	scores, old := ended.Outcome.Scores, *x
	*x = end{play: ended.Play, chance: ended.Chance, shape: e.shape(scores), values: old.values}
	e.put(ended.Episode, x, place{entry, ended.Attempt})
	if x.shape != old.shape || x.shape == 0 {
		if c.values == nil {
			c.values = make([]float64, 0, endsInChunk*len(scores)) // most chunks become full, of one shape
		}
		x.values = uint32(len(c.values))
		c.values = append(c.values, make([]float64, len(scores))...)
	}
	for i, s := range scores {
		c.values[int(x.values)+i] = s.Value
	}
	why := ended.Outcome.Failed
	x.why = e.whys.number([]byte(why), func() string { return why })
	e.size++
	e.failed += x.failed()
}

// Delete removes the end of an episode.
func (e *Ends) Delete(episode int) {
	if x := e.end(episode); x != nil {
		e.size--
		e.failed -= x.failed()
		e.chunks[episode/endsInChunk].has &^= 1 << (episode % endsInChunk)
		delete(e.far, episode)
	}
}

func (x *end) failed() int { return int(min(x.why, 1)) }

// shape returns the number of what scores have beside their values.
func (e *Ends) shape(scores []world.Score) uint32 {
	b := e.key[:0]
	for _, s := range scores {
		b = append(binary.AppendUvarint(b, uint64(len(s.Seat))), s.Seat...)
		b = append(binary.AppendUvarint(b, uint64(len(s.Name))), s.Name...)
	}
	e.key = b
	return e.shapes.number(b, func() []world.Score { return slices.Clone(scores) })
}

func (e *Ends) end(episode int) *end {
	if episode < 0 {
		return nil
	}
	c, at := e.chunks[episode/endsInChunk], episode%endsInChunk
	if c == nil || c.has&(1<<at) == 0 {
		return nil
	}
	return &c.ends[at]
}

func (e *Ends) ended(episode int, x *end) Ended {
	out := e.play(episode, x)
	out.Outcome.Scores = e.scores(episode)
	return out
}

// play returns how an episode ended, without the scores.
func (e *Ends) play(episode int, x *end) Ended {
	out := Ended{Episode: episode, Attempt: e.place(episode, x).attempt, Play: x.play, Chance: x.chance}
	out.Outcome.Failed = e.whys.of(x.why)
	return out
}

// scores returns a copy of the scores of an episode that has ended.
func (e *Ends) scores(episode int) []world.Score {
	x := e.end(episode)
	scores := slices.Clone(e.shapes.of(x.shape))
	values := e.chunks[episode/endsInChunk].values[x.values:]
	for i := range scores {
		scores[i].Value = values[i]
	}
	return scores
}

// between yields the ends of the episodes with from <= episode < to, in order.
func (e *Ends) between(from, to int) iter.Seq2[int, *end] {
	return func(yield func(int, *end) bool) {
		for key := range e.keys(max(0, from)/endsInChunk, (to-1)/endsInChunk) {
			c := e.chunks[key]
			for left := c.has; left != 0; left &= left - 1 {
				at := bits.TrailingZeros16(left)
				if n := key*endsInChunk + at; n >= from && n < to && !yield(n, &c.ends[at]) {
					return
				}
			}
		}
	}
}

// keys yields the keys of chunks from first to last, in order. Its cost depends on the chunks that
// there are, or on first and last if these are closer together.
func (e *Ends) keys(first, last int) iter.Seq[int] {
	if last-first > len(e.chunks) {
		return slices.Values(slices.DeleteFunc(slices.Sorted(maps.Keys(e.chunks)), func(key int) bool { return key < first || key > last }))
	}
	return func(yield func(int) bool) {
		for key := first; key <= last; key++ {
			if e.chunks[key] != nil && !yield(key) {
				return
			}
		}
	}
}

// outcomesAtOnce is how many complete ends are read together.
const outcomesAtOnce = 256

// Outcomes reads the complete ends of the episodes with from <= episode < to, in order.
// j is the journal whose head e is of.
func (e *Ends) Outcomes(ctx context.Context, j Journal, from, to int, each func(*Ended) error) error {
	at := make([]int, 0, outcomesAtOnce)
	for n, x := range e.between(from, to) {
		if at = append(at, e.place(n, x).entry); len(at) < outcomesAtOnce {
			continue
		}
		if err := j.Outcomes(ctx, at, each); err != nil {
			return err
		}
		at = at[:0]
	}
	return j.Outcomes(ctx, at, each)
}

// PlayedOutcomes calls each with what Played yields, with complete ends. j is the journal whose head h
// is.
func (h *Head) PlayedOutcomes(ctx context.Context, j Journal, each func(world.Spec, *Ended) error) error {
	for _, st := range h.Stages {
		err := h.Ended.Outcomes(ctx, j, st.First, st.end(), func(e *Ended) error { return each(st.Specs.At(e.Episode-st.First), e) })
		if err != nil {
			return err
		}
	}
	return nil
}

// end returns the number of the episode after the stage.
func (st *Staged) end() int { return st.First + min(st.Specs.Len(), math.MaxInt-st.First) }

// Outcome reads the complete end of an episode; nil if it has not ended.
func (e *Ends) Outcome(ctx context.Context, j Journal, episode int) (out *Ended, err error) {
	if x := e.end(episode); x != nil {
		err = j.Outcomes(ctx, []int{e.place(episode, x).entry}, func(whole *Ended) error { out = whole; return nil })
	}
	return out, err
}
