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

	"parley/internal/ask/sim/simhttp"
	"parley/internal/kit/testkit"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/worlds"
	"parley/worlds/rollout/training"
)

// rig is a simulated server over HTTP in front of which things go wrong.
type rig struct {
	sim *simhttp.Server
	srv *httptest.Server

	mu       sync.Mutex
	asked    int                 // answers asked for
	mishaps  int                 // that happened to them
	answered map[string][][]byte // whole answers, by session
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
	r := &rig{sim: s, fault: fault, answered: map[string][][]byte{}}
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
	if _, err := training.Write(t.Context(), &out, store, training.Filter{}, training.Rows, training.JSONL); err != nil {
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

// reweigh gives the server new weights, by name.
func (r *rig) reweigh(t *testing.T, version string) {
	t.Helper()
	rec := httptest.NewRecorder()
	r.sim.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/update_weight_version", strings.NewReader(`{"new_version":"`+version+`"}`)))
	if rec.Code != http.StatusOK {
		t.Error(rec.Body)
	}
}
