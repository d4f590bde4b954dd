package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/llm"
	"parley/world"
)

// episode is an episode as a world of the engine: it does what a worker says.
type episode struct {
	seats  []string
	params json.RawMessage
	lineup map[string]string
	played func() (json.RawMessage, []string, error) // of a scorer: the episode that is scored, and its seats
	fault  *fault                                    // what the world's code raised; its strands end
	talks  map[int][]llm.Message                     // a step holds mu
	open   struct{ strands, calls, messages int }    // that the worker made, and that have not ended
	sent   int                                       // messages of all its calls; those of a talk once
	bytes  int                                       // of its steps and their requests

	exchange
}

// Play plays the episode to its end.
func (e *episode) Play(t *world.Table) world.Outcome {
	deal := t.Deal()
	var memory int64
	defer func() { e.end(memory) }()
	begin := &request{Op: "begin", Params: e.params, Lineup: e.lineup, Seed: strconv.FormatUint(deal.Seed, 10), Deal: deal.Number}
	seats := e.seats // of the scores
	if e.played != nil {
		var err error
		if begin.Played, seats, err = e.played(); err != nil {
			panic(world.Abort{Err: err})
		}
	}
	end := e.strand(t, "", begin)
	if e.fault == nil {
		e.fault = checkScores(end.End.Scores, seats)
	}
	if e.fault != nil {
		t.Note("error", "", e.fault)
		return world.Outcome{Failed: e.fault.Text}
	}
	memory = end.Memory
	return end.End.world()
}

// checkScores returns a fault if a score is for a seat that is not one of seats.
func checkScores(scores []world.Score, seats []string) *fault {
	for _, s := range scores {
		if s.Seat != "" && !slices.Contains(seats, s.Seat) {
			return &fault{Text: fmt.Sprintf("the score %q is for the seat %q: want one of %q", s.Name, s.Seat, seats)}
		}
	}
	return nil
}

// strand plays a strand, beginning with a request, and returns its last step. It returns nil if the episode has failed.
func (e *episode) strand(t *world.Table, path string, next *request) *answer {
	for turn := 0; e.fault == nil; turn++ {
		next.Episode, next.Strand = e.key, path
		a := e.step(next)
		if err := a.verb(); err != nil {
			e.fault = stepFault(path, turn, err)
			break
		}
		for _, n := range a.Notes {
			t.Note(n.Kind, n.Seat, n.Data)
		}
		switch {
		case a.Error != nil:
			e.fault = a.Error
		case a.End != nil:
			return a
		case a.Fork != nil:
			n := *a.Fork
			if err := e.mayFork(path, n); err != nil {
				e.fault = stepFault(path, turn, err)
				break
			}
			e.open.strands += n
			t.Fork(n, func(i int, t *world.Table) {
				e.strand(t, fmt.Sprintf("%s%d.%d/", path, turn, i), &request{Op: "strand", Of: path, Index: i})
			})
			e.open.strands -= n
			next = &request{Op: "joined"}
		case a.refused != nil:
			e.refuse(path, a.refused)
		default:
			if n := len(a.Ask) + e.open.calls; n > maxCalls {
				e.fault = stepFault(path, turn, fmt.Errorf("its ask has %d calls, and with it %d calls of the episode would wait for replies: at most %d may", len(a.Ask), n, maxCalls))
				break
			}
			calls, messages, err := e.calls(path, a.Ask)
			if errors.Is(err, errMessages) {
				e.fault = stepFault(path, turn, err)
				break
			}
			if err != nil {
				e.refuse(path, err)
				continue
			}
			e.open.calls, e.open.messages = e.open.calls+len(calls), e.open.messages+messages
			replies := t.Ask(calls...)
			e.open.calls, e.open.messages = e.open.calls-len(calls), e.open.messages-messages
			next = &request{Op: "replies", Replies: replies}
		}
	}
	return nil
}

// stepFault returns the fault of a step that breaks a rule of the protocol.
func stepFault(path string, turn int, rule error) *fault {
	return &fault{Text: fmt.Sprintf("step %s%d of the worker: %v (the page worker-protocol has the rules)", path, turn, rule)}
}

// mayFork returns an error if a strand may not fork into so many.
func (e *episode) mayFork(path string, n int) error {
	if all := 1 + e.open.strands; n > maxStrands-all {
		return fmt.Errorf("its fork is %d, and the episode has %d strands that have not ended: at most %d may be open", n, all, maxStrands)
	}
	if strings.Count(path, "/") >= maxDepth {
		return fmt.Errorf("it forks inside of %d forks: at most %d may be inside each other", maxDepth, maxDepth)
	}
	return nil
}

// errMessages means that the calls of an episode have too many messages.
var errMessages = fmt.Errorf("with its ask, the calls of the episode that wait for replies would have more than %d messages, or all its calls have sent more", maxMessages)

// refuse fails the episode because of a call that cannot be made. The worker knows in which line the world makes it.
func (e *episode) refuse(path string, why error) {
	e.fault = e.step(&request{Op: "refused", Episode: e.key, Strand: path, Text: why.Error()}).Error
	if e.fault == nil {
		e.fault = &fault{Text: why.Error()}
	}
}

// calls makes the calls of a step, and returns how many messages they have.
func (e *episode) calls(path string, asked []call) (calls []world.Call, sum int, err error) {
	calls = make([]world.Call, len(asked))
	for i := range asked {
		c := &asked[i]
		if !slices.Contains(e.seats, c.Seat) && (c.Act == nil || c.Seat != "") {
			return nil, 0, fmt.Errorf("the world asks the seat %q: want one of %q", c.Seat, e.seats)
		}
		calls[i] = world.Call{Seat: c.Seat, Label: c.Label, Ask: c.Request}
		if c.Act != nil {
			act := *c.Act
			act.Do = func(ctx context.Context, key string) (json.RawMessage, error) { return e.act(ctx, path, i, act, key) }
			calls[i].Act, calls[i].Ask = &act, llm.Request{}
			continue
		}
		if err := c.Check(); err != nil {
			return nil, 0, c.refused(err)
		}
		messages, err := c.continued(e.talks)
		if err != nil {
			return nil, 0, err
		}
		sum, e.sent = sum+len(messages), e.sent+len(c.Messages)
		if sum+e.open.messages > maxMessages || e.sent > maxMessages {
			return nil, 0, errMessages
		}
		calls[i].Ask.Messages = messages
	}
	return calls, sum, nil
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
		line, err := e.ask(context.Background(), body)
		if abort, ok := errors.AsType[*noWorkerError](err); ok {
			panic(world.Abort{Err: abort})
		}
		if err != nil {
			if fault := e.died(err); fault != nil {
				return &answer{Error: fault}
			}
			continue
		}
		if e.bytes += len(body) + len(line); e.bytes > maxBytes {
			return &answer{broken: fmt.Errorf("its steps, with what they were answered, have more than %d MiB together: an episode may not have more", maxBytes>>20)}
		}
		a, err := parse(line)
		if err != nil {
			return &answer{Error: &fault{Text: err.Error()}}
		}
		if a.Error == nil && a.End == nil || r.Strand != "" { // the last step needs no second time
			e.keep(body, line)
		}
		return a
	}
}

// act carries out an act in the worker, which has the episode in the turn of the act.
func (e *episode) act(ctx context.Context, path string, index int, act world.Act, key string) (json.RawMessage, error) {
	body, err := json.Marshal(&request{Op: "act", Episode: e.key, Strand: path, Index: index, Act: &act, Key: key})
	if err != nil {
		return nil, err
	}
	for {
		w, answered, err := e.begin(ctx, body)
		if none, ok := errors.AsType[*noWorkerError](err); ok {
			return nil, &llm.Error{Kind: llm.KindTransport, Message: none.Error()}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case line, ok := <-answered:
				if ok {
					e.mu.Lock()
					e.deaths = 0
					e.mu.Unlock()
					return result(line)
				}
				err = w.reason()
			}
		}
		e.mu.Lock()
		fault := e.died(err)
		e.mu.Unlock()
		if fault != nil {
			return nil, fault
		}
	}
}

func result(line []byte) (json.RawMessage, error) {
	a, err := parse(line)
	if err != nil {
		return nil, err
	}
	return a.result()
}

// result returns the result of an act or an operation, or the fault.
func (a *answer) result() (json.RawMessage, error) {
	if a.Error != nil {
		return nil, a.Error
	}
	if a.Result == nil {
		return json.RawMessage("null"), nil
	}
	return a.Result, nil
}

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

// maxDeaths is how many workers may end during one step of an episode. Those that end during different steps are not the
// fault of the episode.
const maxDeaths = 3

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
		e.pool.release(e.worker, 0)
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
	e.pool.release(e.worker, memory)
	e.worker, e.past = nil, nil
}

func (e *exchange) hash(line []byte) uint64 { return maphash.Bytes(e.pool.seed, line) }
