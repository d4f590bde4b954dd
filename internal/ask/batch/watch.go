package batch

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// overdue is how long to wait for a batch after its own expiry.
const overdue = time.Hour

// watch asks about a batch until it has ended.
func (w *Wave) watch(ctx context.Context, t *openBatch) ending {
	o := w.batcher
	look := watcher{w: w, t: t, due: w.dueOf(t)}
	for n := 0; ; n++ {
		st, err := t.queue.API.State(ctx, t.ID)
		if ctx.Err() != nil {
			return ending{how: left}
		}
		pause := o.rule.Poll.pause(n)
		if err != nil {
			e := llm.AsError(err)
			o.noteError(t, e)
			if end := look.failed(e); end.how != underway {
				return end
			}
			pause += e.RetryAfter
		} else {
			look.gone, look.errs = 0, 0
			o.mu.Lock()
			t.state, t.error = st, ""
			o.mu.Unlock()
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
		switch o.rest(ctx, pause, look.due, nil) {
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
	if began := t.Began.Add(w.batcher.rule.Deadline); began.Before(w.due) {
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
		l.due = time.Now().Add(e.RetryAfter + l.w.batcher.rule.Poll.Max)
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
	o := w.batcher
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
	o.mu.Lock()
	defer o.mu.Unlock()
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
	o := w.batcher
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
		if o.rest(ctx, pause+o.rule.Poll.pause(n), time.Time{}, nil) != goOn {
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
	o := w.batcher
	o.mu.Lock()
	defer o.mu.Unlock()
	w.moving++
	t.round++
	t.seen, t.unreadable, t.rest = 0, 0, nil
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
	o := w.batcher
	o.mu.Lock()
	defer o.mu.Unlock()
	defer w.stops()
	if !whole {
		return t.waiting == 0, false
	}
	if !last && t.lacking(round) {
		return false, true
	}
	o.counts.Unreadable += t.unreadable
	for _, s := range t.slots {
		if s.by != nil && s.round == round {
			o.resolve(s, Answered{Err: o.missing(t), Asked: true})
		}
	}
	return t.waiting == 0, false
}

// lacking reports whether results that were read to their end lack lines that should be there: if the
// provider does not say what the others are, every line should.
func (t *openBatch) lacking(round int) bool {
	for _, s := range t.slots {
		if s.by != nil && s.round == round {
			return t.rest == nil || !t.plausible() || t.seen == 0 && t.state.Total == 0
		}
	}
	return false
}

// plausible reports whether a round has all answers that the provider counts.
func (t *openBatch) plausible() bool { return t.unreadable == 0 && t.seen >= t.state.Answered }

// missing returns the error of a line that the results do not have. The batcher is locked.
func (o *Batcher) missing(t *openBatch) *llm.Error {
	if t.rest != nil && t.plausible() {
		e := *t.rest
		return &e
	}
	o.counts.Missing++
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
	o := w.batcher
	o.mu.Lock()
	defer o.mu.Unlock()
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
		t.rest = r.Err
	case r.CustomID == "":
		t.unreadable++
	case !ours || s == nil:
		o.counts.Unknown++
	case s.by == nil:
		if s.used && s.round == t.round {
			o.counts.Duplicate++
		}
	default:
		o.resolve(s, Answered{Response: r.Response, Err: r.Err, Asked: true})
	}
}
