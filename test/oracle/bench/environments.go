package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley/journal"
	"parley/world"
	"parley/worlds/rollout/env"
	"parley/worlds/rollout/envhttp"
	"parley/worlds/rollout/rules"
)

// environmentsMain serves the built-in environments, and a model that gives the same answer to everything
// after a delay. It exits when its input ends.
func environmentsMain(delay string) error {
	wait, err := time.ParseDuration(delay)
	if err != nil {
		return err
	}
	answer := []byte(answerOf(`\\boxed{7}`))
	mux := http.NewServeMux()
	mux.Handle("/", envhttp.NewEnvServer(envhttp.EnvServerConfig{Kinds: env.Standard()}))
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(wait)
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(answer)
	})
	return serve(mux)
}

// environments starts them in a separate process.
func (b *bench) environments(delay time.Duration) (*server, error) {
	return b.self("environments", delay.String())
}

// sessions holds 2,000 environments a core open at once on one server, and steps in each of
// them while all are there.
func (b *bench) sessions(url string) error {
	n := 2000 * runtime.NumCPU()
	params := rules.Definition{}.Defaults()
	params.Env, params.Servers = "maze", []string{url}
	params.Pool.PerServer, params.Pool.Startup = n, 64
	actor, err := envhttp.New(params, "bench", nil)
	if err != nil {
		return err
	}
	h := &held{actor: actor, all: make(chan struct{})}
	start := time.Now()
	h.there.Add(n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { h.play(i) })
	}
	h.there.Wait()
	close(h.all)
	wg.Wait()
	took := time.Since(start).Seconds()
	actor.Close(context.Background())
	b.printf("    %d environments open at once on one server, a step in each: %.2f%% success, in %.1f s (target 100%%)\n\n", n, 100*float64(h.good.Load())/float64(n), took)
	return nil
}

// held is environments that are open at once.
type held struct {
	actor *envhttp.Actor
	there sync.WaitGroup
	all   chan struct{} // closed when all are there
	good  atomic.Int64
}

func (h *held) play(n int) {
	act := func(name, body string) error {
		_, err := h.actor.Act(context.Background(), journal.Turn{Episode: n}, 0, "agent", world.Act{Name: name, Body: json.RawMessage(body)})
		return err
	}
	err := act(rules.ActOpen, `{"env":"maze","seed":1}`)
	h.there.Done()
	<-h.all
	if err == nil {
		err = act(rules.ActStep, `{"step":1,"action":"north"}`)
	}
	if err == nil {
		h.good.Add(1)
	}
}
