package envhttp

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"parley/internal/kit/testkit"
	"parley/journal"
	"parley/worlds/rollout/env"
)

// TestKilledServer checks that a server that is killed, and restarts at the same address without its sessions,
// costs only extra tries.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	_, want := setup{params: `{` + mazes + `}`, episodes: 15}.play(t.Context(), t)
	f := newFarm(t, nil)
	lives := &mortal{farm: f, t: t, lives: 3}
	l := testkit.StablePort(t)
	lives.start(l)
	defer lives.end()
	params := fmt.Sprintf(`{%s,"servers":["http://%s"],"pool":{"per_server":4,"timeout":5,"patience":20}}`, mazes, l.Addr())
	res, got := setup{params: params, episodes: 15}.play(t.Context(), t)
	if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) {
		t.Errorf("%+v", res)
	}
	lives.mu.Lock()
	left := lives.lives
	lives.mu.Unlock()
	if left > 0 || len(f.twice()) > 0 || f.left(t) > 0 {
		t.Errorf("%d lives are left, %d sessions; sent twice: %v", left, f.left(t), f.twice())
	}
}

// mortal serves a farm at a real address, and stops every eighty requests while it has lives left.
type mortal struct {
	*farm
	t        *testing.T
	wg       sync.WaitGroup
	mu       sync.Mutex
	srv      *http.Server
	requests int
	lives    int
	over     bool
}

// restart serves at an address, unless the test is over.
func (m *mortal) restart(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	l, err := testkit.ListenAgain(address)
	if err != nil {
		m.t.Error(err)
		return
	}
	m.start(l)
}

// start serves at l.
func (m *mortal) start(l net.Listener) {
	srv := &http.Server{Handler: m}
	m.srv = srv
	m.wg.Go(func() { _ = srv.Serve(l) }) // until it is closed
}

func (m *mortal) end() {
	m.mu.Lock()
	m.over = true
	_ = m.srv.Close()
	m.mu.Unlock()
	m.wg.Wait()
}

// ServeHTTP serves a request, or stops: it closes all connections and drops all sessions.
func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests++
	dies := m.requests%80 == 0 && m.lives > 0
	if dies {
		m.lives--
		m.farm.mu.Lock()
		m.inner = NewEnvServer(EnvServerConfig{Kinds: env.Standard()})
		m.farm.mu.Unlock()
		srv, address := m.srv, r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
		m.wg.Go(func() {
			_ = srv.Close()
			m.restart(address)
		})
	}
	m.mu.Unlock()
	if dies {
		panic(http.ErrAbortHandler)
	}
	m.serve(w, r)
}

// TestHalfOpen checks that a server that accepts connections but never answers is avoided, and that its
// episodes run on the other server.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	_, want := setup{params: `{` + mazes + `}`, episodes: 12}.play(t.Context(), t)
	mute := listenMute(t)
	f := newFarm(t, nil)
	params := fmt.Sprintf(`{%s,"servers":["http://%s",%q],"pool":{"per_server":4,"timeout":2,"patience":20}}`, mazes, mute, f.URL)
	res, got := setup{params: params, episodes: 12}.play(t.Context(), t)
	if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) {
		t.Errorf("%+v", res)
	}
	if f.left(t) > 0 || len(f.twice()) > 0 {
		t.Errorf("%d sessions are left; sent twice: %v", f.left(t), f.twice())
	}
}

// listenMute accepts connections and never answers.
func listenMute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

// TestGoesSilent checks that the episodes of a server that stops answering, on old and new connections, begin
// again on the other server.
func TestGoesSilent(t *testing.T) {
	t.Parallel()
	_, want := setup{params: `{` + mazes + `}`, episodes: 12}.play(t.Context(), t)
	f, g := newFarm(t, nil), newFarm(t, nil)
	f.fault = func(_ int, _ string, _ http.ResponseWriter, r *http.Request) bool {
		silent := f.count("step") > 20
		if silent {
			select {
			case <-f.gone:
			case <-r.Context().Done():
			}
		}
		return silent
	}
	params := fmt.Sprintf(`{%s,"servers":[%q,%q],"pool":{"per_server":4,"timeout":2,"patience":20}}`, mazes, f.URL, g.URL)
	res, got := setup{params: params, episodes: 12}.play(t.Context(), t)
	if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) {
		t.Errorf("%+v", res)
	}
	again := slices.ContainsFunc(got, func(e journal.Ended) bool { return data(t, e).Tries > 1 })
	if g.left(t) > 0 || len(f.twice())+len(g.twice()) > 0 || !again {
		t.Errorf("%d sessions are left; sent twice: %v %v; begun again: %v", g.left(t), f.twice(), g.twice(), again)
	}
}
