// Part session keeps the sessions of a gateway: which session a call belongs to, what its calls add up to,
// and how it ends.
//
// It promises that a session is one episode of the record, over any number of processes; that a program that
// reuses the name of a session gets its own episode, or that this is reported: see Assign; that only its owner
// finds a session; that turns are numbered in the order of the calls; that a closed session takes no more
// calls and ends when none is in flight; and that a replayed session starts over when it is closed. It is safe
// for concurrent use.
//
// It is not for making calls.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// sessionDefault is the session of calls without a session.
const sessionDefault = "default"

// sessionOwn is the provider of answers that no model gave.
const sessionOwn = "gateway"

// sessionConfig configures Sessions.
type sessionConfig struct {
	// Journal is the record.
	Journal journal.Journal
	// MaxSteps is how many answers of one model a session gets. Default: 0, no limit.
	MaxSteps int
	// Idle closes a session after so long without a call. Default: 0, never.
	Idle time.Duration
	// Draws numbers equal requests of a session, as different draws. Default: false.
	Draws bool
	// Replay serves only the record. Default: false.
	Replay bool
	// Resume serves the record first. Default: false.
	Resume bool
	// Anybody serves the record to everybody, not only to its owner. Default: false.
	Anybody bool
	// Rules say what to ignore when a call is compared with the record. Default: nothing.
	Rules *format.Rules
	// Nearest is the share of words that a recorded call must have in common with a call to be replayed for
	// it. Default: 0, only equal calls are replayed.
	Nearest float64
	// Aliases maps other names of models.
	Aliases map[string]string
	// Tell receives messages for the person who runs the gateway. Default: nil.
	Tell func(text string)
}

// Session is what calls of one name have in common: an episode of the run.
type Session struct {
	// Name has its owner and its name, Episode its number in the run, and Header that number as a header
	// value.
	Name
	Episode int
	Header  []string
	// Next is its next position in a queue that is fair between sessions. The queue's lock guards it.
	Next int64

	revived sync.Mutex // held while its state is restored or its episode is chosen
	ready   atomic.Bool
	prior   []Call                  // recorded calls of its name; nil once its episode is chosen
	placed  atomic.Pointer[Session] // the session of its calls; nil until that is chosen

	mu      sync.Mutex
	state   State
	past    *Past                           // the record to serve; may be nil
	turn    int                             // of the next recorded call
	lastID  int                             // last call id in this process
	active  map[int]context.CancelCauseFunc // by call id
	idle    chan struct{}                   // closed when nothing is active; nil unless somebody waits
	seen    map[[16]byte]int
	steps   map[string]int // answers by model
	info    Status
	program program
	next    *Session // of the next program; may be nil
	before  *Session // of the previous program, if it is open, for Sweep; guarded by Sessions.mu
	sealed  *closing // how it ends once nothing is in flight; nil: Close waits for that
	ending  bool     // its end is being written
}

// State is the state of a session.
type State string

// The states.
const (
	sessionOpen State = "open"
	Sealed      State = "sealed" // no new calls; those in flight continue
	Closed      State = "closed"
)

// Status describes a session.
type Status struct {
	Session   string     `json:"session"`
	Episode   int        `json:"episode"`
	Status    State      `json:"status"`
	FirstSeen time.Time  `json:"first_seen"`
	LastSeen  time.Time  `json:"last_seen"`
	ClosedAt  *time.Time `json:"closed_at,omitempty"`
	Reason    string     `json:"close_reason,omitempty"`
	Mode      string     `json:"completion_mode,omitempty"`

	Active       int            `json:"active"`
	Connections  int            `json:"connections"` // open ones
	Requests     int            `json:"requests"`
	Errors       int            `json:"errors"`
	LastModel    string         `json:"last_model,omitempty"`
	MaxSteps     int            `json:"max_steps,omitempty"`
	Steps        int            `json:"llm_step_count"`
	StepsByModel map[string]int `json:"llm_steps_by_model,omitempty"`
	Usage        llm.Usage      `json:"usage"`
	Cost         llm.Money      `json:"cost_usd"`

	Truncated bool   `json:"truncated"`
	Why       string `json:"truncate_reason,omitempty"`
	Stops     int    `json:"stop_responses_sent"`

	// Record is set if calls are answered from the record.
	Record *Record `json:"record,omitempty"`
}

// sessionSet is the set of all sessions.
type sessionSet struct {
	cfg    sessionConfig
	ledger *gatewayLedger
	found  *ledgerState
	seed   maphash.Seed

	mu   sync.Mutex
	byID map[Name]*Session
}

// newSession returns the sessions of a record. Without a ledger nothing is recorded.
func newSession(c sessionConfig, l *gatewayLedger, found *ledgerState) *sessionSet {
	return &sessionSet{cfg: c, ledger: l, found: found, seed: maphash.MakeSeed(), byID: map[Name]*Session{}}
}

// errUnknown is returned for a session that does not exist.
var errUnknown = errors.New("there is no such session")

// Find returns a session of an owner. With begin it begins a session that does not exist.
func (a *sessionSet) Find(ctx context.Context, id Name, begin bool) (*Session, error) {
	id = a.recorded(id)
	a.mu.Lock()
	s := a.byID[id]
	if s == nil {
		var err error
		if s, err = a.open(id, begin); err != nil {
			a.mu.Unlock()
			return nil, err
		}
		a.byID[id] = s
	}
	a.mu.Unlock()
	if s.ready.Load() {
		return s, nil
	}
	s.revived.Lock()
	defer s.revived.Unlock()
	if s.ready.Load() {
		return s, nil
	}
	if err := a.revive(ctx, s); err != nil {
		return nil, err // the next Find tries again
	}
	s.ready.Store(true)
	return s, nil
}

// recorded returns the name of the session to serve. If a record is served to everybody, a program without a
// key gets the session of any owner.
func (a *sessionSet) recorded(id Name) Name {
	if !a.cfg.Anybody {
		return id
	}
	best, at := id, -1
	for name, episodes := range a.found.Sessions {
		if name == id {
			return id
		}
		if name.ID == id.ID && (at < 0 || episodes[0] < at) {
			best, at = name, episodes[0]
		}
	}
	return best
}

// ended restores the end of a closed session.
func (s *Session) ended(e *journal.Ended) {
	s.state, s.info.ClosedAt = Closed, &e.At
	raw, _ := e.Outcome.Data.(json.RawMessage)
	var end ending
	if json.Unmarshal(raw, &end) == nil {
		s.info.Reason, s.info.Mode = end.Reason, end.Mode
	}
}

// closedError is the error of a call in a session that takes no more calls.
type closedError struct{ Status }

func (e closedError) Error() string {
	why := e.Reason
	if why == "" {
		why = "without a reason"
	}
	return fmt.Sprintf("session %s is %s: %s", e.Session, e.Status.Status, why)
}

// Enter adds a call and returns its id, which Leave takes. cancel ends the call if the session is aborted.
func (s *Session) Enter(cancel context.CancelCauseFunc) (id int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return 0, closedError{s.status()}
	}
	s.lastID++
	s.active[s.lastID] = cancel
	s.info.LastSeen = time.Now()
	return s.lastID, nil
}

// Turn returns the turn of a new call. A call that is served from the record has its turn already.
func (s *Session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn
	s.turn++
	s.info.Requests++
	return turn
}

// leave removes a call.
func (s *Session) leave(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, id)
	s.info.LastSeen = time.Now()
	if len(s.active) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Sample numbers equal requests of a session: the second is another draw. Without a session, equal requests
// are one.
func (s *Session) Sample(digest [16]byte) int {
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
func (s *Session) Answered(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c)
}

func (s *Session) count(c *Call) {
	switch {
	case c.Error != nil:
		s.info.Errors++
		s.info.Cost = s.info.Cost.Plus(c.Error.Metadata.Cost)
	case c.Response != nil && c.Request != nil:
		s.info.Usage = s.info.Usage.Plus(c.Response.Usage)
		s.info.Cost = s.info.Cost.Plus(c.Response.Metadata.Cost)
		s.info.LastModel = c.Request.Model
		if c.Response.Provider == sessionOwn {
			s.info.Stops++
			s.info.Truncated, s.info.Why = true, "max_steps"
			return
		}
		s.steps[c.Request.Model]++
		s.info.Steps++
	}
}

// Spent reports whether a session had all its answers of a model.
func (s *Session) Spent(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.MaxSteps > 0 && s.steps[model] >= s.info.MaxSteps
}

// Past returns the record to serve, or nil.
func (s *Session) Past() *Past {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past
}

// Status returns the status of the session.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status()
}

// status is Status with Session.mu held.
func (s *Session) status() Status {
	out := s.info
	out.Status, out.Active, out.Connections = s.state, len(s.active), s.program.clients
	out.StepsByModel = maps.Clone(s.steps)
	if s.past != nil {
		out.Record = s.past.status()
	}
	return out
}

// ending is the outcome of an episode of a gateway.
type ending struct {
	Session   string `json:"session"`
	Reason    string `json:"reason,omitempty"`
	Mode      string `json:"mode"`
	Requests  int    `json:"requests"`
	Errors    int    `json:"errors"`
	Steps     int    `json:"steps"`
	Truncated bool   `json:"truncated,omitempty"`
}

func (s *Session) outcome(scores []world.Score) (world.Outcome, error) {
	i := s.info
	data, err := json.Marshal(ending{s.ID, i.Reason, i.Mode, i.Requests, i.Errors, i.Steps, i.Truncated})
	o := world.Outcome{Data: json.RawMessage(data), Scores: scores}
	if i.Mode == modeAbort {
		o.Failed = "aborted: " + i.Reason
	}
	return o, err
}
