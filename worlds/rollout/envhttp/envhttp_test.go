package envhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/kit/testkit"
	"parley/internal/read/training"
	"parley/internal/run/runfile"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/rules"
)

const mazes = `"env":"maze","env_params":{"size":3},"max_steps":12,"retries":20`

// TestWherever: an environment is the same in this process and on a server.
func TestWherever(t *testing.T) {
	t.Parallel()
	res, here := setup{params: `{` + mazes + `}`, episodes: 20}.play(t.Context(), t)
	if res.State != journal.Complete || len(here) != 20 {
		t.Fatalf("%+v", res)
	}
	for _, pool := range []string{`{"per_server":3}`, `{"per_server":5,"warm":2,"startup":2}`} {
		f, g := newFarm(t, nil), newFarm(t, nil)
		res, there := setup{params: fmt.Sprintf(`{%s,"servers":[%q,%q],"pool":%s}`, mazes, f.URL, g.URL, pool), episodes: 20}.play(t.Context(), t)
		if res.State != journal.Complete || !slices.Equal(rewards(t, here), rewards(t, there)) {
			t.Errorf("%s: %+v", pool, res)
		}
		if f.left(t)+g.left(t) > 0 || len(f.twice())+len(g.twice()) > 0 {
			t.Errorf("%s: %d and %d sessions are left; sent twice: %v %v", pool, f.left(t), g.left(t), f.twice(), g.twice())
		}
		if a, b := f.count("step"), g.count("step"); a == 0 || b == 0 {
			t.Errorf("a server was not used: %d and %d steps", a, b)
		}
	}
}

// TestFaults checks that, whatever a server does, no step is sent twice and every episode ends with the same
// result as without faults.
func TestFaults(t *testing.T) {
	t.Parallel()
	_, want := setup{params: `{` + mazes + `}`, episodes: 15}.play(t.Context(), t)
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFarm(t, nil)
			f.fault = func(n int, verb string, w http.ResponseWriter, r *http.Request) bool { return fault(f, n, verb, w, r) }
			params := fmt.Sprintf(`{%s,"servers":[%q],"pool":{"per_server":4,"timeout":"1s","patience":"20s"}}`, mazes, f.URL)
			j, err := runfile.Open(t.Context(), filepath.Join(t.TempDir(), "run.parley"), runfile.Create)
			must(t, err)
			defer j.Close()
			res, got := setup{params: params, episodes: 15, journal: j}.play(t.Context(), t)
			if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) {
				t.Errorf("%+v", res)
			}
			if f.left(t) > 0 || len(f.twice()) > 0 {
				t.Errorf("%d sessions are left; sent twice: %v", f.left(t), f.twice())
			}
			tries, rows := 0, 0
			for _, e := range got {
				tries += data(t, e).Tries
				rows += len(data(t, e).Rows)
			}
			a, err := training.Each(t.Context(), j, world.Define(rules.Definition{}), training.Filter{}, func(*training.Group) error { return nil })
			if err != nil || a.Kept != 15 || a.Rows != rows {
				t.Errorf("%+v, want 15 groups and %d rows: %v", a, rows, err)
			}
			if name != "reset" && tries == len(got) {
				t.Error("no call failed: the fault has no effect")
			}
		})
	}
}

// faults are ways for a server to fail now and then.
func faults() map[string]func(f *farm, n int, verb string, w http.ResponseWriter, r *http.Request) bool {
	type fault = func(f *farm, n int, verb string, w http.ResponseWriter, r *http.Request) bool
	now := func(on string, every int, f fault) fault {
		return func(g *farm, n int, verb string, w http.ResponseWriter, r *http.Request) bool {
			return verb == on && n%every == every-1 && f(g, n, verb, w, r)
		}
	}
	applied := func(f *farm, r *http.Request) { f.inner.ServeHTTP(httptest.NewRecorder(), r) }
	return map[string]fault{
		"the answer to a step is lost": now("step", 31, func(f *farm, _ int, _ string, w http.ResponseWriter, r *http.Request) bool {
			applied(f, r)
			return hangUp(w)
		}),
		"a step is lost": now("step", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool { return hangUp(w) }),
		"a prompt is lost": now("get_task_prompt", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			return hangUp(w)
		}),
		"stalled": now("step", 41, func(f *farm, _ int, _ string, _ http.ResponseWriter, r *http.Request) bool {
			applied(f, r)
			select {
			case <-f.gone:
			case <-r.Context().Done():
			}
			return true
		}),
		"half an answer": now("step", 31, func(f *farm, _ int, _ string, w http.ResponseWriter, r *http.Request) bool {
			applied(f, r)
			return half(w)
		}),
		"garbage": now("step", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("<html>Bad gateway</html>"))
			return true
		}),
		"garbage for a prompt": now("get_task_prompt", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"messages": 3}`))
			return true
		}),
		"something else than HTTP": now("step", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			return babble(w)
		}),
		"an answer to something else": now("step", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"status":"ok"}`))
			return true
		}),
		"500": now("step", 31, func(_ *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no", http.StatusInternalServerError)
			return true
		}),
		"started again": now("step", 53, func(f *farm, _ int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			f.forget()
			return hangUp(w)
		}),
		"reset": now("reset", 3, func(_ *farm, n int, _ string, w http.ResponseWriter, _ *http.Request) bool {
			if n%2 == 0 {
				return hangUp(w)
			}
			http.Error(w, "no", http.StatusInternalServerError)
			return true
		}),
	}
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

// half sends the beginning of an answer and hangs up.
func half(w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		out := bufio.NewWriter(conn)
		_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"reward\": 1, ")
		_ = out.Flush()
		_ = conn.Close()
	}
	return true
}

// babble answers in another protocol.
func babble(w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n\x00\x01\xff"))
		_ = conn.Close()
	}
	return true
}

// forget drops all sessions, as a server does that was killed and started again.
func (f *farm) forget() {
	w := httptest.NewRecorder()
	f.inner.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/envs", nil))
	var list struct {
		Envs []struct{ EnvName, ID string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		panic(err)
	}
	for _, e := range list.Envs {
		f.inner.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/"+e.EnvName+"/"+e.ID, nil))
	}
}

// TestKilledAndResumed: a run that is cut off begins its unfinished episodes again, and the
// sessions it left behind are closed.
func TestKilledAndResumed(t *testing.T) {
	t.Parallel()
	_, want := setup{params: `{` + mazes + `}`, episodes: 30}.play(t.Context(), t)
	f := newFarm(t, nil)
	params := fmt.Sprintf(`{%s,"servers":[%q],"pool":{"per_server":8}}`, mazes, f.URL)
	j := &journal.Memory{}
	ctx, cut := context.WithCancelCause(t.Context())
	var asks atomic.Int64
	res, _ := setup{params: params, episodes: 30, journal: j, models: models{before: func() {
		if asks.Add(1) == 60 {
			f.mu.Lock()
			f.fault = func(_ int, verb string, w http.ResponseWriter, _ *http.Request) bool {
				return verb == "delete" && hangUp(w)
			}
			f.mu.Unlock()
			cut(errors.New("killed"))
		}
	}}}.play(ctx, t)
	if res.State != journal.Stopped || f.left(t) == 0 {
		t.Fatalf("%+v, %d sessions left behind", res, f.left(t))
	}
	f.mu.Lock()
	f.fault = nil
	f.mu.Unlock()
	res, got := setup{params: params, episodes: 30, journal: j}.play(t.Context(), t)
	if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) {
		t.Errorf("%+v", res)
	}
	if f.left(t) > 0 || len(f.twice()) > 0 {
		t.Errorf("%d sessions are left; sent twice: %v", f.left(t), f.twice())
	}
	again := slices.ContainsFunc(got, func(e journal.Ended) bool { return e.Attempt > 0 })
	if !again {
		t.Error("nothing was begun again")
	}
}

// TestNobodyThere checks that a run without a server stops and can be resumed, and that no episode fails.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	const gone = "http://127.0.0.1:1" // a port that systems give to nobody
	j := &journal.Memory{}
	res, ended := setup{params: fmt.Sprintf(`{%s,"servers":[%q],"pool":{"patience":"1s"}}`, mazes, gone), episodes: 5, journal: j}.play(t.Context(), t)
	if res.State != journal.Stopped || len(ended) != 0 || !strings.Contains(res.Reason.String(), gone) {
		t.Errorf("%+v", res)
	}
}

// TestRefused checks that a refusal by a server fails the episode and is reported once.
func TestRefused(t *testing.T) {
	t.Parallel()
	f := newFarm(t, nil)
	_, ended := setup{params: fmt.Sprintf(`{"env":"chess","servers":[%q]}`, f.URL), episodes: 2}.play(t.Context(), t)
	for _, e := range ended {
		if e.Outcome.Failed != "environment: open: bad_request" {
			t.Error(e.Outcome.Failed)
		}
	}
	if resets := f.count("reset"); len(ended) != 2 || resets != 2 {
		t.Errorf("%d ended, %d resets", len(ended), resets)
	}
}

// TestSeveralAgents plays a negotiation over HTTP.
func TestSeveralAgents(t *testing.T) {
	t.Parallel()
	f := newFarm(t, nil)
	params := fmt.Sprintf(`{"env":"negotiation","servers":[%q],"seats":["seller","buyer"]}`, f.URL)
	_, ended := setup{params: params, episodes: 3, lineup: map[string]string{"seller": "x", "buyer": "x"}}.play(t.Context(), t)
	for _, e := range ended {
		d := data(t, e)
		if e.Outcome.Failed != "" || d.Stop != rules.StopTerminated || len(d.Rows) != 8 || d.Rows[0].Seat != "seller" || d.Rows[7].Seat != "buyer" {
			t.Errorf("%+v %s", d, e.Outcome.Failed)
		}
		paid := 0
		for _, r := range d.Rows {
			if !r.NoReward {
				paid++
			}
		}
		if paid != 2 {
			t.Errorf("%d rows are paid, want one of each", paid)
		}
	}
}

// entriesOf returns the entries of a journal.
func entriesOf(t *testing.T, j journal.Journal) (all []journal.Entry) {
	t.Helper()
	must(t, j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		all = append(all, e)
		return nil
	}))
	return all
}

// TestRunFile: what a run file holds gives the same rows as the run in memory.
func TestRunFile(t *testing.T) {
	t.Parallel()
	store, err := runfile.Open(t.Context(), filepath.Join(t.TempDir(), "run.parley"), runfile.Either)
	must(t, err)
	defer store.Close()
	var got [2][]training.Row
	memory := &journal.Memory{}
	for i, j := range []journal.Journal{memory, store} {
		_, ended := setup{params: `{` + mazes + `,"message_cut":2}`, episodes: 10, journal: j}.play(t.Context(), t)
		from := store
		if i == 0 {
			from = runfiletest.Open(t, entriesOf(t, memory)...)
		}
		a, err := training.Each(t.Context(), from, world.Define(rules.Definition{}), training.Filter{Trainable: true}, func(g *training.Group) error {
			for _, m := range g.Members {
				for _, r := range m.Rows {
					r.At = time.Time{}
					got[i] = append(got[i], r)
				}
			}
			return nil
		})
		if err != nil || len(ended) != 10 || a.Kept != 10 || a.Rows != len(got[i]) {
			t.Fatalf("%+v %v", a, err)
		}
	}
	if !reflect.DeepEqual(got[0], got[1]) || got[0][3].WeightVersion != "7" || len(got[0][3].Messages) < 50 {
		t.Errorf("%d and %d rows; the fourth is %+v, then %+v", len(got[0]), len(got[1]), got[0][3], got[1][3])
	}
}

func TestBadRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ params, owner, want string }{
		{`{"env":"chess"}`, "r", "unknown environment \"chess\"; want one of arithmetic, maze"},
		{`{"env":"negotiation"}`, "r", "params.seats: want the agents of negotiation: seller, buyer"},
		{`{"env":"maze","env_params":{"size":99}}`, "r", "params.env_params.size: 99: want 2 to 30"},
		{`{"env":"maze","env_params":{"sizee":3}}`, "r", `params.env_params: unknown field "sizee"; did you mean size?`},
		{`{"tasks":"{\"env\":\"word\",\"params\":{},\"group\":\"word:1\",\"index\":1,\"size\":1}\n{\"env\":\"maze\",\"params\":{\"sizee\":3},\"group\":\"maze:1\",\"index\":1,\"size\":2}"}`, "r", `params.environments: maze:1: params: unknown field "sizee"`},
		{`{}`, "--", "without a name"},
	} {
		p := rules.Definition{}.Defaults()
		must(t, json.Unmarshal([]byte(c.params), p))
		if _, err := New(p, c.owner, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.params, err, c.want)
		}
	}
	a, err := New(rules.Definition{}.Defaults(), "r", nil)
	must(t, err)
	defer a.Close(t.Context())
	for _, act := range []world.Act{{Name: "dance"}, {Name: "open", Body: json.RawMessage("[]")}, {Name: "step", Body: json.RawMessage(`{"action":3}`)}} {
		if _, err := a.Act(t.Context(), journal.Turn{}, 0, "", act); llm.KindOf(err) != llm.KindBadRequest {
			t.Errorf("%v: %v", act, err)
		}
	}
	if _, err := a.Act(t.Context(), journal.Turn{}, 0, "", world.Act{Name: "step", Body: json.RawMessage(`{"step":1,"action":"x"}`)}); llm.KindOf(err) != llm.KindServer {
		t.Errorf("a step in no environment: %v", err)
	}
}

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
	params := fmt.Sprintf(`{%s,"servers":["http://%s"],"pool":{"per_server":4,"timeout":"5s","patience":"20s"}}`, mazes, l.Addr())
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
	params := fmt.Sprintf(`{%s,"servers":["http://%s",%q],"pool":{"per_server":4,"timeout":"2s","patience":"20s"}}`, mazes, mute, f.URL)
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
	params := fmt.Sprintf(`{%s,"servers":[%q,%q],"pool":{"per_server":4,"timeout":"2s","patience":"20s"}}`, mazes, f.URL, g.URL)
	res, got := setup{params: params, episodes: 12}.play(t.Context(), t)
	if res.State != journal.Complete || !slices.Equal(rewards(t, got), rewards(t, want)) {
		t.Errorf("%+v", res)
	}
	again := slices.ContainsFunc(got, func(e journal.Ended) bool { return data(t, e).Tries > 1 })
	if g.left(t) > 0 || len(f.twice())+len(g.twice()) > 0 || !again {
		t.Errorf("%d sessions are left; sent twice: %v %v; begun again: %v", g.left(t), f.twice(), g.twice(), again)
	}
}

// TestReleaseEpisode checks that the environment of an episode that ends early is free for the next.
func TestReleaseEpisode(t *testing.T) {
	t.Parallel()
	f := newFarm(t, nil)
	params := rules.Definition{}.Defaults()
	must(t, json.Unmarshal(fmt.Appendf(nil, `{%s,"servers":[%q],"pool":{"per_server":1,"patience":"0.05s"}}`, mazes, f.URL), params))
	a, err := New(params, "run", nil)
	must(t, err)
	t.Cleanup(func() { a.Close(t.Context()) })
	body := json.RawMessage(fmt.Sprintf(`{"env":%q,"seed":1}`, params.Env))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // or it would wait for the first for ever
	t.Cleanup(cancel)
	for episode := range 3 {
		_, err := a.Act(ctx, journal.Turn{Episode: episode}, 0, "", world.Act{Name: "open", Body: body})
		must(t, err)
		a.ReleaseEpisode(ctx, episode)
		a.ReleaseEpisode(ctx, episode) // it has nothing any more
	}
}
