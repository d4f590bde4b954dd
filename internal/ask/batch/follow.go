package batch

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/journal"
	"parley/llm"
)

// ending is how following a batch ended.
type ending struct {
	how end
	err *llm.Error // of fails
	why string     // of again, live, lost and fails
	// never, of fails and left, means that the batch certainly does not exist.
	never bool
}

type end int

const (
	underway  end = iota // not ended: the batch exists and is processed
	collected            // every call that waited has an answer
	again                // it does not exist: send its lines again
	live                 // it does not exist: ask its lines live
	lost                 // it existed, and does not any more
	fails                // the calls fail; the batch stays open
	left                 // it is not followed any further; the batch stays open
)

const (
	createFor   = time.Hour // how long to try to create a batch before its lines are asked live
	maxGone     = 8         // consecutive times that a batch is not found before it is lost: over a minute
	maxReads    = 8         // times that its results lack lines, or are not found, before those are lost: over a minute
	maxErrors   = 20        // consecutive times that a provider cannot be asked before the run stops
	maxCreates  = 4         // failures to create a batch: with auto its lines are then asked live, and else the run stops if it cannot connect
	maxRefusals = 4         // batches that are refused in a row before auto asks live, instead of sending halves
)

// run follows a batch until it is collected, or cannot be followed any further.
func (w *Wave) run(ctx context.Context, t *openBatch) {
	b := w.batcher
	e := w.advance(ctx, t)
	if t.entered {
		t.queue.leave(t.Model, t.tokens)
		t.entered = false
	}
	if t.intended && (e.how == again || e.how == live || e.never) {
		// Lines that are sent again must not be found in this batch too.
		if err := b.note(ctx, &journal.Batched{Step: journal.BatchClosed, Key: t.Key, Why: e.why}); err != nil {
			e = ending{how: fails, err: err}
		}
	}
	b.mu.Lock()
	t.following = false
	w.settle(ctx, t, e)
	w.wakeSender()
	b.unlock()
	b.closeDone(ctx, []*openBatch{t})
}

// settle gives the calls that still wait their result. The batcher is locked.
func (w *Wave) settle(ctx context.Context, t *openBatch, e ending) {
	b := w.batcher
	switch e.how {
	case again, live:
		waiting := t.waiters()
		b.remove(t)
		for _, p := range waiting {
			if e.how == live {
				p.wake(Answered{Live: true})
				continue
			}
			b.pending++
			p.call.wave.pool = append(p.call.wave.pool, p)
			p.call.wave.wakeSender()
		}
	case lost:
		b.counts.Lost++
		t.lost = e.why
		for _, s := range t.slots {
			if s.by != nil {
				b.resolve(s, Answered{Err: lostError(t.ID, e.why), Asked: true})
			}
		}
	case fails:
		for _, p := range t.waiters() {
			p.wake(Answered{Err: e.err})
		}
		if e.never {
			b.remove(t)
		}
	case left:
		w.leave(ctx, t)
		if e.never {
			b.remove(t)
		}
	}
	if !t.intended {
		b.remove(t)
	}
}

// leave stops following a batch: calls of this wave end, other waves follow it themselves.
func (w *Wave) leave(ctx context.Context, t *openBatch) {
	err := llm.ContextError
	if ctx.Err() == nil {
		err = func(context.Context) *llm.Error { return leftError(t) }
	}
	for _, s := range t.slots {
		switch p := s.by; {
		case p == nil:
		case p.call.wave != w && ctx.Err() != nil && t.intended:
			p.call.wave.claimed = append(p.call.wave.claimed, t)
			p.call.wave.wakeSender()
		default:
			s.by, p.slot = nil, nil
			t.waiting--
			p.wake(Answered{Err: err(ctx)})
		}
	}
}

func leftError(t *openBatch) *llm.Error {
	if t.ID == "" {
		return DrainError()
	}
	return &llm.Error{Kind: llm.KindCanceled, Message: fmt.Sprintf(
		"draining: batch %s stays at the provider, and is collected when the run is resumed", t.ID)}
}

// advance takes a batch from its current state to its results.
func (w *Wave) advance(ctx context.Context, t *openBatch) ending {
	e := ending{}
	switch {
	case t.lost != "":
		return ending{how: lost, why: t.lost}
	case t.draft != nil:
		e = w.create(ctx, t)
	default: // of an earlier process, or left by another wave
		t.queue.adopt(t.Model)
		t.entered, t.tokens = true, 0
		if t.ID == "" {
			e = w.search(ctx, t, t.Began)
		}
	}
	if e.how == underway {
		e = w.watch(ctx, t)
	}
	if e.how == underway {
		e = w.collect(ctx, t)
	}
	return e
}

// create sends a draft.
func (w *Wave) create(ctx context.Context, t *openBatch) ending {
	b, q := w.batcher, t.queue
	switch q.enter(ctx, b, t.Model, t.tokens, w.due) {
	case goOn:
		t.entered = true
	case late:
		return ending{how: live, why: "no time"}
	default:
		return ending{how: left}
	}
	select {
	case q.sending <- struct{}{}:
		defer func() { <-q.sending }()
	case <-ctx.Done():
		return ending{how: left}
	}
	b.mu.Lock()
	t.Began = time.Now()
	b.mu.Unlock()
	lines := make([]string, len(t.Lines))
	for i, line := range t.Lines {
		lines[i] = string(line)
	}
	if err := b.note(ctx, &journal.Batched{
		Step: journal.BatchIntended, Key: t.Key, Provider: t.Provider, Model: t.Model, Lines: lines, Worst: t.Worst, WorstLine: t.WorstLine,
	}); err != nil {
		return ending{how: fails, err: err}
	}
	t.intended = true
	return w.tryCreate(ctx, t)
}

// tryCreate creates a batch whose intent is durable.
func (w *Wave) tryCreate(ctx context.Context, t *openBatch) ending {
	b, auto := w.batcher, w.batcher.policy.Route == Auto
	var broken *llm.Error
	uploaded := func(ctx context.Context, file string) error {
		if broken = b.note(ctx, &journal.Batched{Step: journal.BatchUploaded, Key: t.Key, File: file}); broken != nil {
			return broken
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		t.File = file
		return nil
	}
	for n := 0; ; n++ {
		if held := b.heldBack(); held != nil {
			return ending{how: fails, err: held, why: "not created: " + held.Message, never: true}
		}
		id, err := t.queue.API.Create(ctx, t.draft, uploaded)
		if err == nil {
			b.count(func(c *Counts) { c.Created++ })
			return w.created(ctx, t, id)
		}
		e := llm.AsError(err)
		switch {
		case broken != nil:
			return ending{how: fails, err: broken}
		case ctx.Err() != nil:
			return ending{how: left}
		case e.Uncertain:
			if found := w.search(ctx, t, time.Now()); found.how != again {
				return found
			}
		}
		// From here on it certainly does not exist.
		switch {
		case !e.Kind.Retryable() || e.Final:
			return w.refused(t, e)
		case auto && e.Kind != llm.KindRateLimited && n+1 >= maxCreates:
			return ending{how: live, why: "not created: " + e.Message}
		case e.Kind == llm.KindTransport && n+1 >= maxCreates:
			final := *e
			final.Final = true // it was tried often enough
			return ending{how: fails, err: &final, why: "not sent: " + e.Message, never: true}
		}
		b.noteError(t, e)
		if time.Since(t.Began) > createFor {
			return ending{how: live, why: "not created: " + e.Message}
		}
		switch b.wait(ctx, e.RetryAfter+b.pause(n), w.due, nil) {
		case goOn:
		case late:
			return ending{how: live, why: "not created in time: " + e.Message}
		default:
			return ending{how: left, why: "not created: " + e.Message, never: ctx.Err() == nil}
		}
	}
}

// refused decides what to do about a draft that the provider refuses.
func (w *Wave) refused(t *openBatch, e *llm.Error) ending {
	auto := w.batcher.policy.Route == Auto
	switch {
	case auto && e.Kind == llm.KindAuth && e.Status == http.StatusForbidden: // the key may be good for live calls
		t.queue.disable()
		return ending{how: live, why: "refused: " + e.Message}
	case e.Kind == llm.KindAuth, e.Kind == llm.KindQuota:
		return ending{how: fails, err: e, why: "refused: " + e.Message, never: true}
	case noAPI(e):
		t.queue.disable()
		return ending{how: live, why: "there is no batch API: " + e.Message}
	}
	row := t.queue.refused(t.Model, len(t.Lines))
	if len(t.Lines) < 2 || auto && row >= maxRefusals {
		return ending{how: live, why: "refused: " + e.Message}
	}
	return ending{how: again, why: "refused: " + e.Message}
}

// noAPI reports whether a server says that it has no batch API.
func noAPI(e *llm.Error) bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented
}

// created records the name of a batch.
func (w *Wave) created(ctx context.Context, t *openBatch, id string) ending {
	b := w.batcher
	err := b.note(ctx, &journal.Batched{Step: journal.BatchCreated, Key: t.Key, Batch: id})
	b.mu.Lock()
	defer b.mu.Unlock()
	t.ID, t.draft = id, nil
	if err != nil {
		return ending{how: fails, err: err}
	}
	t.queue.accepted(t.Model, len(t.Lines))
	return ending{}
}

// search looks for a batch that may have been created at since, until it is found or certainly does
// not exist, which is again. A server without a batch API has none. With auto, a batch that this process sent and
// cannot ask about is lost, so that its lines are asked live, and count as maybe paid.
func (w *Wave) search(ctx context.Context, t *openBatch, since time.Time) ending {
	b, errs := w.batcher, 0
	for n := 0; ; n++ {
		f, err := t.queue.API.Find(ctx, &t.Open, b.isTaken(t))
		switch e := llm.AsError(err); {
		case ctx.Err() != nil:
			return ending{how: left}
		case err != nil && noAPI(e):
			t.queue.disable()
			return ending{how: live, why: "there is no batch API: " + e.Message}
		case err != nil:
			b.noteError(t, e)
			if end := t.unasked(e, &errs); end.how != underway {
				return end
			}
			if errs >= maxCreates && t.draft != nil && b.policy.Route == Auto {
				return ending{how: lost, why: "it may have been created, and the provider cannot be asked: " + e.Message}
			}
		case f.ID != "":
			return w.created(ctx, t, f.ID)
		case f.Never, !f.Maybe && time.Since(since) >= b.settle():
			return ending{how: again, why: "not created"}
		default:
			errs = 0
		}
		if b.wait(ctx, b.pause(n), time.Time{}, nil) != goOn {
			return ending{how: left}
		}
	}
}

// isTaken returns a function that recognizes the batches of other keys.
func (b *Batcher) isTaken(t *openBatch) func(id string) bool {
	return func(id string) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, other := range b.batches {
			if other != t && other.ID == id {
				return true
			}
		}
		return false
	}
}

// overdue is how long to wait for a batch after its own expiry.
const overdue = time.Hour

// watch asks about a batch until it has ended.
func (w *Wave) watch(ctx context.Context, t *openBatch) ending {
	b := w.batcher
	look := watcher{w: w, t: t, due: w.dueOf(t)}
	for n := 0; ; n++ {
		st, err := t.queue.API.State(ctx, t.ID)
		if ctx.Err() != nil {
			return ending{how: left}
		}
		pause := b.pause(n)
		if err != nil {
			e := llm.AsError(err)
			b.noteError(t, e)
			if end := look.failed(e); end.how != underway {
				return end
			}
			pause += e.RetryAfter
		} else {
			look.gone, look.errs = 0, 0
			b.mu.Lock()
			t.state, t.error = st, ""
			b.mu.Unlock()
			switch st.Phase {
			case Ended:
				return ending{}
			case Failed:
				return w.failedWhole(t, st)
			}
			if !st.Expires.IsZero() && time.Since(st.Expires) > overdue {
				return ending{how: lost, why: "it should have expired long ago"}
			}
		}
		switch b.wait(ctx, pause, look.due, nil) {
		case ctxDone, draining:
			return ending{how: left}
		case late:
			look.cancel(ctx)
		}
	}
}

// dueOf returns when to cancel a batch; zero: never.
func (w *Wave) dueOf(t *openBatch) time.Time {
	if w.due.IsZero() {
		return w.due
	}
	if began := t.Began.Add(w.batcher.policy.Deadline); began.Before(w.due) {
		return began
	}
	return w.due
}

// watcher remembers earlier answers about a batch.
type watcher struct {
	w    *Wave
	t    *openBatch
	due  time.Time
	gone int // consecutive times that it was not found
	errs int // consecutive errors
}

// cancel asks for the batch to be ended, and again later if the provider cannot be reached. If the
// provider refuses, that shows in the batch's state.
func (l *watcher) cancel(ctx context.Context) {
	l.due = time.Time{}
	err := l.t.queue.API.Cancel(ctx, l.t.ID)
	if e := llm.AsError(err); e != nil && e.Kind.Retryable() && !e.Final {
		l.due = time.Now().Add(e.RetryAfter + l.w.batcher.longestPause())
	}
}

// failed handles an error of asking about the batch.
func (l *watcher) failed(e *llm.Error) ending {
	if e.Status != http.StatusNotFound && e.Status != http.StatusGone {
		return l.t.unasked(e, &l.errs)
	}
	if l.gone++; l.gone >= maxGone {
		return ending{how: lost, why: "the provider does not know it any more: " + e.Message}
	}
	return ending{}
}

// unasked handles an error of asking about a batch that exists or may exist, of which errs counts
// those in a row. It is never the error of a call: if the provider cannot be asked, the batch stays open.
func (t *openBatch) unasked(e *llm.Error, errs *int) ending {
	if *errs++; *errs <= maxErrors && e.Kind != llm.KindAuth && e.Kind != llm.KindQuota {
		return ending{}
	}
	return ending{how: fails, err: OpenError(t.ID, e)}
}

// failedWhole decides what to do about a batch that was accepted and then failed as a whole. None
// of its lines was processed.
func (w *Wave) failedWhole(t *openBatch, st State) ending {
	b := w.batcher
	why := "failed"
	bad := map[int]string{}
	for _, f := range st.Faults {
		why = "failed: " + f.Code + ": " + f.Message
		if f.Line > 0 && f.Line <= len(t.Lines) {
			bad[f.Line-1] = f.Code + ": " + f.Message
		}
		if f.Code == "token_limit_exceeded" {
			t.queue.leave(t.Model, t.tokens)
			t.entered = false
			t.queue.crowded(t.Model, len(t.Lines), limitIn(f.Message))
			return ending{how: again, why: why}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, what := range bad {
		if s := t.slots[t.Lines[i]]; s.by != nil {
			p := s.by
			s.by, p.slot = nil, nil
			t.waiting--
			p.wake(Answered{Err: &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Message: what}, Asked: true})
		}
	}
	if len(bad) == 0 {
		if len(t.Lines) < 2 {
			return ending{how: live, why: why}
		}
		t.queue.smaller(t.Model, len(t.Lines))
	}
	return ending{how: again, why: why}
}

// limitRE matches the number in "Limit: 2,000,000 enqueued tokens".
var limitRE = regexp.MustCompile(`Limit: ([0-9][0-9,]*) enqueued`)

func limitIn(message string) int {
	m := limitRE.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
	return n
}

// collect reads the results of a batch that has ended, until every call that waits has its result.
func (w *Wave) collect(ctx context.Context, t *openBatch) ending {
	b := w.batcher
	for n, reads, errs := 1, 0, 0; ; n++ {
		round := w.beginRound(t)
		err := w.read(ctx, t)
		done, short := w.endRound(t, round, err == nil, reads+1 >= maxReads)
		var pause time.Duration
		switch e := llm.AsError(err); {
		case done:
			return ending{how: collected}
		case ctx.Err() != nil:
			return ending{how: left}
		case short:
			reads, errs = reads+1, 0
		case err == nil:
			continue // a call came while it was read
		case unreadable(e):
			if reads++; reads >= maxReads {
				return ending{how: lost, why: "its results cannot be read: " + e.Message}
			}
		default:
			if end := t.unasked(e, &errs); end.how != underway {
				return end
			}
			pause = e.RetryAfter
		}
		if b.wait(ctx, pause+b.pause(n), time.Time{}, nil) != goOn {
			return ending{how: left}
		}
	}
}

// unreadable reports whether an error of reading results says that there are none, or that they are
// broken. That may pass, but need not.
func unreadable(e *llm.Error) bool {
	return e.Kind == llm.KindMalformed || !e.Kind.Retryable() && e.Kind != llm.KindAuth && e.Kind != llm.KindQuota
}

// beginRound begins a round of reading: calls that wait now must get a result in it. The wave does
// not send meanwhile, so that calls whose lines failed are sent together.
func (w *Wave) beginRound(t *openBatch) int {
	b := w.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	w.moving++
	t.round++
	t.seen, t.unreadable, t.restError = 0, 0, nil
	for _, s := range t.slots {
		if s.by != nil {
			s.round = t.round
		}
	}
	return t.round
}

// endRound ends a round, which is whole if the results were read to their end. If lines are lacking that
// should be there, it is short, unless it is the last. Otherwise lines that it does not have are missing.
func (w *Wave) endRound(t *openBatch, round int, whole, last bool) (done, short bool) {
	b := w.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	defer w.stops()
	if !whole {
		return t.waiting == 0, false
	}
	if !last && t.lacking(round) {
		return false, true
	}
	b.counts.Unreadable += t.unreadable
	for _, s := range t.slots {
		if s.by != nil && s.round == round {
			b.resolve(s, Answered{Err: b.missing(t), Asked: true})
		}
	}
	return t.waiting == 0, false
}

// lacking reports whether results that were read to their end lack lines that should be there: if the
// provider does not say what the others are, every line should.
func (t *openBatch) lacking(round int) bool {
	for _, s := range t.slots {
		if s.by != nil && s.round == round {
			return t.restError == nil || !t.plausible() || t.seen == 0 && t.state.Total == 0
		}
	}
	return false
}

// plausible reports whether a round has all answers that the provider counts.
func (t *openBatch) plausible() bool { return t.unreadable == 0 && t.seen >= t.state.Answered }

// missing returns the error of a line that the results do not have. The batcher is locked.
func (b *Batcher) missing(t *openBatch) *llm.Error {
	if t.restError != nil && t.plausible() {
		e := *t.restError
		return &e
	}
	b.counts.Missing++
	return missingError(t.ID)
}

// maxDelivering is how many calls may process their answers before more are read.
const maxDelivering = 1024

func (w *Wave) read(ctx context.Context, t *openBatch) error {
	for r, err := range t.queue.API.Results(ctx, t.ID) {
		if err != nil {
			return err
		}
		w.deliver(t, r)
	}
	return nil
}

// deliver gives a result to the call that waits for it. The first result of a line counts.
func (w *Wave) deliver(t *openBatch, r Result) {
	b := w.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	for w.moving > maxDelivering {
		w.fewer.Wait() // so that answers do not pile up in memory
	}
	id, ours := SplitCustomID(t.Key, r.CustomID)
	s := t.slots[id]
	if ours && s != nil && s.seen != t.round {
		s.seen = t.round
		t.seen++
	}
	switch {
	case r.Rest:
		t.restError = r.Err
	case r.CustomID == "":
		t.unreadable++
	case !ours || s == nil:
		b.counts.Unknown++
	case s.by == nil:
		if s.used && s.round == t.round {
			b.counts.Duplicate++
		}
	default:
		b.resolve(s, Answered{Response: r.Response, Err: r.Err, Asked: true})
	}
}

// longestPause is how long at the longest to wait before asking a provider about a batch again, and settle how long to look for a batch
// that may have been created.
func (b *Batcher) longestPause() time.Duration { return 30 * b.policy.Poll }
func (b *Batcher) settle() time.Duration       { return 15 * b.policy.Poll }

// pause returns how long to wait before asking the provider again, for the n-th time: each pause is half as long again as the one before. It
// is partly random, so that batches are not asked about all at once.
func (b *Batcher) pause(n int) time.Duration {
	d := min(float64(b.policy.Poll)*math.Pow(1.5, float64(n)), float64(b.longestPause()))
	return time.Duration(d * (0.8 + 0.4*rand.Float64())) //nolint:forbidigo // it changes when the provider is asked, never what it answers
}

// halt is why a batch is not followed any further.
type halt int

const (
	goOn     halt = iota
	ctxDone       // the wave's context ended
	draining      // durable batches are left for later
	late          // the user's deadline passed
)

// wait waits for d, until wake is closed, or until following must stop. A zero due is no deadline;
// a nil wake never wakes.
func (b *Batcher) wait(ctx context.Context, d time.Duration, due time.Time, wake <-chan struct{}) halt {
	then := goOn
	if !due.IsZero() {
		if left := time.Until(due); left <= d {
			d, then = left, late
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return then
	case <-wake:
		return goOn
	case <-ctx.Done():
		return ctxDone
	case <-b.drained():
		return draining
	}
}
