package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// recorded is what the journal has of an attempt at an episode.
type recorded struct {
	attempt int
	first   recordedStrand             // of the first strand, the only one of most episodes
	forks   map[string]*recordedStrand // of the others, by path
	inner   map[string]*inner          // what the calls of programs add up to, by their strand
}

// recordedStrand is the turns of a strand that were not taken, in order.
type recordedStrand []recordedTurn

// recordedTurn is a turn in the journal. Replies may be read before the turn itself. Nil is a turn
// that is not recorded.
type recordedTurn struct {
	number  int
	calls   int // -1: not turned
	digest  journal.Digest
	replies []recordedReply
}

type recordedReply struct {
	is    bool // false: the journal does not have it
	reply world.Reply
	bill  bill // if there is a budget
}

// strand returns the turns of a strand; nil if there are none.
func (r *recorded) strand(path string) *recordedStrand {
	if path == "" {
		return &r.first
	}
	return r.forks[path]
}

// take returns a turn of a strand, once; nil if it is not recorded.
func (r *recorded) take(at journal.Turn) *recordedTurn {
	s := r.strand(at.Strand)
	if s == nil {
		return nil
	}
	i, ok := s.find(at.Turn)
	if !ok {
		return nil
	}
	t := &(*s)[i]
	*s = (*s)[i+1:] // a strand plays its turns in order
	if len(*s) == 0 {
		*s = nil // do not retain replies that were given
	}
	return t
}

// at returns where to keep a turn that is read.
func (r *recorded) at(at journal.Turn) *recordedTurn {
	s := r.strand(at.Strand)
	if s == nil {
		s = &recordedStrand{}
		if r.forks == nil {
			r.forks = map[string]*recordedStrand{}
		}
		r.forks[at.Strand] = s
	}
	i, ok := s.find(at.Turn)
	if !ok {
		*s = slices.Insert(*s, i, recordedTurn{number: at.Turn, calls: -1})
	}
	return &(*s)[i]
}

// find returns the index of a turn, or of the first one after it. Turns are mostly taken in order,
// and added at the end.
func (s recordedStrand) find(turn int) (i int, ok bool) {
	n := len(s)
	switch {
	case n == 0 || s[n-1].number < turn:
		return n, false
	case s[n-1].number == turn:
		return n - 1, true
	case s[0].number == turn:
		return 0, true
	}
	return slices.BinarySearchFunc(s, turn, func(t recordedTurn, turn int) int { return cmp.Compare(t.number, turn) })
}

func (t *recordedTurn) turned() bool { return t != nil && t.calls >= 0 }

func (t *recordedTurn) has(reply int) bool {
	return t != nil && reply < len(t.replies) && t.replies[reply].is
}

// diverged reports whether a recorded turn differs from the one played now. A turn that a fork
// copied has no digest, since other agents may ask in other words: only the number of calls must be
// the same.
func (t *recordedTurn) diverged(digest journal.Digest, calls int) bool {
	if t.digest == (journal.Digest{}) {
		return t.calls != calls
	}
	return t.digest != digest
}

// replay gives episodes that began earlier what the journal has of them: all that was recorded of
// the last attempt, once. Episodes begin in order, so it reads the journal in order, a part at a
// time: when somebody takes an episode that is not read yet. It does not hold the journal between
// two parts.
type replay struct {
	journal journal.Journal
	playing map[int]journal.Progress
	billed  bool         // the bills of replies are needed
	replies atomic.Int64 // that worlds were given from the journal
	copies  atomic.Int64 // of these, those of models and people that are recorded again, for another attempt

	mu   sync.Mutex
	todo []int             // episodes that are not read yet, in order
	have map[int]*recorded // those that are, and were not taken
	err  error             // nothing can be taken: have may lack entries
}

func newReplay(j journal.Journal, playing map[int]journal.Progress, billed bool) *replay {
	return &replay{journal: j, playing: playing, billed: billed, todo: slices.Sorted(maps.Keys(playing)), have: map[int]*recorded{}}
}

// partSize is how many entries are read at once: so many that a reading's own cost does not count, and few enough to hold them
// in memory.
const partSize = 100_000

// maxIndex is the highest number of a call in a turn that a journal may have. It limits the memory
// that a forged file can take.
const maxIndex = 1 << 20

// take returns what the journal has of an episode that began earlier.
func (p *replay) take(ctx context.Context, episode int) (*recorded, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.have[episode] == nil {
		p.err = p.readPart(ctx)
	}
	if p.err != nil {
		return nil, cmp.Or(context.Cause(ctx), p.err)
	}
	rec := p.have[episode]
	delete(p.have, episode)
	return rec, nil
}

// readPart reads the next episodes.
func (p *replay) readPart(ctx context.Context) error {
	if len(p.todo) == 0 {
		return errors.New("an episode was begun out of order") // all of them were given out
	}
	n := 0
	for entries := 0; n < len(p.todo) && entries < partSize; n++ {
		entries += p.playing[p.todo[n]].Entries
		p.have[p.todo[n]] = &recorded{attempt: p.playing[p.todo[n]].Attempt}
	}
	in := journal.Span{From: p.todo[0], To: p.todo[n-1] + 1, Replay: true}
	p.todo = p.todo[n:]
	return p.journal.Read(ctx, in, p.keep)
}

// keep keeps an entry with its episode, if it is of the attempt that goes on.
func (p *replay) keep(e journal.Entry) error {
	switch e := e.(type) {
	case *journal.Turned:
		rec := p.attempt(e.Turn)
		if rec == nil || journal.OfProgram(e.Strand) { // the gateway reads it if the program is started again
			return nil
		}
		t := rec.at(e.Turn)
		t.digest, t.calls = e.Digest, e.Calls
	case *journal.Replied:
		if e.Index < 0 || e.Index > maxIndex {
			return fmt.Errorf("%w: episode %d, turn %s%d has a call number %d", journal.ErrDamaged, e.Episode, e.Strand, e.Turn.Turn, e.Index)
		}
		switch rec := p.attempt(e.Turn); {
		case rec == nil:
		case journal.OfProgram(e.Strand):
			rec.addInner(e)
		default:
			rec.at(e.Turn).add(e, p.billed)
		}
	}
	return nil
}

// attempt returns the episode of a turn; nil if the turn is one of an earlier attempt.
func (p *replay) attempt(at journal.Turn) *recorded {
	rec, ok := p.have[at.Episode]
	if !ok || at.Attempt != rec.attempt {
		return nil
	}
	return rec
}

// addInner adds a call of a program.
func (r *recorded) addInner(e *journal.Replied) {
	n := r.inner[e.Strand]
	if n == nil {
		n = &inner{}
		if r.inner == nil {
			r.inner = map[string]*inner{}
		}
		r.inner[e.Strand] = n
	}
	n.add(billOf(e))
}

// recallInner gives the ask of a program what its recorded calls add up to.
func (r *recorded) recallInner(c *call) {
	if c.inner == nil || r.inner == nil {
		return
	}
	if was := r.inner[journal.ProgramStrand(c.at, c.index)]; was != nil {
		c.inner.bill, c.inner.calls = was.bill, was.calls
	}
}

func (t *recordedTurn) add(e *journal.Replied, billed bool) {
	if n := e.Index + 1 - len(t.replies); n > 0 {
		t.replies = append(t.replies, make([]recordedReply, n)...)
	}
	r := &t.replies[e.Index]
	r.is, r.reply = true, e.Reply()
	if billed {
		r.bill = billOf(e)
	}
}

// earlierReplies are replies of earlier attempts at an episode, the last where there are several.
type earlierReplies map[callPlace]*journal.Replied

// callPlace is where in an episode a call is.
type callPlace struct {
	strand      string
	turn, index int
}

// earlier reads the replies of the attempts before one.
func (p *replay) earlier(ctx context.Context, episode, attempt int) (earlierReplies, error) {
	entries, err := journal.Episode(ctx, p.journal, episode)
	if err != nil {
		return nil, err
	}
	out := earlierReplies{}
	for _, e := range entries {
		if was, ok := e.(*journal.Replied); ok && was.Attempt < attempt && was.Error == nil {
			out[callPlace{was.Strand, was.Turn.Turn, was.Index}] = was
		}
	}
	return out, nil
}

// to returns the reply to a call that asks the same at the same place. Nil: there is none. If the kind restarts, an act must be done again, since what
// it changed outside is gone.
func (r earlierReplies) to(c *call, restarts bool) *journal.Replied {
	was := r[callPlace{c.at.Strand, c.at.Turn, c.index}]
	switch {
	case was == nil || was.Seat != c.seat || was.Label != c.label:
	case c.act != nil && was.Act != nil && !restarts && was.Act.Name == c.act.Name && bytes.Equal(was.Act.Body, c.act.Body):
		return was
	case c.act == nil && c.req != nil && was.Request != nil && sameRequest(was.Request, c.req):
		return was
	}
	return nil
}

// copied records that the reply of an earlier attempt answers a call, and returns it. It costs nothing more.
func (r *run) copied(c *call, was *journal.Replied) world.Reply {
	rep := *was
	rep.Turn, rep.Agent, rep.Copied = c.at, c.agent, true
	r.rec.Write(nil, &rep)
	r.replay.replies.Add(1)
	if c.act == nil {
		r.replay.copies.Add(1)
	}
	return rep.Reply()
}

// diverged returns the error of a turn that asks something else than recorded.
func (r *run) diverged(ctx context.Context, at journal.Turn, calls []*call, rec *recordedTurn) error {
	e := &divergedError{Turn: at, What: r.replay.difference(ctx, at, calls, rec)}
	if len(r.Begun.Code) > 0 {
		e.Language = r.Begun.Code[0].Language
	}
	return e
}

// difference describes how a turn differs from what is recorded.
func (p *replay) difference(ctx context.Context, at journal.Turn, calls []*call, rec *recordedTurn) string {
	if rec.calls != len(calls) {
		return fmt.Sprintf("it now makes %d calls where it made %d", len(calls), rec.calls)
	}
	entries, err := journal.Episode(ctx, p.journal, at.Episode)
	if err != nil {
		return "its calls have changed, and the recorded ones cannot be read: " + err.Error()
	}
	for _, e := range entries {
		was, ok := e.(*journal.Replied)
		if !ok || was.Turn != at || was.Index >= len(calls) {
			continue
		}
		i, c := was.Index, calls[was.Index]
		switch {
		case was.Seat != c.seat || was.Label != c.label:
			return fmt.Sprintf("call %d is now %s of %s, and was %s of %s", i, c.label, c.seat, was.Label, was.Seat)
		case was.Request != nil && c.req != nil && !sameRequest(was.Request, c.req):
			return fmt.Sprintf("call %d, %s of %s, asks something else: %s", i, c.label, c.seat, requestDifference(was.Request, c.req))
		}
	}
	return "its calls have changed"
}

// sameRequest reports whether two requests ask the same, whatever their sample numbers.
func sameRequest(a, b *llm.Request) bool {
	x, y := *a, *b
	x.Sample, y.Sample = 0, 0
	return x.Digest() == y.Digest()
}

func requestDifference(was, is *llm.Request) string {
	if was.Model != is.Model {
		return fmt.Sprintf("of %s, and was of %s", is.Model, was.Model)
	}
	if len(was.Messages) != len(is.Messages) {
		return fmt.Sprintf("in %d messages, and was in %d", len(is.Messages), len(was.Messages))
	}
	for i := range is.Messages {
		if a, b := was.Messages[i].Text(), is.Messages[i].Text(); a != b {
			return fmt.Sprintf("message %d is %q, and was %q", i, near(b, a), near(a, b))
		}
	}
	return "with other parameters"
}

// near returns the part of a where it first differs from b.
func near(a, b string) string {
	ra, rb := []rune(a), []rune(b)
	i := 0
	for i < len(ra) && i < len(rb) && ra[i] == rb[i] {
		i++
	}
	return string(ra[max(0, i-20):min(len(ra), i+30)])
}
