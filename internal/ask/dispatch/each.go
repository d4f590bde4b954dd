package dispatch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"parley/llm"
)

// ahead is how many requests are taken before they can be sent: enough to keep the limiters busy,
// few enough to save memory.
const ahead = 64

// All answers every request; result i is that of request i. A failure is a result too. Requests
// that were not begun when ctx ended fail with its cause.
func (d *Dispatcher) All(ctx context.Context, reqs []*llm.Request) []llm.Result {
	out := make([]llm.Result, len(reqs))
	n := d.Each(ctx, slices.Values(reqs), func(i int, r llm.Result) { out[i] = r })
	for i := n; i < len(out); i++ {
		out[i].Err = llm.ContextError(ctx)
	}
	return out
}

// Each answers requests as they come from reqs, as many at once as the limits allow. It takes them
// in order and only a little ahead of what can be sent, so that waiting requests cost almost no
// memory. It calls done once for each request that it took, from one goroutine at a time, in the
// order of completion; i is the request's position in reqs.
//
// It returns how many requests it took, after calling done for all of them. It takes no more once
// ctx is done: a request at which it stops reading reqs is not taken.
func (d *Dispatcher) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int {
	group, end := d.newGroup(ctx)
	defer end()
	e := &each{d: d, done: done, group: group, free: make(chan struct{}, ahead), work: make(chan item)}
	n := 0
	for req := range reqs {
		select {
		case e.free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		e.start(item{n, req}) //nolint:contextcheck // calls come from ctx
		n++
	}
	close(e.work)
	e.wg.Wait()
	return n
}

// each is one call of Each. Its goroutines are reused, which saves growing their stacks again.
type each struct {
	d     *Dispatcher
	done  func(int, llm.Result)
	group *callGroup
	free  chan struct{} // sending takes one of the places ahead, receiving frees it
	work  chan item
	wg    sync.WaitGroup
	mu    sync.Mutex
}

type item struct {
	i   int
	req *llm.Request
}

// start gives it to an idle goroutine, or to a new one.
func (e *each) start(it item) {
	select {
	case e.work <- it:
	default:
		e.wg.Go(func() {
			a := asker{each: e}
			a.call.admitted = a.admitted
			a.ask(it)
			for it := range e.work {
				a.ask(it)
			}
		})
	}
}

// asker makes the calls of one goroutine, one after the other.
type asker struct {
	*each
	call  call // the current one
	freed atomic.Bool
}

// admitted frees the place ahead when the call is sent, or when it ends without being sent.
func (a *asker) admitted() {
	if !a.freed.Swap(true) {
		<-a.free
	}
}

func (a *asker) ask(it item) {
	ctx := a.group.context()
	a.freed.Store(false)
	a.call = call{req: it.req, admitted: a.call.admitted}
	resp, err := a.d.ask(ctx, &a.call)
	a.admitted()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done(it.i, llm.Result{Response: resp, Err: cutOff(ctx, err)})
}

// callGroup is the calls of one Each, which can be cut off together. They share one context: each call
// with its own would cost more.
type callGroup struct {
	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // of calls that begin now; Each, whose context it comes from, ends it
	cancel context.CancelCauseFunc
	ended  bool // there are no more calls
}

// newGroup returns the group of an Each, which must call end.
func (d *Dispatcher) newGroup(ctx context.Context) (g *callGroup, end func()) {
	g = &callGroup{}
	g.begin(ctx)
	d.groups.Store(g, ctx)
	return g, func() {
		d.groups.Delete(g)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ended = true
		g.cancel(context.Canceled)
	}
}

// begin makes the context of calls from now on.
func (g *callGroup) begin(ctx context.Context) {
	g.ctx, g.cancel = context.WithCancelCause(ctx)
}

// context returns the context of a call that begins now.
func (g *callGroup) context() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ctx
}

// cut ends all calls with e. Later calls have a new context.
func (g *callGroup) cut(ctx context.Context, e *llm.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	g.cancel(e)
	g.begin(ctx)
}

// cutOff returns the error of a call that failed. If the call was cut off, it is the reason for that, with
// what is known about the attempts: they may be billed.
func cutOff(ctx context.Context, err error) error {
	why, ok := errors.AsType[*llm.Error](context.Cause(ctx))
	if !ok || err == nil {
		return err
	}
	was, out := llm.AsError(err), *why
	out.Provider, out.Model, out.RequestID = was.Provider, was.Model, was.RequestID
	out.Uncertain, out.Usage, out.Received, out.Metadata = was.Uncertain, was.Usage, was.Received, was.Metadata
	out.Partial = was.Partial
	return &out
}
