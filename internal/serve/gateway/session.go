package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// defaultSession is the session of calls without a session.
const defaultSession = "default"

// ownProvider is the provider of answers that no model gave.
const ownProvider = "gateway"

// session is what calls of one name have in common: an episode of the run.
type session struct {
	// Name has its owner and its name, Episode its number in the run, and Header that number as a header
	// value.
	sessionName
	recorded sessionName // whose record it has: its own, or in a replay one that begins alike
	Episode  int
	Header   []string
	program  *programSession // nil: it is no program's
	about    about           // does not change once it has calls
	// Next is its next position in a queue that is fair between sessions. The queue's lock guards it.
	Next int64

	restoring sync.Mutex // held while its state is restored
	ready     atomic.Bool

	mu      sync.Mutex
	state   sessionState
	past    *replay                         // the record to serve; may be nil
	turn    int                             // of the next recorded call
	lastID  int                             // last call id in this process
	active  map[int]context.CancelCauseFunc // by call id
	seen    map[[16]byte]int
	steps   map[string]int // answers by model
	batches ownBatches
	info    sessionStatus
	closing *sessionClosing // how it ends once nothing is in flight; nil: it is not being closed, or its end is being written
}

// sessionState is the state of a session.
type sessionState string

// The states.
const (
	stateOpen   sessionState = "open"
	stateSealed sessionState = "sealed" // no new calls; those in flight continue
	stateClosed sessionState = "closed"
)

// sessionStatus describes a session.
type sessionStatus struct {
	Session string `json:"session"`
	Episode int    `json:"episode"`
	about
	Status    sessionState `json:"status"`
	FirstSeen time.Time    `json:"first_seen"`
	LastSeen  time.Time    `json:"last_seen"`
	ClosedAt  *time.Time   `json:"closed_at,omitempty"`
	Reason    string       `json:"close_reason,omitempty"`
	Mode      string       `json:"completion_mode,omitempty"`

	Active       int              `json:"active"`
	Waits        []string         `json:"waits,omitempty"` // for room in the budget, while calls of the session are active; hostile
	Requests     int              `json:"requests"`
	Errors       int              `json:"errors"`
	LastModel    string           `json:"last_model,omitempty"`
	MaxSteps     int              `json:"max_steps,omitempty"`
	Steps        int              `json:"llm_step_count"`
	StepsByModel map[string]int   `json:"llm_steps_by_model,omitempty"`
	Usage        llm.Usage        `json:"usage"`
	Cost         llm.Money        `json:"cost_usd"`
	spent        journal.Spending // Errors, Usage and Cost are of it

	Truncated bool   `json:"truncated"`
	Why       string `json:"truncate_reason,omitempty"`
	Stops     int    `json:"stop_responses_sent"`

	// Record is set if calls are answered from the record.
	Record *replayStatus `json:"record,omitempty"`
}

// sessionSet has all sessions of a gateway: which session a call belongs to, what its calls add up to, and how it
// ends. It is safe for concurrent use.
//
// A session is one episode of the record, over any number of processes. Its name alone decides which calls belong
// to it. Only its owner finds a session. Turns are numbered in the order of the calls. A closed session takes no
// more calls and ends when none is in flight. A replayed session starts over when it is closed.
type sessionSet struct {
	cfg    Config
	ledger *ledger
	found  *ledgerContents
	rule   *stopRule

	mu        sync.Mutex
	byID      map[sessionName]*session
	forgotten int // sessions that are no longer in byID

	matching sync.Mutex
	openings []opening // what recorded sessions begin with; nil until needed
}

// newSessionSet returns the sessions of a record. Without a ledger nothing is recorded.
func newSessionSet(c Config, l *ledger, found *ledgerContents) *sessionSet {
	return &sessionSet{cfg: c, ledger: l, found: found, byID: map[sessionName]*session{}}
}

// refusedError says why a session is not there, or takes no call, with the status and the code of the answer.
type refusedError struct {
	status  int
	code    string
	message string
}

func (e *refusedError) Error() string { return e.message }

// sessionFault returns the status and the code of the answer to an error of a session.
func sessionFault(err error) (status int, code string) {
	if e, ok := errors.AsType[*refusedError](err); ok {
		return e.status, e.code
	}
	return http.StatusInternalServerError, "record_failed"
}

// Begin returns the session of an owner that a call names, and begins it if it does not exist. It is what it was when it began.
func (a *sessionSet) Begin(ctx context.Context, id sessionName, is about) (*session, error) {
	s, err := a.find(ctx, id, true, is)
	if err == nil && !a.cfg.Replay && !s.about.agrees(is) {
		return nil, &refusedError{http.StatusConflict, "session_differs", "the session began with another agent, condition, task or tag: name another session"}
	}
	return s, err
}

// Find returns a session of an owner that exists.
func (a *sessionSet) Find(ctx context.Context, id sessionName) (*session, error) {
	return a.find(ctx, id, false, about{})
}

func (a *sessionSet) find(ctx context.Context, id sessionName, begin bool, is about) (*session, error) {
	id = a.recordedName(id)
	a.mu.Lock()
	s := a.byID[id]
	if s == nil {
		var err error
		if s, err = a.open(id, begin, is); err != nil {
			a.mu.Unlock()
			return nil, err
		}
		a.byID[id] = s
	}
	a.mu.Unlock()
	if s.ready.Load() {
		return s, nil
	}
	s.restoring.Lock()
	defer s.restoring.Unlock()
	if s.ready.Load() {
		return s, nil
	}
	if err := a.restore(ctx, s); err != nil {
		return nil, err // the next Find tries again
	}
	s.ready.Store(true)
	return s, nil
}

// anybody reports whether the record is served to everybody, and not only to its owner.
func (a *sessionSet) anybody() bool { return a.cfg.Replay && len(a.cfg.Keys) == 0 }

// recordedName returns the name of the session to serve. If a record is served to everybody, a program without a
// key gets the session of any owner.
func (a *sessionSet) recordedName(id sessionName) sessionName {
	if !a.anybody() {
		return id
	}
	best, at := id, -1
	for name, episode := range a.found.Sessions {
		if name == id {
			return id
		}
		if name.ID == id.ID && (at < 0 || episode < at) {
			best, at = name, episode
		}
	}
	return best
}

// restoreEnd restores the end of a closed session.
func (s *session) restoreEnd(e *journal.Ended) {
	s.state, s.info.ClosedAt = stateClosed, &e.At
	raw, _ := e.Outcome.Data.(json.RawMessage)
	var end sessionOutcome
	if json.Unmarshal(raw, &end) == nil {
		s.info.Reason, s.info.Mode = end.Reason, end.Mode
	}
}

// Enter adds a call and returns its id, which Leave takes. cancel ends the call if the session is aborted.
func (s *session) Enter(cancel context.CancelCauseFunc) (id int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateOpen {
		why := cmp.Or(s.info.Reason, "without a reason")
		return 0, &refusedError{http.StatusConflict, "session_closed", fmt.Sprintf("session %s is %s: %s", s.ID, s.state, why)}
	}
	s.lastID++
	s.active[s.lastID] = cancel
	s.info.LastSeen = time.Now()
	return s.lastID, nil
}

// Turn returns the turn of a new call. A call that is served from the record has its turn already.
func (s *session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn
	s.turn++
	s.info.Requests++
	return turn
}

// Sample numbers equal requests of a session: the second is another draw. Without a session, equal requests
// are one.
func (s *session) Sample(digest [16]byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		return 0
	}
	n := s.seen[digest]
	s.seen[digest] = n + 1
	return n
}

// Answered counts the answer of a call.
func (s *session) Answered(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c)
}

func (s *session) count(c *Call) {
	i := &s.info
	i.spent.Add(&c.Replied)
	i.Errors, i.Usage, i.Cost = i.spent.Failures(), i.spent.Usage, i.spent.Cost
	if c.Response == nil || c.Request == nil {
		return
	}
	i.LastModel = c.Request.Model
	if c.Response.Provider == ownProvider {
		i.Stops++
		i.Truncated, i.Why = true, "max_steps"
		return
	}
	s.steps[c.Request.Model]++
	i.Steps++
}

// stepsUsedUp reports whether a session had all its answers of a model.
func (s *session) stepsUsedUp(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.MaxSteps > 0 && s.steps[model] >= s.info.MaxSteps
}

// Past returns the record to serve, or nil.
func (s *session) Past() *replay {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past
}

// Status returns the status of the session.
func (s *session) Status() sessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status()
}

// status is Status with Session.mu held.
func (s *session) status() sessionStatus {
	out := s.info
	out.about, out.Status, out.Active = s.about, s.state, len(s.active)
	out.StepsByModel = maps.Clone(s.steps)
	if s.past != nil {
		out.Record = s.past.status()
	}
	return out
}

// sessionOutcome is the outcome of an episode of a gateway.
type sessionOutcome struct {
	Session   string `json:"session"`
	Reason    string `json:"reason,omitempty"`
	Mode      string `json:"mode"`
	Requests  int    `json:"requests"`
	Errors    int    `json:"errors"`
	Steps     int    `json:"steps"`
	Truncated bool   `json:"truncated,omitempty"`
}

func (s *session) outcome(scores []world.Score) (world.Outcome, error) {
	i := s.info
	data, err := json.Marshal(sessionOutcome{s.ID, i.Reason, i.Mode, i.Requests, i.Errors, i.Steps, i.Truncated})
	o := world.Outcome{Data: json.RawMessage(data), Scores: scores}
	if i.Mode == modeAbort {
		o.Failed = "aborted: " + i.Reason
	}
	return o, err
}

// opening is what a recorded session begins with.
type opening struct {
	name    sessionName
	episode int
	api     string
	calls   []fingerprint
	served  int      // how many sessions it was served to
	last    *session // the last of them
}

// fingerprint identifies what a call asks: exactly, and by what the rules leave of it.
type fingerprint struct {
	exact [16]byte
	loose *[sha256.Size]byte // nil without rules, or if the request is too large for them
}

func (a *sessionSet) fingerprint(digest [16]byte, api string, q *llm.Request) fingerprint {
	f := fingerprint{exact: digest}
	if a.cfg.Rules != nil {
		if sum, ok := a.cfg.Rules.Digest(api, q); ok {
			f.loose = &sum
		}
	}
	return f
}

// equal reports whether two calls ask the same.
func (f fingerprint) equal(g fingerprint) bool {
	return f.exact == g.exact || f.loose != nil && g.loose != nil && *f.loose == *g.loose
}

// maxOpening is how many calls of a session are compared to find its record. Programs make their first calls at once, so that
// any of them may be the first.
const maxOpening = 8

// Match finds the recorded session that begins with c, and serves it to a session whose name is not in the record. Sessions with
// the same beginning are served in turns. If there is none, diverged says how c differs from what another one begins with.
func (a *sessionSet) Match(ctx context.Context, id sessionName, c *format.Call) (diverged string, err error) {
	a.matching.Lock()
	defer a.matching.Unlock()
	if a.has(a.recordedName(id)) {
		return "", nil
	}
	if err := a.readOpenings(ctx); err != nil {
		return "", err
	}
	f := a.fingerprint(c.Turn(), string(c.API), &c.Request)
	var same, other *opening
	for i := range a.openings {
		o := &a.openings[i]
		switch {
		case !a.anybody() && o.name.Owner != id.Owner:
		case slices.ContainsFunc(o.calls, f.equal):
			if same == nil || o.served < same.served {
				same = o
			}
		case o.api == string(c.API) && (other == nil || o.served < other.served):
			other = o
		}
	}
	if a.cfg.Nearest > 0 {
		same = cmp.Or(same, other)
	}
	switch {
	case same != nil:
		a.serveTo(same, id)
		return "", nil
	case other == nil:
		return "", nil // Begin does not know the session either
	}
	calls, err := ReadCalls(context.WithoutCancel(ctx), a.cfg.Journal, other.episode)
	if err != nil {
		return "", err
	}
	return "session " + id.ID + ": no recorded session begins with this call: session " + other.name.ID + ", " + newReplay(calls, &a.cfg).Diverged(c), nil
}

// has reports whether a session is open or in the record.
func (a *sessionSet) has(id sessionName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, recorded := a.found.Sessions[id]
	return recorded || a.byID[id] != nil
}

// serveTo serves a recorded session to another one. One that got all of it is forgotten: a program may run very often.
func (a *sessionSet) serveTo(o *opening, id sessionName) {
	s := a.newSession(id, o.episode)
	s.recorded = o.name
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.last != nil && o.last.servedAll() {
		delete(a.byID, o.last.sessionName)
		a.forgotten++
	}
	a.byID[id] = s
	o.served, o.last = o.served+1, s
}

// servedAll reports whether a session got every recorded call, and makes none.
func (s *session) servedAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.past == nil || len(s.active) > 0 {
		return false
	}
	r := s.past.status()
	return r.Found == r.Calls
}

// readOpenings reads what recorded sessions begin with, in the order in which they began.
func (a *sessionSet) readOpenings(ctx context.Context) error {
	if a.openings != nil {
		return nil
	}
	var all []opening
	for name, episode := range a.found.Sessions {
		calls, err := ReadCalls(context.WithoutCancel(ctx), a.cfg.Journal, episode)
		if err != nil {
			return err
		}
		o := opening{name: name, episode: episode}
		for i := range calls[:min(len(calls), maxOpening)] {
			was := &calls[i]
			o.api = cmp.Or(o.api, was.Label)
			f := fingerprint{exact: was.Digest}
			if was.Request != nil {
				f = a.fingerprint(was.Digest, was.Label, was.Request)
			}
			o.calls = append(o.calls, f)
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y opening) int { return cmp.Compare(x.episode, y.episode) })
	a.openings = all
	return nil
}

// open returns a session for a name: of its recorded episode, or of a new one.
func (a *sessionSet) open(id sessionName, begin bool, is about) (*session, error) {
	if episode, ok := a.found.Sessions[id]; ok {
		s := a.newSession(id, episode)
		s.about = a.found.About[episode]
		return s, nil
	}
	switch {
	case !begin:
		return nil, &refusedError{http.StatusNotFound, "session_unknown", "there is no session " + id.ID + " of this key: a session belongs to the key that opened it"}
	case a.ledger == nil:
		return nil, &refusedError{http.StatusNotFound, "session_unknown", "session " + id.ID + " is not in the record that is served"}
	}
	if err := a.rule.refusal(is); err != nil {
		return nil, err
	}
	episode, err := a.ledger.Begin(id, is)
	if err != nil {
		return nil, err
	}
	s := a.newSession(id, episode)
	s.about = is
	if a.cfg.Resume {
		s.past = newReplay(nil, &a.cfg)
	}
	return s, nil
}

// newSession returns a session for an episode.
func (a *sessionSet) newSession(id sessionName, episode int) *session {
	now := time.Now()
	s := &session{sessionName: id, recorded: id, Episode: episode, Header: []string{strconv.Itoa(episode)}, state: stateOpen, active: map[int]context.CancelCauseFunc{}, steps: map[string]int{}}
	s.info = sessionStatus{Session: id.ID, Episode: episode, FirstSeen: now, LastSeen: now, MaxSteps: a.cfg.MaxSteps}
	if a.cfg.Cache != nil && id.ID != defaultSession { // equal requests are different draws
		s.seen = map[[16]byte]int{}
	}
	return s
}

// restore restores the state of a recorded session.
func (a *sessionSet) restore(ctx context.Context, s *session) error {
	if _, recorded := a.found.Sessions[s.recorded]; !recorded {
		return nil
	}
	calls, err := ReadCalls(context.WithoutCancel(ctx), a.cfg.Journal, s.Episode)
	if err != nil {
		return err
	}
	end, err := a.found.Ended.Outcome(context.WithoutCancel(ctx), a.cfg.Journal, s.Episode)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countRecorded(calls)
	for i := range calls {
		s.batches.learn(&calls[i], a.found.Batches)
	}
	if a.cfg.Replay || a.cfg.Resume {
		s.past = newReplay(calls, &a.cfg)
	}
	if end != nil && !a.cfg.Replay {
		s.restoreEnd(end)
	}
	return nil
}

// countRecorded counts the recorded calls of the session.
func (s *session) countRecorded(calls []Call) {
	for i := range calls {
		c := &calls[i]
		s.turn = max(s.turn, c.Turn.Turn+1)
		if i == 0 {
			s.info.FirstSeen = c.At
		}
		s.info.LastSeen = c.At
		s.info.Requests++
		s.count(c)
		if s.seen != nil {
			s.seen[c.Digest]++
		}
	}
}

// The ways to close a session.
const (
	modeComplete = "complete" // waits for calls in flight
	modeSeal     = "seal"     // does not wait for calls in flight
	modeAbort    = "abort"    // ends calls in flight
)

// closeRequest says how to close a session.
type closeRequest struct {
	Reason string `json:"reason"`
	Mode   string `json:"completion_mode"`
	// Scores are the scores of the session by name.
	Scores map[string]float64 `json:"scores"`
}

// Check checks c and sets its defaults.
func (c *closeRequest) Check() error {
	switch c.Mode {
	case "":
		c.Mode = modeComplete
	case modeComplete, modeSeal, modeAbort:
	default:
		return fmt.Errorf("unknown completion_mode %q; want one of complete, seal, abort", c.Mode)
	}
	for name, v := range c.Scores {
		if math.IsNaN(v) || math.IsInf(v, 0) || name == "" {
			return fmt.Errorf("scores: %q: want names with numbers", name)
		}
	}
	return nil
}

func (c *closeRequest) scores(seat string) (out []world.Score) {
	for _, name := range slices.Sorted(maps.Keys(c.Scores)) {
		out = append(out, world.Score{Seat: seat, Name: name, Value: c.Scores[name]})
	}
	return out
}

// errAborted is the cause that ends the calls of an aborted session.
var errAborted = errors.New("the session was aborted")

// Close closes a session: it takes no more calls, and ends when none is in flight. Closing a closed session
// has no effect, and one with an open batch is not closed. A replayed session starts over.
func (a *sessionSet) Close(ctx context.Context, s *session, c closeRequest) (sessionStatus, error) {
	s.mu.Lock()
	if s.state != stateOpen {
		defer s.mu.Unlock()
		return s.status(), nil
	}
	if s.batches.open() { // nobody could fetch what is paid for
		defer s.mu.Unlock()
		return s.status(), &refusedError{http.StatusConflict, "batch_open", "a batch of the session is open: fetch its results, or cancel it and look at it once more, then close the session"}
	}
	ended := make(chan sessionEnd, 1)
	s.state, s.closing = stateSealed, &sessionClosing{c, ended}
	s.info.Reason, s.info.Mode = c.Reason, c.Mode
	if c.Mode == modeAbort {
		for _, cancel := range s.active {
			cancel(errAborted)
		}
	}
	idle := len(s.active) == 0
	s.mu.Unlock()
	a.endIfIdle(s)
	if c.Mode == modeSeal && !idle {
		return s.Status(), nil // the last call ends it
	}
	select {
	case end := <-ended:
		return end.status, end.err
	case <-ctx.Done():
	}
	select {
	case end := <-ended: // at the same moment
		return end.status, end.err
	default:
		return s.Status(), context.Cause(ctx) // the last call ends it
	}
}

// sessionClosing says how a session is closed. Its end is sent to ended.
type sessionClosing struct {
	closeRequest
	ended chan<- sessionEnd
}

// sessionEnd is the status of a session that has ended, or why its end is not recorded.
type sessionEnd struct {
	status sessionStatus
	err    error
}

// endIfIdle records the end of a session that is being closed, once it has no calls in flight.
func (a *sessionSet) endIfIdle(s *session) {
	now := time.Now()
	s.mu.Lock()
	c := s.closing
	if c == nil || len(s.active) > 0 {
		s.mu.Unlock()
		return
	}
	s.closing = nil
	outcome, err := s.outcome(c.scores(s.about.seat()))
	s.mu.Unlock()
	if err == nil && a.ledger != nil {
		if err = a.ledger.End(s.Episode, outcome, now); err == nil {
			a.rule.ended(s.about, outcome)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.past
	if err == nil {
		if past != nil {
			s.info.Record = past.status()
		}
		s.state, s.info.ClosedAt, s.past, s.seen = stateClosed, &now, nil, nil
	}
	c.ended <- sessionEnd{s.status(), err}
	if err == nil && a.cfg.Replay {
		s.rewind(past)
	}
}

// rewind opens a replayed session again, so that its record is served from the start. Session.mu is held.
func (s *session) rewind(past *replay) {
	if past != nil {
		past.rewind()
	}
	s.state, s.past = stateOpen, past
	s.info.ClosedAt, s.info.Reason, s.info.Mode, s.info.Record = nil, "", "", nil
}

// Leave removes a call from its session. id is what Enter returned.
func (a *sessionSet) Leave(s *session, id int) {
	s.mu.Lock()
	delete(s.active, id)
	s.info.LastSeen = time.Now()
	s.mu.Unlock()
	a.endIfIdle(s)
}

// Sweep closes idle sessions until ctx is done.
func (a *sessionSet) Sweep(ctx context.Context) {
	if a.cfg.Idle <= 0 || a.ledger == nil {
		return
	}
	t := time.NewTicker(max(a.cfg.Idle/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, s := range a.idle(time.Now().Add(-a.cfg.Idle)) {
				_, _ = a.Close(ctx, s, closeRequest{Reason: fmt.Sprintf("idle for %v", a.cfg.Idle), Mode: modeComplete})
			}
		}
	}
}

// idle returns the sessions without activity since then, except the default one and those that wait for batches.
func (a *sessionSet) idle(since time.Time) (out []*session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byID {
		s.mu.Lock()
		if s.state == stateOpen && len(s.active) == 0 && s.ID != defaultSession && s.info.LastSeen.Before(since) && !s.batches.open() {
			out = append(out, s)
		}
		s.mu.Unlock()
	}
	return out
}

// Counts returns how many sessions are open, and how many there are.
func (a *sessionSet) Counts() (open, all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.byID {
		s.mu.Lock()
		if s.state == stateOpen {
			open++
		}
		s.mu.Unlock()
	}
	return open, len(a.byID) + a.forgotten
}
