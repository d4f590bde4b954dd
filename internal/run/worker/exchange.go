package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
)

// maxDeaths is how many workers may end during one step of an episode. Those that end during different steps are not the
// fault of the episode.
const maxDeaths = 3

// exchange is the requests of one episode or session to its worker. If the worker ends, another one gets the requests
// again and must give the same answers.
type exchange struct {
	pool *Pool
	key  string // its name in the worker

	// mu guards the fields below. A step holds it; an act does not while it waits.
	mu     sync.Mutex
	worker *process
	past   []pastStep
	deaths int   // during the step that waits
	broken error // why no worker can continue it
}

// pastStep is a request that was answered, and a hash of the answer.
type pastStep struct {
	request []byte
	answer  uint64
}

// noWorkerError means that no worker could be started.
type noWorkerError struct{ err error }

// Error implements error.
func (e *noWorkerError) Error() string { return e.err.Error() }

// ask asks the worker. If there is none, another one gets the exchange first. The caller holds mu.
func (e *exchange) ask(ctx context.Context, body []byte) ([]byte, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	line, err := e.worker.ask(ctx, body)
	if err == nil {
		e.deaths = 0
	}
	return line, err
}

// keep remembers a request and its answer. The caller holds mu.
func (e *exchange) keep(body, line []byte) {
	e.past = append(e.past, pastStep{request: body, answer: e.hash(line)})
}

// ready finds a worker if there is none. The caller holds mu.
func (e *exchange) ready(ctx context.Context) error {
	if e.broken != nil || e.worker != nil && e.worker.alive() {
		return e.broken
	}
	if e.worker != nil {
		e.pool.leave(e.worker, 0)
	}
	w, err := e.pool.take()
	e.worker = w
	if err != nil {
		return &noWorkerError{fmt.Errorf("%s: cannot start a worker: %w", e.pool.Name, err)}
	}
	for _, s := range e.past {
		line, err := w.ask(ctx, s.request)
		if err != nil {
			return err
		}
		if e.hash(line) != s.answer {
			e.broken = errDiverged
			return e.broken
		}
	}
	return nil
}

// errDiverged means that a world did something else with the same replies.
var errDiverged = errors.New("its world is not a pure function of its replies: played again, it did something else. " +
	"Look for a clock, chance that is not t.rand, a global variable, or the order of a set; parley.testing.exercise finds it")

// died counts a worker that ended while it was busy with this exchange, and returns a fault if there is no use in another.
// The caller holds mu.
func (e *exchange) died(err error) *fault {
	if e.broken != nil {
		return &fault{Text: e.broken.Error()}
	}
	if innocent(err) {
		return nil
	}
	if stuck, ok := errors.AsType[*stuckError](err); ok {
		return &fault{Text: stuck.Error()} // it would take as long the next time
	}
	if e.deaths++; e.deaths >= maxDeaths {
		return &fault{Text: fmt.Sprintf("its worker ended %d times during this step: %v", e.deaths, err)}
	}
	return nil
}

// begin sends an act, and returns the worker that carries it out and the channel of its answer.
func (e *exchange) begin(ctx context.Context, body []byte) (*process, <-chan []byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(ctx); err != nil {
		return nil, nil, err
	}
	answered, _, err := e.worker.send(body, true)
	return e.worker, answered, err
}

// end lets the worker forget the exchange.
func (e *exchange) end(memory int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.worker == nil {
		return
	}
	if body, err := json.Marshal(&request{Op: "leave", Episode: e.key}); err == nil {
		e.worker.tell(body)
	}
	e.pool.leave(e.worker, memory)
	e.worker, e.past = nil, nil
}

func (e *exchange) hash(line []byte) uint64 { return maphash.Bytes(e.pool.seed, line) }
