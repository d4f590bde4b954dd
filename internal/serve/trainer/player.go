package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"parley/journal"
)

// Override is what a client may change in the plan. Addresses and files are not for clients to set.
type Override struct {
	Episodes *int                       `json:"episodes,omitempty"`
	Seed     *uint64                    `json:"seed,omitempty"`
	Params   map[string]json.RawMessage `json:"params,omitempty"`
}

// State is the state of the run.
type State string

// The states.
const (
	Waiting  State = "waiting" // for a client to start it
	Playing  State = "playing"
	Stopping State = "stopping" // begun episodes are finished
	Complete State = "complete" // everything was played
	Stopped  State = "stopped"  // before its end; it can be started again
	Failed   State = "failed"   // starting it again would fail again
)

// over reports whether nothing follows unless somebody starts the run again.
func (s State) over() bool { return s == Complete || s == Stopped || s == Failed }

// Errors of start.
var (
	errStopping = errors.New("the server stops")
	errPlaying  = errors.New("the run is being played with other settings")
)

// refusedError means that nothing was played; bad means that the request is wrong.
type refusedError struct {
	error
	bad bool
}

func (r refusedError) Unwrap() error { return r.error }

// player plays the run, once at a time.
type player struct {
	plan     func(Override) (Prepared, error)
	source   *source
	requests chan playRequest
	ended    chan struct{} // closed when run returns
	resume   bool

	mu     sync.Mutex
	state  State
	reason string
	what   string // of the current play
	paused bool   // by a trainer, also if an earlier process was told so
	past   []int  // earlier versions of the weights that can be asked
	// remember makes paused durable.
	remember func(paused bool) error
	// control changes the run that is played. Nil: none is.
	control Control
	stop    context.CancelCauseFunc
}

// playRequest is a request to play. Either answer or refused is called.
type playRequest struct {
	play    PlayFunc
	answer  func()          // play has begun
	refused func(err error) // nothing was played
}

func newPlayer(c Config, f *source) *player {
	p := &player{plan: c.Plan, source: f, requests: make(chan playRequest), ended: make(chan struct{}), resume: c.Resume, state: Waiting}
	if c.Begun {
		p.state = Stopped
		if c.State != "" {
			p.state = c.State
		}
	}
	if c.Resume {
		p.state = Playing // from the start, so that readers wait
	}
	return p
}

// status returns the state of the run and its reason.
func (p *player) status() (State, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.reason
}

// run plays what is asked for until drain or ctx is done and play has ended.
func (p *player) run(ctx, drain context.Context) {
	defer close(p.ended)
	if p.resume {
		p.resumeRun(ctx, drain)
	}
	for {
		select {
		case <-drain.Done():
			return
		case <-ctx.Done():
			return
		case w := <-p.requests:
			p.play(ctx, drain, w)
		}
	}
}

// resumeRun resumes the run of an earlier server.
func (p *player) resumeRun(ctx, drain context.Context) {
	refused := func(err error) { p.finish(Ending{}, err) }
	ready, err := p.plan(Override{})
	if err != nil {
		refused(err)
		return
	}
	p.mu.Lock()
	p.what = ready.What
	p.mu.Unlock()
	p.play(ctx, drain, playRequest{play: ready.Play, answer: func() {}, refused: refused})
}

// play plays what is ready.
func (p *player) play(ctx, drain context.Context, w playRequest) {
	own, stop := context.WithCancelCause(drain)
	defer stop(context.Canceled)
	p.mu.Lock()
	p.stop = stop
	p.mu.Unlock()
	begun := false
	end, err := w.play(ctx, own, func(c Control) {
		begun = true
		p.mu.Lock()
		p.control = c
		if c != nil {
			c.Past(p.past)
		}
		if p.paused && c != nil { // weights may be loading
			_ = c.Pause(ctx, byTrainer, HoldCalls) // before play begins, it only notes it
		}
		p.mu.Unlock()
		p.source.begun(c)
		p.source.hasRun.Store(true)
		p.source.changed()
		w.answer()
	}, p.source.changed)
	switch {
	case begun:
		p.finish(end, err)
	case err != nil:
		w.refused(err)
	default:
		w.refused(errors.New("nothing was played"))
	}
}

// finish records how play ended.
func (p *player) finish(end Ending, err error) {
	state := Failed
	switch journal.State(end.State) {
	case journal.Complete:
		state = Complete
	case journal.Stopped:
		state = Stopped
	}
	reason := end.Reason
	if reason == "" && err != nil {
		reason = err.Error()
	}
	p.set(state, reason)
}

func (p *player) set(state State, reason string) {
	p.mu.Lock()
	p.state, p.reason, p.stop, p.control = state, reason, nil, nil
	p.mu.Unlock()
	p.source.changed()
}

// start starts or resumes the run, and returns when play has begun. again reports that it was playing already.
func (p *player) start(ctx context.Context, o Override) (again bool, err error) {
	ready, err := p.plan(o)
	if err != nil {
		return false, refusedError{error: err, bad: true}
	}
	was, reason, err := p.reserve(ready.What)
	if err != nil || was == Playing || was == Stopping {
		return true, err
	}
	answer := make(chan error, 1)
	w := playRequest{play: ready.Play, answer: func() { answer <- nil }, refused: func(err error) {
		p.set(was, reason)
		answer <- refusedError{error: err}
	}}
	select {
	case p.requests <- w:
	case <-p.ended:
		p.set(was, reason)
		return false, errStopping
	}
	select {
	case err := <-answer:
		return false, err
	case <-ctx.Done():
		return false, fmt.Errorf("start: %w", context.Cause(ctx))
	}
}

// reserve marks the run as playing, so that two clients do not start it at once. It returns the state before.
func (p *player) reserve(what string) (was State, reason string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Playing || p.state == Stopping {
		if p.what != "" && p.what != what {
			return p.state, p.reason, refusedError{error: errPlaying}
		}
		return p.state, p.reason, nil
	}
	was, reason = p.state, p.reason
	p.state, p.reason, p.what = Playing, "", what
	return was, reason, nil
}

// Errors of what changes a run.
var (
	errIdle     = errors.New("no run is being played")
	errNotBegun = errors.New("the run has not begun to play yet: try again")
)

// pause pauses the run. Unless calls in flight are held, it waits until there are none.
func (p *player) pause(ctx context.Context, calls InFlight) error {
	control, err := p.currentControl()
	if err == nil {
		err = control.Pause(ctx, byTrainer, calls)
	}
	if err == nil || ctx.Err() != nil { // it is paused even if calls are still in flight
		if keep := p.setPaused(true); keep != nil {
			return keep
		}
	}
	return err
}

// setPaused notes that the run is paused, or not. The server that comes after a kill does the same.
func (p *player) setPaused(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.remember(paused); err != nil {
		return err
	}
	p.paused = paused
	return nil
}

// unpause resumes the run.
func (p *player) unpause() error {
	control, err := p.currentControl()
	if err == nil {
		err = control.Resume(byTrainer)
	}
	if err == nil {
		err = p.setPaused(false)
	}
	return err
}

// currentControl returns what changes the run that is played.
func (p *player) currentControl() (Control, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.control != nil:
		return p.control, nil
	case p.state == Playing || p.state == Stopping:
		return nil, errNotBegun
	}
	return nil, errIdle
}

// byTrainer is who changes the run, for its record.
const byTrainer = "a trainer"

// change changes the tasks of the run.
func (p *player) change(what string, raw json.RawMessage) error {
	control, err := p.currentControl()
	if err != nil {
		return err
	}
	return control.Change(byTrainer, what, raw)
}

// setPast sets which earlier versions of the weights can be asked.
func (p *player) setPast(versions []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past = versions; p.control != nil {
		p.control.Past(versions)
	}
}

// isPaused reports whether the run is paused.
func (p *player) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused && !p.state.over()
}

// drain stops play, if any: begun episodes are finished.
func (p *player) drain(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.state = Stopping
		p.stop(errors.New(why))
	}
}
