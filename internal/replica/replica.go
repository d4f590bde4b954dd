// Package replica chooses between several servers of one model.
//
// The calls of a session, which is an episode, go to one server, whose prefix cache then
// holds what they have in common. A new session goes to the server with the fewest. A
// server that fails rests: its sessions move, what waits for it moves along, and after a
// while it is looked at and tried with one call before it is given work again.
//
// What it promises: where a call goes never changes what is asked; a call fails only when
// no server is left that could take it; a session is kept until Release; Close returns
// when everything that was started has ended. All of it may be used from any number of
// goroutines at once.
//
// It is not for limits (package dispatch keeps them, for each server by itself) and not for
// waiting and trying again what a server may have begun (dispatch's retry).
package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/llm"
)

// Pinger is a server, or a model's connection to one, that can say whether it is there without
// being asked anything.
type Pinger interface {
	// Alive returns nil if the server can be reached.
	Alive(ctx context.Context) error
}

// Server is what can be asked of a server beside answers. Its methods may be called from
// any number of goroutines and return soon after ctx is done.
type Server interface {
	Pinger
	// Load asks the server how busy it is.
	Load(ctx context.Context) (Load, error)
	// End tells the server that a session is over; whole is whether it came to its end.
	End(ctx context.Context, session string, whole bool) error
}

// Member is one server of a set.
type Member struct {
	// Name is its address, for readers.
	Name string
	// Server is nil where nothing but answers can be had.
	Server Server
	// Steer takes how busy the server says it is. Nil: nobody wants to know.
	Steer func(Load)
	// Recall makes calls that wait for the server, and were not sent, fail with ErrRecalled.
	// Nil: none wait.
	Recall func()
}

// ErrRecalled is what is underneath the error of a call that was called back from the queue
// of a server that rests.
var ErrRecalled = errors.New("called back from a server that rests")

// Config says what a set does beside answering.
type Config struct {
	// Look is how often each server is asked for its load. Default: never.
	Look time.Duration
	// Ends is whether servers are told when sessions are over. Default: false.
	Ends bool
	// Stay keeps a session where it is while its server can be reached, for servers that
	// remember their sessions. Default: false, it also leaves a server that is crowded.
	Stay bool
	// Rests is told when a server begins to rest, and when it answers again. It is called
	// from the goroutines of calls, and holds them up. Default: nobody is told.
	Rests func(Rest)
}

// Rest is that a server began to rest or, with no Why, that it answers again.
type Rest struct {
	Name string
	Why  error // what it failed with
	// Others is how many servers take calls while it rests.
	Others int
}

// Set is several servers of one model.
type Set struct {
	config     Config
	members    []*member
	looking    sync.Once
	background sync.WaitGroup // looks, checks and ends

	mu       sync.Mutex
	sessions map[string]*placement
	stops    map[int]context.CancelFunc // of looks and checks that are on
	begun    int                        // looks and checks so far
	closed   bool
}

// placement is where a session is.
type placement struct {
	at   *member   // nil: nowhere, until its next call
	past []*member // where it was before
	shun *member   // the one that failed it last
}

// member is a server and how it stands. Everything below index is guarded by Set.mu.
type member struct {
	Member
	index    int
	calls    int // asked of it and not answered
	sessions int
	asked    int // calls that ended
	failed   int // of them, by its fault
	health
}

// New returns a set of at least one member.
func New(members []Member, c Config) (*Set, error) {
	if len(members) == 0 {
		return nil, errors.New("replica: no servers")
	}
	s := &Set{config: c, sessions: map[string]*placement{}, stops: map[int]context.CancelFunc{}}
	for i, m := range members {
		s.members = append(s.members, &member{Member: m, index: i})
	}
	return s, nil
}

// Do makes a call on the server of its session, or on any if session is empty. ask makes it on the
// server at that index of the members. Where nothing was sent, since the server is not there or
// began to rest, Do makes the call on another server.
func (s *Set) Do(ctx context.Context, session string, ask func(server int) (*llm.Response, error)) (*llm.Response, error) {
	s.look() //nolint:contextcheck // it goes on after the call
	var tried []*member
	for {
		m := s.pick(session, tried) //nolint:contextcheck // a check goes on after the call
		began := time.Now()
		resp, err := ask(m.index)
		unsent := s.finish(ctx, m, session, began, err)
		if tried = append(tried, m); !unsent || ctx.Err() != nil || len(tried) >= len(s.members) {
			return resp, err
		}
	}
}

// pick picks a server for a call and counts the call as its.
func (s *Set) pick(session string, tried []*member) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkDue(time.Now())
	if session == "" {
		m := choose(s.members, nil, tried)
		m.calls++
		return m
	}
	at := s.sessions[session]
	if at == nil {
		at = &placement{}
		s.sessions[session] = at
	}
	m := choose(s.members, at, tried)
	if at.at != nil && s.config.Stay && at.at.fit() && !slices.Contains(tried, at.at) {
		m = at.at
	}
	at.move(m)
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

// finish counts the call, begun then, as ended, and learns from its result. It says
// whether the call was never sent.
func (s *Set) finish(ctx context.Context, m *member, session string, began time.Time, err error) (unsent bool) {
	s.mu.Lock()
	m.calls--
	recalled := errors.Is(err, ErrRecalled)
	v := verdict(ctx, err)
	if recalled || v == lives && began.Before(m.gone) {
		v = neither // a server that is leaving still answers what it has
	}
	m.asked += number(!recalled)
	m.failed += number(v == failed || v == absent)
	rested := m.rests > 0
	rests := m.note(v, time.Now())
	back := rested && m.rests == 0
	if at := s.sessions[session]; (v == failed || v == absent) && at != nil {
		at.shun = m // its next call goes elsewhere
		if at.at == m {
			at.move(nil)
		}
	}
	if rests {
		s.evict(m)
	}
	others := s.others(m)
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
	return recalled || v == absent
}

// others counts the servers beside m that do not rest. Set.mu is held.
func (s *Set) others(m *member) (n int) {
	for _, o := range s.members {
		n += number(o != m && !o.resting())
	}
	return n
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// evict moves every session of a server that rests: each is placed anew by its next call.
func (s *Set) evict(m *member) {
	for _, at := range s.sessions {
		if at.at == m {
			at.move(nil)
		}
	}
}

// Release ends a session: no call of it will come. whole is whether it came to its end.
func (s *Set) Release(session string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sessions[session]
	tell := s.members // a session of an earlier process may be anywhere
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

// State is how a server stands.
type State struct {
	Name     string
	Calls    int // asked of it and not answered
	Sessions int
	Asked    int // calls that ended
	Failed   int // of them, by its fault: it was not there, broke off, kept silent or said so
	Resting  bool
}

// States tells how the servers stand, in their order.
func (s *Set) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]State, len(s.members))
	for i, m := range s.members {
		out[i] = State{Name: m.Name, Calls: m.calls, Sessions: m.sessions, Asked: m.asked, Failed: m.failed, Resting: m.resting() || m.trial}
	}
	return out
}
