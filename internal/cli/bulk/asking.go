// Package bulk asks many requests and writes a record for each: from a JSONL file or a single prompt,
// to a file that can be resumed or to a stream in the input's order.
//
// A request that was answered in an earlier run is not asked again. A line that is not a request gets
// a record too. Memory does not grow with the answers.
//
// It is not for how a request is answered: the Asker does that.
package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"parley/internal/cli/exit"
	"parley/llm"
)

// Sink is where records go: outFile or ordered. Slots are the records' numbers in
// the input's order, from 0.
type Sink interface {
	// have says whether slot is answered already, from an earlier run.
	have(slot int, at recordKey, d digest) bool
	// admit waits until slot may begin; it is false when stop was closed first.
	admit(slot int, stop <-chan struct{}) bool
	// put writes the record of a slot. A nil record leaves none.
	put(slot int, r *Record) error
	// Finish is called once, when nothing is in flight; complete is whether every
	// request of the input was seen. Its note is for the user.
	Finish(complete bool) (note string, err error)
}

// source gives questions until io.EOF. A *lineError is about one line; the next
// call goes on behind it.
type source interface {
	Next() (Question, error)
}

// Asking asks every question of a source and gives each record to a sink. Memory does
// not grow with the answers; per question it keeps some bytes.
type Asking struct {
	Source  source
	Sink    Sink
	Samples int
	Keys    Keyer
	Gate    *exit.Gate
	Tally   *Tally

	// Only the sequence of requests writes these.
	seen     map[recordKey]struct{}
	slots    int
	complete bool

	mu    sync.Mutex
	asked map[int]*asked // by position in the sequence: what is in flight
}

// asked is what is remembered of a request in flight.
type asked struct {
	slot   int
	record Record
}

// Run asks everything and returns when nothing is in flight any more.
func (m *Asking) Run(ctx context.Context, a Asker) (note string) {
	m.seen, m.asked = map[recordKey]struct{}{}, map[int]*asked{}
	m.Gate.OnClose(a.Drain)
	a.Each(ctx, m.requests(), m.done)
	note, err := m.Sink.Finish(m.complete)
	if err != nil {
		m.Gate.Close(exit.Broken, err)
	}
	return note
}

// requests is everything that has to be asked, in order.
func (m *Asking) requests() iter.Seq[*llm.Request] {
	return func(yield func(*llm.Request) bool) {
		position := 0
		for !m.Gate.Closed() {
			q, err := m.Source.Next()
			if errors.Is(err, io.EOF) {
				m.complete = true
				return
			}
			if err == nil && !m.fresh(q.ID) {
				err = &lineError{name: q.name, line: q.Line, err: fmt.Errorf("id %s is that of an earlier line", q.ID)}
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

// fresh says whether an id comes for the first time.
func (m *Asking) fresh(id json.RawMessage) bool {
	at := m.Keys.of(id, 0)
	_, seen := m.seen[at]
	m.seen[at] = struct{}{}
	return !seen
}

// reject records a line that is no request.
func (m *Asking) reject(bad *lineError) {
	slot := m.slot()
	if !m.Sink.admit(slot, m.Gate.Shut) {
		return
	}
	m.Tally.rejected()
	id := bad.id
	if id == nil || !m.fresh(id) {
		id = json.RawMessage("null")
	}
	m.put(slot, &Record{
		ID: id, Line: bad.line,
		Error: &llm.Error{Kind: llm.KindBadRequest, Message: bad.Error()},
	})
}

// begin returns sample k of a question as a request, or nil if there is nothing to
// ask: it is answered already, or the gate is shut.
func (m *Asking) begin(q Question, k, position int) *llm.Request {
	req := *q.Req
	req.Sample += k
	if req.Seed != nil {
		seed := *req.Seed + int64(k)
		req.Seed = &seed
	}
	slot, d := m.slot(), digestOf(&req)
	if m.Sink.have(slot, m.Keys.of(q.ID, k), d) {
		m.Tally.kept()
		return nil
	}
	if !m.Sink.admit(slot, m.Gate.Shut) || m.Gate.Closed() {
		return nil
	}
	req.Order = int64(slot)
	if m.Samples > 1 {
		req.Prefix = len(req.Messages)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[position] = &asked{slot: slot, record: Record{ID: q.ID, Sample: k, Digest: d.String()}}
	return &req
}

func (m *Asking) slot() int {
	m.slots++
	return m.slots - 1
}

// done records what became of the request at a position.
func (m *Asking) done(position int, r llm.Result) {
	m.mu.Lock()
	a := m.asked[position]
	delete(m.asked, position)
	m.mu.Unlock()
	if a == nil {
		m.Gate.Close(exit.Broken, errors.New("ask: a result for a request that was not asked"))
		return
	}
	if m.unasked(r.Err) {
		m.put(a.slot, nil)
		return
	}
	a.record.Response, a.record.Error = r.Response, llm.AsError(r.Err)
	m.Tally.done(r)
	m.put(a.slot, &a.record)
}

// unasked says whether a request was given back unasked, since the budget is used up
// or the run is stopping. It leaves no record: the next run asks it.
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
	}
}

// Verdict is the run's error: the reason it was stopped, or that some requests failed.
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
