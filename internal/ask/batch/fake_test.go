package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/journal"
	"parley/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a provider's batch API, for use in a synctest bubble.
type fake struct {
	takes   time.Duration // from creation to the end
	tokens  int           // that may wait; more fails a batch
	list    *llm.Error    // of looking for batches
	poison  string        // a batch with this in a message fails
	where   bool          // and says in which line
	refuse  func(n int) *llm.Error
	blind   bool          // batches cannot be recognized until they end
	lag     time.Duration // until a new batch is listed
	vanish  bool
	expire  int           // so many batches expire before any line is reached
	slow    time.Duration // between two results
	looks   []time.Time
	creates []time.Time
	cancels int
	deaf    int // so many requests to cancel fail
	// poll, if set, is the error of asking about a batch for the n-th time, from 1.
	poll func(n int) *llm.Error
	// read, if set, returns what is read instead of all results, and how it ends, for the n-th time, from 1.
	read func(n int, all []Result) ([]Result, *llm.Error)

	mu         sync.Mutex
	n          int // creations asked for
	reads      int // of results
	order      []*fakeBatch
	peakTokens int
}

type fakeBatch struct {
	id, key   string
	created   time.Time
	cancelled time.Time
	lines     []Request
	fault     *Fault
}

func (f *fake) Weigh(req *llm.Request) (Weight, error) {
	return Weight{Bytes: len(req.Messages[0].Text())}, nil
}

func (f *fake) end(b *fakeBatch) time.Time {
	if !b.cancelled.IsZero() {
		return b.cancelled.Add(time.Minute)
	}
	return b.created.Add(f.takes)
}

func (f *fake) Create(ctx context.Context, d *Draft, uploaded func(context.Context, string) error) (string, error) {
	f.mu.Lock()
	f.n++
	n := f.n
	f.mu.Unlock()
	var e *llm.Error
	if f.refuse != nil {
		e = f.refuse(n)
	}
	if e != nil && !e.Uncertain {
		return "", e
	}
	if err := uploaded(ctx, "file-"+d.Key); err != nil {
		return "", err
	}
	if e != nil && e.Code == "not done" {
		return "", e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &fakeBatch{id: fmt.Sprint("b", len(f.order)), key: d.Key, created: time.Now(), lines: d.Requests}
	b.fault = f.check(b)
	f.order = append(f.order, b)
	f.creates = append(f.creates, b.created)
	if e != nil {
		return "", e
	}
	return b.id, nil
}

// check returns what is wrong with a batch as a whole.
func (f *fake) check(b *fakeBatch) *Fault {
	tokens := len(b.lines)
	for _, o := range f.order {
		if o.fault == nil && time.Now().Before(f.end(o)) {
			tokens += len(o.lines)
		}
	}
	if f.tokens > 0 && tokens > f.tokens {
		return &Fault{Code: "token_limit_exceeded", Message: fmt.Sprintf("Enqueued token limit reached. Limit: %d enqueued tokens.", f.tokens)}
	}
	f.peakTokens = max(f.peakTokens, tokens)
	for i, l := range b.lines {
		if f.poison != "" && strings.Contains(l.Request.Messages[0].Text(), f.poison) {
			fault := &Fault{Code: "bad", Message: "no such thing"}
			if f.where {
				fault.Line = i + 1
			}
			return fault
		}
	}
	return nil
}

func (f *fake) find(id string) *fakeBatch {
	for _, b := range f.order {
		if b.id == id {
			return b
		}
	}
	return nil
}

func (f *fake) Find(_ context.Context, o *Open, taken func(string) bool) (Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list != nil {
		return Found{}, f.list
	}
	maybe := false
	for _, b := range f.order {
		ended := !time.Now().Before(f.end(b))
		switch {
		case taken(b.id) || len(b.lines) != len(o.Lines) || time.Since(b.created) < f.lag:
		case f.blind && !ended:
			maybe = true
		case b.key == o.Key:
			return Found{ID: b.id}, nil
		}
	}
	return Found{Maybe: maybe}, nil
}

func (f *fake) Cancel(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancels++; f.cancels <= f.deaf {
		return &llm.Error{Kind: llm.KindOverloaded, Status: 529}
	}
	f.find(id).cancelled = time.Now()
	return nil
}

func (f *fake) State(_ context.Context, id string) (State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks = append(f.looks, time.Now())
	b := f.find(id)
	if f.poll != nil {
		if e := f.poll(len(f.looks)); e != nil {
			return State{}, e
		}
	}
	if f.vanish {
		return State{}, &llm.Error{Kind: llm.KindBadRequest, Status: 404, Message: "no such batch"}
	}
	st := State{Phase: Running, Total: len(b.lines), Expires: b.created.Add(24 * time.Hour)}
	switch {
	case b.fault != nil:
		st.Phase, st.Faults = Failed, []Fault{*b.fault}
	case !time.Now().Before(f.end(b)):
		st.Phase, st.Answered = Ended, len(b.lines)
		if !b.cancelled.IsZero() {
			st.Answered -= len(b.lines) / 2
		}
	}
	return st, nil
}

// Results answers every line; of a batch that was cancelled, the first half.
func (f *fake) Results(_ context.Context, id string) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		f.mu.Lock()
		b := f.find(id)
		f.reads++
		n := f.reads
		f.mu.Unlock()
		all, broken := f.results(b), (*llm.Error)(nil)
		if f.read != nil {
			all, broken = f.read(n, all)
		}
		for _, r := range all {
			time.Sleep(f.slow)
			if !yield(r, nil) {
				return
			}
		}
		if broken != nil {
			yield(Result{}, broken)
		}
	}
}

func (f *fake) results(b *fakeBatch) (all []Result) {
	for i := range b.lines {
		l := &b.lines[len(b.lines)-1-i]
		r := Result{CustomID: CustomID(b.key, l.ID), Response: &llm.Response{Text: "to " + l.Request.Messages[0].Text()}}
		if !b.cancelled.IsZero() && i < len(b.lines)/2 {
			r.Response, r.Err = nil, CancelledError()
		}
		if b.id < fmt.Sprint("b", f.expire) {
			r.Response, r.Err = nil, ExpiredError()
		}
		all = append(all, r)
	}
	return all
}

func (f *fake) answered() int {
	n := 0
	for _, b := range f.order {
		if b.fault == nil {
			n += len(b.lines)
		}
	}
	return n
}

// bench is a batcher with one queue, as dispatch has it.
type bench struct {
	*Batcher
	queue  *Queue
	api    *fake
	events []*journal.Batched
}

func newBench(t *testing.T, f *fake, change ...func(*Config, *provider.Batch)) *bench {
	t.Helper()
	b := &bench{api: f}
	cfg, limits := Config{Batch: &settings.Batch{Route: Batch, Poll: settings.New(settings.Plan).Batch.Poll}}, provider.Batch{Requests: 1000, Bytes: 1 << 20}
	cfg.Record = func(_ context.Context, m *journal.Batched) error {
		b.api.mu.Lock()
		defer b.api.mu.Unlock()
		b.events = append(b.events, m)
		return nil
	}
	for _, c := range change {
		c(&cfg, &limits)
	}
	o := New(cfg)
	b.Batcher, b.queue = o, o.Queue("lab", f, limits)
	return b
}

// callResult is the result of a call.
type callResult struct {
	text string
	live bool
	err  *llm.Error
}

func ask(n int) []*llm.Request {
	out := make([]*llm.Request, n)
	for i := range out {
		out[i] = &llm.Request{Model: "lab/any", Messages: []llm.Message{llm.User(fmt.Sprint("question ", i))}}
	}
	return out
}

// wave makes a wave as dispatch does: a line that may be asked again is.
func (b *bench) wave(ctx context.Context, reqs []*llm.Request) []callResult {
	w := b.Begin(reqs)
	out := make([]callResult, len(reqs))
	var calls sync.WaitGroup
	for i, req := range reqs {
		calls.Go(func() {
			c := w.Call(req)
			out[i] = b.call(ctx, c, req)
			c.End(ctx, out[i].err == nil)
		})
	}
	w.Serve(ctx)
	calls.Wait()
	return out
}

func (b *bench) call(ctx context.Context, c *Call, req *llm.Request) callResult {
	for {
		if !c.UsesBatch(b.queue, req) {
			return callResult{live: true}
		}
		f := c.Ask(ctx, Item{Queue: b.queue, Request: req, Weight: Weight{Bytes: 100}, Tokens: 1, Worst: 10})
		switch {
		case f.Live:
			return callResult{live: true}
		case f.Err == nil:
			return callResult{text: f.Response.Text}
		case !f.Err.Kind.Retryable() || f.Err.Final || ctx.Err() != nil:
			return callResult{err: f.Err}
		}
	}
}

// tally counts calls by their result; each answer must be to its own request.
func tally(t *testing.T, reqs []*llm.Request, got []callResult) (answered, live, failed int) {
	t.Helper()
	for i, c := range got {
		switch {
		case c.err != nil:
			failed++
		case c.live:
			live++
		case c.text == "to "+reqs[i].Messages[0].Text():
			answered++
		default:
			t.Fatalf("call %d: %q", i, c.text)
		}
	}
	return answered, live, failed
}

// open folds the events.
func (b *bench) open() []Open {
	var l Log
	for _, m := range b.events {
		l.Add(m)
	}
	return l.Open()
}

var errDisk = errors.New("no space")
