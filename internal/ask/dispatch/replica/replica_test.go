package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley/internal/kit/health"
	"parley/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a server in memory that fails as the test says.
type host struct {
	mu    sync.Mutex
	err   *llm.Error    // of every call
	dead  bool          // Alive fails
	hold  chan struct{} // an answer waits for it, if it is not nil
	load  Load
	asked []string // sessions
	ended []string
	looks int
}

func (h *host) set(change func(*host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *host) Ask(_ context.Context, req *llm.Request) (*llm.Response, error) {
	h.mu.Lock()
	h.asked = append(h.asked, req.Session)
	err, hold := h.err, h.hold
	h.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return nil, err
	}
	return &llm.Response{}, nil
}

func (h *host) Alive(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return errors.New("dead")
	}
	return nil
}

func (h *host) Load(context.Context) (Load, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looks++; h.dead {
		return Load{}, errors.New("dead")
	}
	return h.load, nil
}

func (h *host) End(_ context.Context, session string, whole bool) error {
	h.set(func(h *host) { h.ended = append(h.ended, fmt.Sprint(session, whole)) })
	return nil
}

func (h *host) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

// fleet is a set with the models on its servers.
type fleet struct {
	*Set
	models []llm.Model
}

func newSet(t *testing.T, c Config, hosts ...*host) *fleet {
	t.Helper()
	f := &fleet{}
	members := make([]Member, len(hosts))
	for i, h := range hosts {
		members[i] = Member{Name: fmt.Sprint("h", i), Server: h}
		f.models = append(f.models, h)
	}
	var err error
	if f.Set, err = New(members, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func ask(t *testing.T, f *fleet, session string) error {
	t.Helper()
	_, err := f.Do(t.Context(), session, func(server int) (*llm.Response, error) {
		return f.models[server].Ask(t.Context(), &llm.Request{Session: session})
	})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSessionsStickAndSpread(t *testing.T) {
	t.Parallel()
	a, b, c := &host{}, &host{}, &host{}
	s := newSet(t, Config{}, a, b, c)
	for range 3 {
		for i := range 9 {
			must(t, ask(t, s, fmt.Sprint(i)))
		}
	}
	for i, h := range []*host{a, b, c} {
		if len(h.asked) != 9 || s.States()[i].Sessions != 3 {
			t.Errorf("server %d was asked %v", i, h.asked)
		}
		for _, name := range h.asked {
			if n := len(slices.DeleteFunc(slices.Clone(h.asked), func(x string) bool { return x != name })); n != 3 {
				t.Errorf("server %d was asked in session %s %d times", i, name, n)
			}
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(b.asked))) {
		s.Release(name, true)
	}
	s.Release("unknown", true)
	for range 3 {
		must(t, ask(t, s, fmt.Sprint("new", len(b.asked))))
	}
	if len(b.asked) != 12 {
		t.Errorf("the server without sessions got %d of three new ones", len(b.asked)-9)
	}
	for i := range 3 {
		must(t, ask(t, s, ""))
		if s.States()[i].Sessions != 3 {
			t.Errorf("a call without a session is counted as one: %+v", s.States())
		}
	}
}

// TestFailover checks that a server that cannot be reached costs no call, that its sessions move, and that
// it gets one call when it is back.
func TestFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &host{}, &host{}
		var reported []string
		s := newSet(t, Config{Rests: func(r Rest) { reported = append(reported, fmt.Sprint(r.Name, " ", llm.KindOf(r.Why))) }}, a, b)
		must(t, ask(t, s, "x"))
		must(t, ask(t, s, "y"))
		a.set(func(h *host) { h.err, h.dead = &llm.Error{Kind: llm.KindTransport}, true })
		for range 5 {
			must(t, ask(t, s, "x"))
		}
		if a.count() != 2 || b.count() != 6 || !s.States()[0].Resting {
			t.Fatalf("a was asked %d times, b %d: %+v", a.count(), b.count(), s.States())
		}
		time.Sleep(policy().First)
		must(t, ask(t, s, "z")) // which starts a probe
		synctest.Wait()
		a.set(func(h *host) { h.err, h.dead = nil, false })
		must(t, ask(t, s, "z"))
		synctest.Wait()
		if a.count() != 2 {
			t.Fatal("a server that did not answer a probe gets a call before a second rest")
		}
		time.Sleep(2 * policy().First)
		must(t, ask(t, s, "z"))
		synctest.Wait()
		if st := s.States()[0]; !st.Resting {
			t.Fatalf("not on trial: %+v", st)
		}
		must(t, ask(t, s, "new"))
		if a.count() != 3 || s.States()[0].Resting {
			t.Fatalf("after its return: %+v", s.States())
		}
		if len(reported) != 2 || reported[0] != "h0 transport" || reported[1] != "h0 " {
			t.Errorf("reported %q, want one rest and one return", reported)
		}
		if st := s.States(); st[0].Asked != 3 || st[0].Failed != 1 || st[1].Asked != b.count() || st[1].Failed != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestLeaving checks that the last answers of a server that shuts down do not end its rest.
func TestLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leaves := make(chan struct{})
		first := true
		a := llm.Func(func(context.Context, *llm.Request) (*llm.Response, error) {
			if !first {
				return nil, &llm.Error{Kind: llm.KindTransport}
			}
			first = false
			<-leaves
			return &llm.Response{}, nil
		})
		var reported []Rest
		set, err := New([]Member{{Name: "a"}, {Name: "b"}}, Config{Rests: func(r Rest) { reported = append(reported, r) }})
		must(t, err)
		s := &fleet{Set: set, models: []llm.Model{a, &host{}}}
		done := make(chan error, 1)
		go func() { done <- ask(t, s, "x") }()
		synctest.Wait() // a has the call
		time.Sleep(time.Millisecond)
		for i := range 5 { // one of which cannot reach a
			must(t, ask(t, s, fmt.Sprint(i)))
		}
		close(leaves)
		must(t, <-done)
		if !s.States()[0].Resting || len(reported) != 1 {
			t.Errorf("%+v, reported %v", s.States(), reported)
		}
	})
}

// TestAllAbsent checks that a call tries each server once.
func TestAllAbsent(t *testing.T) {
	t.Parallel()
	gone := &llm.Error{Kind: llm.KindTransport}
	a, b := &host{err: gone, dead: true}, &host{err: gone, dead: true}
	s := newSet(t, Config{}, a, b)
	for range 2 {
		if err := ask(t, s, "x"); llm.KindOf(err) != llm.KindTransport {
			t.Fatal(err)
		}
	}
	if a.count() != 2 || b.count() != 2 {
		t.Errorf("a was asked %d times, b %d", a.count(), b.count())
	}
}

// TestBrokenOff checks that a call that a server may have begun is not made on another, and that its session
// moves.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	a, b := &host{err: &llm.Error{Kind: llm.KindTransport, Uncertain: true}}, &host{}
	s := newSet(t, Config{}, a, b)
	if err := ask(t, s, "x"); err == nil || b.count() != 0 {
		t.Fatalf("%v, b was asked %d times", err, b.count())
	}
	must(t, ask(t, s, "x"))
	if a.count() != 1 || b.count() != 1 {
		t.Errorf("a was asked %d times, b %d", a.count(), b.count())
	}
}

// TestOneServer checks that a single server always gets the calls.
func TestOneServer(t *testing.T) {
	t.Parallel()
	a := &host{err: &llm.Error{Kind: llm.KindTransport}, dead: true}
	s := newSet(t, Config{}, a)
	for range 10 {
		if ask(t, s, "x") == nil {
			t.Fatal("answered")
		}
	}
	if a.count() != 10 {
		t.Errorf("asked %d times", a.count())
	}
}

// TestRecalled checks that calls that wait for a server that begins to rest go to another.
func TestRecalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &host{hold: make(chan struct{}), err: &llm.Error{Kind: llm.KindTimeout}}, &host{}
		s := newSet(t, Config{}, a, b)
		recalled := make(chan struct{})
		s.members[0].Recall = func() { close(recalled) }
		queue := s.models[0]
		s.models[0] = llm.Func(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
			if req.Session != "waits" {
				return queue.Ask(ctx, req)
			}
			<-recalled
			return nil, &llm.Error{Kind: llm.KindOverloaded, Err: ErrRecalled}
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if ask(t, s, "breaks") == nil {
				t.Error("answered")
			}
		})
		synctest.Wait()
		must(t, ask(t, s, "b1"))
		must(t, ask(t, s, "b2")) // so that the next goes to a
		wg.Go(func() {
			if err := ask(t, s, "waits"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 2 {
			s.members[0].note(health.Failed, time.Now())
		}
		close(a.hold)
		wg.Wait()
		if b.count() != 3 {
			t.Errorf("b was asked %v", b.asked)
		}
	})
}

func TestEnds(t *testing.T) {
	t.Parallel()
	a, b := &host{}, &host{}
	s := newSet(t, Config{EndSessions: true, Sticky: true}, a, b)
	must(t, ask(t, s, "x"))
	must(t, ask(t, s, "y"))
	s.Release("x", true)
	s.Release("y", false)
	s.Release("before", false)
	must(t, s.Close())
	s.Release("late", true)
	slices.Sort(a.ended)
	slices.Sort(b.ended)
	if got := fmt.Sprint(a.ended, b.ended); got != "[beforefalse xtrue] [beforefalse yfalse]" {
		t.Errorf("reported %s", got)
	}
}

// TestStay checks that Stay keeps sessions on a crowded server.
func TestStay(t *testing.T) {
	t.Parallel()
	for _, stay := range []bool{true, false} {
		a, b := &host{}, &host{}
		s := newSet(t, Config{Sticky: stay}, a, b)
		must(t, ask(t, s, "x"))
		s.members[0].calls = 100
		must(t, ask(t, s, "x"))
		if (a.count() == 2) != stay {
			t.Errorf("stay %v: a was asked %d times", stay, a.count())
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	soon, later := time.Unix(10, 0), time.Unix(20, 0)
	rests := func(from time.Time) (h health.Health) {
		h.Record(policy(), health.Absent, from)
		return h
	}
	failedOnce, trial := health.Health{}, rests(soon)
	failedOnce.Record(policy(), health.Failed, soon)
	trial.Probed(policy(), true, soon)
	for _, c := range []struct {
		name    string
		members []member
		was     int // -1: on no server yet, -2: no session, -3: on none since the first failed it
		tried   []int
		want    int
	}{
		{"the first of equals", []member{{}, {}}, -1, nil, 0},
		{"fewest sessions", []member{{sessions: 2}, {sessions: 1, calls: 1}}, -1, nil, 1},
		{"then fewest calls", []member{{sessions: 1, calls: 2}, {sessions: 1, calls: 1}}, -1, nil, 1},
		{"without a session fewest calls", []member{{sessions: 1, calls: 2}, {sessions: 9, calls: 1}}, -2, nil, 1},
		{"a session stays", []member{{}, {sessions: 5, calls: 5}}, 1, nil, 1},
		{"but leaves a crowded server", []member{{calls: 1}, {calls: 10}}, 1, nil, 0},
		{"nearly crowded", []member{{calls: 1}, {calls: 9}}, 1, nil, 1},
		{"many calls everywhere are no crowd", []member{{calls: 100}, {calls: 140}}, 1, nil, 1},
		{"and leaves a server that rests", []member{{sessions: 5}, {Health: rests(soon)}}, 1, nil, 0},
		{"and one that was tried", []member{{sessions: 5}, {}}, 1, []int{1}, 0},
		{"not on the server that failed it", []member{{}, {sessions: 5}}, -3, nil, 1},
		{"unless all others rest", []member{{}, {Health: rests(soon)}}, -3, nil, 0},
		{"a server that failed another session counts as any", []member{{Health: failedOnce}, {sessions: 5}}, -1, nil, 0},
		{"a server on trial takes one call", []member{{sessions: 5}, {Health: trial}}, -1, nil, 1},
		{"but not two", []member{{sessions: 5}, {calls: 1, Health: trial}}, -1, nil, 0},
		{"if all rest, the one that is back first", []member{{Health: rests(later)}, {Health: rests(soon)}}, -1, nil, 1},
		{"tried is worse than resting", []member{{}, {Health: rests(soon)}}, -1, []int{0}, 1},
		{"if all were tried, any", []member{{}, {}}, -1, []int{0, 1}, 0},
	} {
		members := make([]*member, len(c.members))
		for i := range c.members {
			members[i] = &c.members[i]
		}
		s := &placement{}
		switch c.was {
		case -1:
		case -2:
			s = nil
		case -3:
			s.avoid = members[0]
		default:
			s.at = members[c.was]
		}
		var tried []*member
		for _, i := range c.tried {
			tried = append(tried, members[i])
		}
		if got := choose(members, s, tried); got != members[c.want] {
			t.Errorf("%s: did not choose server %d", c.name, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		err   error
		want  health.Result
		known bool
	}{
		{"an answer", t.Context(), nil, health.OK, true},
		{"a request that is refused", t.Context(), &llm.Error{Kind: llm.KindBadRequest}, health.OK, true},
		{"not reachable", t.Context(), &llm.Error{Kind: llm.KindTransport}, health.Absent, true},
		{"connection lost", t.Context(), &llm.Error{Kind: llm.KindTransport, Uncertain: true}, health.Failed, true},
		{"stalled", t.Context(), &llm.Error{Kind: llm.KindTimeout}, health.Failed, true},
		{"500", t.Context(), &llm.Error{Kind: llm.KindServer}, health.Failed, true},
		{"503", t.Context(), &llm.Error{Kind: llm.KindOverloaded}, health.Failed, true},
		{"429", t.Context(), &llm.Error{Kind: llm.KindRateLimited}, health.OK, false},
		{"no key", t.Context(), &llm.Error{Kind: llm.KindAuth}, health.OK, false},
		{"canceled", over, &llm.Error{Kind: llm.KindTransport}, health.OK, false},
		{"any other error", t.Context(), errors.New("boom"), health.Absent, true},
	} {
		if got, known := verdict(c.ctx, c.err); got != c.want || known != c.known {
			t.Errorf("%s: %v %v, want %v %v", c.name, got, known, c.want, c.known)
		}
	}
}

// TestLooks checks that the set asks for the load from its first call until Close.
func TestLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &host{load: Load{Waiting: 3}}
		s := newSet(t, Config{LoadEvery: time.Second}, a)
		var steered []Load
		s.members[0].Steer = func(l Load) { steered = append(steered, l) }
		time.Sleep(time.Minute)
		if a.looks != 0 {
			t.Fatal("asked for the load before the first call")
		}
		must(t, ask(t, s, "x"))
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if len(steered) != 11 || steered[0].Waiting != 3 {
			t.Errorf("steered %d times", len(steered))
		}
		a.set(func(h *host) { h.dead = true })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(steered) != 11 || a.looks != 21 {
			t.Errorf("steered %d times without a load, in %d looks", len(steered), a.looks)
		}
		must(t, s.Close())
	})
}

// TestCrowd uses a set from many goroutines while servers fail and return.
func TestCrowd(t *testing.T) {
	t.Parallel()
	hosts := []*host{{}, {}, {}}
	s := newSet(t, Config{EndSessions: true}, hosts...)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := range 50 {
				session := fmt.Sprint(i, n/5)
				if n == 25 {
					hosts[i%2].set(func(h *host) { h.err = &llm.Error{Kind: llm.KindTransport} })
				}
				if err := ask(t, s, session); err != nil { // the third always answers
					t.Error(err)
				}
				if n%5 == 4 {
					s.Release(session, true)
				}
			}
		})
	}
	wg.Wait()
	for _, st := range s.States() {
		if st.Calls != 0 || st.Sessions != 0 {
			t.Errorf("left over: %+v", st)
		}
	}
}

// TestOthers checks that a rest says how many other servers take calls.
func TestOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &host{}, &host{}
		var others []int
		s := newSet(t, Config{Rests: func(r Rest) { others = append(others, r.Others) }}, a, b)
		for _, h := range []*host{a, b} {
			h.set(func(h *host) { h.err, h.dead = &llm.Error{Kind: llm.KindTransport}, true })
		}
		if err := ask(t, s, "x"); err == nil {
			t.Fatal("a call was answered without a server")
		}
		if fmt.Sprint(others) != "[1 0]" {
			t.Errorf("%v others, want 1 and 0", others)
		}
	})
}
