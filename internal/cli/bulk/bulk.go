// Package bulk asks many requests and writes a record for each: from a JSONL file or a single prompt, to a file
// that can be resumed or to a stream in the input's order.
//
// A request that was answered in an earlier run is not asked again. A line that is not a request gets a record
// too. Memory does not grow with the answers.
//
// Asking connects the parts: requests come from a File (request.go), an Asker answers them, and records (record.go) go to a Sink,
// which is a file (outfile.go) or a stream (ordered.go). Tally counts them.
package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/cli/exit"
	"parley/llm"
)

// Sink receives records: outFile or ordered. A slot is the number of a record in the input's order, from 0.
type Sink interface {
	// have reports whether an earlier run answered slot.
	have(slot int, at recordKey, d digest) bool
	// admit waits until slot may begin. It returns false if stop is closed first.
	admit(slot int, stop <-chan struct{}) bool
	// put writes the record of a slot. A nil record writes nothing.
	put(slot int, r *Record) error
	// Finish is called once, when nothing is in flight. complete reports whether the whole input was read, and nothing
	// stopped the run. The note is for the user.
	Finish(complete bool) (note string, err error)
}

// source returns questions until io.EOF. A *lineError is about one line; the next call continues after it.
type source interface {
	Next() (Question, error)
}

// Asking asks every question of a source and passes each record to a sink. Memory does not grow with the
// answers; it keeps a few bytes for each question.
type Asking struct {
	Source  source
	Sink    Sink
	Samples int
	Keys    Keyer
	Gate    *exit.Gate
	Tally   *Tally
	// Recorded is called with what each record costs, after it was written. Default: nothing is called.
	Recorded func(cost llm.Money)

	// Only the sequence of requests writes these fields.
	seen     map[recordKey]struct{}
	slots    int
	complete bool

	mu    sync.Mutex
	asked map[int]*asked // the requests in flight, by position in the sequence
}

// asked is what Asking remembers about a request in flight.
type asked struct {
	slot    int
	record  Record
	unnamed bool
}

// Run asks everything and returns when nothing is in flight.
func (m *Asking) Run(ctx context.Context, a Asker) (note string) {
	m.seen, m.asked = map[recordKey]struct{}{}, map[int]*asked{}
	m.Gate.OnClose(a.Drain)
	a.Each(ctx, m.requests(ctx), m.done)
	if !m.complete {
		m.Tally.add(func(n *Counts) { n.Unasked = 0 }) // there are more
	}
	note, err := m.Sink.Finish(m.complete && !m.Gate.Closed())
	if err != nil {
		m.Gate.Close(exit.Broken, err)
	}
	return note
}

// requests returns everything that has to be asked, in order. After a stop it only counts the rest, unless that is long.
func (m *Asking) requests(ctx context.Context) iter.Seq[*llm.Request] {
	return func(yield func(*llm.Request) bool) {
		position := 0
		for ctx.Err() == nil {
			if code, _ := m.Gate.Reason(); code == exit.Broken || m.Tally.Now().Unasked > 10_000 {
				return
			}
			q, err := m.Source.Next()
			if errors.Is(err, io.EOF) {
				m.complete = true
				return
			}
			if err == nil && !m.fresh(q.ID) {
				err = &lineError{name: q.name, line: q.Line, err: fmt.Errorf("id %s is already used by an earlier line", q.ID)}
			}
			if bad, ok := errors.AsType[*lineError](err); ok {
				m.reject(bad)
				continue
			}
			if err != nil {
				if !errors.Is(err, exit.ErrStopped) {
					m.Gate.Close(exit.Broken, err)
				}
				return
			}
			for k := range m.Samples {
				req := m.begin(q, k, position)
				if req == nil {
					continue
				}
				position++
				if !yield(req) {
					return
				}
			}
		}
	}
}

// fresh reports whether an id is new.
func (m *Asking) fresh(id json.RawMessage) bool {
	at := m.Keys.key(id, 0)
	_, seen := m.seen[at]
	m.seen[at] = struct{}{}
	return !seen
}

// reject records a line that is not a request.
func (m *Asking) reject(bad *lineError) {
	slot := m.slot()
	if !m.Sink.admit(slot, m.Gate.Shut) || m.Gate.Closed() {
		return
	}
	m.Tally.rejected(bad)
	id := bad.id
	if id == nil || !m.fresh(id) {
		id = json.RawMessage("null")
	}
	m.put(slot, &Record{
		ID: id, Line: bad.line,
		Error: &llm.Error{Kind: llm.KindBadRequest, Message: bad.Error()},
	})
}

// begin returns sample k of a question as a request. It returns nil if the sample is already answered or the
// gate is closed.
func (m *Asking) begin(q Question, k, position int) *llm.Request {
	req := *q.Req
	req.Sample += k
	if req.Seed != nil {
		seed := *req.Seed + int64(k)
		req.Seed = &seed
	}
	slot, d := m.slot(), digestOf(&req)
	if m.Sink.have(slot, m.Keys.key(q.ID, k), d) {
		m.Tally.kept()
		return nil
	}
	if !m.Sink.admit(slot, m.Gate.Shut) || m.Gate.Closed() {
		m.Tally.unasked()
		return nil
	}
	req.Order = int64(slot)
	if m.Samples > 1 {
		req.Prefix = len(req.Messages)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[position] = &asked{slot: slot, record: Record{ID: q.ID, Sample: k, Digest: d.String()}, unnamed: q.Unnamed}
	return &req
}

func (m *Asking) slot() int {
	m.slots++
	return m.slots - 1
}

// done records the result of the request at a position.
func (m *Asking) done(position int, r llm.Result) {
	m.mu.Lock()
	a := m.asked[position]
	delete(m.asked, position)
	m.mu.Unlock()
	if a == nil {
		m.Gate.Close(exit.Broken, errors.New("ask: a result for a request that was not asked"))
		return
	}
	if m.unasked(r.Err) && llm.AsError(r.Err).Metadata.Cost <= 0 { // else it was sent, and may be billed
		m.Tally.unasked()
		m.put(a.slot, nil)
		return
	}
	a.record.Response, a.record.Error = r.Response, llm.AsError(r.Err)
	m.Tally.done(r, a.unnamed)
	m.put(a.slot, &a.record)
}

// unasked reports whether a request was returned without being asked, because the budget is used up or the run
// is stopping. It gets no record: the next run asks it.
func (m *Asking) unasked(err error) bool {
	switch llm.KindOf(err) {
	case llm.KindBudget:
		if !m.Gate.Closed() {
			m.Gate.Close(exit.Budget, err)
		}
		return true
	case llm.KindCanceled:
		return m.Gate.Closed()
	default:
		return false
	}
}

func (m *Asking) put(slot int, r *Record) {
	if err := m.Sink.put(slot, r); err != nil {
		m.Gate.Close(exit.Broken, err)
		return
	}
	if m.Recorded != nil && r != nil {
		m.Recorded(r.cost())
	}
}

// Verdict returns the run's error: why it was stopped, or that some requests failed.
func (m *Asking) Verdict() error {
	code, err := m.Gate.Reason()
	if err != nil {
		return &exit.Error{Code: code, Err: err}
	}
	if n := m.Tally.Now(); code == exit.OK && n.Failed+n.Rejected > 0 {
		code = exit.Failed
	}
	return exit.Silent(code)
}

// Asker asks many requests. An app.App implements it; tests use their own.
type Asker interface {
	// Each asks the requests of reqs concurrently and calls done once for each, from one goroutine at a time. i is
	// the position of the request in reqs. Each calls done even while reqs blocks. It returns the number of requests
	// when all of them are done.
	Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(i int, r llm.Result)) int
	// Drain refuses waiting requests with llm.KindCanceled and lets those in flight finish.
	Drain()
	// Stats returns the current figures.
	Stats() dispatch.Snapshot
	// Budget is what the requests draw on.
	Budget() *budget.Budget
	// Close releases the resources of Each. Nothing may be in flight.
	Close() error
}

// Waiter is an asker that lists what its calls wait for, such as a provider that cannot be reached.
type Waiter interface {
	Waits(time.Time) []dispatch.Wait
}
