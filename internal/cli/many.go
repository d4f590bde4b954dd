package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"parley/llm"
)

// sink is where records go: outFile or ordered. Slots are the records' numbers in
// the input's order, from 0.
type sink interface {
	// have says whether slot is answered already, from an earlier run.
	have(slot int, at place, d digest) bool
	// admit waits until slot may begin; it is false when stop was closed first.
	admit(slot int, stop <-chan struct{}) bool
	// put writes the record of a slot. A nil record leaves none.
	put(slot int, r *record) error
	// finish is called once, when nothing is in flight; complete is whether every
	// request of the input was seen. Its note is for the user.
	finish(complete bool) (note string, err error)
}

// source gives questions until io.EOF. A *lineError is about one line; the next
// call goes on behind it.
type source interface {
	next() (question, error)
}

// many asks every question of a source and gives each record to a sink. Memory does
// not grow with the answers; per question it keeps some bytes.
type many struct {
	source  source
	sink    sink
	samples int
	ids     placer
	gate    *gate
	tally   *tally

	// Only the sequence of requests writes these.
	seen     map[place]struct{}
	slots    int
	complete bool

	mu    sync.Mutex
	asked map[int]*asked // by position in the sequence: what is in flight
}

// asked is what is remembered of a request in flight.
type asked struct {
	slot   int
	record record
}

// run asks everything and returns when nothing is in flight any more.
func (m *many) run(ctx context.Context, a asker) (note string) {
	m.seen, m.asked = map[place]struct{}{}, map[int]*asked{}
	m.gate.onClose(a.Drain)
	a.Each(ctx, m.requests(), m.done)
	note, err := m.sink.finish(m.complete)
	if err != nil {
		m.gate.close(ExitBroken, err)
	}
	return note
}

// requests is everything that has to be asked, in order.
func (m *many) requests() iter.Seq[*llm.Request] {
	return func(yield func(*llm.Request) bool) {
		position := 0
		for !m.gate.closed() {
			q, err := m.source.next()
			if errors.Is(err, io.EOF) {
				m.complete = true
				return
			}
			if err == nil && !m.fresh(q.id) {
				err = &lineError{name: q.name, line: q.line, err: fmt.Errorf("id %s is that of an earlier line", q.id)}
			}
			if bad, ok := errors.AsType[*lineError](err); ok {
				m.reject(bad)
				continue
			}
			if err != nil {
				if !errors.Is(err, errStopped) {
					m.gate.close(ExitBroken, err)
				}
				return
			}
			for k := range m.samples {
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
func (m *many) fresh(id json.RawMessage) bool {
	at := m.ids.of(id, 0)
	_, seen := m.seen[at]
	m.seen[at] = struct{}{}
	return !seen
}

// reject records a line that is no request.
func (m *many) reject(bad *lineError) {
	slot := m.slot()
	if !m.sink.admit(slot, m.gate.shut) {
		return
	}
	m.tally.rejected()
	id := bad.id
	if id == nil || !m.fresh(id) {
		id = json.RawMessage("null")
	}
	m.put(slot, &record{
		ID: id, Line: bad.line,
		Error: &llm.Error{Kind: llm.KindBadRequest, Message: bad.Error()},
	})
}

// begin returns sample k of a question as a request, or nil if there is nothing to
// ask: it is answered already, or the gate is shut.
func (m *many) begin(q question, k, position int) *llm.Request {
	req := *q.req
	req.Sample += k
	if req.Seed != nil {
		seed := *req.Seed + int64(k)
		req.Seed = &seed
	}
	slot, d := m.slot(), digestOf(&req)
	if m.sink.have(slot, m.ids.of(q.id, k), d) {
		m.tally.kept()
		return nil
	}
	if !m.sink.admit(slot, m.gate.shut) || m.gate.closed() {
		return nil
	}
	req.Order = int64(slot)
	if m.samples > 1 {
		req.Prefix = len(req.Messages)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[position] = &asked{slot: slot, record: record{ID: q.id, Sample: k, Digest: d.String()}}
	return &req
}

func (m *many) slot() int {
	m.slots++
	return m.slots - 1
}

// done records what became of the request at a position.
func (m *many) done(position int, r llm.Result) {
	m.mu.Lock()
	a := m.asked[position]
	delete(m.asked, position)
	m.mu.Unlock()
	if a == nil {
		m.gate.close(ExitBroken, errors.New("ask: a result for a request that was not asked"))
		return
	}
	if m.unasked(r.Err) {
		m.put(a.slot, nil)
		return
	}
	a.record.Response, a.record.Error = r.Response, llm.AsError(r.Err)
	m.tally.done(r)
	m.put(a.slot, &a.record)
}

// unasked says whether a request was given back unasked, since the budget is used up
// or the run is stopping. It leaves no record: the next run asks it.
func (m *many) unasked(err error) bool {
	switch llm.KindOf(err) {
	case llm.KindBudget:
		if !m.gate.closed() {
			m.gate.close(ExitBudget, err)
		}
		return true
	case llm.KindCanceled:
		return m.gate.closed()
	default:
		return false
	}
}

func (m *many) put(slot int, r *record) {
	if err := m.sink.put(slot, r); err != nil {
		m.gate.close(ExitBroken, err)
	}
}

// verdict is the run's error: the reason it was stopped, or that some requests failed.
func (m *many) verdict() error {
	code, err := m.gate.reason()
	if err != nil {
		return &exitError{code: code, err: err}
	}
	if n := m.tally.now(); code == ExitOK && n.Failed+n.Rejected > 0 {
		code = ExitFailed
	}
	return silent(code)
}
