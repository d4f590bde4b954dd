// Part batcher sends calls in batches: it gathers requests until all calls of a wave wait, cuts
// them into batches within the API's limits, creates and follows these, and gives each result to
// the call that waits for it.
//
// It promises that an intent is durable (Event) before a step that can cost money is taken,
// so that after a crash the batch is found again and not paid for twice; that nothing is created
// again that may exist; that results are read as a stream, in any order; and that a batch is closed
// only after every call that took an answer from it has ended. A Batcher and a Wave may be used
// from several goroutines. No lock is held while anything is sent.
//
// It knows no wire format (package batchapi), counts no money and retries no line (package
// dispatch): a line that failed is the error of its call.

package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/provider"
	"parley/llm"
)

// Route is how the calls of a wave are sent.
type Route string

// The routes.
const (
	Live  Route = "live"  // directly, as outside of waves
	Batch Route = "batch" // over the batch API, if there is one
	Auto  Route = "auto"  // over the batch API if the wave has enough calls and time
)

// routes lists every Route.
func routes() []Route { return []Route{Live, Batch, Auto} }

// Policy says when calls are sent over a batch API.
type Policy struct {
	// Route is how calls are sent. Default: auto.
	Route Route
	// Min is the minimum number of requests of one model for a batch; fewer are asked live.
	// Default: 2, and 100 with auto.
	Min int
	// Deadline is how long a wave may wait for its batches. Requests that are not answered by then
	// are cancelled and asked live. Default: only the provider's own limit, a day.
	Deadline time.Duration
	// Poll says how often to ask the provider.
	Poll Poll
}

const (
	autoMin  = 100
	autoTime = 10 * time.Minute // with less time, auto begins no batch
	maxTries = 3                // attempts at one call over a batch before it is asked live
)

func (p Policy) withDefaults() Policy {
	if p.Route == "" {
		p.Route = Auto
	}
	if p.Min <= 0 {
		p.Min = 2
		if p.Route == Auto {
			p.Min = autoMin
		}
	}
	p.Poll = p.Poll.withDefaults()
	return p
}

// Config configures a Batcher.
type Config struct {
	Policy
	// Open are the batches that earlier processes of the run left open.
	Open []Open
	// Record makes an event durable before it returns. It is called from several goroutines.
	// Default: nothing is durable, and a drain waits for batches.
	Record func(ctx context.Context, e Event) error
	// Release is called when an amount that Open puts at risk is not at risk any more. It must not
	// call the Batcher. Default: none.
	Release func(llm.Money)
}

// Batcher knows every open batch.
type Batcher struct {
	rule    Policy
	record  func(ctx context.Context, e Event) error
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
func New(c Config) (*Batcher, error) {
	switch c.Route {
	case "", Live, Batch, Auto:
	default:
		return nil, fmt.Errorf("batch.route: unknown route %q; want one of %v", c.Route, routes())
	}
	o := &Batcher{
		rule: c.withDefaults(), record: c.Record, release: c.Release, stop: make(chan struct{}),
		batches: map[string]*openBatch{}, byStem: map[string][]*slot{}, orphaned: map[string][]*slot{},
	}
	if o.release == nil {
		o.release = func(llm.Money) {}
	}
	for _, open := range c.Open {
		o.reopen(open)
	}
	for _, same := range o.byStem {
		slices.SortFunc(same, func(a, b *slot) int { return cmp.Compare(a.id.Ordinal(), b.id.Ordinal()) })
	}
	return o, nil
}

// Queue returns the queue of a provider's batch API.
func (o *Batcher) Queue(name string, d API, limits provider.Batch) *Queue {
	c := newQueue(name, d, limits)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.batches {
		if t.Provider == name {
			c.created = append(c.created, t.Began)
		}
	}
	o.queues = append(o.queues, c)
	return c
}

// Drain sends nothing more. Batches at the provider are left until the run is resumed, if they can
// be found then; otherwise it waits for them.
func (o *Batcher) Drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.draining {
		o.draining = true
		close(o.stop)
	}
}

// Hold refuses calls that are in no batch at a provider with e until e is nil. Batches at the provider
// are followed.
func (o *Batcher) Hold(e *llm.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = e
}

// heldBack returns the error with which Hold refuses calls, or nil.
func (o *Batcher) heldBack() *llm.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held
}

// refusal returns why nothing is sent, or nil. The batcher is locked.
func (o *Batcher) refusal() *llm.Error {
	if o.draining {
		return DrainError()
	}
	return o.held
}

// drained returns a channel that is closed when batches need not be followed any more; nil if that
// never happens.
func (o *Batcher) drained() <-chan struct{} {
	if o.record == nil {
		return nil
	}
	return o.stop
}

// Cancel asks the providers to end every batch that was created. Answers that exist by then are
// billed, and collected when the run is resumed. api returns the API of a provider.
func (o *Batcher) Cancel(ctx context.Context, api func(provider string) (API, error)) error {
	type named struct{ provider, id string }
	var all []named
	o.mu.Lock()
	for _, t := range o.batches {
		if t.ID != "" && t.state.Phase != Ended {
			all = append(all, named{t.Provider, t.ID})
		}
	}
	o.mu.Unlock()
	var errs []error
	for _, b := range all {
		d, err := api(b.provider)
		if err == nil {
			err = d.Cancel(ctx, b.id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("batch: cancel %s: %w", b.id, err))
		}
	}
	return errors.Join(errs...)
}

// note makes an event durable. After its error the next step must not be taken.
func (o *Batcher) note(ctx context.Context, m Event) *llm.Error {
	if o.record == nil {
		return nil
	}
	m.At = time.Now()
	if err := o.record(ctx, m); err != nil {
		return &llm.Error{Kind: llm.KindCanceled, Message: "a batch cannot be recorded, so nothing more is sent: " + err.Error(), Err: err}
	}
	return nil
}

func (o *Batcher) count(f func(*Counts)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.counts)
}
