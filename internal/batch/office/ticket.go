package office

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley/internal/batch"
	"parley/llm"
)

// ticket is an open batch: what was sent, and who waits for what. It is guarded by the
// Office.
type ticket struct {
	batch.Open
	slots map[batch.ID]*slot

	counter   *Counter     // nil until a call of this sitting wants something of it
	draft     *batch.Draft // until it is sent
	bytes     int64
	tokens    int
	intended  bool   // its intent is durable, so it must be closed
	entered   bool   // it has a place at the counter
	following bool   // somebody sees to it
	round     int    // of reading its results
	waiting   int    // slots with a call that waits
	unused    int    // slots whose answer was not taken and is not safe
	held      int    // calls that took an answer and have not ended
	owes      int    // slots that are owed
	lost      string // why it is, if it is
	risk      llm.Money
	state     batch.State
	error     string // what went wrong when the provider was last asked
}

// trouble notes that the provider could not be asked about a batch.
func (o *Office) trouble(t *ticket, e *llm.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.error = e.Message
}

// slot is a line and the call that waits for it.
type slot struct {
	ticket *ticket
	id     batch.ID
	by     *parked // nil: nobody waits
	used   bool    // its answer was taken
	round  int     // of reading in which it is expected
	owed   bool    // left by an earlier sitting, and not asked for in this one
	safe   bool    // left by an earlier sitting, which has an answer to its call
}

// reopen books a batch of an earlier sitting.
func (o *Office) reopen(open batch.Open) {
	t := &ticket{Open: open, slots: make(map[batch.ID]*slot, len(open.Lines)), intended: true}
	for _, id := range open.Lines {
		s := o.addSlot(t, id)
		if s == nil {
			continue
		}
		if s.safe = open.Safe(id); !s.safe {
			s.owed = true
			t.unused++
			t.owes++
			o.owed[id.Call()] = append(o.owed[id.Call()], s)
		}
	}
	t.risk = t.AtRisk()
	o.tickets[open.Key] = t
}

func (o *Office) addSlot(t *ticket, id batch.ID) *slot {
	if t.slots[id] != nil {
		return nil
	}
	s := &slot{ticket: t, id: id}
	t.slots[id] = s
	st := id.Stem()
	o.byStem[st] = append(o.byStem[st], s)
	return s
}

// book makes a ticket of lines that are about to be sent as one batch.
func (o *Office) book(c *Counter, lines []*parked) *ticket {
	t := &ticket{
		Open:    batch.Open{Key: batch.NewKey(), Provider: c.name, Model: lines[0].Request.Model, Began: time.Now()},
		slots:   make(map[batch.ID]*slot, len(lines)),
		counter: c,
	}
	t.draft = &batch.Draft{Key: t.Key, Lines: make([]batch.Line, 0, len(lines))}
	for _, p := range lines {
		n := 0
		if same := o.byStem[p.stem]; len(same) > 0 {
			n = same[len(same)-1].id.Ordinal() + 1
		}
		id := batch.NewID(p.stem, n)
		s := o.addSlot(t, id)
		s.by, p.slot = p, s
		t.Lines = append(t.Lines, id)
		t.draft.Lines = append(t.draft.Lines, batch.Line{ID: id, Request: p.Request, Bytes: p.Weight.Bytes})
		t.Worst = t.Worst.Plus(p.Worst)
		t.Dearest = max(t.Dearest, p.Worst)
		t.bytes += int64(p.Weight.Bytes + lineBytes)
		t.tokens += p.Tokens
	}
	t.waiting, t.unused = len(lines), len(lines)
	o.tickets[t.Key] = t
	return t
}

// claim finds a line of an open batch that asks the same and that nobody waits for.
func (o *Office) claim(stem string) *slot {
	for _, s := range o.byStem[stem] {
		if s.by == nil && !s.used {
			return s
		}
	}
	return nil
}

// fund takes the lines of a call, which may cost worst each, out of what earlier sittings
// left at risk: from now on the call answers for them. It returns by how much that is less.
func (o *Office) fund(call string, worst llm.Money) (released llm.Money, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.owed[call] {
		t := s.ticket
		s.owed, ok = false, true
		t.owes--
		t.Worst = max(0, t.Worst.Minus(worst))
		now := min(t.risk, t.Worst, t.Dearest.Times(t.owes))
		released = released.Plus(t.risk.Minus(now))
		t.risk = now
	}
	delete(o.owed, call)
	return released, ok
}

// take hands what came of a line to the call that waits for it.
func (o *Office) take(s *slot, f Fate) {
	p, t := s.by, s.ticket
	s.by = nil
	t.waiting--
	s.used = true
	if !s.safe {
		t.unused--
	}
	t.held++
	p.seat.took = append(p.seat.took, t)
	p.slot = nil
	f.Took = time.Since(t.Began)
	p.wake(f)
}

// waiters takes the calls that wait for t off it.
func (t *ticket) waiters() []*parked {
	out := make([]*parked, 0, t.waiting)
	for _, id := range t.Lines {
		if s := t.slots[id]; s != nil && s.by != nil {
			out = append(out, s.by)
			s.by.slot, s.by = nil, nil
		}
	}
	t.waiting = 0
	return out
}

// strike takes a batch out of the book: it does not exist, or nothing more is to be had.
func (o *Office) strike(t *ticket) {
	delete(o.tickets, t.Key)
	for _, s := range t.slots {
		st := s.id.Stem()
		left := slices.DeleteFunc(o.byStem[st], func(x *slot) bool { return x == s })
		if o.byStem[st] = left; len(left) == 0 {
			delete(o.byStem, st)
		}
		if call := s.id.Call(); s.owed {
			o.owed[call] = slices.DeleteFunc(o.owed[call], func(x *slot) bool { return x == s })
		}
	}
	o.freed = o.freed.Plus(t.risk)
	t.risk = 0
}

// unlock also tells of what is not at risk any more: not before, since whoever is told has
// locks of his own.
func (o *Office) unlock() {
	freed := o.freed
	o.freed = 0
	o.mu.Unlock()
	if freed > 0 {
		o.release(freed)
	}
}

// spent says whether all that a batch had to give is safe.
func (t *ticket) spent() bool {
	return t.unused == 0 && t.held == 0 && t.waiting == 0 && !t.following && t.ID != ""
}

// closeSpent closes the batches of which all is safe.
func (o *Office) closeSpent(ctx context.Context, some []*ticket) {
	o.mu.Lock()
	var done []*ticket
	for _, t := range some {
		if o.tickets[t.Key] == t && t.spent() {
			o.strike(t)
			done = append(done, t)
		}
	}
	o.unlock()
	for _, t := range done {
		// A mark that is not kept leaves the batch open: it is collected once more, for nothing.
		_ = o.note(ctx, batch.Mark{Step: batch.Closed, Key: t.Key, Why: cmp.Or(t.lost, "collected")})
	}
}
