// Package replica chooses between several servers of one model.
//
// The calls of a session, which is an episode, go to one server, so that its prefix cache holds what they
// share. A new session goes to the server with the fewest sessions. A server that fails rests (package
// health): its sessions and the calls that wait for it move to others. After the rest it is probed and gets
// one call before it gets more.
//
// It promises that the server never changes what is asked; that a call fails only if no server is left that
// could take it; that a session is kept until Release; and that Close returns when everything the set
// started has ended. A Set is safe for concurrent use.
//
// It is not for limits, which package dispatch keeps for each server, or for retrying a call that a server
// may have begun.
package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/internal/kit/health"
	"parley/llm"
)

// Pinger is a server, or a model's connection to one, that can be probed.
type Pinger interface {
	// Alive returns nil if the server can be reached.
	Alive(ctx context.Context) error
}

// Server is what a server can do besides answering calls. Its methods are safe for concurrent use and
// return soon after ctx is done.
type Server interface {
	Pinger
	// Load asks the server how busy it is.
	Load(ctx context.Context) (Load, error)
	// End tells the server that a session is over; whole reports whether the session was finished.
	End(ctx context.Context, session string, whole bool) error
}

// Member is one server of a set.
type Member struct {
	// Name is its address, for readers.
	Name string
	// Server is nil if the server can only answer calls.
	Server Server
	// Steer receives the load that the server reports. It may be nil.
	Steer func(Load)
	// Recall makes calls that wait for the server, and were not sent, fail with ErrRecalled. It may be nil.
	Recall func()
}

// ErrRecalled is wrapped by the error of a call that was taken out of the queue of a server that rests.
var ErrRecalled = errors.New("called back from a server that rests")

// Config says what a set does besides answering calls.
type Config struct {
	// Look is how often each server is asked for its load. Default: never.
	Look time.Duration
	// Ends is whether servers are notified when sessions are over. Default: false.
	Ends bool
	// Stay keeps a session on its server while that can be reached, for servers that remember their
	// sessions. Default: false, a session also leaves a crowded server.
	Stay bool
	// Rests is called when a server begins to rest and when it answers again. It runs in the goroutine of
	// a call, which waits for it. Default: nil.
	Rests func(Rest)
}

// Rest says that a server began to rest or, if Why is nil, that it answers again.
type Rest struct {
	Name string
	Why  error // the failure
	// Others is how many servers take calls while this one rests.
	Others int
}

// Set is several servers of one model.
type Set struct {
	config     Config
	members    []*member
	looking    sync.Once
	background sync.WaitGroup  // looks, probes and ends
	open       context.Context //nolint:containedctx // until Close: what run starts outlives the call that started it
	stop       context.CancelFunc

	mu       sync.Mutex
	sessions map[string]*placement
	closed   bool
}

// placement is where a session is.
type placement struct {
	at    *member   // nil until its next call
	past  []*member // where it was before
	avoid *member   // the server that failed it last
}

// member is a server and its state. Set.mu guards everything below index.
type member struct {
	Member
	index    int
	calls    int // in flight
	sessions int
	asked    int       // calls that ended
	failed   int       // of those, by the server's fault
	absent   time.Time // when the server last could not be reached, since its last answer
	health.Health
}

// The policy of rests.
func policy() *health.Policy {
	return &health.Policy{Failures: 3, First: time.Second, Max: time.Minute}
}

// fit reports whether m can be given another call.
func (m *member) fit() bool { return m.Accepts(m.calls) }

// New returns a set of at least one member.
func New(members []Member, c Config) (*Set, error) {
	if len(members) == 0 {
		return nil, errors.New("replica: no servers")
	}
	s := &Set{config: c, sessions: map[string]*placement{}}
	s.open, s.stop = context.WithCancel(context.Background())
	for i, m := range members {
		s.members = append(s.members, &member{Member: m, index: i})
	}
	return s, nil
}

// run runs f in the background until Close.
func (s *Set) run(f func(context.Context)) { s.background.Go(func() { f(s.open) }) }

// Do makes a call on the server of its session, or on any server if session is empty. ask makes the call on
// the member with that index. If nothing was sent, because the server cannot be reached or began to rest,
// Do makes the call on another server.
func (s *Set) Do(ctx context.Context, session string, ask func(server int) (*llm.Response, error)) (*llm.Response, error) {
	s.look()
	var tried []*member
	for {
		m := s.pick(session, tried)
		began := time.Now()
		resp, err := ask(m.index)
		unsent := s.finish(ctx, m, session, began, err)
		if tried = append(tried, m); !unsent || ctx.Err() != nil || len(tried) >= len(s.members) {
			return resp, err
		}
	}
}

// pick chooses a server for a call and counts the call.
func (s *Set) pick(session string, tried []*member) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probeDue(time.Now())
	var at *placement
	if session != "" {
		if at = s.sessions[session]; at == nil {
			at = &placement{}
			s.sessions[session] = at
		}
	}
	m := choose(s.members, at, tried)
	if at != nil {
		if at.at != nil && s.config.Stay && at.at.fit() && !slices.Contains(tried, at.at) {
			m = at.at
		}
		at.move(m)
	}
	m.calls++
	return m
}

// move puts a session on a server, or on none.
func (s *placement) move(to *member) {
	if s.at == to {
		return
	}
	if was := s.at; was != nil {
		was.sessions--
		if !slices.Contains(s.past, was) {
			s.past = append(s.past, was)
		}
	}
	if s.at = to; to != nil {
		to.sessions++
	}
}

// finish counts a call as ended and records its result. It reports whether the call was never sent.
func (s *Set) finish(ctx context.Context, m *member, session string, began time.Time, err error) (unsent bool) {
	recalled := errors.Is(err, ErrRecalled)
	s.mu.Lock()
	m.calls--
	result, known := verdict(ctx, err)
	if recalled || result == health.OK && began.Before(m.absent) {
		known = false // a server that shuts down still answers the calls it has
	}
	failed := known && result != health.OK
	m.asked += number(!recalled)
	m.failed += number(failed)
	rested := m.Pauses() > 0
	rests := known && m.note(result, time.Now())
	back := rested && m.Pauses() == 0
	if at := s.sessions[session]; failed && at != nil {
		at.avoid = m
		if at.at == m {
			at.move(nil)
		}
	}
	if rests {
		for _, at := range s.sessions { // the next call of each chooses a server again
			if at.at == m {
				at.move(nil)
			}
		}
	}
	others := 0
	for _, o := range s.members {
		others += number(o != m && !o.Down())
	}
	s.mu.Unlock()
	if rests && m.Recall != nil && len(s.members) > 1 {
		m.Recall()
	}
	switch {
	case s.config.Rests == nil:
	case rests && !rested: // once for all rests in a row
		s.config.Rests(Rest{Name: m.Name, Why: err, Others: others})
	case back:
		s.config.Rests(Rest{Name: m.Name})
	}
	return recalled || known && result == health.Absent
}

// note records the result of a call. It reports whether the server begins to rest.
func (m *member) note(result health.Result, now time.Time) bool {
	switch result {
	case health.OK:
		m.absent = time.Time{}
	case health.Absent:
		m.absent = now
	}
	return m.Record(policy(), result, now)
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// verdict returns what the end of a call says about its server. known is false if it says nothing: the call
// was canceled, or a limit stopped it.
func verdict(ctx context.Context, err error) (result health.Result, known bool) {
	e := llm.AsError(err)
	switch {
	case e == nil:
		return health.OK, true
	case ctx.Err() != nil:
		return health.OK, false
	case e.Unserved(), e.Kind == llm.KindTransport && !e.Uncertain:
		return health.Absent, true
	}
	switch e.Kind {
	case llm.KindTransport, llm.KindTimeout, llm.KindServer, llm.KindMalformed, llm.KindOverloaded:
		return health.Failed, true
	case llm.KindBadRequest, llm.KindRefused, llm.KindTooLong: // an answer, even if not the wanted one
		return health.OK, true
	default:
		return health.OK, false
	}
}

// Release ends a session, which makes no more calls. whole reports whether the session was finished.
func (s *Set) Release(session string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sessions[session]
	tell := s.members // a session of an earlier process may be on any server
	if at != nil {
		at.move(nil)
		delete(s.sessions, session)
		tell = at.past
	}
	if !s.config.Ends || s.closed {
		return
	}
	for _, m := range tell {
		if m.Server != nil {
			s.end(m, session, whole)
		}
	}
}

// State is the state of a server.
type State struct {
	Name     string
	Calls    int // in flight
	Sessions int
	Asked    int // calls that ended
	Failed   int // of those, by the server's fault
	Resting  bool
}

// States returns the states of the servers, in order.
func (s *Set) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]State, len(s.members))
	for i, m := range s.members {
		out[i] = State{Name: m.Name, Calls: m.calls, Sessions: m.sessions, Asked: m.asked, Failed: m.failed, Resting: m.Down() || m.Trial()}
	}
	return out
}
