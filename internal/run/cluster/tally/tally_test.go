package tally

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/journal"
	"parley/llm"
)

// report is of a worker that made so many attempts, and has as many calls in flight. It has passed a wire.
func report(t *testing.T, attempts int64) (r Report) {
	t.Helper()
	b, err := json.Marshal(Report{Reserved: llm.Dollar, Snapshot: dispatch.Snapshot{
		InFlight: attempts, Waiting: 2,
		Models: map[string]dispatch.ModelStats{"lab/a": {Calls: 99, Attempts: attempts, RateLimited: 1, Cost: 99 * llm.Dollar, Errors: map[llm.Kind]int64{llm.KindTimeout: 1}, LastError: map[llm.Kind]string{llm.KindTimeout: "too slow"}}},
	}})
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTally: calls and money are those of replies, and the rest the sum of what workers report.
func TestTally(t *testing.T) {
	t.Parallel()
	tally := Tally{Budget: budget.New(100*llm.Dollar, 3*llm.Dollar)}
	tally.Spent(4 * llm.Dollar)
	for i := range 3 {
		tally.Reported(fmt.Sprint("w", i), report(t, 10))
	}
	tally.Reported("w0", report(t, 20)) // it is since it joined
	request := &llm.Request{Model: "lab/a"}
	tally.Replied(&journal.Replied{Request: request, Response: &llm.Response{Usage: llm.Usage{Input: 5, Output: 7}, Metadata: llm.Metadata{Attempts: 2, Cost: llm.Dollar, Latency: time.Second}}})
	tally.Replied(&journal.Replied{Request: request, Response: &llm.Response{Usage: llm.Usage{Input: 5}, Metadata: llm.Metadata{Cached: true}}})
	tally.Replied(&journal.Replied{Request: request, Error: &llm.Error{Kind: llm.KindTimeout}})
	tally.Replied(&journal.Replied{Response: &llm.Response{Text: "a bot"}})
	check := func(inFlight, waiting int64, wantReserved llm.Money) {
		t.Helper()
		s := tally.Stats()
		m := s.Models["lab/a"]
		if s.InFlight != inFlight || s.Waiting != waiting || s.Attempts != 40 || s.RateLimited != 3 || s.Errors[llm.KindTimeout] != 3 || m.LastError[llm.KindTimeout] != "too slow" {
			t.Errorf("reported: %+v", s)
		}
		if s.Calls != 3 || s.Failed != 1 || s.Cached != 1 || s.Usage != (llm.Usage{Input: 5, Output: 7}) || s.Cost != llm.Dollar || m.Latency.Count() != 1 {
			t.Errorf("recorded: %+v", s)
		}
		if spent, reserved := tally.Budget.Spent(); spent != 4*llm.Dollar || reserved != wantReserved {
			t.Errorf("%v spent, %v reserved", spent, reserved)
		}
	}
	check(40, 6, 3*llm.Dollar)
	tally.Lost("w0")
	check(20, 4, 2*llm.Dollar)
	tally.Reported("w0", report(t, 20)) // it is back
	check(40, 6, 3*llm.Dollar)
	tally.Left("w1")
	check(30, 4, 2*llm.Dollar)
	tally.Replied(&journal.Replied{Request: request, Response: &llm.Response{Metadata: llm.Metadata{Attempts: 50}}}) // nobody reported it
	if got := tally.Stats().Attempts; got != 52 {
		t.Errorf("%d attempts", got)
	}
}

// TestStatsTwice: Stats changes nothing, also when all workers have left.
func TestStatsTwice(t *testing.T) {
	t.Parallel()
	var tally Tally
	tally.Reported("w0", report(t, 12))
	tally.Replied(&journal.Replied{Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{Metadata: llm.Metadata{Attempts: 5}}})
	tally.Left("w0")
	for range 4 {
		if s := tally.Stats(); s.Attempts != 12 || s.Models["lab/a"].Attempts != 12 || s.RateLimited != 1 {
			t.Fatalf("%+v", s)
		}
	}
}

// TestFallbacks: attempts are counted once, and an answer is counted for the model that gave it, as in a process that makes its calls itself.
func TestFallbacks(t *testing.T) {
	t.Parallel()
	usage := llm.Usage{Input: 5, Output: 7}
	for name, c := range map[string]struct {
		spare, provider, model string // the fallback, and what the reply says of who answered
		reports                bool
		error                  bool
		a, b                   int64 // attempts
		first                  bool  // the first model answered
	}{
		"another provider": {spare: "spare/b", provider: "spare", model: "b-2026", reports: true, a: 1, b: 1},
		"another provider, whose model says the same": {spare: "spare/a", provider: "spare", model: "a", reports: true, a: 1, b: 1},
		"the same provider":                           {spare: "lab/b", provider: "lab", model: "b", reports: true, a: 1, b: 1},
		"the same provider, with a version":           {spare: "lab/b", provider: "lab", model: "b-2026", reports: true, a: 1, b: 1},
		"a name that begins like the other":           {spare: "lab/a-mini", provider: "lab", model: "a-mini-2026", reports: true, a: 1, b: 1},
		"an error":                                    {spare: "spare/b", provider: "spare", error: true, reports: true, a: 1, b: 1},
		"the first model":                             {spare: "lab/b", provider: "lab", model: "a", reports: true, a: 1, b: 1, first: true},
		"nobody knows":                                {spare: "lab/b", reports: true, a: 1, b: 1, first: true},
		"a worker that was killed":                    {spare: "spare/b", provider: "spare", b: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tally Tally
			if c.reports {
				tally.Reported("w0", Report{Snapshot: dispatch.Snapshot{Models: map[string]dispatch.ModelStats{"lab/a": {Attempts: 1}, c.spare: {Attempts: 1}}}})
			}
			e := &journal.Replied{Request: &llm.Request{Model: "lab/a", Fallbacks: []string{c.spare}}}
			how := llm.Metadata{Attempts: 2, Cost: llm.Dollar, Latency: time.Second}
			if c.error {
				e.Error = &llm.Error{Kind: llm.KindServer, Provider: c.provider, Model: c.model, Usage: usage, Metadata: how}
			} else {
				e.Response = &llm.Response{Provider: c.provider, Model: c.model, Usage: usage, Metadata: how}
			}
			tally.Replied(e)
			s := tally.Stats()
			a, b := s.Models["lab/a"], s.Models[c.spare]
			if s.Attempts != 2 || a.Attempts != c.a || b.Attempts != c.b {
				t.Errorf("%d attempts: %d and %d", s.Attempts, a.Attempts, b.Attempts)
			}
			if a.Calls != 1 || b.Calls != 0 || (a.Failed == 1) != c.error {
				t.Errorf("calls: %+v, %+v", a, b)
			}
			by, other := b, a
			if c.first {
				by, other = a, b
			}
			if by.Usage != usage || by.Cost != llm.Dollar || (by.Latency.Count() == 1) == c.error || other.Usage != (llm.Usage{}) || other.Cost != 0 || other.Latency.Count() != 0 {
				t.Errorf("counted for the wrong model: %+v, %+v", by, other)
			}
		})
	}
}

// TestTallyIsBounded: however many workers come and go, what they did is counted.
func TestTallyIsBounded(t *testing.T) {
	t.Parallel()
	var tally Tally
	for i := range 3 * maxWorkers / 2 {
		name := fmt.Sprint(i)
		tally.Reported(name, Report{Snapshot: dispatch.Snapshot{Models: map[string]dispatch.ModelStats{"lab/a": {Attempts: 1}}}})
		tally.Lost(name)
	}
	if got := tally.Stats().Attempts; got != 3*maxWorkers/2 || len(tally.workers) > maxWorkers {
		t.Errorf("%d attempts of %d workers", got, len(tally.workers))
	}
}

// TestWaits: what workers wait for is said once, and that there are none.
func TestWaits(t *testing.T) {
	t.Parallel()
	var tally Tally
	if got := tally.Waiting(); got != "workers" {
		t.Errorf("it waits for %q", got)
	}
	wire := func(waits ...dispatch.Wait) (r Report) {
		b, err := json.Marshal(Report{Waits: waits})
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	money := func(calls int, model string) dispatch.Wait {
		return dispatch.Wait{Money: &budget.Shortage{Calls: calls, Model: model, Amount: llm.Dollar, Why: "max_tokens: 900"}}
	}
	tally.Reported("w0", wire(dispatch.Wait{About: "lab is unreachable", Says: "lab is unreachable for 2s: refused"}, dispatch.Wait{About: "other is unreachable", Says: "other is unreachable: refused"}, money(158, "lab/a")))
	tally.Reported("w1", wire(dispatch.Wait{About: "lab is unreachable", Says: "lab is unreachable for 3s: refused"}, money(160, "lab/a")))
	tally.Reported("w2", wire(money(160, "lab/b")))
	tally.Reported("w3", wire(money(-7, "lab/a"), money(0, "lab/c")))
	want := []string{
		"lab is unreachable for 2s: refused (2 workers)", "other is unreachable: refused",
		"318 calls wait for room in the budget: max_tokens: 900 sets aside $1.00 for a call of lab/a", "160 calls wait for room in the budget: max_tokens: 900 sets aside $1.00 for a call of lab/b",
	}
	if got := dispatch.WaitTexts(tally.Waits()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := tally.Waiting(); got != "" {
		t.Errorf("it waits for %q", got)
	}
	tally.Lost("w0")
	for _, w := range []string{"w1", "w2", "w3"} {
		tally.Left(w)
	}
	if got := tally.Waits(); len(got) > 0 || tally.Waiting() != "workers" {
		t.Errorf("%+v", got)
	}
}

// TestPartialStays: a report that was made before another, and comes after it, does not hide that a worker acts.
func TestPartialStays(t *testing.T) {
	t.Parallel()
	var tally Tally
	old := report(t, 10)
	acts := old
	acts.Partial = true
	tally.Reported("w", acts)
	tally.Reported("w", old)
	if n, known := tally.InFlight("w"); known {
		t.Errorf("%d calls in flight, and no more", n)
	}
}
