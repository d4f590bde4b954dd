package batch

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"parley/llm"
)

// openBatch is a batch that was sent, or is about to be, and the calls that wait for its lines. The
// Batcher's lock guards it.
type openBatch struct {
	Open
	slots map[ID]*slot

	queue     *Queue // nil until a call of this process waits for one of its lines
	draft     *Draft // until it is sent
	bytes     int64
	tokens    int
	intended  bool   // its intent is durable, so it must be closed
	earlier   bool   // an earlier process sent it
	entered   bool   // it counts in the queue's limits
	following bool   // a goroutine follows it
	waiting   int    // lines that calls wait for
	unused    int    // lines whose answer was not taken and is not durable
	held      int    // calls that took an answer and have not ended
	orphans   int    // lines that no call accounts for yet
	lost      string // why it is lost, if it is
	risk      llm.Money
	state     State
	error     string // the last error when asking the provider

	// Of reading its results.
	round      int        // number of times that they were read
	seen       int        // lines that this round has
	unreadable int        // results of this round that cannot be read
	rest       *llm.Error // of lines that the results do not have, if the provider says
}

// noteError notes that the provider could not be asked about a batch.
func (o *Batcher) noteError(t *openBatch, e *llm.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.error = e.Message
}

// slot is a line and the call that waits for it.
type slot struct {
	openBatch *openBatch
	id        ID
	by        *pending // nil: no call waits
	used      bool     // its answer was taken
	again     bool     // its answer was taken before, and given back
	round     int      // the round of reading in which it is expected
	seen      int      // the last round that has it
	orphaned  bool     // left by an earlier process, and not asked for in this one
	safe      bool     // left by an earlier process, which has recorded the answer
	refused   bool     // its result stops the run and costs nothing, so that it is not kept
}

// reopen adds a batch of an earlier process.
func (o *Batcher) reopen(open Open) {
	t := &openBatch{Open: open, slots: make(map[ID]*slot, len(open.Lines)), intended: true, earlier: true}
	for _, id := range open.Lines {
		s := o.addSlot(t, id)
		if s == nil {
			continue
		}
		if s.safe = open.Safe(id); !s.safe {
			s.orphaned = true
			t.unused++
			t.orphans++
			o.orphaned[id.Call()] = append(o.orphaned[id.Call()], s)
		}
	}
	t.risk = t.AtRisk()
	o.batches[open.Key] = t
}

func (o *Batcher) addSlot(t *openBatch, id ID) *slot {
	if t.slots[id] != nil {
		return nil
	}
	s := &slot{openBatch: t, id: id}
	t.slots[id] = s
	st := id.Stem()
	o.byStem[st] = append(o.byStem[st], s)
	return s
}

// add makes an open batch of items that are about to be sent.
func (o *Batcher) add(c *Queue, lines []*pending) *openBatch {
	t := &openBatch{
		Open:  Open{Key: NewKey(), Provider: c.name, Model: lines[0].Request.Model, Began: time.Now()},
		slots: make(map[ID]*slot, len(lines)),
		queue: c,
	}
	t.draft = &Draft{Key: t.Key, Requests: make([]Request, 0, len(lines))}
	for _, p := range lines {
		n := 0
		if same := o.byStem[p.stem]; len(same) > 0 {
			n = same[len(same)-1].id.Ordinal() + 1
		}
		id := NewID(p.stem, n)
		s := o.addSlot(t, id)
		s.by, p.slot = p, s
		t.Lines = append(t.Lines, id)
		t.draft.Requests = append(t.draft.Requests, Request{ID: id, Request: p.Request, Bytes: p.Weight.Bytes})
		t.Worst = t.Worst.Plus(p.Worst)
		t.WorstLine = max(t.WorstLine, p.Worst)
		t.bytes += int64(p.Weight.Bytes + lineBytes)
		t.tokens += p.Tokens
	}
	t.waiting, t.unused = len(lines), len(lines)
	o.batches[t.Key] = t
	return t
}

// claim returns a line of an open batch that asks the same and that no call waits for.
func (o *Batcher) claim(stem string) *slot {
	for _, s := range o.byStem[stem] {
		if s.by == nil && !s.used {
			return s
		}
	}
	return nil
}

// adoptRisk makes a call, whose lines may cost worst each, account for the lines that earlier
// processes left at risk. It returns how much less is at risk.
func (o *Batcher) adoptRisk(call string, worst llm.Money) (released llm.Money, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.orphaned[call] {
		t := s.openBatch
		s.orphaned, ok = false, true
		t.orphans--
		t.Worst = max(0, t.Worst.Minus(worst))
		now := min(t.risk, t.Worst, t.WorstLine.Times(t.orphans))
		released = released.Plus(t.risk.Minus(now))
		t.risk = now
	}
	delete(o.orphaned, call)
	return released, ok
}

// resolve gives the result of a line to the call that waits for it. A result that stops the run does so
// only in the process that sent the line: for another one the reason may be gone, and it asks again.
func (o *Batcher) resolve(s *slot, f Answered) {
	p, t := s.by, s.openBatch
	s.by = nil
	t.waiting--
	s.used = true
	if !s.safe {
		t.unused--
	}
	t.held++
	p.call.took = append(p.call.took, s)
	p.slot = nil
	if s.refused = refused(f.Err); s.refused && t.earlier {
		f.Err = refusedError(f.Err)
	}
	f.Took, f.Again = time.Since(t.Began), s.again
	p.wake(f)
}

// refused reports whether the error of a line is about the account or the model, and not about the
// line: such an error stops the run.
func refused(e *llm.Error) bool {
	return e != nil && (e.Kind == llm.KindQuota || e.Kind == llm.KindAuth || e.Status == http.StatusNotFound)
}

// giveBack makes the answer of a line available again. The batcher is locked.
func (s *slot) giveBack() {
	s.used, s.again = false, true
	if s.openBatch.held--; !s.safe {
		s.openBatch.unused++
	}
}

// waiters removes and returns the calls that wait for t.
func (t *openBatch) waiters() []*pending {
	out := make([]*pending, 0, t.waiting)
	for _, id := range t.Lines {
		if s := t.slots[id]; s != nil && s.by != nil {
			out = append(out, s.by)
			s.by.slot, s.by = nil, nil
		}
	}
	t.waiting = 0
	return out
}

// remove forgets a batch: it does not exist, or all its results were taken.
func (o *Batcher) remove(t *openBatch) {
	delete(o.batches, t.Key)
	for _, s := range t.slots {
		st := s.id.Stem()
		left := slices.DeleteFunc(o.byStem[st], func(x *slot) bool { return x == s })
		if o.byStem[st] = left; len(left) == 0 {
			delete(o.byStem, st)
		}
		if call := s.id.Call(); s.orphaned {
			o.orphaned[call] = slices.DeleteFunc(o.orphaned[call], func(x *slot) bool { return x == s })
		}
	}
	o.freed = o.freed.Plus(t.risk)
	t.risk = 0
}

// unlock also reports what is not at risk any more: after unlocking, since Release takes locks.
func (o *Batcher) unlock() {
	freed := o.freed
	o.freed = 0
	o.mu.Unlock()
	if freed > 0 {
		o.release(freed)
	}
}

// done reports whether all results of a batch are durable.
func (t *openBatch) done() bool {
	return t.unused == 0 && t.held == 0 && t.waiting == 0 && !t.following && t.ID != ""
}

// closeDone closes the batches whose results are all durable.
func (o *Batcher) closeDone(ctx context.Context, some []*openBatch) {
	o.mu.Lock()
	var done []*openBatch
	for _, t := range some {
		if o.batches[t.Key] == t && t.done() {
			o.remove(t)
			done = append(done, t)
		}
	}
	o.unlock()
	for _, t := range done {
		// If the event is not recorded, the batch stays open and is collected once more, at no
		// cost.
		_ = o.note(ctx, Event{Step: Closed, Key: t.Key, Why: cmp.Or(t.lost, "collected")})
	}
}
