package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"

	"parley/llm"
	"parley/world"
)

// maxDeaths is how many workers may end during the steps of one episode.
const maxDeaths = 3

// episode is an episode as a world of the engine: it does what a worker says.
type episode struct {
	pool   *Pool
	seats  []string
	params json.RawMessage
	lineup map[string]string
	key    string // its name in the worker
	fault  *fault // what the world's code raised; its strands end

	// mu guards the fields below. A step holds it; an act does not while it waits.
	mu     sync.Mutex
	worker *process
	past   []pastStep
	deaths int
	broken error // why no worker can continue it
	talks  map[int][]llm.Message
}

// pastStep is a request that was answered, and a hash of the answer: if the worker ends, another one gets the requests
// again and must give the same answers.
type pastStep struct {
	request []byte
	answer  uint64
}

// Play plays the episode to its end.
func (e *episode) Play(t *world.Table) world.Outcome {
	deal := t.Deal()
	var memory int64
	defer func() { e.end(memory) }()
	end := e.strand(t, "", &request{Op: "begin", Params: e.params, Lineup: e.lineup, Seed: strconv.FormatUint(deal.Seed, 10), Deal: deal.Number})
	if e.fault != nil {
		t.Note("error", "", e.fault)
		return world.Outcome{Failed: e.fault.Text}
	}
	memory = end.Memory
	return end.End.world()
}

// strand plays a strand, beginning with a request, and returns its last step. It returns nil if the episode has failed.
func (e *episode) strand(t *world.Table, path string, next *request) *answer {
	for turn := 0; e.fault == nil; turn++ {
		next.Episode, next.Strand = e.key, path
		a := e.step(next)
		for _, n := range a.Notes {
			t.Note(n.Kind, n.Seat, n.Data)
		}
		switch {
		case a.Error != nil:
			e.fault = a.Error
		case a.End != nil:
			return a
		case a.Fork > 0:
			t.Fork(a.Fork, func(i int, t *world.Table) {
				e.strand(t, fmt.Sprintf("%s%d.%d/", path, turn, i), &request{Op: "strand", Of: path, Index: i})
			})
			next = &request{Op: "joined"}
		case len(a.Ask) > 0:
			calls, err := e.calls(path, a.Ask)
			if err != nil {
				e.fault = &fault{Text: err.Error()}
				continue
			}
			next = &request{Op: "replies", Replies: t.Ask(calls...)}
		default:
			e.fault = &fault{Text: "the worker's step has no ask, fork, end or error"}
		}
	}
	return nil
}

// calls makes the calls of a step.
func (e *episode) calls(path string, asked []call) ([]world.Call, error) {
	calls := make([]world.Call, len(asked))
	for i := range asked {
		c := &asked[i]
		if !slices.Contains(e.seats, c.Seat) {
			return nil, fmt.Errorf("the world asks the seat %q: want one of %q", c.Seat, e.seats)
		}
		calls[i] = world.Call{Seat: c.Seat, Label: c.Label, Ask: c.Request}
		if c.Act != nil {
			act := *c.Act
			act.Do = func(ctx context.Context) (json.RawMessage, error) { return e.act(ctx, path, i, act) }
			calls[i].Act, calls[i].Ask = &act, llm.Request{}
			continue
		}
		said, err := c.continued(e.talks)
		if err != nil {
			return nil, err
		}
		calls[i].Ask.Messages = said
	}
	return calls, nil
}

// step asks the worker for the next step of a strand. It panics with world.Abort if there is no worker.
func (e *episode) step(r *request) *answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	body, err := json.Marshal(r)
	if err != nil {
		return &answer{Error: &fault{Text: err.Error()}} // replies are JSON: it does not happen
	}
	for {
		line, err := e.send(body)
		if err != nil {
			if fault := e.died(err); fault != nil {
				return &answer{Error: fault}
			}
			continue
		}
		a, err := parse(line)
		if err != nil {
			return &answer{Error: &fault{Text: err.Error()}}
		}
		if a.Error == nil && a.End == nil || r.Strand != "" { // the last step needs no second time
			e.past = append(e.past, pastStep{request: body, answer: e.hash(line)})
		}
		return a
	}
}

// send asks the worker of the episode. If there is none, it gives the episode to another. The caller holds mu.
func (e *episode) send(body []byte) ([]byte, error) {
	if err := e.ready(); err != nil {
		return nil, err
	}
	return e.worker.ask(body)
}

// ready gives the episode to a worker if it has none. The caller holds mu.
func (e *episode) ready() error {
	if e.broken != nil || e.worker != nil && e.worker.alive() {
		return e.broken
	}
	if e.worker != nil {
		e.pool.leave(e.worker, 0)
	}
	w, err := e.pool.take()
	if err != nil {
		e.worker = nil
		panic(world.Abort{Err: fmt.Errorf("%s: cannot start a worker: %w", e.pool.Name, err)})
	}
	e.worker = w
	for _, s := range e.past {
		line, err := w.ask(s.request)
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
	"Look for a clock, chance that is not t.rand, a global variable, or the order of a set")

// died counts a worker that ended while it was busy with this episode, and returns a fault if there is no use in another.
// The caller holds mu.
func (e *episode) died(err error) *fault {
	if e.broken != nil {
		return &fault{Text: e.broken.Error()}
	}
	if innocent(err) {
		return nil
	}
	if e.deaths++; e.deaths >= maxDeaths {
		return &fault{Text: fmt.Sprintf("its worker ended %d times while it played this episode: %v", e.deaths, err)}
	}
	return nil
}

// act carries out an act in the worker, which has the episode in the turn of the act.
func (e *episode) act(ctx context.Context, path string, index int, act world.Act) (_ json.RawMessage, err error) {
	body, err := json.Marshal(&request{Op: "act", Episode: e.key, Strand: path, Index: index, Act: &act})
	if err != nil {
		return nil, err
	}
	defer func() {
		if a, ok := recover().(world.Abort); ok {
			err = &llm.Error{Kind: llm.KindTransport, Message: a.Err.Error()}
		}
	}()
	for {
		w, answered, err := e.begin(body)
		if err == nil {
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case line, ok := <-answered:
				if ok {
					return result(line)
				}
				err = w.reason()
			}
		}
		e.mu.Lock()
		fault := e.died(err)
		e.mu.Unlock()
		if fault != nil {
			return nil, errors.New(fault.Text)
		}
	}
}

// begin sends a request that the caller waits for.
func (e *episode) begin(body []byte) (*process, <-chan []byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(); err != nil {
		return nil, nil, err
	}
	answered, _, err := e.worker.send(body, true)
	return e.worker, answered, err
}

func result(line []byte) (json.RawMessage, error) {
	a, err := parse(line)
	if err != nil {
		return nil, err
	}
	if a.Error != nil {
		return nil, errors.New(a.Error.Text)
	}
	if a.Result == nil {
		return json.RawMessage("null"), nil
	}
	return a.Result, nil
}

// end lets the worker forget the episode.
func (e *episode) end(memory int64) {
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

func (e *episode) hash(line []byte) uint64 { return maphash.Bytes(e.pool.seed, line) }
