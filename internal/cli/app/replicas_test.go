package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/kit/testkit"
	"parley/internal/read/training"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/worlds"
	"parley/worlds/rollout"
)

// after makes something happen to every answer from the n-th on.
func after(n int, what mishap) func(int) mishap {
	return func(i int) mishap {
		if i >= n {
			return what
		}
		return fine
	}
}

// until makes something happen to every answer before the n-th.
func until(n int, what mishap) func(int) mishap {
	return func(i int) mishap {
		if i < n {
			return what
		}
		return fine
	}
}

// TestSameOnAnyServers: neither the number of servers nor their faults change the outcomes, and
// no call fails as long as one server is left.
func TestSameOnAnyServers(t *testing.T) {
	t.Parallel()
	alone, file := playFarm(t, farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}))
	want := transcripts(t, file)
	now := func(what mishap) func(int) mishap { return after(1, what) }
	every := func(n int, what mishap) func(int) mishap {
		return func(i int) mishap {
			if i%n == 0 {
				return what
			}
			return fine
		}
	}
	for name, faults := range map[string][]func(int) mishap{
		"three servers":                   {nil, nil, nil},
		"one is killed":                   {nil, after(10, killed), nil},
		"two are killed":                  {after(5, killed), after(10, killed), nil},
		"one was never there":             {now(killed), nil, nil},
		"one stalls":                      {nil, nil, after(8, stalled)},
		"one was not ready":               {until(20, unready), nil, nil},
		"one resets":                      {every(5, reset), nil, nil},
		"all get new weights":             {every(7, aborted), every(7, aborted), every(7, aborted)},
		"one is not ready and one stalls": {until(6, unready), after(6, stalled), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rigs := make([]*rig, len(faults))
			for i, f := range faults {
				rigs[i] = newRig(t, simhttp.Config{}, f)
			}
			sum, file := playFarm(t, farmPlan(t, rigs, "providers.lab.timeout=1s"))
			if sum.Digest != alone.Digest || transcripts(t, file) != want {
				t.Errorf("its digest is %s, and alone %s, or the transcripts differ", sum.Digest, alone.Digest)
			}
			for i, r := range rigs {
				if f := faults[i]; (f != nil) != (r.mishaps > 0) || f == nil && r.sim.Stats().OK == 0 {
					t.Errorf("server %d answered %d, and %d times something went wrong", i, r.sim.Stats().OK, r.mishaps)
				}
			}
		})
	}
}

// TestAnotherModelIsNoticed: what the test above compares does depend on the servers.
func TestAnotherModelIsNoticed(t *testing.T) {
	t.Parallel()
	_, one := playFarm(t, farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}))
	_, two := playFarm(t, farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil), newRig(t, simhttp.Config{Sim: sim.Config{Seed: 2}}, nil)}))
	if transcripts(t, one) == transcripts(t, two) {
		t.Error("a server that answers otherwise changes nothing")
	}
}

// TestSameInWaves: waves go to several servers too.
func TestSameInWaves(t *testing.T) {
	t.Parallel()
	rigs := []*rig{newRig(t, simhttp.Config{}, nil), newRig(t, simhttp.Config{}, after(10, killed))}
	free, one := playFarm(t, farmPlan(t, rigs[:1]))
	wave, two := playFarm(t, farmPlan(t, rigs, "pace=wave"))
	if free.Digest != wave.Digest || transcripts(t, one) != transcripts(t, two) {
		t.Errorf("the digest in waves is %s, at free pace %s", wave.Digest, free.Digest)
	}
}

// TestAServerThatComesBack is given work again.
func TestAServerThatComesBack(t *testing.T) {
	t.Parallel()
	rigs := []*rig{newRig(t, simhttp.Config{}, until(4, reset)), newRig(t, simhttp.Config{}, nil)}
	p := provider.Provider{Name: "lab", Dialect: "openai", BaseURLs: []string{rigs[0].url(), rigs[1].url()}}
	a, err := Open(Config{Config: dispatch.Config{Settings: settings.New(settings.Library)}, Providers: []provider.Provider{p}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := 0; rigs[0].sim.Stats().OK < 3; i++ {
		session := fmt.Sprint(i)
		if _, err := a.Ask(ctx, &llm.Request{Model: "lab/any", Session: session, Messages: []llm.Message{llm.User(session)}}); err != nil {
			t.Fatal(err)
		}
		a.Release(session, true)
	}
	for _, s := range a.Servers() {
		if s.Resting || s.Sessions != 0 || s.Calls != 0 {
			t.Errorf("%+v", s)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEpisodesStick: all calls of an episode go to one server, and every server has some.
func TestEpisodesStick(t *testing.T) {
	t.Parallel()
	rigs := []*rig{newRig(t, simhttp.Config{}, nil), newRig(t, simhttp.Config{}, nil), newRig(t, simhttp.Config{}, nil)}
	playFarm(t, farmPlan(t, rigs))
	at := map[string]int{}
	for i, r := range rigs {
		if len(r.answered) == 0 {
			t.Errorf("server %d has no episode", i)
		}
		for session, answers := range r.answered {
			if other, there := at[session]; there {
				t.Errorf("session %q is on the servers %d and %d", session, other, i)
			}
			if at[session] = i; !strings.Contains(session, "-") || len(answers) < 2 {
				t.Errorf("session %q has %d answers", session, len(answers))
			}
		}
	}
	if len(at) != 20 {
		t.Errorf("%d sessions of 20 episodes", len(at))
	}
}

// TestSessionsInThePath are opened by their first call and closed when their episode ended.
func TestSessionsInThePath(t *testing.T) {
	t.Parallel()
	rigs := []*rig{newRig(t, simhttp.Config{}, nil), newRig(t, simhttp.Config{}, after(20, killed))}
	playFarm(t, farmPlan(t, rigs, "providers.lab.session=path", "providers.lab.close_session=true"))
	total := map[string]bool{}
	for session, closed := range rigs[0].sessions {
		if total[session] = true; !closed {
			t.Errorf("%s was left open", session)
		}
	}
	for session := range rigs[1].sessions {
		total[session] = true
	}
	if len(total) != 20 || len(rigs[1].sessions) == 0 {
		t.Errorf("%d sessions of 20 episodes", len(total))
	}
}

// serverAnswer is what a server said of its tokens, read off the wire.
type serverAnswer struct {
	PromptTokenIDs []int `json:"prompt_token_ids"`
	Choices        []struct {
		TokenIDs []int `json:"token_ids"`
		Logprobs struct {
			Content []struct {
				Logprob float64 `json:"logprob"`
			} `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
	Metadata struct {
		WeightVersion string `json:"weight_version"`
	} `json:"metadata"`
}

// TestTokensAreExact: from the wire through the run file into training data, token ids, log
// probabilities and the version of the weights are what the server said, over a change of
// weights in the middle.
func TestTokensAreExact(t *testing.T) {
	t.Parallel()
	rigs := []*rig{newRig(t, simhttp.Config{}, nil), newRig(t, simhttp.Config{}, nil)}
	for _, r := range rigs {
		r.version = "1"
		r.fault = func(n int) mishap {
			if n == 15 {
				r.version = "2"
				return aborted
			}
			return fine
		}
	}
	_, file := playFarm(t, farmPlan(t, rigs))
	versions := map[string]int{}
	for _, row := range rowsOf(t, file) {
		versions[row.WeightVersion]++
		checkRow(t, &row, rigs)
	}
	if versions["1"] == 0 || versions["2"] == 0 || len(versions) != 2 {
		t.Errorf("rows by version: %v", versions)
	}
}

// checkRow holds a row against what was on the wire: it is one of the answers of its session, at whichever server, and so is
// every answer of its part.
func checkRow(t *testing.T, row *training.Row, rigs []*rig) {
	t.Helper()
	var answers []serverAnswer
	for _, r := range rigs {
		for _, raw := range r.answered[fmt.Sprintf("%s-%d-%d", row.JobID, row.Episode, row.Attempt)] {
			var answer serverAnswer
			if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Choices) != 1 || len(answer.PromptTokenIDs) == 0 {
				t.Fatalf("episode %d, step %d: %v: %.200s", row.Episode, row.StepID, err, raw)
			}
			answers = append(answers, answer)
		}
	}
	if !row.IsTrainable {
		if row.Tokens != nil || !slices.ContainsFunc(answers, func(s serverAnswer) bool { return s.Metadata.WeightVersion == row.WeightVersion }) {
			t.Errorf("episode %d, step %d: %+v", row.Episode, row.StepID, row)
		}
		return
	}
	written := 0
	for k, from := range row.Starts {
		i := slices.IndexFunc(answers, func(s serverAnswer) bool { return s.at(row, k, from) })
		if i < 0 {
			t.Errorf("episode %d, step %d: none of the %d answers of its session is answer %d of %+v", row.Episode, row.StepID, len(answers), k, row)
			return
		}
		written += len(answers[i].Choices[0].TokenIDs)
	}
	for _, one := range row.LossMask {
		written -= one
	}
	if last := len(row.Versions) - 1; written != 0 || row.Versions[last] != row.WeightVersion || len(row.Logprobs) != len(row.Tokens) || row.StepID != len(row.Starts) {
		t.Errorf("episode %d, step %d: %d tokens too many are trained: %+v", row.Episode, row.StepID, -written, row)
	}
}

// at reports whether answer k of a row's part, which begins at a token, is exactly what was said.
func (s *serverAnswer) at(row *training.Row, k, from int) bool {
	c := s.Choices[0]
	to := from + len(c.TokenIDs)
	if to > len(row.Tokens) || to > len(row.Logprobs) || slices.Contains(row.LossMask[from:to], 0) {
		return false
	}
	var logprobs []float64
	for _, l := range c.Logprobs.Content {
		logprobs = append(logprobs, l.Logprob)
	}
	return slices.Equal(row.Tokens[:from], s.PromptTokenIDs) && slices.Equal(row.Tokens[from:to], c.TokenIDs) &&
		slices.Equal(row.Logprobs[from:to], logprobs) && row.Versions[k] == s.Metadata.WeightVersion
}

// TestNobodyLeft stops the run, which can be resumed when a server is there again.
func TestNobodyLeft(t *testing.T) {
	t.Parallel()
	want, _ := playFarm(t, farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}))
	dying := []*rig{newRig(t, simhttp.Config{}, after(6, killed)), newRig(t, simhttp.Config{}, after(9, killed))}
	file := t.TempDir() + "/run.parley"
	plan := farmPlan(t, dying)
	plan.Retry.Unreachable = 0
	sum, err := Play{Kinds: worlds.Standard(), Plan: plan, File: file}.Run(t.Context(), context.Background())
	if err != nil || sum.State != "stopped" || !strings.Contains(sum.Reason.String(), "refused") {
		t.Fatalf("%+v, %v", sum, err)
	}
	sum, err = Play{Kinds: worlds.Standard(), Plan: farmPlan(t, []*rig{newRig(t, simhttp.Config{}, nil)}), File: file}.Run(t.Context(), context.Background())
	if err != nil || sum.State != "complete" || sum.Digest != want.Digest {
		t.Fatalf("%+v, %v", sum, err)
	}
}

// rig is a simulated server over HTTP in front of which things go wrong. As inference engines do, it has sessions in the path, and
// says the version of its weights.
type rig struct {
	sim *simhttp.Server
	srv *httptest.Server

	mu       sync.Mutex
	asked    int                 // answers asked for
	mishaps  int                 // that happened to them
	answered map[string][][]byte // whole answers, by session
	sessions map[string]bool     // in the path, and whether each is closed
	version  string              // of the weights; empty: it says none
	// fault gets the number of answers asked for, this one included, and returns what goes wrong.
	// It may be nil.
	fault func(n int) mishap
}

// mishap is what goes wrong with a request.
type mishap int

const (
	fine    mishap = iota
	killed         // the server is gone from here on
	reset          // this connection is
	stalled        // nothing comes
	unready        // 503
	aborted        // the answer is cut off, as for new weights
)

func newRig(t *testing.T, c simhttp.Config, fault func(n int) mishap) *rig {
	t.Helper()
	s, err := simhttp.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{sim: s, fault: fault, answered: map[string][][]byte{}, sessions: map[string]bool{}}
	r.srv = httptest.NewUnstartedServer(r)
	_ = r.srv.Listener.Close()
	r.srv.Listener = testkit.StablePort(t) // it may be killed, and start again
	r.srv.Start()
	t.Cleanup(func() {
		r.srv.CloseClientConnections()
		r.srv.Close()
	})
	return r
}

func (r *rig) url() string { return r.srv.URL + "/v1" }

func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if session, call, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v1/"), "/"); call == "chat/completions" || call == "close" {
		r.mu.Lock()
		closed, known := r.sessions[session]
		ends := call == "close"
		r.sessions[session] = closed || ends
		r.mu.Unlock()
		switch {
		case closed || ends && !known:
			w.WriteHeader(http.StatusConflict)
			return
		case ends:
			return
		}
		req.URL.Path = "/v1/" + call
	}
	if !strings.HasSuffix(req.URL.Path, "/chat/completions") {
		r.sim.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body) // or the server does not notice that the client is gone
	if err != nil {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	r.asked++
	what := fine
	if r.fault != nil {
		what = r.fault(r.asked)
	}
	if what != fine {
		r.mishaps++
	}
	version := r.version
	r.mu.Unlock()
	switch what {
	case killed:
		r.srv.Listener.Close()
		panic(http.ErrAbortHandler)
	case reset:
		panic(http.ErrAbortHandler)
	case stalled:
		<-req.Context().Done()
		return
	case unready:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	rec := httptest.NewRecorder()
	r.sim.ServeHTTP(rec, req)
	body = rec.Body.Bytes()
	if version != "" {
		body = append(bytes.TrimSuffix(body, []byte("}\n")), `,"metadata":{"weight_version":"`+version+`"}}`...)
	}
	if what == aborted {
		body = bytes.Replace(body, []byte(`"finish_reason":"stop"`), []byte(`"finish_reason":"abort"`), 1)
	} else {
		r.mu.Lock()
		session := req.Header.Get("X-Session-Id")
		r.answered[session] = append(r.answered[session], body)
		r.mu.Unlock()
	}
	maps.Copy(w.Header(), rec.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(rec.Code)
	w.Write(body)
}

// farmPlan is the example of several servers, with these.
func farmPlan(t *testing.T, rigs []*rig, sets ...string) *planfile.Plan {
	t.Helper()
	var urls []string
	for _, r := range rigs {
		urls = append(urls, `"`+r.url()+`"`)
	}
	sets = append([]string{"providers.lab.base_urls=[" + strings.Join(urls, ",") + "]", "episodes=5"}, sets...)
	plan, err := planfile.Load(t.Context(), filepath.Join("..", "..", "..", "examples", "replicas.yaml"), worlds.Standard(), sets, planfile.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// playFarm plays a plan to its end, without a failed call.
func playFarm(t *testing.T, plan *planfile.Plan) (*Summary, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.parley")
	sum, err := Play{Kinds: worlds.Standard(), Plan: plan, File: file}.Run(t.Context(), context.Background())
	if err != nil || sum.State != journal.Complete || sum.Episodes.Failed > 0 || sum.Calls.Failed > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	return sum, file
}

// rowsOf are the training data of a run.
func rowsOf(t *testing.T, file string) []training.Row {
	t.Helper()
	store, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var out bytes.Buffer
	if _, err := training.Write(t.Context(), &out, store, rollout.Kind(), training.Filter{}, training.Rows, training.JSONL); err != nil {
		t.Fatal(err)
	}
	var rows []training.Row
	for dec := json.NewDecoder(&out); ; {
		var row training.Row
		if err := dec.Decode(&row); err == io.EOF {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

// transcripts returns all replies and rewards of a run, in the order of episodes and steps.
func transcripts(t *testing.T, file string) string {
	t.Helper()
	rows := rowsOf(t, file)
	slices.SortFunc(rows, func(a, b training.Row) int { return cmp.Or(a.Episode-b.Episode, a.StepID-b.StepID) })
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r.Episode, r.StepID, string(r.Messages), r.Response, r.Reward, r.Tokens, r.Logprobs)
	}
	return b.String()
}
