package simhttp

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/llm"
)

// The states of a batch, by OpenAI's names.
const (
	stateValidating = "validating"
	stateFailed     = "failed"
	stateInProgress = "in_progress"
	stateFinalizing = "finalizing"
	stateCompleted  = "completed"
	stateExpired    = "expired"
	stateCancelling = "cancelling"
	stateCancelled  = "cancelled"
)

// batch is many requests answered in their own time.
//
// Nothing runs for it: when it was created and how long it takes say at any moment
// how far it is, and what has to be worked out is worked out when somebody looks.
type batch struct {
	id       string
	style    quota.Style
	endpoint string
	fileID   string
	metadata map[string]string
	created  time.Time
	takes    time.Duration
	fault    sim.Fault

	mu        sync.Mutex
	lines     []line
	model     string
	tokens    int           // of all prompts
	errors    []batchError  // why it failed
	checked   bool          // lines were read and checked
	cancelled time.Time     // when somebody asked for it
	done      *batchResults // once it has ended
}

type line struct {
	customID string
	body     []byte
}

type batchError struct {
	Code    string  `json:"code"`
	Line    *int    `json:"line"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

// batchResults is what came of a batch.
type batchResults struct {
	state                                  string
	at                                     time.Time
	outputID, errorID                      string
	content                                []byte // Anthropic's results
	succeeded, errored, expired, cancelled int
	usage                                  llm.Usage
}

// shares of a batch's time after which a state ends.
const (
	validatedAt = 0.1
	finalizedAt = 0.9
	cancelTakes = 0.05
)

func (b *batch) after(share float64) time.Time {
	return b.created.Add(time.Duration(share * float64(b.takes)))
}

// progress is how many of its lines a batch has answered by then.
func (b *batch) progress(now time.Time) int {
	from, to := b.after(validatedAt), b.after(finalizedAt)
	switch {
	case !now.After(from):
		return 0
	case !now.Before(to):
		return len(b.lines)
	}
	return int(float64(len(b.lines)) * float64(now.Sub(from)) / float64(to.Sub(from)))
}

// state returns how far the batch is. s works out what is due.
func (b *batch) state(s *Server, now time.Time) string {
	if b.done != nil {
		return b.done.state
	}
	if now.Before(b.after(validatedAt)) && b.cancelled.IsZero() {
		return stateValidating
	}
	s.check(b, now)
	switch {
	case b.done != nil:
		return b.done.state
	case !b.cancelled.IsZero():
		end := b.cancelled.Add(time.Duration(cancelTakes * float64(b.takes)))
		if now.Before(end) {
			return stateCancelling
		}
		s.finish(b, b.progress(b.cancelled), stateCancelled, end)
		return b.done.state
	case now.Before(b.after(finalizedAt)):
		return stateInProgress
	case now.Before(b.after(1)):
		return stateFinalizing
	}
	s.finish(b, len(b.lines), stateCompleted, b.after(1))
	return b.done.state
}

// check reads the lines of a batch and fails it if they are wrong.
func (s *Server) check(b *batch, now time.Time) {
	if b.checked {
		return
	}
	b.checked = true
	if b.style == quota.OpenAI {
		s.checkLines(b, now)
	}
	if len(b.errors) > 0 {
		b.done = &batchResults{state: stateFailed, at: b.after(validatedAt)}
		s.stats.failed.Add(1)
	}
}

// result is one line's answer, in a vendor's form.
type result struct {
	body  []byte
	good  bool
	usage llm.Usage
}

// finish answers the first so many lines, in an order of the batch's own, and
// gives up on the rest.
func (s *Server) finish(b *batch, answered int, state string, at time.Time) {
	res := &batchResults{state: state, at: at}
	var out, bad []byte
	order := rand.New(rand.NewPCG(s.cfg.Sim.Seed, uint64(len(b.lines)))).Perm(len(b.lines))
	for rank, i := range order {
		l := &b.lines[i]
		if rank >= answered {
			res.cancelled++
			bad = append(bad, b.lost(s, l, sim.Fault(stateCancelled))...)
			continue
		}
		r, fault := s.answerLine(b, l)
		switch {
		case fault == sim.FaultLineExpired:
			res.expired++
			bad = append(bad, r.body...)
		case !r.good:
			res.errored++
			bad = append(bad, r.body...)
		default:
			res.succeeded++
			res.usage = res.usage.Plus(r.usage)
		}
		if r.good && fault != sim.FaultLineMissing {
			out = append(out, r.body...)
		}
		if r.good && fault == sim.FaultLineDuplicate {
			out = append(out, r.body...)
		}
	}
	if res.expired > 0 && state == stateCompleted {
		res.state = stateExpired
	}
	s.store(b, res, out, bad)
	b.done = res
	b.lines = nil
	s.stats.tokens(res.usage)
	s.stats.batched.Add(int64(res.succeeded))
	s.stats.ended(res.state)
}

func (s *stats) ended(state string) {
	switch state {
	case stateExpired:
		s.expired.Add(1)
	case stateCancelled:
		s.cancelled.Add(1)
	default:
		s.completed.Add(1)
	}
}

// store keeps what came of the lines: as two files, or as one list of results.
func (s *Server) store(b *batch, res *batchResults, out, bad []byte) {
	if b.style == quota.Anthropic {
		res.content = append(out, bad...)
		return
	}
	keep := func(name string, content []byte) string {
		if len(content) == 0 {
			return ""
		}
		f := newFile(s.newID("file-"), b.id+name, "batch_output", content, res.at)
		if !s.files.add(f) {
			return ""
		}
		return f.ID
	}
	res.outputID, res.errorID = keep("_output.jsonl", out), keep("_error.jsonl", bad)
}

// answerLine answers one line as the live endpoint would, limits and faults aside.
func (s *Server) answerLine(b *batch, l *line) (result, sim.Fault) {
	f := s.lineFormat(b)
	ask, err := f.decode(l.body, s.cfg.Lax)
	var c sim.Case
	if err == nil {
		var bad error
		if c, bad = s.brain.Open(ask.Request); bad != nil {
			err = check.Invalid(schemaParam(f), "Invalid schema: %s", bad)
		}
	}
	if err != nil {
		return result{body: b.failed(s, l, err)}, ""
	}
	fault := s.brain.LineFault(&c)
	s.stats.fault(fault)
	switch fault {
	case sim.FaultLineExpired:
		return result{body: b.lost(s, l, fault)}, fault
	case sim.FaultLineErrored:
		return result{body: b.failed(s, l, serverError(b.style))}, fault
	}
	x := s.exchange(ask, &c, b.after(finalizedAt))
	x.Batch = true
	x.Usage = c.Usage(x.Answer, sim.Reading{})
	body := f.whole(nil, x)
	for len(body) > 0 && body[len(body)-1] == '\n' {
		body = body[:len(body)-1]
	}
	return result{body: b.succeeded(s, l, body), good: true, usage: x.Usage}, fault
}

// batchStore keeps batches in the order of their creation.
type batchStore struct {
	mu    sync.Mutex
	order []*batch
}

func (s *batchStore) find(style quota.Style, id string) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.order, func(b *batch) bool { return b.id == id && b.style == style })
	if i < 0 {
		return nil
	}
	return s.order[i]
}

// newest lists the batches of a style, the newest first.
func (s *batchStore) newest(style quota.Style) []*batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*batch
	for _, b := range slices.Backward(s.order) {
		if b.style == style {
			out = append(out, b)
		}
	}
	return out
}

func (s *batchStore) remove(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = slices.DeleteFunc(s.order, func(c *batch) bool { return c == b })
}

// create keeps a new batch, unless too many were created within the hour.
func (s *Server) create(b *batch, content []byte) *check.Error {
	st := &s.batches
	b.created = time.Now()
	b.fault = s.brain.BatchFault(content)
	s.stats.fault(b.fault)
	st.mu.Lock()
	defer st.mu.Unlock()
	recent := 0
	for _, other := range slices.Backward(st.order) {
		if b.created.Sub(other.created) > time.Hour {
			break
		}
		recent++
	}
	if recent >= s.cfg.Batch.PerHour || b.fault == sim.FaultBatch429 {
		e := tooMany(b.style, &quota.Refusal{What: "requests", Limit: float64(s.cfg.Batch.PerHour), Used: float64(recent), Asked: 1, After: s.cfg.Batch.RetryAfter})
		e.Message = "Too many batches were created within an hour. Please try again later."
		return e
	}
	b.takes = s.cfg.Batch.Latency.Draw(s.ids.Add(1))
	st.order = append(st.order, b)
	s.stats.created.Add(1)
	s.stats.ok.Add(1)
	return nil
}

// look finds a batch and locks it; the caller unlocks. One that vanished is not found.
func (s *Server) look(style quota.Style, id string) *batch {
	b := s.batches.find(style, id)
	if b == nil || b.fault == sim.FaultBatchVanishes && !time.Now().Before(b.after(validatedAt)) {
		return nil
	}
	b.mu.Lock()
	return b
}
