// Package replica chooses between several servers of one model.
//
// The calls of a session, which is an episode, go to one server, so that its prefix cache holds what they
// share. A new session goes to the server with the fewest sessions. A server that fails rests (package
// health): its sessions and the calls that wait for it move to others. After the rest it is probed and gets
// one call before it gets more.
//
// It promises that the server never changes what is asked; that a call that no server has seen fails only if no server is left that
// could take it; that a session is kept until Release; and that Close returns when everything the set
// started has ended. A Set is safe for concurrent use.
//
// It is not for limits, which package dispatch keeps for each server, or for retrying a call that a server
// may have begun.
package replica

import (
	"cmp"
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
	// LoadEvery is how often each server is asked for its load. Default: never.
	LoadEvery time.Duration
	// EndSessions is whether servers are notified when sessions are over. Default: false.
	EndSessions bool
	// Sticky keeps a session on its server while that can be reached, for servers that remember their
	// sessions. Default: false, a session also leaves a crowded server.
	Sticky bool
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
	polling    sync.Once
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
	index       int
	calls       int // in flight
	sessions    int
	asked       int       // calls that ended
	failed      int       // of those, by the server's fault
	absentSince time.Time // when the server last could not be reached, since its last answer
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
	s.pollLoads()
	var tried []*member
	for {
		m := s.pick(session, tried)
		began := time.Now()
		resp, err := ask(m.index)
		unsent := s.end(ctx, m, session, began, err)
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
		if at.at != nil && s.config.Sticky && at.at.fit() && !slices.Contains(tried, at.at) {
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

// end counts a call as ended and records its result. It reports whether the call was never sent.
func (s *Set) end(ctx context.Context, m *member, session string, began time.Time, err error) (unsent bool) {
	recalled := errors.Is(err, ErrRecalled)
	s.mu.Lock()
	m.calls--
	result, known := verdict(ctx, err)
	if recalled || result == health.OK && began.Before(m.absentSince) {
		known = false // a server that shuts down still answers the calls it has
	}
	failed := known && result != health.OK
	m.asked += oneIf(!recalled)
	m.failed += oneIf(failed)
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
		others += oneIf(o != m && !o.Down())
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
		m.absentSince = time.Time{}
	case health.Absent:
		m.absentSince = now
	}
	return m.Record(policy(), result, now)
}

func oneIf(yes bool) int {
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
	if !s.config.EndSessions || s.closed {
		return
	}
	for _, m := range tell {
		if m.Server != nil {
			s.endSession(m, session, whole)
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

// Sessions move away from a server that has crowdLead more calls than another, and crowdTimes as many.
const (
	crowdLead  = 8
	crowdTimes = 1.5
)

// choose picks a server for a call. A session stays on its server unless that rests or is crowded. A new
// session goes to the server with the fewest sessions, and avoids the one that failed it last. A call
// without a session (nil) goes to the server with the fewest calls. Servers that rest, and those that were
// tried, are taken only if nothing else is left.
func choose(members []*member, s *placement, tried []*member) *member {
	var was, avoid *member
	if s != nil {
		was, avoid = s.at, s.avoid
	}
	usable := func(m *member) bool { return m.fit() && !slices.Contains(tried, m) }
	best := health.Least(members, usable, func(a, b *member) int {
		byCalls := cmp.Compare(a.calls, b.calls)
		if s != nil && was == nil {
			byCalls = cmp.Or(cmp.Compare(a.sessions, b.sessions), byCalls)
		}
		return cmp.Or(
			health.FalseFirst(slices.Contains(tried, a), slices.Contains(tried, b)),
			health.FalseFirst(!a.fit(), !b.fit()),
			a.Until().Compare(b.Until()), // of those that rest, the one that is back first
			health.FalseFirst(a == avoid, b == avoid),
			byCalls,
		)
	})
	if was != nil && usable(was) && !crowded(was, best) {
		return was
	}
	return best
}

// crowded reports whether a server has so many more calls than another that the other answers sooner, even
// without its cache.
func crowded(m, other *member) bool {
	return other.fit() && m.calls-other.calls > crowdLead && float64(m.calls) > crowdTimes*float64(other.calls)
}

// How long a server may take to answer each request.
const (
	probeTimeout = 5 * time.Second
	loadTimeout  = 5 * time.Second
	endTimeout   = 10 * time.Second
)

// probeDue probes servers whose rest is over. Set.mu is held.
func (s *Set) probeDue(now time.Time) {
	for _, m := range s.members {
		switch {
		case s.closed || !m.StartProbe(now):
		case m.Server == nil:
			m.Probed(policy(), true, now) // the trial will show
		default:
			s.run(func(ctx context.Context) { s.probe(ctx, m) })
		}
	}
}

// probe finds out whether a server is back.
func (s *Set) probe(ctx context.Context, m *member) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := m.Server.Alive(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Probed(policy(), err == nil, time.Now())
}

// endSession tells a server that a session is over, even if the set is closed meanwhile. Set.mu is held.
func (s *Set) endSession(m *member, session string, whole bool) {
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		_ = m.Server.End(ctx, session, whole) // otherwise the session times out on the server
	})
}

// pollLoads starts asking the servers for their load, if that is wanted. The first call does it: a set that was
// only opened must not touch a server.
func (s *Set) pollLoads() {
	if s.config.LoadEvery <= 0 {
		return
	}
	s.polling.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.members {
			if m.Server != nil && m.Steer != nil && !s.closed {
				s.run(func(ctx context.Context) { s.pollLoad(ctx, m) })
			}
		}
	})
}

// pollLoad asks a server for its load until ctx is done. An answer without a load changes nothing.
func (s *Set) pollLoad(ctx context.Context, m *member) {
	tick := time.NewTicker(s.config.LoadEvery)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, loadTimeout)
		if load, err := m.Server.Load(asking); err == nil {
			m.Steer(load)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Close stops looks and probes and waits for them, and for sessions that are being ended. No call may be
// in flight.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.background.Wait()
	return nil
}
