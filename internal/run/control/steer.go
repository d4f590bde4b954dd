package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/settings"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Calls sends the calls of a run. Package app implements it.
type Calls interface {
	// Hold refuses calls that wait with e until e is nil. If cut is set, those in flight end with e too.
	Hold(e *llm.Error, cut bool)
	Budget() *budget.Budget
	// Set replaces the settings, of which only the budget and the concurrency may differ.
	Set(to *settings.Settings)
	// Unpriced returns the models of agents whose price is unknown.
	Unpriced(agents []world.Agent) []string
}

// Steering changes a run while it is played: it pauses, resumes and drains the run, and changes its budget, its concurrency, and what a
// plan that allows it plays in later stages. Each change is recorded in the journal before it has an effect, and only the last of these
// affects outcomes. It may be used from several goroutines. Once the run has ended, it fails.
type Steering struct {
	calls Calls
	kinds []world.Kind
	// Elsewhere means that other processes play the run: they learn of a budget and of the number of calls in
	// flight only when they begin.
	Elsewhere bool

	begun chan struct{} // closed when play begins

	mu     sync.Mutex
	engine *engine.Steering // nil before play begins
	until  int              // the first episode that must not begin yet; 0: there is none
	first  *journal.Steered // a pause that was asked for before play begins
	plan   *planfile.Plan
	state  SteerState
	shown  atomic.Pointer[SteerState] // the state after the last change
}

// SteerState is how a run is steered at the moment.
type SteerState struct {
	// Paused and Draining are since when and by whom the run is paused, and begins no more episodes.
	// Nil: it is not.
	Paused, Draining *journal.Steered
	*settings.Settings
}

// State returns how the run is steered. It waits for nothing: whoever shows a run may call it while a change is
// being recorded, which waits for them.
func (s *Steering) State() SteerState { return *s.shown.Load() }

// NewSteering returns the steering of a run that will be played. kinds are those that its plan can be of.
func NewSteering(calls Calls, plan *planfile.Plan, kinds []world.Kind) *Steering {
	s := &Steering{calls: calls, kinds: kinds, plan: plan, begun: make(chan struct{}), state: SteerState{Settings: plan.Settings}}
	first := s.state
	s.shown.Store(&first)
	return s
}

// Begin connects it with the engine.
func (s *Steering) Begin(e *engine.Steering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		close(s.begun)
	}
	s.engine = e
	if s.until > 0 {
		e.Until(s.until)
	}
	if s.first != nil {
		_ = s.pause(s.first, false) // if it cannot be recorded, nothing can, and the run ends
		changed := s.state
		s.shown.Store(&changed)
	}
}

// beginTime is how long AwaitBegin waits at most.
const beginTime = 10 * time.Second

// AwaitBegin waits until play begins, for some seconds at most, or until ctx is done. A process takes requests some milliseconds
// before it plays.
func (s *Steering) AwaitBegin(ctx context.Context) {
	late := time.NewTimer(beginTime)
	defer late.Stop()
	select {
	case <-s.begun:
	case <-late.C:
	case <-ctx.Done():
	}
}

// Until begins only the episodes with a number below n, until it is called with a larger one. It is not recorded: it
// changes when an episode is played, and no setting.
func (s *Steering) Until(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until = n; s.engine != nil {
		s.engine.Until(n)
	}
}

// Change gives a change to the plan, for its later stages. detail describes it.
func (s *Steering) Change(by, detail string, change json.RawMessage) error {
	s.mu.Lock()
	e := s.engine
	s.mu.Unlock()
	if e == nil {
		return errNotBegun
	}
	return e.Change(by, detail, change)
}

// Quiet waits until no call is in flight and all answers are durable.
func (s *Steering) Quiet(ctx context.Context) error {
	s.mu.Lock()
	e := s.engine
	s.mu.Unlock()
	if e == nil {
		return errNotBegun
	}
	return e.Quiet(ctx)
}

// errNotBegun means that the engine does not play yet.
var errNotBegun = errors.New("the run has not begun to play yet: try again")

// Do carries out a verb. by says from where it came. sets are those of SteerSet, such as budget=20.
// SteerStop is only recorded: the caller ends the context that drains the run. A pause before play begins has its effect then, before the
// first call.
func (s *Steering) Do(verb journal.SteerVerb, by string, sets []string) (SteerState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil && verb == journal.SteerPause {
		s.first = &journal.Steered{At: time.Now(), Verb: verb, By: by}
		return s.state, nil
	}
	if s.engine == nil {
		return s.state, errNotBegun
	}
	if len(sets) > 0 && verb != journal.SteerSet {
		return s.state, fmt.Errorf("%s takes no values", verb)
	}
	now := &journal.Steered{At: time.Now(), Verb: verb, By: by}
	defer func() {
		changed := s.state
		s.shown.Store(&changed)
	}()
	var err error
	switch verb {
	case journal.SteerPause:
		err = s.pause(now, false)
	case journal.SteerResume:
		err = s.resume(now)
	case journal.SteerDrain:
		err = s.drain(now)
	case journal.SteerStop:
		err = s.engine.Keep(now)
	case journal.SteerSet:
		err = s.set(now, sets)
	default:
		err = fmt.Errorf("unknown verb %q", verb)
	}
	return s.state, err
}

// Cut pauses the run, if it is not paused, and cuts off the calls in flight. They are sent again when it is resumed. Calls
// in batches are not cut off.
func (s *Steering) Cut(by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.engine == nil:
		return errNotBegun
	case s.Elsewhere:
		return errors.New("calls in flight cannot be cut off while workers play the run")
	}
	err := s.pause(&journal.Steered{At: time.Now(), Verb: journal.SteerPause, By: by, Detail: "calls in flight are cut off"}, true)
	changed := s.state
	s.shown.Store(&changed)
	return err
}

// pause sends no more calls. Those that wait for a provider's limits return to the engine, and those in flight too if cut
// is set.
func (s *Steering) pause(now *journal.Steered, cut bool) error {
	if s.state.Paused != nil && !cut {
		return nil
	}
	if err := s.engine.Keep(now); err != nil {
		return err
	}
	s.engine.Hold(true) // first: it must not send again what the dispatcher refuses
	s.calls.Hold(&llm.Error{Kind: llm.KindCanceled, Message: engine.ErrHeld.Error(), Err: engine.ErrHeld}, cut)
	if s.state.Paused == nil {
		s.state.Paused = now
	}
	return nil
}

func (s *Steering) resume(now *journal.Steered) error {
	if s.state.Paused == nil {
		return nil
	}
	if err := s.engine.Keep(now); err != nil {
		return err
	}
	s.calls.Hold(nil, false)
	s.engine.Hold(false)
	s.state.Paused = nil
	return nil
}

func (s *Steering) drain(now *journal.Steered) error {
	if s.state.Draining != nil {
		return nil
	}
	if err := s.engine.Keep(now); err != nil {
		return err
	}
	s.engine.Finish("drained by " + now.By)
	s.state.Draining = now
	return nil
}

// settableKeys are what can be set while a run is played, and their keys in a plan.
func settableKeys() map[string]string {
	return map[string]string{"budget": "budget", "concurrency": "limits.concurrency"}
}

// set changes the plan. The changed plan is recorded, so that later processes and forks have it.
func (s *Steering) set(now *journal.Steered, sets []string) error {
	var keys []string
	for _, one := range sets {
		name, value, ok := strings.Cut(one, "=")
		key, known := settableKeys()[name]
		switch {
		case !ok:
			return fmt.Errorf("%q is not a setting: write NAME=VALUE, such as budget=20", one)
		case !known:
			return fmt.Errorf("%s cannot be set while a run is played; want one of budget, concurrency", name)
		case !strings.ContainsAny(value, "0123456789"): // nothing and null would keep what is there
			return fmt.Errorf("%s=%s has no number: write %s=N", name, value, name)
		}
		keys = append(keys, key+"="+value)
	}
	if len(keys) == 0 {
		return errors.New("nothing to set: name budget=USD, concurrency=N or both")
	}
	plan, err := planfile.FromJSON(s.plan.JSON(), s.kinds, keys)
	if err == nil && plan.Budget != s.plan.Budget {
		err = s.checkBudget(plan)
	}
	switch {
	case err != nil:
		return err
	case s.Elsewhere && plan.Limits.Concurrency != s.plan.Limits.Concurrency:
		return errors.New("concurrency is a setting of each worker: stop workers, or start more")
	case s.Elsewhere && s.plan.Budget == 0 && plan.Budget != 0:
		return errors.New("workers play the run without a budget: stop it, and resume it with --budget")
	}
	now.Detail = Changes(s.plan, plan)
	if now.Detail == "" {
		return nil
	}
	begun := s.engine.Begun()
	begun.Plan = plan.JSON()
	if err := s.engine.Keep(&begun, now); err != nil {
		return err
	}
	s.calls.Set(plan.Settings)
	s.engine.Set(plan.Settings)
	s.plan, s.state.Settings = plan, plan.Settings
	return nil
}

// checkBudget returns why the run cannot get the budget of a plan now.
func (s *Steering) checkBudget(plan *planfile.Plan) error {
	if unknown := s.calls.Unpriced(plan.Agents); len(unknown) > 0 {
		return fmt.Errorf("a budget needs the price of every model, and that of %s is unknown: stop the run, and resume it with a file of prices", strings.Join(unknown, ", "))
	}
	sums := s.calls.Budget().Sums()
	if least := sums.Spent.Plus(sums.AtRisk).Plus(sums.Aside); plan.Budget < least {
		return fmt.Errorf("the budget cannot be lower than %v now: %s; pause the run to wait for the calls that are open, or stop it", least, sums.Text())
	}
	return nil
}

// Changes says what two plans differ in of what can be set while a run is played.
func Changes(was, is *planfile.Plan) string {
	var all []string
	budget := func(p *planfile.Plan) string {
		if p.Budget > 0 {
			return p.Budget.String()
		}
		return "none"
	}
	if was.Budget != is.Budget {
		all = append(all, "budget "+budget(was)+" → "+budget(is))
	}
	concurrency := func(p *planfile.Plan) string {
		if p.Limits.Concurrency > 0 {
			return strconv.Itoa(p.Limits.Concurrency)
		}
		return "automatic"
	}
	if was.Limits.Concurrency != is.Limits.Concurrency {
		all = append(all, "concurrency "+concurrency(was)+" → "+concurrency(is))
	}
	return strings.Join(all, ", ")
}

// SteerVerb is the verb with which people steer a run. Its arguments are a SteerRequest, and its value is
// a SteerAnswer.
const SteerVerb = "steer"

// SteerRequest asks to steer a run.
type SteerRequest struct {
	Verb journal.SteerVerb `json:"verb"`
	By   string            `json:"by"`             // from where, such as ctl
	Sets []string          `json:"sets,omitempty"` // with SteerSet, such as budget=20
}

// SteerAnswer is how a run is played after a request.
type SteerAnswer struct {
	State    results.State `json:"state"`
	Draining bool          `json:"draining,omitempty"` // it begins no more episodes, also while it is paused
	By       string        `json:"by,omitempty"`       // who paused or drained it
	At       *time.Time    `json:"at,omitempty"`       // when
	InFlight int64         `json:"in_flight"`          // calls
	budget.Sums
	Concurrency int `json:"concurrency,omitempty"`
}

// Text returns the answer as a line.
func (a SteerAnswer) Text() string {
	text := string(a.State)
	switch {
	case a.State == results.StatePlaying:
	case a.State == results.StatePaused && a.Draining:
		text = fmt.Sprintf("paused and draining: %s; then %s", a.State.Effect(), results.StateDraining.Effect())
	default:
		text += ": " + a.State.Effect()
	}
	text += fmt.Sprintf("; %d in flight, %s", a.InFlight, a.Sums.Text())
	if a.Concurrency > 0 {
		text += fmt.Sprintf(", concurrency %d", a.Concurrency)
	}
	return text
}

// Steer sends a request to the process that plays run.
func Steer(ctx context.Context, run string, r SteerRequest) (a SteerAnswer, err error) {
	err = Send(ctx, run, SteerVerb, r, &a)
	return a, err
}
