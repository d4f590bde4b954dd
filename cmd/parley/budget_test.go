package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// spending is what run --json says about money.
type spending struct {
	State, Reason string
	Cost          float64 `json:"cost_usd"`
	Risked        float64 `json:"risked_usd"`
}

// priced writes a price table for the models of plan, in which a token of output costs a thousandth of a dollar.
func priced(t *testing.T, context int) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "prices.json")
	text := fmt.Sprintf(`{"models": {"lab/*": {"input": 0, "output": 1000, "max_output": 100, "context": %d}}}`, context)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestKilledWithATightBudget kills a process that has few calls in flight, and as many waiting as the budget allows. The
// run is resumed with the same budget: only the calls in flight may be owed, and what the provider bills is within the budget.
func TestKilledWithATightBudget(t *testing.T) {
	t.Parallel()
	often(t)
	const budget, worst, inFlight, kills = 6.0, 0.1, 4, 4
	latency, err := sim.ParseDelay("40ms..80ms") // so that few answers wait for a slow disk
	if err != nil {
		t.Fatal(err)
	}
	url, server := serve(t, simhttp.Config{Sim: sim.Config{Latency: latency}})
	prices := priced(t, 100) // so that no answer can be longer than is paid for in advance
	out := filepath.Join(t.TempDir(), "run.parley")
	args := []string{
		"run", plan(t, url), "--out", out, "--json", "--quiet", "--budget", fmt.Sprint(budget), "--allow-files", filepath.Dir(prices),
		"--set", "prices=" + prices, "--set", "agents.quiet.max_tokens=100", "--set", "agents.bold.max_tokens=100", "--set", "limits.concurrency=64", "--set", fmt.Sprintf("providers.lab.limits.concurrency=%d", inFlight),
	}
	for range kills {
		before := server.Stats().Requests
		run := start(t, "", args...)
		for server.Stats().Requests < before+20 && !run.over() {
			time.Sleep(time.Millisecond)
		}
		if !run.kill() {
			t.Fatalf("it ended before it was killed: %s %s", run.out, run.err)
		}
	}
	run := start(t, "", args...)
	if err := <-run.done; err != nil {
		t.Logf("%v: %s", err, run.err)
	}
	run.done <- nil
	var got spending
	if err := json.Unmarshal(run.out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %q %s", err, run.out, run.err)
	}
	billed := float64(server.Stats().Tokens.Output) / 1000
	if got.State != "stopped" || !strings.HasPrefix(got.Reason, "budget") || billed > budget || got.Cost > billed || got.Cost+got.Risked > budget {
		t.Errorf("%+v; the provider bills %g, want at most %g", got, billed, budget)
	}
	// Answers that were not recorded yet are owed too; they cost a part of what was set aside for them.
	if bound := llm.Dollars(budget / 2); len(owedIn(t, out)) != kills || slices.Max(owedIn(t, out)) > bound {
		t.Errorf("%v was owed after kills, want at most %v: %d calls of %g were in flight", owedIn(t, out), bound, inFlight, worst)
	}
	t.Logf("%+v; billed %g of %g; owed %v", got, billed, budget, owedIn(t, out))
}

// owedIn returns what each process of a run file found owed by one that was killed.
func owedIn(t *testing.T, file string) (owed []llm.Money) {
	t.Helper()
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if o, ok := e.(*journal.Opened); ok && o.Cost > 0 {
			owed = append(owed, o.Cost)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return owed
}
