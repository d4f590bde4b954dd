package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/run/engine"
	"parley/internal/run/program"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/worldtest"
)

// started is a program that answers an ask of a run: a function that gets its session.
type started func(ctx context.Context, q engine.Question, s program.Session) (string, error)

// starter starts programs.
type starter struct {
	sessions *Programs
	run      started
	change   func(*program.Ask)

	mu   sync.Mutex
	used []program.Used
}

func (s *starter) Drain() {}

func (s *starter) Ask(ctx context.Context, q engine.Question) (*llm.Response, error) {
	a := program.Ask{Turn: q.Turn, Index: q.Index, Seat: q.Seat, Agent: world.Agent{Name: q.Agent, Model: q.Model}}
	if s.change != nil {
		s.change(&a)
	}
	session, err := s.sessions.Open(ctx, a)
	if err != nil {
		return nil, err
	}
	text, err := s.run(ctx, q, session)
	used := session.Close(ctx)
	s.mu.Lock()
	s.used = append(s.used, used)
	s.mu.Unlock()
	switch {
	case used.Fault != nil:
		return nil, used.Fault
	case err != nil:
		return nil, &llm.Error{Kind: llm.KindServer, Message: err.Error()}
	}
	return &llm.Response{Text: text, Finish: llm.FinishStop}, nil
}

// trial is a run with programs in it.
type trial struct {
	provider provider.Provider
	inner    llm.Model // of a provider without a wire format
	agent    world.Agent
	budget   llm.Money
	each     llm.Money // budget of an episode
	episodes int
	change   func(*program.Ask)
	version  func(model string, of world.Spec) string
}

// fixed is a plan of some episodes.
type fixed struct {
	n    int
	done bool
}

func (f *fixed) Next([]world.Played) world.Specs {
	if f.done {
		return world.Specs{}
	}
	f.done = true
	specs := make([]world.Spec, f.n)
	for i := range specs {
		specs[i] = world.Spec{Kind: "trial", Params: json.RawMessage(`{}`), Lineup: map[string]string{"solver": "tool"}, Deal: i}
	}
	return world.List(specs...)
}

// play plays a run whose agent is a program.
func (d trial) play(t *testing.T, j journal.Journal, run started) (engine.Result, *starter, error) {
	t.Helper()
	if d.agent.Model == "" {
		d.agent.Model = d.provider.Name + "/small"
	}
	d.agent.Name, d.agent.Program = "tool", &world.Program{Command: []string{"tool"}}
	relays := &Relays{}
	m, err := relays.Model(d.provider, nil, d.inner)
	if err != nil {
		t.Fatal(err)
	}
	rules := limited(d.budget, 0)
	rules.EpisodeBudget = d.each
	models, err := dispatch.New(dispatch.Config{
		Lanes: []dispatch.Lane{{Provider: d.provider, Model: m}}, Budget: budget.New(d.budget, 0), Prices: pricesOf(t, d.provider.Name),
		Settings: rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := ServePrograms(t.Context(), ProgramsConfig{Dispatch: models, Relays: relays, Settings: rules})
	if err != nil {
		t.Fatal(err)
	}
	s := &starter{sessions: sessions, run: run, change: d.change}
	kind := world.Define(worldtest.Simple[struct{}]{
		Kind: world.About{Name: "trial", Version: 1},
		Play: func(_ *struct{}, t *world.Table) world.Outcome {
			r := t.One(world.Call{Seat: "solver", Label: "solve", Ask: llm.Request{Messages: []llm.Message{llm.User("Solve it.")}}})
			return world.Outcome{Data: r.Text + string(r.Failed)}
		},
	})
	res, err := engine.Run(t.Context(), engine.Config{
		Journal: j, Kind: kind, Plan: &fixed{n: max(1, d.episodes)}, Models: models, Programs: s, Steer: sessions.Begin, Prices: models,
		Settings: rules, Version: d.version,
		Begun: journal.Begun{Version: journal.Version, Run: "trial", Kind: "trial", KindVersion: 1, Agents: []world.Agent{d.agent}},
	})
	return res, s, errors.Join(err, sessions.Close(), models.Close())
}

// call makes a call, and returns the status and the body.
func call(ctx context.Context, url, body string, header ...string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// tally answers chat completions, and counts them by question.
type tally struct {
	mu    sync.Mutex
	asked map[string]int
	all   int
	seen  []http.Header
}

func (c *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model    string
		Messages []struct{ Content string }
		Stream   bool
	}
	raw, _ := io.ReadAll(r.Body)
	if json.Unmarshal(raw, &body) != nil || len(body.Messages) == 0 {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	q := body.Messages[len(body.Messages)-1].Content
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[q]++
	c.all++
	c.seen = append(c.seen, r.Header.Clone())
	c.mu.Unlock()
	if body.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{"answer", " to ", q} {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", body.Model, word)
			http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"1","model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, body.Model, "answer to "+q)
}

func labAt(t *testing.T, h http.Handler) provider.Provider {
	t.Helper()
	return provider.Provider{Name: "lab", Dialect: "openai", BaseURL: serving(t, h)}
}

// innerCalls returns what is recorded of programs.
func innerCalls(t *testing.T, j journal.Journal) (out []*journal.Replied) {
	t.Helper()
	if err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && journal.OfProgram(r.Strand) {
			out = append(out, r)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestProgramCalls wants the calls of a program to be passed on with the agent's model, recorded with the ask, and to cost what they cost.
func TestProgramCalls(t *testing.T) {
	t.Parallel()
	server := &tally{}
	j := store(t, filepath.Join(t.TempDir(), "run.parley"), false)
	res, s, err := trial{provider: labAt(t, server), episodes: 3}.play(t, j, func(ctx context.Context, q engine.Question, s program.Session) (string, error) {
		said := ""
		for i := range 2 {
			more := ""
			if i == 1 {
				more = streamed
			}
			status, b, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("gpt-any", fmt.Sprint(q.Turn.Episode, "-", i), more), "Authorization", "Bearer "+s.Key())
			if err != nil || status != 200 {
				return "", fmt.Errorf("%d %s %w", status, b, err)
			}
			said += b
		}
		if !strings.Contains(said, "answer to ") || !strings.Contains(said, "[DONE]") {
			t.Errorf("the program got %s", said)
		}
		return "done", nil
	})
	if err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	calls := innerCalls(t, j)
	if len(calls) != 6 || server.all != 6 {
		t.Fatalf("%d calls are recorded, %d were made", len(calls), server.all)
	}
	for _, c := range calls {
		if c.Seat != "solver" || c.Agent != "tool" || c.Request.Model != "lab/small" || c.Response.Usage.Output != 5 || c.Cost() == 0 {
			t.Errorf("call %+v", c)
		}
	}
	for _, h := range server.seen {
		if strings.Contains(fmt.Sprint(h), "parley-") {
			t.Errorf("the provider got %v", h)
		}
	}
	for _, u := range s.used {
		if u.Calls != 2 || u.Repeated != 0 || u.Usage.Input != 20 || u.Cost == 0 || u.Limit != "" || u.Diverged != "" {
			t.Errorf("used %+v", u)
		}
	}
	head, err := j.Head(t.Context())
	if err != nil || head.Spent == 0 || head.Calls != 9 {
		t.Errorf("head: %+v, %v", head, err)
	}
}

// pulled is a journal that stops after some entries.
type pulled struct {
	journal.Journal
	left *atomic.Int64
}

var errPulled = errors.New("the plug was pulled")

func (p pulled) Append(ctx context.Context, entries ...journal.Entry) error {
	if p.left.Add(-int64(len(entries))) < 0 {
		return errPulled
	}
	return p.Journal.Append(ctx, entries...)
}

// TestProgramVersions wants the calls of a program to go to the version of its model that the other calls of the episode meet.
func TestProgramVersions(t *testing.T) {
	t.Parallel()
	server := &tally{}
	j := store(t, filepath.Join(t.TempDir(), "run.parley"), false)
	version := func(model string, of world.Spec) string {
		return fmt.Sprint(strings.TrimSuffix(model, "@past"), "@v", 7+of.Deal)
	}
	d := trial{provider: labAt(t, server), agent: world.Agent{Model: "lab/small@past"}, episodes: 2, version: version}
	res, _, err := d.play(t, j, func(ctx context.Context, _ engine.Question, s program.Session) (string, error) {
		status, b, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("any", "hello", ""), "Authorization", "Bearer "+s.Key())
		if err != nil || status != 200 {
			return "", fmt.Errorf("%d %s %w", status, b, err)
		}
		return "done", nil
	})
	if err != nil || res.State != journal.Complete {
		t.Fatal(res, err)
	}
	calls := innerCalls(t, j)
	for _, c := range calls {
		if want := fmt.Sprint("small@v", 7+c.Episode); c.Response.Model != want {
			t.Errorf("episode %d: %s answered, want %s", c.Episode, c.Response.Model, want)
		}
	}
	if len(calls) != 2 {
		t.Errorf("%d calls are recorded", len(calls))
	}
}

// TestProgramRepeats cuts the run anywhere: the next process answers the program from the record, and no recorded call is sent again. The program's
// calls differ in an id, which its rules ignore.
func TestProgramRepeats(t *testing.T) {
	t.Parallel()
	const calls = 5
	for _, ignore := range [][]string{nil, {"re:id-[0-9]+"}} {
		var ids atomic.Int64
		run := func(ctx context.Context, q engine.Question, s program.Session) (string, error) {
			talk := ""
			for i := range calls {
				question := fmt.Sprint("step ", i)
				if ignore != nil {
					question += fmt.Sprint(" id-", ids.Add(1))
				}
				status, b, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("m", question))
				if err != nil || status != 200 {
					return "", fmt.Errorf("%d %s %w", status, b, err)
				}
				talk += fmt.Sprint(i)
			}
			return talk, nil
		}
		for cut := int64(4); ; cut++ {
			server := &tally{}
			d := trial{provider: labAt(t, server), change: func(a *program.Ask) { a.Ignore = ignore }}
			j := &journal.Memory{}
			left := &atomic.Int64{}
			left.Store(cut)
			_, _, err := d.play(t, pulled{j, left}, run)
			if err == nil {
				break
			}
			kept, sent := len(innerCalls(t, j)), server.all
			res, s, err := d.play(t, j, run)
			if err != nil || res.State != journal.Complete {
				t.Fatalf("cut after %d: %+v %v", cut, res, err)
			}
			if again := server.all - sent; len(s.used) == 1 && (again != calls-kept || s.used[0].Repeated != kept || res.Repeated != kept || s.used[0].Calls != calls || s.used[0].Diverged != "") {
				t.Errorf("cut after %d: %d calls are recorded, %d were sent again: %+v", cut, kept, again, s.used)
			}
		}
	}
}

// TestProgramDiverges wants a program that asks something else to be told from one that asks in another order.
func TestProgramDiverges(t *testing.T) {
	t.Parallel()
	asks := func(questions ...string) started {
		return func(ctx context.Context, _ engine.Question, s program.Session) (string, error) {
			for _, q := range questions {
				if status, b, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("m", q)); err != nil || status != 200 {
					return "", fmt.Errorf("%d %s %w", status, b, err)
				}
			}
			return "", nil
		}
	}
	for name, one := range map[string]struct {
		again    []string
		diverged bool
		repeated int
	}{
		"same":               {[]string{"a", "b", "c"}, false, 3},
		"other order":        {[]string{"c", "b", "a"}, false, 3},
		"more":               {[]string{"a", "b", "c", "d"}, false, 3},
		"other between":      {[]string{"a", "x", "c"}, true, 2},
		"fewer":              {[]string{"a"}, false, 1},
		"the same ask twice": {[]string{"a", "a", "b", "c"}, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &tally{}
			d := trial{provider: labAt(t, server)}
			j := &journal.Memory{}
			left := &atomic.Int64{}
			left.Store(4 + 2*3) // begun, opened, staged, turned, and three calls
			if _, _, err := d.play(t, pulled{j, left}, asks("a", "b", "c")); err == nil || len(innerCalls(t, j)) != 3 {
				t.Fatalf("%d calls are recorded: %v", len(innerCalls(t, j)), err)
			}
			sent := server.all
			_, s, err := d.play(t, j, asks(one.again...))
			if err != nil {
				t.Fatal(err)
			}
			if u := s.used[0]; (u.Diverged != "") != one.diverged || u.Repeated != one.repeated || server.all-sent != len(one.again)-one.repeated {
				t.Errorf("%d were sent, used %+v", server.all-sent, u)
			}
		})
	}
}

// TestProgramLimits wants each limit of a session to hold, also for many calls at once.
func TestProgramLimits(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		trial trial
		limit string
		sent  int // at most
		stops bool
		tells string // what the program gets in place of an answer
	}{
		"calls":          {trial{change: func(a *program.Ask) { a.MaxCalls = 7 }}, "calls", 7, false, "the limit of 7 calls"},
		"tokens":         {trial{change: func(a *program.Ask) { a.MaxTokens = 40 }}, "tokens", 10 + maxAtOnce, false, "the limit of 40 tokens"},
		"episode budget": {trial{each: 100 * llm.Dollar / 1000}, "episode budget", 999, false, "budget"},
		"budget":         {trial{budget: 100 * llm.Dollar / 1000}, "budget", 999, true, "budget"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &tally{}
			d := one.trial
			d.provider = labAt(t, server)
			j := &journal.Memory{}
			var answered atomic.Int64
			res, s, err := d.play(t, j, func(ctx context.Context, _ engine.Question, s program.Session) (string, error) {
				var wg sync.WaitGroup
				for i := range 1000 {
					wg.Go(func() {
						status, b, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("m", fmt.Sprint(i), `,"max_tokens":10`))
						if err != nil || status != 200 && status != http.StatusPaymentRequired || status != 200 && !strings.Contains(b, one.tells) {
							t.Errorf("%d %s %v", status, b, err)
						}
						if status == 200 {
							answered.Add(1)
						}
					})
				}
				wg.Wait()
				return "", nil
			})
			u := s.used[0]
			if u.Limit != one.limit || server.all > one.sent || server.all == 0 || int(answered.Load()) > server.all {
				t.Errorf("%d were sent, %d answered, used %+v", server.all, answered.Load(), u)
			}
			if stopped := err == nil && res.State == journal.Stopped && res.Reason.Kind == journal.ByBudget; stopped != one.stops {
				t.Errorf("%+v %v", res, err)
			}
			if d.each > 0 && u.Cost > d.each || d.budget > 0 && u.Cost > d.budget {
				t.Errorf("it cost %v", u.Cost)
			}
		})
	}
}

// TestProgramAttacks wants a session to serve only who knows it, as long as its program runs.
func TestProgramAttacks(t *testing.T) {
	t.Parallel()
	server := &tally{}
	j := &journal.Memory{}
	var ended program.Session
	other := make(chan program.Session, 2)
	var both sync.WaitGroup
	both.Add(2)
	_, starts, err := trial{provider: labAt(t, server), episodes: 2}.play(t, j, func(ctx context.Context, q engine.Question, s program.Session) (string, error) {
		both.Done()
		both.Wait() // two sessions are open
		base, _, _ := strings.Cut(s.URL(), "/s/")
		ok := "/v1/chat/completions"
		for what, one := range map[string]struct {
			url    string
			header []string
			status int
		}{
			"no session":             {base + ok, nil, 404},
			"a guess":                {base + "/s/" + strings.Repeat("0", 32) + ok, nil, 404},
			"an empty secret":        {base + "/s/" + ok, nil, 404},
			"a part of the secret":   {s.URL()[:len(s.URL())-1] + ok, nil, 404},
			"the secret in capitals": {base + "/s/" + strings.ToUpper(strings.TrimPrefix(s.URL(), base+"/s/")) + "x" + ok, nil, 404},
			"a name of its own":      {s.URL() + "/v1/sessions/mine/chat/completions", nil, 404},
			"a name before it":       {s.URL() + "/other/chat/completions", nil, 404},
			"a step up":              {s.URL() + "/v1/../../s/" + ok, nil, 404},
			"metrics":                {s.URL() + "/metrics", nil, 404},
			"close":                  {s.URL() + "/v1/sessions/x/close", nil, 404},
			"another host":           {s.URL() + ok, []string{"Host", "evil.example"}, 403},
			"a web page":             {s.URL() + ok, []string{"Origin", "https://evil.example"}, 403},
		} {
			if status, b, err := call(ctx, one.url, chatOf("m", "attack"), one.header...); err != nil || status != one.status {
				t.Errorf("%s: %d %s %v", what, status, b, err)
			}
		}
		// Headers change neither the session nor who pays.
		status, b, err := call(ctx, s.URL()+ok, chatOf("other/model", fmt.Sprint("own ", q.Turn.Episode)), "X-Parley-Session", "default", "X-Session-Id", "x", "X-Parley-Agent", "boss",
			"Authorization", "Bearer stolen", "Cookie", "a=b", "X-Forwarded-For", "1.2.3.4")
		if err != nil || status != 200 {
			t.Errorf("%d %s %v", status, b, err)
		}
		// It hangs up in the middle of a stream.
		cut, hangUp := context.WithCancel(ctx)
		req, _ := http.NewRequestWithContext(cut, http.MethodPost, s.URL()+ok, bytes.NewReader([]byte(chatOf("m", "hang up", streamed))))
		if res, err := http.DefaultClient.Do(req); err == nil {
			_, _ = res.Body.Read(make([]byte, 1))
			hangUp()
			res.Body.Close()
		}
		hangUp()
		other <- s
		ended = s
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, err := call(t.Context(), ended.URL()+"/v1/chat/completions", chatOf("m", "late")); err == nil {
		t.Errorf("a call after the end of the run got %d", status)
	}
	if server.asked["attack"] > 0 || server.asked["late"] > 0 || server.asked["own 0"] != 1 || server.asked["own 1"] != 1 {
		t.Errorf("asked %v", server.asked)
	}
	for _, h := range server.seen {
		if text := fmt.Sprint(h); strings.Contains(text, "stolen") || strings.Contains(text, "a=b") || strings.Contains(text, "X-Parley") {
			t.Errorf("the provider got %s", text)
		}
	}
	for _, c := range innerCalls(t, j) {
		if c.Agent != "tool" || c.Seat != "solver" || c.Request.Model != "lab/small" {
			t.Errorf("recorded %+v", c)
		}
		if q := c.Request.Messages[0].Text(); q != "hang up" && q != fmt.Sprint("own ", c.Episode) {
			t.Errorf("episode %d has %q", c.Episode, q)
		}
	}
	if len(starts.used) != 2 {
		t.Errorf("%d sessions", len(starts.used))
	}
}

// TestProgramAfterClose wants a closed session to serve nothing, and its open calls to end.
func TestProgramAfterClose(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	begun := make(chan struct{}, 1)
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	})
	defer close(hangs)
	j := &journal.Memory{}
	over := make(chan int, 1)
	_, _, err := trial{provider: labAt(t, server)}.play(t, j, func(ctx context.Context, _ engine.Question, s program.Session) (string, error) {
		go func() {
			status, _, _ := call(t.Context(), s.URL()+"/v1/chat/completions", chatOf("m", "slow"))
			over <- status
		}()
		<-begun
		s.Close(ctx)
		if status, _, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("m", "late")); err != nil || status != 404 {
			t.Errorf("%d %v", status, err)
		}
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if status := <-over; status == 200 {
		t.Error("a call outlived its session")
	}
	if calls := innerCalls(t, j); len(calls) != 1 || calls[0].Error == nil {
		t.Errorf("recorded %+v", calls)
	}
}

// TestProgramFault wants a failure that is about the run to stop it, and not to be recorded as an answer.
func TestProgramFault(t *testing.T) {
	t.Parallel()
	var wrong atomic.Bool
	wrong.Store(true)
	good := &tally{}
	p := labAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wrong.Load() {
			http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
			return
		}
		good.ServeHTTP(w, r)
	}))
	run := func(ctx context.Context, _ engine.Question, s program.Session) (string, error) {
		for range 3 {
			if _, _, err := call(ctx, s.URL()+"/v1/chat/completions", chatOf("m", "a")); err != nil {
				return "", err
			}
		}
		return "", nil
	}
	j := &journal.Memory{}
	res, _, err := trial{provider: p}.play(t, j, run)
	if err != nil || res.State != journal.Stopped || len(innerCalls(t, j)) != 0 {
		t.Fatalf("%+v %v, %d calls are recorded", res, err, len(innerCalls(t, j)))
	}
	wrong.Store(false)
	if res, _, err = (trial{provider: p}).play(t, j, run); err != nil || res.State != journal.Complete || good.all != 3 {
		t.Errorf("%+v %v after %d calls", res, err, good.all)
	}
}

// TestProgramTokens wants the tokens of a trainable agent recorded, and hidden from its program.
func TestProgramTokens(t *testing.T) {
	t.Parallel()
	m, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, trainable := range []bool{false, true} {
		j := &journal.Memory{}
		d := trial{provider: provider.Provider{Name: "sim", Dialect: "sim"}, inner: m, agent: world.Agent{Trainable: trainable}}
		_, _, err := d.play(t, j, func(ctx context.Context, _ engine.Question, s program.Session) (string, error) {
			for path, body := range map[string]string{
				"/v1/chat/completions":  chatOf("m", "hello"),
				"/v1/chat/completions?": chatOf("m", "hello there", streamed),
				"/v1/messages":          messageOf("m", "hello you"),
				"/v1/messages?":         messageOf("m", "hello them", streamed),
			} {
				status, b, err := call(ctx, s.URL()+path, body)
				if err != nil || status != 200 {
					return "", fmt.Errorf("%d %s %w", status, b, err)
				}
				for _, word := range []string{"token_ids", `"logprob"`, "token_id:"} {
					if strings.Contains(b, word) {
						t.Errorf("the program sees %s: %s", word, b)
					}
				}
			}
			return "", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		calls := innerCalls(t, j)
		if len(calls) != 4 {
			t.Fatalf("%d calls are recorded", len(calls))
		}
		for _, c := range calls {
			if has := c.Response != nil && len(c.Response.TokenIDs) > 0 && len(c.Response.PromptTokenIDs) > 0 && len(c.Response.Logprobs) == len(c.Response.TokenIDs); has != trainable {
				t.Errorf("trainable %v: %s has %+v", trainable, c.Label, c.Response)
			}
		}
	}
}

func pricesOf(t *testing.T, name string) *price.Table {
	t.Helper()
	prices, err := price.Read(strings.NewReader(`{"models":{"`+name+`/small":{"input":100,"output":1000}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	return prices
}
