package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/ask/batch"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/runfile"
	"parley/journal"
)

// lane is an account of the simulated provider with a batch API, as a plan writes it.
func lane(url, api string) string {
	dialect, batch := api, "requests: 25"
	switch api {
	case "gemini":
		url = strings.TrimSuffix(url, "/v1") + "/v1beta"
	case "azure":
		dialect, batch, url = "openai", batch+", api: azure", strings.TrimSuffix(url, "/v1")+"/openai/v1"
	}
	return fmt.Sprintf("{dialect: %s, base_url: %q, batch: {%s}}", dialect, url, batch)
}

// wavePlan is a run over two batch APIs of the simulated provider.
func wavePlan(t *testing.T, url string, episodes int, apis ...string) string {
	t.Helper()
	if len(apis) == 0 {
		apis = []string{"openai", "anthropic"}
	}
	path := filepath.Join(t.TempDir(), "waves.yaml")
	text := fmt.Sprintf(`kind: secrets
seed: 3
episodes: %d
providers:
  lab: %s
  ant: %s
agents:
  quiet: {model: lab/small, system: "You are quiet."}
  bold: {model: ant/large, system: "You are bold."}
lineup: {first: quiet, second: bold}
params: {messages: 2}
pace: wave
batch: {route: batch, poll: 5ms}
`, episodes, lane(url, apis[0]), lane(url, apis[1]))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asked is what a provider was asked for and was paid for: requests in batches, and live ones.
// A call to one of Gemini's models is live, or creates a batch.
func asked(s simhttp.Stats) (batched, live int) {
	for name, n := range s.Endpoints {
		if strings.HasSuffix(name, "/chat/completions") || strings.HasSuffix(name, "/messages") || strings.HasSuffix(name, "/models/{call}") {
			live += int(n)
		}
	}
	return int(s.Batches.Requests), live
}

// TestKilledInWaves kills the program with kill -9 at random moments of a run over batch
// APIs (uploads, creations, looks, downloads) and continues until the run is complete: it has the
// outcomes of free pace, asks every line once and loses no batch. An episode that fell behind the
// others may wait alone, and its call is made live: only such a call may be in flight and made again.
func TestKilledInWaves(t *testing.T) {
	t.Parallel()
	killInWaves(t, enough(t, 8, 2))
}

// TestKilledInEveryLane does the same over the other batch APIs.
func TestKilledInEveryLane(t *testing.T) {
	t.Parallel()
	often(t)
	killInWaves(t, enough(t, 9, 9), "azure", "gemini")
}

// killInWaves kills the program at least so often.
func killInWaves(t *testing.T, least int, apis ...string) {
	t.Helper()
	latency, err := sim.ParseDelay("5ms..60ms")
	if err != nil {
		t.Fatal(err)
	}
	url, server := serve(t, simhttp.Config{Batch: simhttp.BatchConfig{Latency: latency}})
	file := wavePlan(t, url, 60, apis...)
	want, _ := program(t, 0, "run", file, "--pace", "free", "--out", filepath.Join(t.TempDir(), "free.parley"), "--json", "--quiet")
	kills, trials, begins := 0, 0, startTime(t)
	for ; kills < least; trials++ {
		batchedBefore, liveBefore := asked(server.Stats())
		out := filepath.Join(t.TempDir(), fmt.Sprintf("run%d.parley", trials))
		for tries := 0; ; tries++ {
			after := killAfter(begins, 250, tries, kills >= least)
			got, killed := program(t, after, "run", file, "--out", out, "--json", "--quiet")
			if killed {
				kills++
				continue
			}
			if got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
				t.Fatalf("after %d kills: %+v, want %+v", kills, got, want)
			}
			break
		}
		batched, live := asked(server.Stats())
		batched, live = batched-batchedBefore, live-liveBefore
		if again := batched + live - want.Calls.Total; again < 0 || again > live {
			t.Errorf("run %d: %d requests were asked in batches and %d live, and %d were needed", trials, batched, live, want.Calls.Total)
		}
		checkBatches(t, out, batched)
	}
	st, _ := json.Marshal(server.Stats().Batches)
	t.Logf("%d kills in %d runs of %d calls; batches %s", kills, trials, want.Calls.Total, st)
}

// checkBatches wants every batch of a run collected, and no line in two that were created.
func checkBatches(t *testing.T, file string, batched int) {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if head.Last.State != journal.Complete || len(head.Batches) > 0 {
		t.Errorf("the run is %s, and %d batches were never collected", head.Last.State, len(head.Batches))
	}
	intended, lines := map[string][]string{}, map[string]bool{}
	err = s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		m, ok := e.(*journal.Batched)
		switch {
		case !ok:
		case m.Step == journal.BatchIntended:
			intended[m.Key] = m.Lines
		case m.Step == journal.BatchCreated:
			for _, id := range intended[m.Key] {
				if lines[batch.ID(id).Stem()] {
					t.Errorf("line %s was asked twice", id)
				}
				lines[batch.ID(id).Stem()] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != batched {
		t.Errorf("%d lines are on record, and the provider had %d", len(lines), batched)
	}
}
