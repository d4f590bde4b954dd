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
	unread  int                        // entries that the journal still has
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
// the last attempt, once. Episodes begin in order, so one goroutine reads the journal in order, a
// chunk at a time. It gives out an episode as soon as its last entry is read if somebody waits, and
// otherwise waits itself at the end of a chunk, where it does not hold the journal.
type replay struct {
	journal journal.Journal
	playing map[int]journal.Progress
	billed  bool         // the bills of replies are needed
	replies atomic.Int64 // that worlds were given from the journal
	copies  atomic.Int64 // of these, those of models and people that are recorded again, for another attempt

	parts chan map[int]*recorded // closed when all is read, or reading failed
	err   error                  // valid when parts is closed

	mu   sync.Mutex
	have map[int]*recorded
}

func newReplay(j journal.Journal, playing map[int]journal.Progress, billed bool) *replay {
	return &replay{journal: j, playing: playing, billed: billed, parts: make(chan map[int]*recorded), have: map[int]*recorded{}}
}

// partSize is how many entries are read at once: enough for many episodes, and few enough to hold
// two chunks in memory.
const partSize = 100_000

// giveSize is how many entries are read at least before what is complete is given out.
const giveSize = 1000

// maxIndex is the highest number of a call in a turn that a journal may have. It limits the memory
// that a forged file can take.
const maxIndex = 1 << 20

// take waits for what the journal has of an episode that began earlier, and returns it.
func (p *replay) take(ctx context.Context, episode int) (*recorded, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.have[episode] == nil {
		select {
		case part, ok := <-p.parts:
			if !ok {
				return nil, p.err
			}
			maps.Copy(p.have, part)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	rec := p.have[episode]
	delete(p.have, episode)
	return rec, nil
}

// run reads what the journal has of all episodes that did not end.
func (p *replay) run(ctx context.Context) {
	defer close(p.parts)
	todo := slices.Sorted(maps.Keys(p.playing))
	for len(todo) > 0 {
		n := 0
		for entries := 0; n < len(todo) && entries < partSize; n++ {
			entries += p.playing[todo[n]].Entries
		}
		part, err := p.readPart(ctx, todo[:n])
		if err != nil {
			p.err = err
			return
		}
		select {
		case p.parts <- part:
		case <-ctx.Done():
			p.err = context.Cause(ctx)
			return
		}
		todo = todo[n:]
	}
	p.err = errors.New("an episode was begun out of order") // all of them were given out
}

// readPart reads some episodes and returns those that were not given out meanwhile.
func (p *replay) readPart(ctx context.Context, episodes []int) (map[int]*recorded, error) {
	part, done := make(map[int]*recorded, len(episodes)), map[int]*recorded{}
	all := make([]recorded, len(episodes))
	for i, n := range episodes {
		all[i] = recorded{attempt: p.playing[n].Attempt, unread: p.playing[n].Entries}
		part[n] = &all[i]
	}
	entries := 0
	in := journal.Span{From: episodes[0], To: episodes[len(episodes)-1] + 1, Replay: true}
	err := p.journal.Read(ctx, in, func(e journal.Entry) error {
		rec, at, err := p.keep(part, e)
		if rec == nil || err != nil {
			return err
		}
		entries++
		if rec.unread--; rec.unread != 0 {
			return nil
		}
		delete(part, at)
		done[at] = rec
		if entries >= giveSize {
			select {
			case p.parts <- done:
				done, entries = map[int]*recorded{}, 0
			default:
			}
		}
		return nil
	})
	maps.Copy(done, part)
	return done, err
}

// keep keeps an entry with its episode, which it returns; nil if the entry is not needed.
func (p *replay) keep(part map[int]*recorded, e journal.Entry) (*recorded, int, error) {
	switch e := e.(type) {
	case *journal.Turned:
		if rec := attemptIn(part, e.Turn); rec != nil {
			if journal.OfProgram(e.Strand) {
				return rec, e.Episode, nil // the gateway reads it if the program is started again
			}
			t := rec.at(e.Turn)
			t.digest, t.calls = e.Digest, e.Calls
			return rec, e.Episode, nil
		}
	case *journal.Replied:
		if e.Index < 0 || e.Index > maxIndex {
			return nil, 0, fmt.Errorf("%w: episode %d, turn %s%d has a call number %d", journal.ErrDamaged, e.Episode, e.Strand, e.Turn.Turn, e.Index)
		}
		if rec := attemptIn(part, e.Turn); rec != nil {
			if journal.OfProgram(e.Strand) {
				rec.addInner(e)
				return rec, e.Episode, nil
			}
			rec.at(e.Turn).add(e, p.billed)
			return rec, e.Episode, nil
		}
	}
	return nil, 0, nil
}

// attemptIn returns the episode of a turn; nil if the turn is one of an earlier attempt.
func attemptIn(part map[int]*recorded, at journal.Turn) *recorded {
	rec, ok := part[at.Episode]
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
	r.replay.copy(&rep)
	return rep.Reply()
}

// copy counts a reply that is recorded again.
func (p *replay) copy(rep *journal.Replied) {
	p.replies.Add(1)
	if rep.Act == nil {
		p.copies.Add(1)
	}
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
