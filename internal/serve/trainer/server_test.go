package trainer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/read/training"
	"parley/internal/run/runfile"
	"parley/worlds/rollout"
	"parley/worlds/rollout/rules"
)

// TestCursor checks that groups are returned in the order in which they became complete, and that a cursor
// returns exactly the groups after it, from another server too.
func TestCursor(t *testing.T) {
	t.Parallel()
	l := newLab(t, 8)
	s := l.serve(t, nil)
	s.want("GET", "/v1/status", "", 200, `{"state":"waiting","read":0,"groups":0,"complete":0,"cursor":""}`)
	if p := s.poll(""); p.ids() != "" || p.Done || p.State != Waiting {
		t.Errorf("%+v", p)
	}
	s.want("POST", "/v1/start", "", 202, `"state":"playing"`)
	s.want("POST", "/v1/start", "", 200, `"state":"playing"`)
	s.want("POST", "/v1/start", `{"episodes":3}`, 409, "being played with other settings")
	l.end(0, 4, 5, 2)
	first := s.poll("")
	if first.ids() != "maze:3/2" || first.Done || first.Groups[0].Cursor != first.Cursor {
		t.Fatalf("%+v", first)
	}
	if again := s.poll("cursor=" + first.Cursor); again.ids() != "" || again.Cursor != first.Cursor {
		t.Errorf("%+v", again)
	}
	l.end(-2, 3)
	rest := s.poll("cursor=" + first.Cursor)
	if rest.ids() != "maze:1/2 maze:2/2" || rest.Groups[0].Closed != "1 of 2 failed" || rest.Groups[1].Closed != "" {
		t.Fatalf("%+v", rest)
	}
	if one := s.poll("limit=1&cursor=" + first.Cursor); one.ids() != "maze:1/2" || one.Cursor != rest.Groups[0].Cursor {
		t.Errorf("%+v", one)
	}
	s.want("POST", "/v1/stop", "", 202, "stop")
	if p := s.poll("wait=20&cursor=" + rest.Cursor); !p.Done || p.State != Stopped || p.Reason != "stopped by the trainer" {
		t.Errorf("%+v", p)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	next := l.serve(t, func(c *Config) { c.Begun, c.Resume = true, true })
	l.end(6, 7)
	if p := next.poll("wait=20&cursor=" + first.Cursor); p.ids() != "maze:1/2 maze:2/2 maze:4/2" {
		t.Errorf("%+v", p)
	}
	if p := next.poll("wait=20"); p.ids() != "maze:3/2 maze:1/2 maze:2/2 maze:4/2" {
		t.Errorf("%+v", p)
	}
	if p := next.poll("wait=20&cursor=" + next.poll("").Cursor); !p.Done || p.State != Complete {
		t.Errorf("%+v", p)
	}
}

// TestStream checks that a stream returns the same groups as polling, and ends with the run.
func TestStream(t *testing.T) {
	t.Parallel()
	l := newLab(t, 4)
	s := l.serve(t, nil)
	res, err := http.Get(s.url + "/v1/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	s.want("POST", "/v1/start", "{}", 202, "")
	var lines []string
	for _, pair := range [][]int{{2, 3}, {1, 0}} {
		l.end(pair...)
		if !in.Scan() {
			t.Fatal(in.Err())
		}
		lines = append(lines, in.Text())
	}
	if !in.Scan() || !strings.Contains(in.Text(), `"state":"complete","done":true`) || in.Scan() {
		t.Errorf("the last line is %s", in.Text())
	}
	_, polled := s.ask("GET", "/v1/groups", "")
	for _, line := range lines {
		if !strings.Contains(polled, line) {
			t.Errorf("%s\nis not in\n%s", line, polled)
		}
	}
	// The same rows, whichever way: the export has them in the order of the plan.
	var exported bytes.Buffer
	r, err := runfile.OpenRead(l.file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := training.Write(t.Context(), &exported, r, rollout.Kind(), training.Filter{}, training.Rows, training.JSONL); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, g := range s.poll("").Groups {
		for _, row := range g.Rows {
			rows = append(rows, string(row)+"\n")
		}
	}
	want := slices.Collect(strings.Lines(exported.String()))
	slices.Sort(rows)
	slices.Sort(want)
	if !slices.Equal(rows, want) || len(rows) != 4 {
		t.Errorf("%s\nwant\n%s", rows, want)
	}
}

// TestFilters: what is left out is counted, and the cursor moves past it.
func TestFilters(t *testing.T) {
	t.Parallel()
	l := newLab(t, 4)
	s := l.serve(t, nil)
	s.want("POST", "/v1/start", "", 202, "")
	l.end(0, 1, 2, -4)
	for _, c := range []struct{ query, ids, left string }{
		{"", "maze:1/2 maze:2/2", "null"},
		{"trainable=true", "maze:1/2 maze:2/1", "null"},
		{"status=completed", "maze:1/2 maze:2/1", "null"},
		{"status=completed,truncated&whole=true", "maze:1/2", `{"short":1}`},
		{"unequal=true&status=completed", "maze:1/2", `{"equal reward":1}`},
		{"min_reward=0.5", "maze:1/1", `{"reward":1}`},
		{"min_reward=0.5&unequal=true", "maze:1/1", `{"reward":1}`}, // the other episode counts for unequal
		{"weight_version=9&max_lag=1", "", `{"weight lag":2}`},
		{"weight_version=9&max_lag=2", "maze:1/2 maze:2/2", "null"},
	} {
		p := s.poll("wait=20&" + c.query)
		left, err := json.Marshal(p.Left)
		if err != nil || p.ids() != c.ids || string(left) != c.left {
			t.Errorf("%s: %s, %s", c.query, p.ids(), left)
		}
		if p.Cursor != s.poll("wait=20").Cursor {
			t.Errorf("%s: the cursor is %s", c.query, p.Cursor)
		}
	}
}

// TestLongPoll checks that the next group, and the end of the server, wake a waiting client.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	l := newLab(t, 4)
	s := l.serve(t, nil)
	s.want("POST", "/v1/start", "", 202, "")
	got := make(chan page)
	go func() { got <- s.poll("wait=60") }()
	l.end(1, 0)
	if p := <-got; p.ids() != "maze:1/2" {
		t.Errorf("%+v", p)
	}
	cursor := s.poll("").Cursor
	go func() { got <- s.poll("wait=60&cursor=" + cursor) }()
	for len(s.server.readers) == 0 { // it is not there yet
		runtime.Gosched()
	}
	s.drain(http.ErrServerClosed)
	if p := <-got; p.ids() != "" || p.Cursor != cursor {
		t.Errorf("%+v", p)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := newLab(t, 2).serve(t, nil)
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/v1/groups?cursor=r1.3", "", 409, "there is no run yet"},
		{"GET", "/v1/groups?cursor=x", "", 409, "is not valid"},
		{"GET", "/v1/groups?limit=0", "", 400, "limit: \\\"0\\\": want a number from 1 to"},
		{"GET", "/v1/groups?wait=61", "", 400, "wait:"},
		{"GET", "/v1/groups?whole=maybe", "", 400, "whole:"},
		{"GET", "/v1/stream?status=great", "", 400, "use completed, truncated or failed"},
		{"GET", "/v1/stream?max_lag=2", "", 400, "needs weight_version"},
		{"GET", "/v1/groups?colour=red", "", 400, "colour: is not known: use cursor, limit"},
		{"POST", "/v1/start", "{", 400, "want {"},
		{"POST", "/v1/start", `{"plan":1}`, 400, "plan"},
		{"POST", "/v1/start", `{} {}`, 400, "more text after the object"},
		{"POST", "/v1/start", `{"params":{"servers":["http://x"]}}`, 400, "params.servers is not for clients to set: use env, env_params"},
		{"POST", "/v1/start", `{"params":{"group":3}}`, 400, "params.group: 3: want 2"},
		{"POST", "/v1/start", strings.Repeat(" ", 2<<20), 413, "larger than 1 MiB"},
		{"GET", "/v1/start", "", 404, "there is no GET /v1/start: use POST /v1/start"},
		{"GET", "/health", "", 200, "healthy"},
	} {
		s.want(c.method, c.path, c.body, c.code, c.want)
	}
	s.want("POST", "/v1/start", "", 202, "")
	s.end(0, 1)
	s.want("GET", "/v1/groups?cursor=r2.3", "", 409, "is not of this run, which is r1")
	s.want("GET", "/v1/groups?cursor=r1.999", "", 409, "is not of this run")
}

// TestRefused checks that a client that starts an invalid run gets the error, and the server continues.
func TestRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	if err := os.WriteFile(l.file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := l.serve(t, nil)
	s.want("POST", "/v1/start", "", 409, "not a run file")
	s.want("GET", "/v1/status", "", 200, `"state":"waiting"`)
	next := l.serve(t, func(c *Config) { c.Resume = true })
	if p := next.poll("wait=20"); p.State != Failed || !p.Done || !strings.Contains(p.Reason, "not a run file") {
		t.Errorf("%+v", p)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, func(c *Config) { c.Keys = []string{"other", "secret"} })
	for _, path := range []string{"/v1/status", "/v1/groups", "/nowhere"} {
		s.want("GET", path, "", 401, "the key is missing or is not one of")
	}
	s.want("GET", "/health", "", 200, "healthy")
	s.key = "secret"
	s.want("GET", "/v1/status", "", 200, "waiting")
	open := l.serve(t, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, open.url+"/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "http://example.com")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("a web page: %v %v", res, err)
	}
	res.Body.Close()
}

// TestReaders checks that the number of readers is limited, and that others get an error.
func TestReaders(t *testing.T) {
	t.Parallel()
	s := newLab(t, 2).serve(t, func(c *Config) { c.Readers = 1 })
	res, err := http.Get(s.url + "/v1/stream") // its head comes once it has a place
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	s.want("GET", "/v1/groups", "", 503, "too many requests read at once")
	s.want("GET", "/v1/status", "", 200, "waiting")
}

// pipes is a listener for connections in memory, without buffers: a write waits for a read.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowReader checks that a client that reads nothing is disconnected after the timeout, and not before.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	synctest.Test(t, func(t *testing.T) {
		c := l.config()
		c.ClientTimeout, c.Access.Hosts = time.Minute, []string{"x"}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ln := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		drain, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { err = s.Run(t.Context(), drain, ln) })
		client, server := net.Pipe()
		ln.conns <- server
		if _, err := io.WriteString(client, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := len(s.readers); n != 1 {
			t.Errorf("%d read, want 1", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(s.readers); n != 0 {
			t.Errorf("%d read, want none", n)
		}
		cancel(errStopping)
		client.Close()
		wg.Wait()
		if err != nil {
			t.Error(err)
		}
	})
}

// TestAhead: groups begin only as far ahead of the reader as is allowed.
func TestAhead(t *testing.T) {
	t.Parallel()
	l := newLab(t, 8)
	s := l.serve(t, func(c *Config) { c.Ahead, c.Group = 1, 2 })
	until := func(want int64) {
		t.Helper()
		if got := l.until.Load(); got != want {
			t.Errorf("episodes begin below %d, want %d", got, want)
		}
	}
	s.want("POST", "/v1/start", "", 202, `"state":"playing"`)
	until(2)
	l.end(0, 1)
	_, raw := s.ask("GET", "/v1/groups?wait=1", "")
	if !strings.Contains(raw, `"group_id":"maze:1"`) {
		t.Fatal(raw)
	}
	until(2) // sent, but the client may have lost it
	s.want("GET", "/v1/groups?cursor=r1.9", "", 200, `"groups":[]`)
	until(4)
	s.want("GET", "/v1/status", "", 200, `"read":1,"groups":4,"complete":1`)
	l.end(3, 2)
	s.want("GET", "/v1/groups?cursor=r1.9", "", 200, `"group_id":"maze:2"`)
	until(4)
	l.end(4, 5, 6, 7)
	_, raw = s.ask("GET", "/v1/stream?cursor=r1.9", "")
	if strings.Count(raw, `"rows":`) != 3 {
		t.Fatal(raw)
	}
	until(math.MaxInt)
}

// TestPauseAndWeights: a trainer pauses the run, and tells which weights it has.
func TestPauseAndWeights(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/pause", "", 409, "no run is being played")
	s.want("POST", "/v1/start", "", 202, `"state":"playing"`)
	s.want("POST", "/v1/pause", "", 200, `"paused":true`)
	if !l.paused.Load() {
		t.Error("the run goes on")
	}
	s.want("POST", "/v1/resume", "", 200, `"read":0`)
	if l.paused.Load() {
		t.Error("the run is still paused")
	}
	l.end(0, 1)
	s.want("GET", "/v1/groups?max_lag=2", "", 400, "POST /v1/weights before")
	for body, want := range map[string]string{`{"version":-1}`: "from 0", `{}`: "from 0", `{"version":"x"}`: "from 0", `{"version":1,"more":2}`: "from 0", `{"version":3,"past":[3]}`: "versions below N", `{"version":9,"past":[-1]}`: "versions below N",
		``: "from 0", `null`: "from 0", `[9]`: "from 0", `{"version":null}`: "from 0", `{"version":1e308}`: "from 0", `{"version":9223372036854775808}`: "from 0", `{"version":NaN}`: "from 0",
		`{"version":1.5}`: "from 0", `{"version":1}{"version":2}`: "from 0", `{"version":2000,"past":[1` + strings.Repeat(",1", maxPast) + `]}`: "at most 1000",
	} {
		s.want("POST", "/v1/weights", body, 400, want)
	}
	s.want("POST", "/v1/weights", `{"version":9}`, 200, `"weight_version":9`)
	s.want("GET", "/v1/groups?max_lag=2", "", 200, `"group_id":"maze:1"`)
	s.want("GET", "/v1/groups?max_lag=1", "", 200, `"left":{"weight lag":1}`)
}

// TestWeightsAreOneChange: many trainers that tell their weights at once, also earlier ones than before, leave one of what they said: the
// server, the run and the file have the same. Huge bodies are refused, and clients that go away in the middle change nothing.
func TestWeightsAreOneChange(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/weights", `{"version":9223372036854775807,"past":[9223372036854775806]}`, 200, `"weight_version":9223372036854775807`)
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	l.end(0)
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			s.want("POST", "/v1/weights", fmt.Sprintf(`{"version":%d,"past":[%d]}`, 50-n, 49-n), 200, `"weight_version":`)
		})
		wg.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "POST /v1/weights HTTP/1.1\r\nHost: "+strings.TrimPrefix(s.url, "http://")+"\r\nContent-Length: 99\r\n\r\n{\"version\":777")
			_ = conn.Close()
		})
	}
	wg.Wait()
	s.want("POST", "/v1/weights", strings.Repeat(" ", 2<<20)+`{"version":888}`, 413, "larger than 1 MiB")
	var now status
	if err := json.Unmarshal([]byte(s.want("GET", "/v1/status", "", 200, "")), &now); err != nil || now.WeightVersion == nil || *now.WeightVersion < 1 || *now.WeightVersion > 50 {
		t.Fatal(now, err)
	}
	file, err := os.ReadFile(l.file + "-trainer")
	if want := fmt.Sprintf(`{"weight_version":%d,"past":[%d],"run":"r1"}`+"\n", *now.WeightVersion, *now.WeightVersion-1); err != nil || string(file) != want {
		t.Errorf("the file has %s, want %s: %v", file, want, err)
	}
	if past := l.past.Load(); past == nil || !slices.Equal(*past, []int{*now.WeightVersion - 1}) {
		t.Errorf("the run may ask the versions %v, and the server has %d", past, *now.WeightVersion)
	}
	s.want("POST", "/v1/weights", `{"version":2}`, 200, `"weight_version":2`)
	l.end(1)
}

// TestTwoTrainers: two trainers of one run, one of which goes away after each group and comes back, both get every group once, in the same order.
func TestTwoTrainers(t *testing.T) {
	t.Parallel()
	const groups = 8
	l := newLab(t, 2*groups)
	s := l.serve(t, func(c *Config) { c.Ahead, c.Group = groups, 2 })
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	var wg sync.WaitGroup
	var got [2][]string
	for i, limit := range []int{2 * groups, 1} {
		wg.Go(func() {
			for cursor, done := "", false; !done; {
				cursor, done = readStream(t, s.url, cursor, limit, &got[i])
			}
		})
	}
	for n := range groups { // the last groups are complete first
		l.end(2*(groups-1-n)+1, 2*(groups-1-n))
	}
	wg.Wait()
	if !slices.Equal(got[0], got[1]) || len(got[0]) != groups || got[0][0] != "maze:8" {
		t.Errorf("%q\n%q", got[0], got[1])
	}
}

// TestWeightsBeforeTheRun: what a trainer said before the run began survives a restart too.
func TestWeightsBeforeTheRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/weights", `{"version":9,"past":[4]}`, 200, `"weight_version":9`)
	for _, begun := range []bool{false, true} {
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		s = l.serve(t, func(c *Config) { c.Begun, c.Resume = begun, begun })
		s.want("GET", "/v1/status", "", 200, `"weight_version":9`)
		if !begun {
			s.want("POST", "/v1/start", "", 202, `"playing"`)
		}
		l.end(map[bool]int{true: 1}[begun])
		if past := l.past.Swap(nil); past == nil || !slices.Equal(*past, []int{4}) {
			t.Errorf("the run may ask the versions %v", past)
		}
	}
}

// TestPauseSurvives: a run that a trainer paused is paused in the next process too, from the first call on, until it is resumed. Before play
// begins, requests are asked to come again.
func TestPauseSurvives(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	s.want("POST", "/v1/pause", "", 200, `"paused":true`)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	l.paused.Store(false) // another process knows nothing of it
	begin := make(chan struct{})
	again := func(c *Config) {
		c.Begun, c.Resume = true, true
		plan := c.Plan
		c.Plan = func(o Override) (Prepared, error) { <-begin; return plan(o) }
	}
	s = l.serve(t, again)
	for _, path := range []string{"/v1/resume", "/v1/pause"} {
		s.want("POST", path, "", 503, "try again")
	}
	s.want("POST", "/v1/tasks", `{"remove":["maze:1"]}`, 503, "try again")
	s.want("GET", "/v1/status", "", 200, `"paused":true`)
	close(begin)
	l.end(0) // it plays
	s.want("POST", "/v1/resume", "", 200, `"playing"`)
	if !l.pausedFirst.Load() || l.paused.Load() {
		t.Error("the run was not paused when it began, or is still paused")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = l.serve(t, again)
	l.end(1)
	if l.pausedFirst.Load() {
		t.Error("a run that was resumed is paused again")
	}
	s.want("GET", "/v1/status", "", 200, `"read":0`)
}

// TestPauseFinishes: a pause may wait for the calls in flight, but not forever.
func TestPauseFinishes(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	for body, want := range map[string]string{`{"calls":"drop"}`: "hold", `{"wait":-1}`: "SECONDS", `{"now":true}`: "unknown field"} {
		s.want("POST", "/v1/pause", body, 400, want)
	}
	l.busy.Store(true)
	s.want("POST", "/v1/pause", `{"calls":"hold"}`, 200, `"paused":true`)
	s.want("POST", "/v1/resume", "", 200, `"playing"`)
	s.want("POST", "/v1/pause", `{"calls":"finish","wait":0.001}`, 504, "still in flight")
	s.want("GET", "/v1/status", "", 200, `"paused":true`)
	s.want("POST", "/v1/pause", `{"calls":"cut"}`, 200, `"paused":true`)
	s.want("POST", "/v1/pause", `{"calls":"finish"}`, 200, `"paused":true`) // there are none any more
	l.end(0, 1)
}

// TestStaleness: once a trainer says which weights it has, groups with older answers than the run allows are left out.
func TestStaleness(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	one := 1
	s := l.serve(t, func(c *Config) { c.Staleness = &one })
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	l.end(0, 1)
	for _, c := range []struct{ weights, query, want string }{
		{"", "", "maze:1/2"},
		{"8", "", "maze:1/2"}, // the answers have version 7
		{"9", "", ""},
		{"9", "max_lag=2", "maze:1/2"},
	} {
		if c.weights != "" {
			s.want("POST", "/v1/weights", `{"version":`+c.weights+`}`, 200, c.weights)
		}
		if got := s.poll(c.query); got.ids() != c.want || (c.want == "") != (got.Left["weight lag"] == 1) {
			t.Errorf("weights %s, %q: %q, left out: %v", c.weights, c.query, got.ids(), got.Left)
		}
	}
}

// TestWeightsSurvive: the next server of a run knows which weights the trainer has. A server of another run does not.
func TestWeightsSurvive(t *testing.T) {
	t.Parallel()
	l, one := newLab(t, 2), 1
	stale := func(c *Config) { c.Staleness = &one }
	s := l.serve(t, stale)
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	l.end(0)
	s.want("POST", "/v1/weights", `{"version":9,"past":[0,4]}`, 200, `"weight_version":9`)
	if past := l.past.Swap(nil); past == nil || !slices.Equal(*past, []int{0, 4}) {
		t.Errorf("the run may ask the versions %v", past)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = l.serve(t, func(c *Config) { stale(c); c.Begun, c.Resume = true, true })
	l.end(1)
	if past := l.past.Load(); past == nil || !slices.Equal(*past, []int{0, 4}) {
		t.Errorf("the resumed run may ask the versions %v", past)
	}
	s.want("GET", "/v1/status", "", 200, `"weight_version":9`)
	if got := s.poll("wait=5"); got.ids() != "" || got.Left["weight lag"] != 1 {
		t.Errorf("%q, left out: %v", got.ids(), got.Left)
	}
	other := newLab(t, 2)
	s = other.serve(t, func(c *Config) { stale(c); c.Memory = l.file + "-trainer" })
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	other.end(0, 1)
	if got := s.poll("wait=5"); got.ids() != "maze:1/2" {
		t.Errorf("the weights of another run count: %q, left out: %v", got.ids(), got.Left)
	}
}

// TestTasks: a trainer changes the tasks of the run, and learns why a change is refused.
func TestTasks(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	s := l.serve(t, nil)
	s.want("POST", "/v1/tasks", `{"remove":["maze:1"]}`, 409, "no run is being played")
	s.want("POST", "/v1/start", "", 202, `"playing"`)
	s.want("POST", "/v1/tasks", `{"remove":3}`, 400, "cannot be read")
	s.want("POST", "/v1/tasks", `{"add":[{"name":"x"}]}`, 400, "add[0].env_name")
	s.want("POST", "/v1/tasks", `{"remove":["maze:1"]}`, 409, "there is no task")
	s.want("POST", "/v1/tasks", `{"add":[{"name":"x","env_name":"maze"}],"weights":{"maze":0}}`, 200, `"playing"`)
	if got := l.changed.Load(); got == nil || *got != "tasks: 1 added, 1 weighted" {
		t.Errorf("the plan was told %v", got)
	}
	l.end(0, 1)
}

// FuzzRequests sends bodies and queries to a server without a run. Each gets a JSON answer with a fitting
// status.
func FuzzRequests(f *testing.F) {
	f.Add(`{"episodes": 3, "seed": 18446744073709551615, "params": {"group": 4}}`, "cursor=x&limit=3&wait=0")
	f.Add(`{"episodes": 9223372036854775808}`, "limit=99999999999999999999")
	f.Add(`{"params": {"env": {}}} {}`, "max_lag=1&weight_version=-1")
	f.Add("[[[[", "wait=%zz")
	f.Add("", "status=complete,failed&trainable=maybe")
	f.Fuzz(func(t *testing.T, body, query string) {
		var o Override
		r := httptest.NewRequest(http.MethodPost, "/v1/start", strings.NewReader(body))
		if err := decode(r, &o, ""); err == nil {
			for name := range o.Params {
				if slices.Contains(rules.Definition{}.Overridable(), name) && !json.Valid(o.Params[name]) {
					t.Errorf("params.%s is not JSON: %q", name, o.Params[name])
				}
			}
		}
		s, err := New(Config{Plan: func(Override) (Prepared, error) { return Prepared{}, errors.New("no") }})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := url.ParseQuery(query); err == nil {
			v.Del("wait") // the test does not
			query = v.Encode()
		}
		for _, path := range []string{"/v1/groups", "/v1/status", "/health", "/nowhere"} {
			r := httptest.NewRequest(http.MethodGet, path, strings.NewReader(body))
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s?%s: %d %s", path, query, w.Code, w.Body)
			}
		}
	})
}
