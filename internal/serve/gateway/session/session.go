// Package session keeps the sessions of a gateway: what calls of one name have in common, how
// many they are and what they came to, and how a session ends.
//
// It promises that a session is one episode of the record, from its first call to its end,
// over any number of processes; that a program which reuses the name of a recorded session,
// but does not go on with it, gets an episode of its own, or somebody is told: see Meet; that a
// session is found by its owner only; that turns are numbered in the order in which calls came; and that a session that is
// closed takes no more calls and ends only when none is in flight; and that one that is replayed
// begins again when it is closed.
// Everything may be used from several goroutines.
//
// It is not for making calls: it knows them by their turns and their records.
package session

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

	"parley/internal/serve/gateway/ledger"
	"parley/internal/serve/gateway/match"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Default is the session of calls that name none.
const Default = "default"

// Own is the provider of answers that no model gave.
const Own = "gateway"

// Config is how sessions are kept.
type Config struct {
	// Journal is where they are recorded.
	Journal journal.Journal
	// MaxSteps is how many answers of one model a session gets. Default: 0, any number.
	MaxSteps int
	// Idle is after how long without a call a session is closed. Default: 0, never.
	Idle time.Duration
	// Draws says that equal questions of a session are to be told apart. Default: false.
	Draws bool
	// Replay serves what is recorded and nothing else. Default: false.
	Replay bool
	// Resume serves what is recorded first. Default: false.
	Resume bool
	// Anybody is served what is recorded, whoever recorded it. Default: false, its owner is.
	Anybody bool
	// Rules are what to ignore when a call is compared with the record. Default: nothing.
	Rules *match.Rules
	// Nearest is which share of words a recorded call must have in common with one that is not
	// recorded to be replayed for it. Default: 0, only what asks the same is replayed.
	Nearest float64
	// Aliases are other names of models.
	Aliases map[string]string
	// Tell is told what whoever runs the gateway should know of a session. Default: nobody is.
	Tell func(text string)
}

// Session is what calls of one name have in common: an episode of the run.
type Session struct {
	// Name is whose it is and what it is called, and Episode its number in the run; Header is that
	// number as the value of a header.
	ledger.Name
	Episode int
	Header  []string
	// Next is its place in a queue that is fair between sessions: under the queue's lock.
	Next int64

	revived sync.Mutex // held while it is brought to where it was
	ready   atomic.Bool
	prior   []ledger.Call           // of its name, from earlier processes; nil once it is placed
	placed  atomic.Pointer[Session] // the session that its calls belong to; nil: not decided yet

	mu      sync.Mutex
	state   State
	past    *Past                           // what is recorded of it from before; nil: nothing, or nobody asks
	turn    int                             // of the next call that is recorded
	places  int                             // given to calls so far, in this sitting
	active  map[int]context.CancelCauseFunc // by place
	idle    chan struct{}                   // closed when nothing is active; nil unless somebody waits for that
	seen    map[[16]byte]int
	steps   map[string]int // answers by model
	info    Status
	program program
	next    *Session // of the program that came after; nil: none did
	before  *Session // of the program that came before and is open, for Sweep; guarded by Sessions.mu
	sealed  *Closing // how it is to end once nothing is in flight; nil: somebody waits for that
	ending  bool     // somebody writes its end
}

// State is how far a session has come.
type State string

// The states.
const (
	Open   State = "open"
	Sealed State = "sealed" // nothing new, but what is in flight goes on
	Closed State = "closed"
)

// Status is what there is to know about a session.
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
	Connections  int            `json:"connections"` // open ones that calls came over
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

	// Record is set where calls are answered from the record.
	Record *Record `json:"record,omitempty"`
}

// Sessions are all of them.
type Sessions struct {
	cfg    Config
	ledger *ledger.Ledger
	found  *ledger.State
	seed   maphash.Seed

	mu   sync.Mutex
	byID map[ledger.Name]*Session
}

// New returns the sessions of a record that was found as it is. Without a ledger nothing is
// recorded.
func New(c Config, l *ledger.Ledger, found *ledger.State) *Sessions {
	return &Sessions{cfg: c, ledger: l, found: found, seed: maphash.MakeSeed(), byID: map[ledger.Name]*Session{}}
}

// ErrUnknown is returned for a session that there is not.
var ErrUnknown = errors.New("there is no such session")

// Find returns a session of its owner, and begins it if need be and begin says so. A session
// of somebody else is not found, whatever its name.
func (a *Sessions) Find(ctx context.Context, id ledger.Name, begin bool) (*Session, error) {
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
		return nil, err // the next one to ask tries again
	}
	s.ready.Store(true)
	return s, nil
}

// recorded finds, where a record is served to everybody, the session that is meant: one that
// an owner recorded is served to a program that has no key.
func (a *Sessions) recorded(id ledger.Name) ledger.Name {
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

// ended takes in the end of a session that was closed before.
func (s *Session) ended(e *journal.Ended) {
	s.state, s.info.ClosedAt = Closed, &e.At
	raw, _ := e.Outcome.Data.(json.RawMessage)
	var end ending
	if json.Unmarshal(raw, &end) == nil {
		s.info.Reason, s.info.Mode = end.Reason, end.Mode
	}
}

// ClosedError is returned to a call of a session that takes none any more.
type ClosedError struct{ Status }

func (e ClosedError) Error() string {
	why := e.Reason
	if why == "" {
		why = "no reason was given"
	}
	return fmt.Sprintf("session %s is %s: %s", e.Session, e.Status.Status, why)
}

// Enter counts a call in and returns its place, by which it leaves. cancel ends the call if
// the session is aborted.
func (s *Session) Enter(cancel context.CancelCauseFunc) (place int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != Open {
		return 0, ClosedError{s.status()}
	}
	place = s.places
	s.places++
	s.active[place] = cancel
	s.info.LastSeen = time.Now()
	return place, nil
}

// Turn gives a call its turn. What is served from the record has one already, and takes no
// other: a program that is run again leaves no holes in the record.
func (s *Session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn
	s.turn++
	s.info.Requests++
	return turn
}

// leave counts a call out.
func (s *Session) leave(place int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, place)
	s.info.LastSeen = time.Now()
	if len(s.active) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Sample numbers equal questions of a session: the second is another draw than the first.
// Where no session is named an equal question is the same one.
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

// Answered counts what came of a call. It is called with the record of it.
func (s *Session) Answered(c *ledger.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c)
}

func (s *Session) count(c *ledger.Call) {
	switch {
	case c.Error != nil:
		s.info.Errors++
		s.info.Cost = s.info.Cost.Plus(c.Error.Metadata.Cost)
	case c.Response != nil && c.Request != nil:
		s.info.Usage = s.info.Usage.Plus(c.Response.Usage)
		s.info.Cost = s.info.Cost.Plus(c.Response.Metadata.Cost)
		s.info.LastModel = c.Request.Model
		if c.Response.Provider == Own {
			s.info.Stops++
			s.info.Truncated, s.info.Why = true, "max_steps"
			return
		}
		s.steps[c.Request.Model]++
		s.info.Steps++
	}
}

// Spent says whether a session has had all the answers of a model it may have.
func (s *Session) Spent(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.MaxSteps > 0 && s.steps[model] >= s.info.MaxSteps
}

// Past is what is recorded of the session from before, or nil.
func (s *Session) Past() *Past {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past
}

// Status tells how it stands.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status()
}

// status is called with the session locked.
func (s *Session) status() Status {
	out := s.info
	out.Status, out.Active, out.Connections = s.state, len(s.active), s.program.clients
	out.StepsByModel = maps.Clone(s.steps)
	if s.past != nil {
		out.Record = s.past.status()
	}
	return out
}

// ending is what an episode of a gateway comes to.
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
