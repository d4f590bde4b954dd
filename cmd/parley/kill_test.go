package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
)

// beParley makes the test binary the program itself, for tests that must kill it.
const beParley = "PARLEY_TEST_BE_PARLEY"

func TestMain(m *testing.M) {
	if os.Getenv(beParley) != "" || len(os.Args) > 1 && os.Args[1] == "supervise-program" { // as Parley starts itself
		main()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == beAgent {
		if err := agent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	_ = flag.Set("test.parallel", "8") // most tests wait for other processes; go test -parallel sets another number
	os.Exit(m.Run())
}

// provider serves the simulated provider over HTTP for as long as the test runs.
func provider(t *testing.T) (url string, server *simhttp.Server) {
	t.Helper()
	latency, err := sim.ParseDelay("2ms..12ms")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, simhttp.Config{Sim: sim.Config{Latency: latency}})
}

// serve serves the simulated provider for as long as the test runs.
func serve(t *testing.T, c simhttp.Config) (url string, server *simhttp.Server) {
	t.Helper()
	server, err := simhttp.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Run(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return "http://" + l.Addr().String() + "/v1", server
}

// planCalls is how many calls of plan are in flight at once.
const planCalls = 24

// long makes a run of plan so long that it is still played when something has been done to it.
const long = "episodes=150"

// plan writes a plan of a short run: most tests want it whole in the end, not long. Where .ci/run kills often, more kills meet one run.
func plan(t *testing.T, url string) string {
	t.Helper()
	path, episodes := filepath.Join(t.TempDir(), "plan.yaml"), 40
	if os.Getenv("PARLEY_KILLS") != "" {
		episodes = 150
	}
	text := fmt.Sprintf(`kind: secrets
seed: 3
episodes: %d
providers:
  lab: {dialect: openai, base_url: %q}
agents:
  quiet: {model: lab/small, system: "You are quiet."}
  bold: {model: lab/large, system: "You are bold."}
lineup: {first: quiet, second: bold}
params: {messages: 6}
limits: {concurrency: %d}
`, episodes, url, planCalls)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// summary is what run --json ends with.
type summary struct {
	State  string
	Digest string
	Calls  struct{ Total, Asked, Cached, Repeated, Programs int }
	Cost   float64 `json:"cost_usd"`
	Risked float64 `json:"at_risk_usd"`
}

// parley runs the program; it is killed after a while, if that is given. killed says
// whether it was still running then.
func program(t *testing.T, after time.Duration, args ...string) (out summary, killed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), beParley+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if err != nil {
		if after > 0 && strings.Contains(err.Error(), "killed") {
			return out, true
		}
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v: %q", err, stdout.String())
	}
	return out, false
}

// TestKilledAnywhere kills the program with kill -9 at random moments, continues until the
// run is complete, and wants the outcomes of an undisturbed run. Only calls that were in flight
// may be made twice.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	url, server := provider(t)
	file := plan(t, url)
	want, _ := program(t, 0, "run", file, "--set", long, "--out", filepath.Join(t.TempDir(), "whole.parley"), "--json", "--quiet")
	if want.State != "complete" {
		t.Fatalf("undisturbed: %+v", want)
	}
	kills, trials, lost, least, begins := 0, 0, 0, enough(t, 8, 3), startTime(t)
	asked := server.Stats().Requests
	for ; kills < least; trials++ {
		out := filepath.Join(t.TempDir(), fmt.Sprintf("run%d.parley", trials))
		for tries := 0; ; tries++ {
			after := killAfter(begins, 120, tries, kills >= least)
			got, killed := program(t, after, "run", file, "--set", long, "--out", out, "--json", "--quiet")
			if killed {
				kills++
			}
			again := int(server.Stats().Requests-asked) - trials*want.Calls.Total - callsIn(t, out)
			if again > kills*planCalls {
				t.Fatalf("%d calls were made again after %d kills with at most %d in flight", again, kills, planCalls)
			}
			if killed {
				continue
			}
			if got.Digest != want.Digest || got.Calls.Total != want.Calls.Total {
				t.Fatalf("after %d kills: %+v, want %+v", kills, got, want)
			}
			break
		}
		lost += lostIn(t, out)
	}
	again := int(server.Stats().Requests-asked) - trials*want.Calls.Total
	t.Logf("%d kills in %d runs of %d calls: %d calls were made again, %d were on record as in flight", kills, trials, want.Calls.Total, again, lost)
}

// often skips a test in short runs: it starts the program often, which takes a second under the race detector, and others play the same.
func often(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts the program often")
	}
}

// enough is how often a test kills: so often, or less in a short test. PARLEY_KILLS sets another number: .ci/run kills does.
func enough(t *testing.T, usual, short int) int {
	t.Helper()
	if text := os.Getenv("PARLEY_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("PARLEY_KILLS: %v", err)
		}
		return n
	}
	if testing.Short() {
		return short
	}
	return usual
}

// killAfter is when to kill the program: at a random moment of its work, later and later, in
// case it is slower than was thought; never (0) where there were enough kills.
func killAfter(begins time.Duration, ms, tries int, enough bool) time.Duration {
	if enough {
		return 0
	}
	return begins/2 + time.Duration(rand.IntN(ms)*(tries+8)/8)*time.Millisecond
}

// startTime is about how long the program takes to begin on this machine.
func startTime(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	program(t, 0, "--version", "--json")
	return time.Since(began)
}

// callsIn is how many calls a run file has the answers of.
func callsIn(t *testing.T, file string) int {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		return 0
	}
	s, err := runfile.OpenRead(file)
	if err != nil {
		return 0 // killed before it was whole, so nothing was asked
	}
	defer s.Close()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head.Calls
}

// lostIn counts the calls that processes of a run file found cut off.
func lostIn(t *testing.T, file string) int {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		return 0
	}
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return readLost(t, s)
}

func readLost(t *testing.T, s *runfile.Store) (lost int) {
	t.Helper()
	err := s.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if o, ok := e.(*journal.Opened); ok {
			lost += o.Lost
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

// spending is what run --json says about money.
type spending struct {
	State, Reason string
	Cost          float64 `json:"cost_usd"`
	Risked        float64 `json:"at_risk_usd"`
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
