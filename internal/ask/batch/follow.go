package batch

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"parley/llm"
)

// ending is how following a batch ended.
type ending struct {
	how end
	err *llm.Error // of fails
	why string     // of again, live, lost and fails
	// never, of fails, means that the batch certainly does not exist.
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
	maxConnects = 4         // failed connections when creating a batch before the run stops
)

// run follows a batch until it is collected, or cannot be followed any further.
func (w *Wave) run(ctx context.Context, t *openBatch) {
	o := w.batcher
	e := w.advance(ctx, t)
	if t.entered {
		t.queue.leave(t.Model, t.tokens)
		t.entered = false
	}
	if t.intended && (e.how == again || e.how == live || e.never) {
		// Lines that are sent again must not be found in this batch too.
		if err := o.note(ctx, Event{Step: Closed, Key: t.Key, Why: e.why}); err != nil {
			e = ending{how: fails, err: err}
		}
	}
	o.mu.Lock()
	t.following = false
	w.settle(ctx, t, e)
	w.wakeSender()
	o.unlock()
	o.closeDone(ctx, []*openBatch{t})
}

// settle gives the calls that still wait their result. The batcher is locked.
func (w *Wave) settle(ctx context.Context, t *openBatch, e ending) {
	o := w.batcher
	switch e.how {
	case again, live:
		waiting := t.waiters()
		o.remove(t)
		for _, p := range waiting {
			if e.how == live {
				p.wake(Answered{Live: true})
				continue
			}
			o.pending++
			p.call.wave.pool = append(p.call.wave.pool, p)
			p.call.wave.wakeSender()
		}
	case lost:
		o.counts.Lost++
		t.lost = e.why
		for _, s := range t.slots {
			if s.by != nil {
				o.resolve(s, Answered{Err: lostError(t.ID, e.why), Asked: true})
			}
		}
	case fails:
		for _, p := range t.waiters() {
			p.wake(Answered{Err: e.err})
		}
		if e.never {
			o.remove(t)
		}
	case left:
		w.leave(ctx, t)
	}
	if !t.intended {
		o.remove(t)
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
	o, c := w.batcher, t.queue
	switch c.enter(ctx, o, t.Model, t.tokens, w.due) {
	case goOn:
		t.entered = true
	case late:
		return ending{how: live, why: "no time"}
	default:
		return ending{how: left}
	}
	select {
	case c.sending <- struct{}{}:
		defer func() { <-c.sending }()
	case <-ctx.Done():
		return ending{how: left}
	}
	o.mu.Lock()
	t.Began = time.Now()
	o.mu.Unlock()
	if err := o.note(ctx, Event{
		Step: Intended, Key: t.Key, Provider: t.Provider, Model: t.Model, Lines: t.Lines, Worst: t.Worst, WorstLine: t.WorstLine,
	}); err != nil {
		return ending{how: fails, err: err}
	}
	t.intended = true
	return w.tryCreate(ctx, t)
}

// tryCreate creates a batch whose intent is durable.
func (w *Wave) tryCreate(ctx context.Context, t *openBatch) ending {
	o := w.batcher
	var broken *llm.Error
	uploaded := func(ctx context.Context, file string) error {
		if broken = o.note(ctx, Event{Step: batchUploaded, Key: t.Key, File: file}); broken != nil {
			return broken
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		t.File = file
		return nil
	}
	for n := 0; ; n++ {
		if held := o.heldBack(); held != nil {
			return ending{how: fails, err: held, why: "not created: " + held.Message, never: true}
		}
		id, err := t.queue.API.Create(ctx, t.draft, uploaded)
		if err == nil {
			o.count(func(c *Counts) { c.Created++ })
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
			continue
		case !e.Kind.Retryable() || e.Final:
			return w.refused(t, e)
		case e.Kind == llm.KindTransport && n+1 >= maxConnects:
			final := *e
			final.Final = true // it was tried often enough
			return ending{how: fails, err: &final, why: "not sent: " + e.Message, never: true}
		}
		o.noteError(t, e)
		if time.Since(t.Began) > createFor {
			return ending{how: live, why: "not created: " + e.Message}
		}
		switch o.rest(ctx, e.RetryAfter+o.rule.Poll.pause(n), w.due, nil) {
		case goOn:
		case late:
			return ending{how: live, why: "not created in time: " + e.Message}
		default:
			return ending{how: left}
		}
	}
}

// refused decides what to do about a draft that the provider refuses.
func (w *Wave) refused(t *openBatch, e *llm.Error) ending {
	switch {
	case e.Kind == llm.KindAuth, e.Kind == llm.KindQuota:
		return ending{how: fails, err: e}
	case e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed, e.Status == http.StatusNotImplemented:
		t.queue.disable()
		return ending{how: live, why: "there is no batch API: " + e.Message}
	case len(t.Lines) < 2:
		return ending{how: live, why: "refused: " + e.Message}
	}
	t.queue.smaller(t.Model, len(t.Lines))
	return ending{how: again, why: "refused: " + e.Message}
}

// created records the name of a batch.
func (w *Wave) created(ctx context.Context, t *openBatch, id string) ending {
	o := w.batcher
	err := o.note(ctx, Event{Step: Created, Key: t.Key, Batch: id})
	o.mu.Lock()
	defer o.mu.Unlock()
	t.ID, t.draft = id, nil
	if err != nil {
		return ending{how: fails, err: err}
	}
	t.queue.accepted(t.Model, len(t.Lines))
	return ending{}
}

// search looks for a batch that may have been created at since, until it is found or certainly does
// not exist, which is again.
func (w *Wave) search(ctx context.Context, t *openBatch, since time.Time) ending {
	o, errs := w.batcher, 0
	for n := 0; ; n++ {
		f, err := t.queue.API.Find(ctx, &t.Open, o.isTaken(t))
		switch e := llm.AsError(err); {
		case ctx.Err() != nil:
			return ending{how: left}
		case err != nil:
			o.noteError(t, e)
			if end := t.unasked(e, &errs); end.how != underway {
				return end
			}
		case f.ID != "":
			return w.created(ctx, t, f.ID)
		case f.Never, !f.Maybe && time.Since(since) >= o.rule.Poll.Settle:
			return ending{how: again, why: "not created"}
		default:
			errs = 0
		}
		if o.rest(ctx, o.rule.Poll.pause(n), time.Time{}, nil) != goOn {
			return ending{how: left}
		}
	}
}

// isTaken returns a function that recognizes the batches of other keys.
func (o *Batcher) isTaken(t *openBatch) func(id string) bool {
	return func(id string) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, other := range o.batches {
			if other != t && other.ID == id {
				return true
			}
		}
		return false
	}
}
