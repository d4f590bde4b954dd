package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"parley/internal/run/planfile"
	"parley/journal"
	"parley/llm"
	"parley/worlds"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // many tests wait for servers; go test -parallel sets another number
	goleak.VerifyTestMain(m)
}

const conversations = `kind: secrets
seed: 5
episodes: 60
agents:
  small: {model: sim/small, max_tokens: 120}
  large: {model: sim/large, max_tokens: 120}
lineup: {first: small, second: large}
params: {messages: 2}
`

func parsed(t *testing.T, text string, sets ...string) *planfile.Plan {
	t.Helper()
	p, err := planfile.Parse("plan.yaml", []byte(text), worlds.Standard(), sets)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func played(t *testing.T, p Play) *Summary {
	t.Helper()
	sum, err := p.Run(t.Context(), context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// whenOpened returns events of which f gets the first.
func whenOpened(f func(*Opened)) func(Event) {
	return func(e Event) {
		if e.Opened != nil {
			f(e.Opened)
		}
	}
}

// TestOneDigest plays one plan at several concurrencies, into files, and wants one digest.
func TestOneDigest(t *testing.T) {
	t.Parallel()
	want := ""
	for _, n := range []int{1, 3, 64, 1000} {
		sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, fmt.Sprintf("limits.concurrency=%d", n)), File: filepath.Join(t.TempDir(), "run.parley")})
		if sum.State != journal.Complete || sum.Calls.Total != 240 {
			t.Fatalf("%+v", sum)
		}
		if want == "" {
			want = sum.Digest
		}
		if sum.Digest != want {
			t.Errorf("%d in flight: %s, want %s", n, sum.Digest, want)
		}
	}
	sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "pace=wave"), File: filepath.Join(t.TempDir(), "run.parley")})
	if sum.Digest != want {
		t.Errorf("in waves: %s, want %s", sum.Digest, want)
	}
}

// TestBudgetHolds has a thousand calls in flight and money for a part of them: the run
// stops within the budget, and continues when it is raised.
func TestBudgetHolds(t *testing.T) {
	t.Parallel()
	whole := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: filepath.Join(t.TempDir(), "whole.parley")})
	file := filepath.Join(t.TempDir(), "run.parley")
	limit := *whole.Cost / 2
	sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "limits.concurrency=1000", fmt.Sprintf("budget=%.9f", limit.Dollars())), File: file})
	if sum.State != journal.Stopped || sum.Reason.Kind != journal.ByBudget {
		t.Fatalf("%+v", sum)
	}
	if *sum.Cost > limit || sum.Calls.Total == 0 || sum.Episodes.Complete == 60 {
		t.Errorf("spent %v of %v on %d calls", *sum.Cost, limit, sum.Calls.Total)
	}
	raised := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "budget=5"), File: file})
	if raised.State != journal.Complete || raised.Digest != whole.Digest || raised.Calls.Total != whole.Calls.Total || *raised.Cost != *whole.Cost {
		t.Errorf("resumed: %+v, want %+v", raised, whole)
	}
}

// TestLittleIsAtRisk: what a killed process may owe is about calls that are not recorded, however
// much was spent on others.
func TestLittleIsAtRisk(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, "limits.concurrency=1", "budget=0.02"), Journal: j})
	var risked llm.Money
	err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		if x, ok := e.(*journal.Exposed); ok {
			risked = max(risked, x.Worst)
		}
		return nil
	})
	if err != nil || risked == 0 || risked >= *sum.Cost/2 {
		t.Errorf("up to %v was at risk at once, and %v spent in all; %v", risked, *sum.Cost, err)
	}
}

func TestDrainAndResume(t *testing.T) {
	t.Parallel()
	want := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: filepath.Join(t.TempDir(), "whole.parley")})
	file := filepath.Join(t.TempDir(), "run.parley")
	drain, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("not today"))
	sum, err := Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file}.Run(t.Context(), drain)
	if err != nil || sum.State != journal.Stopped || sum.Reason != (journal.Reason{Kind: journal.ByUser, Detail: "not today"}) {
		t.Fatalf("%+v, %v", sum, err)
	}
	sum = played(t, Play{Kinds: worlds.Standard(), File: file, MustExist: true}) // from what the file recorded
	if sum.State != journal.Complete || sum.Digest != want.Digest {
		t.Errorf("%+v", sum)
	}
}

// TestAnotherPlan refuses to mix two plans in one file, and allows what does not change
// the play.
func TestAnotherPlan(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file})
	for set, want := range map[string]string{
		"seed=6":                               "seed was 5, and is 6 in the plan",
		"seed=6 episodes=50 params.messages=3": "seed was 5, and is 6 in the plan; params.messages was 2, and is 3 in the plan; episodes was 60, and is 50 in the plan. A run can grow",
		"episodes=50":                          "episodes was 60, and is 50 in the plan",
		"params.messages=3":                    "params.messages was 2, and is 3 in the plan",
		"agents.small.temperature=0.1":         "agents.small.temperature was not set, and is 0.1 in the plan",
		"lineup.second=small":                  `lineup.second was "large", and is "small" in the plan`,
		"budget=9":                             "",
		"limits.concurrency=9":                 "",
		"providers.sim.limits.rpm=9000":        "",
	} {
		_, err := Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations, strings.Fields(set)...), File: file}.Run(t.Context(), context.Background())
		if (want == "") != (err == nil) || (err != nil && (!strings.Contains(err.Error(), want) || !IsUsage(err))) {
			t.Errorf("%s: got %v, want %q", set, err, want)
		}
	}
}

// TestNoKeyInTheFile plays with a key in the environment and looks for it in every byte.
func TestNoKeyInTheFile(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	t.Setenv("LAB_TEST_KEY", key)
	text := conversations + `providers:
  lab: {dialect: openai, base_url: "http://127.0.0.1:1/v1", key_env: LAB_TEST_KEY}
`
	dir := t.TempDir()
	plan := parsed(t, text, "episodes=2", "agents.large.model=lab/any")
	file := filepath.Join(dir, "run.parley")
	drain, cancel := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	p := Play{Kinds: worlds.Standard(), Plan: plan, File: file, Events: whenOpened(func(o *Opened) {
		asked.Go(func() {
			_, err := o.App.Ask(t.Context(), &llm.Request{Model: "lab/any", Deadline: 1, Messages: []llm.Message{llm.User("x")}})
			if err == nil || strings.Contains(err.Error(), key) {
				t.Errorf("got %v", err)
			}
			cancel()
		})
	})}
	if _, err := p.Run(t.Context(), drain); err != nil {
		t.Fatal(err)
	}
	asked.Wait()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), key) {
			t.Errorf("%s holds the key", filepath.Base(f))
		}
	}
}

// TestReadyBeforeAnything finds what stands in the way of a plan before a file is made or a
// call asked; what runs on this machine needs no price.
func TestReadyBeforeAnything(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ provider, want string }{
		"no key":             {`{dialect: openai, base_url: "https://llm.example.com/v1", key_env: PARLEY_TEST_UNSET_KEY}`, "plan.yaml:10:75: providers.lab.key_env: provider lab: the environment variable PARLEY_TEST_UNSET_KEY is not set"},
		"no price":           {`{dialect: openai, base_url: "https://llm.example.com/v1"}`, "--set agents.large.model=lab/any: agents.large.model: no price is known for lab/any"},
		"on this machine":    {`{dialect: openai, base_url: "http://127.0.0.1:1/v1"}`, ""},
		"by name, localhost": {`{dialect: openai, base_url: "http://localhost:1/v1"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := parsed(t, conversations+"providers:\n  lab: "+tt.provider+"\n", "agents.large.model=lab/any", "agents.small.model=lab/any", "budget=1")
			if tt.want == "" {
				if err := (Play{}).ready(plan, "plan.yaml"); err != nil {
					t.Error(err)
				}
				return
			}
			file := filepath.Join(t.TempDir(), "run.parley")
			_, err := Play{Kinds: worlds.Standard(), Plan: plan, File: file}.Run(t.Context(), context.Background())
			if err == nil || !IsUsage(err) || strings.Count(err.Error(), tt.want) != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("a run file was created")
			}
		})
	}
}

func TestResumeChangesNothingThatIsPlayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, conversations), File: file})
	for set, refused := range map[string]bool{"seed=9": true, "agents.small.model=sim/other": true, "budget=3": false} {
		_, err := Play{Kinds: worlds.Standard(), File: file, MustExist: true, Sets: []string{set}}.Run(t.Context(), context.Background())
		if (err != nil) != refused || (refused && !IsUsage(err)) {
			t.Errorf("%s: got %v", set, err)
		}
	}
}
