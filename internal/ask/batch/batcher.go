package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
)

// The routes.
const (
	Live  = "live"  // directly, as outside of waves
	Batch = "batch" // over the batch API, if there is one
	Auto  = "auto"  // over the batch API if the wave has enough calls and time
)

const (
	autoTime = 10 * time.Minute // with less time, auto begins no batch
	maxTries = 3                // attempts at one call over a batch before it is asked live
)

// Config configures a Batcher.
type Config struct {
	*settings.Batch
	// Open are the batches that earlier processes of the run left open.
	Open []Open
	// Record makes an event durable before it returns. It is called from several goroutines.
	// Default: nothing is durable, and a drain waits for batches.
	Record func(ctx context.Context, e *journal.Batched) error
	// Release is called when an amount that Open puts at risk is not at risk any more. It must not
	// call the Batcher. Default: none.
	Release func(llm.Money)
}

// Batcher knows every open batch.
type Batcher struct {
	policy  *settings.Batch
	record  func(ctx context.Context, e *journal.Batched) error
	release func(llm.Money)
	stop    chan struct{} // closed by Drain

	mu       sync.Mutex
	batches  map[string]*openBatch // by key
	byStem   map[string][]*slot    // lines of open batches, in order of their ordinals
	orphaned map[string][]*slot    // lines of earlier processes, by call
	queues   []*Queue
	draining bool
	held     *llm.Error // refuses calls for now
	waves    int
	pending  int // items that wait to be sent
	counts   Counts
	freed    llm.Money // not at risk any more, and not reported
}

// New returns a Batcher over c.
func New(c Config) *Batcher {
	b := &Batcher{
		policy: c.Batch, record: c.Record, release: c.Release, stop: make(chan struct{}),
		batches: map[string]*openBatch{}, byStem: map[string][]*slot{}, orphaned: map[string][]*slot{},
	}
	if b.release == nil {
		b.release = func(llm.Money) {}
	}
	for _, open := range c.Open {
		b.reopen(open)
	}
	for _, same := range b.byStem {
		slices.SortFunc(same, func(x, y *slot) int { return cmp.Compare(x.id.Ordinal(), y.id.Ordinal()) })
	}
	return b
}

// Queue returns the queue of a provider's batch API.
func (b *Batcher) Queue(name string, d API, limits provider.Batch) *Queue {
	q := newQueue(name, d, limits)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.batches {
		if t.Provider == name {
			q.created = append(q.created, t.Began)
		}
	}
	b.queues = append(b.queues, q)
	return q
}

// Drain sends nothing more. Batches at the provider are left until the run is resumed, if they can
// be found then; otherwise it waits for them.
func (b *Batcher) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.draining {
		b.draining = true
		close(b.stop)
	}
}

// Hold refuses calls that are in no batch at a provider with e until e is nil. Batches at the provider
// are followed.
func (b *Batcher) Hold(e *llm.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = e
}

// heldBack returns the error with which Hold refuses calls, or nil.
func (b *Batcher) heldBack() *llm.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// refusal returns why nothing is sent, or nil. The batcher is locked.
func (b *Batcher) refusal() *llm.Error {
	if b.draining {
		return DrainError()
	}
	return b.held
}

// drained returns a channel that is closed when batches need not be followed any more; nil if that
// never happens.
func (b *Batcher) drained() <-chan struct{} {
	if b.record == nil {
		return nil
	}
	return b.stop
}

// Cancel asks the providers to end every batch that was created. Answers that exist by then are
// billed, and collected when the run is resumed. api returns the API of a provider.
func (b *Batcher) Cancel(ctx context.Context, api func(provider string) (API, error)) error {
	type named struct{ provider, id string }
	var created []named
	b.mu.Lock()
	for _, t := range b.batches {
		if t.ID != "" && t.state.Phase != Ended {
			created = append(created, named{t.Provider, t.ID})
		}
	}
	b.mu.Unlock()
	var errs []error
	for _, one := range created {
		d, err := api(one.provider)
		if err == nil {
			err = d.Cancel(ctx, one.id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("batch: cancel %s: %w", one.id, err))
		}
	}
	return errors.Join(errs...)
}

// note makes an event durable. After its error the next step must not be taken.
func (b *Batcher) note(ctx context.Context, m *journal.Batched) *llm.Error {
	if b.record == nil {
		return nil
	}
	m.At = time.Now()
	if err := b.record(ctx, m); err != nil {
		return &llm.Error{Kind: llm.KindCanceled, Message: "a batch cannot be recorded, so nothing more is sent: " + err.Error(), Err: err}
	}
	return nil
}

func (b *Batcher) count(f func(*Counts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.counts)
}

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
	restError  *llm.Error // of lines that the results do not have, if the provider says
}

// noteError notes that the provider could not be asked about a batch.
func (b *Batcher) noteError(t *openBatch, e *llm.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
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
func (b *Batcher) reopen(open Open) {
	t := &openBatch{Open: open, slots: make(map[ID]*slot, len(open.Lines)), intended: true, earlier: true}
	for _, id := range open.Lines {
		s := b.addSlot(t, id)
		if s == nil {
			continue
		}
		if s.safe = open.Safe(id); !s.safe {
			s.orphaned = true
			t.unused++
			t.orphans++
			b.orphaned[id.Call()] = append(b.orphaned[id.Call()], s)
		}
	}
	t.risk = t.AtRisk()
	b.batches[open.Key] = t
}

func (b *Batcher) addSlot(t *openBatch, id ID) *slot {
	if t.slots[id] != nil {
		return nil
	}
	s := &slot{openBatch: t, id: id}
	t.slots[id] = s
	st := id.Stem()
	b.byStem[st] = append(b.byStem[st], s)
	return s
}

// add makes an open batch of items that are about to be sent.
func (b *Batcher) add(q *Queue, lines []*pending) *openBatch {
	t := &openBatch{
		Open:  Open{Key: NewKey(), Provider: q.name, Model: lines[0].Request.Model, Began: time.Now()},
		slots: make(map[ID]*slot, len(lines)),
		queue: q,
	}
	t.draft = &Draft{Key: t.Key, Requests: make([]Request, 0, len(lines))}
	for _, p := range lines {
		n := 0
		if same := b.byStem[p.stem]; len(same) > 0 {
			n = same[len(same)-1].id.Ordinal() + 1
		}
		id := NewID(p.stem, n)
		s := b.addSlot(t, id)
		s.by, p.slot = p, s
		t.Lines = append(t.Lines, id)
		t.draft.Requests = append(t.draft.Requests, Request{ID: id, Request: p.Request, Bytes: p.Weight.Bytes})
		t.Worst = t.Worst.Plus(p.Worst)
		t.WorstLine = max(t.WorstLine, p.Worst)
		t.bytes += int64(p.Weight.Bytes + lineBytes)
		t.tokens += p.Tokens
	}
	t.waiting, t.unused = len(lines), len(lines)
	b.batches[t.Key] = t
	return t
}

// claim returns a line of an open batch that asks the same and that no call waits for.
func (b *Batcher) claim(stem string) *slot {
	for _, s := range b.byStem[stem] {
		if s.by == nil && !s.used {
			return s
		}
	}
	return nil
}

// adoptRisk makes a call, whose lines may cost worst each, account for the lines that earlier
// processes left at risk. It returns how much less is at risk.
func (b *Batcher) adoptRisk(call string, worst llm.Money) (released llm.Money, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.orphaned[call] {
		t := s.openBatch
		s.orphaned, ok = false, true
		t.orphans--
		t.Worst = max(0, t.Worst.Minus(worst))
		now := min(t.risk, t.Worst, t.WorstLine.Times(t.orphans))
		released = released.Plus(t.risk.Minus(now))
		t.risk = now
	}
	delete(b.orphaned, call)
	return released, ok
}

// resolve gives the result of a line to the call that waits for it. A result that stops the run does so
// only in the process that sent the line: for another one the reason may be gone, and it asks again.
func (b *Batcher) resolve(s *slot, f Answered) {
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
func (b *Batcher) remove(t *openBatch) {
	delete(b.batches, t.Key)
	for _, s := range t.slots {
		st := s.id.Stem()
		left := slices.DeleteFunc(b.byStem[st], func(x *slot) bool { return x == s })
		if b.byStem[st] = left; len(left) == 0 {
			delete(b.byStem, st)
		}
		if call := s.id.Call(); s.orphaned {
			b.orphaned[call] = slices.DeleteFunc(b.orphaned[call], func(x *slot) bool { return x == s })
		}
	}
	b.freed = b.freed.Plus(t.risk)
	t.risk = 0
}

// unlock also reports what is not at risk any more: after unlocking, since Release takes locks.
func (b *Batcher) unlock() {
	freed := b.freed
	b.freed = 0
	b.mu.Unlock()
	if freed > 0 {
		b.release(freed)
	}
}

// done reports whether all results of a batch are durable.
func (t *openBatch) done() bool {
	return t.unused == 0 && t.held == 0 && t.waiting == 0 && !t.following && (t.ID != "" || t.lost != "")
}

// closeDone closes the batches whose results are all durable.
func (b *Batcher) closeDone(ctx context.Context, some []*openBatch) {
	b.mu.Lock()
	var done []*openBatch
	for _, t := range some {
		if b.batches[t.Key] == t && t.done() {
			b.remove(t)
			done = append(done, t)
		}
	}
	b.unlock()
	for _, t := range done {
		// If the event is not recorded, the batch stays open and is collected once more, at no
		// cost.
		_ = b.note(ctx, &journal.Batched{Step: journal.BatchClosed, Key: t.Key, Why: cmp.Or(t.lost, "collected")})
	}
}

// Counts count batches and their lines.
type Counts struct {
	Created    int `json:"created"`    // batches, by this process
	Lost       int `json:"lost"`       // batches that do not exist any more: maybe paid for nothing
	Missing    int `json:"missing"`    // lines without a result: maybe paid for nothing
	Duplicate  int `json:"duplicate"`  // results beyond the first of a line
	Unknown    int `json:"unknown"`    // results of unknown lines
	Unreadable int `json:"unreadable"` // results that could not be read
}

// Progress is the state of all batches.
type Progress struct {
	Wave   int `json:"wave"`   // number of the current wave, from 1
	Queued int `json:"queued"` // calls that wait to be sent
	Counts
	Open []Standing `json:"open,omitempty"` // by provider, then age
}

// Standing is the state of one batch. The last three numbers are the provider's: Anthropic's stay
// zero until the end.
type Standing struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	ID       string    `json:"id,omitempty"` // empty until it is created
	Began    time.Time `json:"began"`
	Expires  time.Time `json:"expires,omitzero"`
	Phase    Phase     `json:"phase,omitempty"`
	Lines    int       `json:"lines"`
	Waiting  int       `json:"waiting"` // lines that calls wait for
	Bytes    int64     `json:"bytes,omitempty"`
	Total    int       `json:"total"`
	Answered int       `json:"answered"`
	Failed   int       `json:"failed"`
	Trouble  string    `json:"trouble,omitempty"` // the last error when asking the provider
}

// Progress returns the state of all batches.
func (b *Batcher) Progress() Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := Progress{Wave: b.waves, Queued: b.pending, Counts: b.counts}
	for _, t := range b.batches {
		p.Open = append(p.Open, Standing{
			Provider: t.Provider, Model: t.Model, ID: t.ID, Began: t.Began, Expires: t.state.Expires, Phase: t.state.Phase,
			Lines: len(t.Lines), Waiting: t.waiting, Bytes: t.bytes,
			Total: t.state.Total, Answered: t.state.Answered, Failed: t.state.Failed, Trouble: t.error,
		})
	}
	slices.SortFunc(p.Open, func(x, y Standing) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), x.Began.Compare(y.Began), cmp.Compare(x.ID, y.ID))
	})
	return p
}
