package envhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"parley/engine"
	"parley/internal/env"
	"parley/internal/envhttp/server"
	v1 "parley/internal/envhttp/v1"
	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout"
	"parley/worlds/rollout/protocol"
)

// The benchmarks play episodes of three steps against an instant environment server and an
// instant model, both over HTTP, in this process.
const (
	benchLive   = 256
	benchParams = `{"problems":3}`
)

// httpModel asks a server that answers at once.
type httpModel struct {
	address string
	client  *http.Client
}

func newHTTPModel(b *testing.B) *httpModel {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte(`{"text":"\\boxed{7}"}`))
	}))
	b.Cleanup(s.Close)
	return &httpModel{s.URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * benchLive}}}
}

func (m *httpModel) ask(ctx context.Context, messages []llm.Message) (string, error) {
	body, err := json.Marshal(messages)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.address, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var out struct{ Text string }
	return out.Text, json.NewDecoder(resp.Body).Decode(&out)
}

// Each is what dispatch does, without limits, retries and prices.
func (m *httpModel) Each(ctx context.Context, reqs iter.Seq[*llm.Request], done func(int, llm.Result)) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, benchLive)
	n := 0
	for req := range reqs {
		i := n
		n++
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			text, err := m.ask(ctx, req.Messages)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				done(i, llm.Result{Err: err})
				return
			}
			done(i, llm.Result{Response: &llm.Response{Text: text, Finish: llm.FinishStop}})
		})
	}
	wg.Wait()
	return n
}

func (*httpModel) Drain() {}

func benchServer(b *testing.B) string {
	b.Helper()
	s := httptest.NewServer(server.New(server.Config{Kinds: env.Standard()}))
	b.Cleanup(s.Close)
	return s.URL
}

// BenchmarkRollout is Parley: the engine, the actor, and every prompt, answer and reward made
// durable in a run file.
func BenchmarkRollout(b *testing.B) {
	model, address := newHTTPModel(b), benchServer(b)
	kind := rollout.Kind()
	params := kind.Params().(*rollout.Params)
	text := fmt.Sprintf(`{"env":"arithmetic","env_params":%s,"servers":[%q],"pool":{"per_server":%d,"startup":%d}}`, benchParams, address, benchLive, benchLive)
	if err := json.Unmarshal([]byte(text), params); err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(params)
	if err != nil {
		b.Fatal(err)
	}
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "run.parley"), sqlite.Either)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	actor, err := New(params, "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer actor.Close(b.Context())
	b.ResetTimer()
	res, err := engine.Run(b.Context(), engine.Config{
		Journal: store, Kind: kind, Models: model, Actor: actor, Live: actor.Capacity(),
		Plan:  world.Repeat(world.Spec{Kind: kind.Name, Params: raw, Lineup: map[string]string{"agent": "x"}}, b.N),
		Begun: journal.Begun{Version: journal.Version, Run: "r", Kind: kind.Name, KindVersion: kind.Version, Agents: []world.Agent{{Name: "x", Model: "lab/any"}}},
	})
	if err != nil || res.Ended != b.N || res.Failed > 0 {
		b.Fatalf("%+v %v", res, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "episodes/s")
}

// BenchmarkPlain is the same without Parley: a loop that keeps nothing.
func BenchmarkPlain(b *testing.B) {
	model, host := newHTTPModel(b), v1.New(benchServer(b), benchLive)
	defer host.Close()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range benchLive {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := plainEpisode(b.Context(), host, model, n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "episodes/s")
}

func plainEpisode(ctx context.Context, host *v1.Host, model *httpModel, n int64) error {
	s := host.New(fmt.Sprint(n), protocol.Opening{Env: "arithmetic", Params: json.RawMessage(benchParams)})
	if _, err := s.Reset(ctx, n); err != nil {
		return err
	}
	for step := 1; ; step++ {
		p, err := s.Prompt(ctx)
		if err != nil {
			return err
		}
		text, err := model.ask(ctx, p[protocol.Default])
		if err != nil {
			return err
		}
		r, err := s.Step(ctx, fmt.Sprint(n, step), protocol.Action{protocol.Default: text})
		if err != nil {
			return err
		}
		if r.Done() {
			return s.Close(ctx)
		}
	}
}

// BenchmarkSessions holds 2,000 environments a core at once, and steps in each of them.
func BenchmarkSessions(b *testing.B) {
	sessions := 2000 * runtime.GOMAXPROCS(0)
	for b.Loop() {
		params := rollout.Kind().Params().(*rollout.Params)
		if err := json.Unmarshal([]byte(fmt.Sprintf(`{"env":"maze","servers":[%q],"pool":{"per_server":%d,"startup":64}}`, benchServer(b), sessions)), params); err != nil {
			b.Fatal(err)
		}
		actor, err := New(params, "bench")
		if err != nil {
			b.Fatal(err)
		}
		var good atomic.Int64
		var wg sync.WaitGroup
		open := make(chan struct{}) // closed when all are there
		var there sync.WaitGroup
		there.Add(sessions)
		for n := range sessions {
			wg.Go(func() {
				_, err := actor.Act(b.Context(), journal.Turn{Episode: n}, 0, "", world.Act{Name: protocol.Open, Body: json.RawMessage(`{"env":"maze","seed":1}`)})
				there.Done()
				<-open
				if err == nil {
					_, err = actor.Act(b.Context(), journal.Turn{Episode: n}, 0, "", world.Act{Name: protocol.Step, Body: json.RawMessage(`{"step":1,"action":"north"}`)})
				}
				if err == nil {
					good.Add(1)
				}
			})
		}
		there.Wait()
		close(open)
		wg.Wait()
		actor.Close(b.Context())
		b.ReportMetric(100*float64(good.Load())/float64(sessions), "%success")
		b.ReportMetric(float64(sessions), "sessions")
	}
}
