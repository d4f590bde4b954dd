package tally

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/internal/dispatch"
	"parley/internal/dispatch/budget"
	"parley/journal"
	"parley/llm"
)

// report is of a worker that made so many attempts, and has as many calls in flight. It has passed a wire.
func report(t *testing.T, attempts int64) (r Report) {
	t.Helper()
	b, err := json.Marshal(Report{Reserved: llm.Dollar, Snapshot: dispatch.Snapshot{
		InFlight: attempts, Waiting: 2,
		Models: map[string]dispatch.ModelStats{"lab/a": {Calls: 99, Attempts: attempts, RateLimited: 1, Cost: 99 * llm.Dollar, Errors: map[llm.Kind]int64{llm.KindTimeout: 1}, Said: map[llm.Kind]string{llm.KindTimeout: "too slow"}}},
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
		if s.InFlight != inFlight || s.Waiting != waiting || s.Attempts != 40 || s.RateLimited != 3 || s.Errors[llm.KindTimeout] != 3 || m.Said[llm.KindTimeout] != "too slow" {
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
		return dispatch.Wait{Money: &budget.Shortage{Calls: calls, Model: model, Amount: llm.Dollar}}
	}
	tally.Reported("w0", wire(dispatch.Wait{About: "lab is unreachable", Says: "lab is unreachable for 2s: refused"}, dispatch.Wait{About: "other is unreachable", Says: "other is unreachable: refused"}, money(158, "lab/a")))
	tally.Reported("w1", wire(dispatch.Wait{About: "lab is unreachable", Says: "lab is unreachable for 3s: refused"}, money(160, "lab/a")))
	tally.Reported("w2", wire(money(160, "lab/b")))
	tally.Reported("w3", wire(money(-7, "lab/a"), money(0, "lab/c")))
	want := []string{
		"lab is unreachable for 2s: refused (2 workers)", "other is unreachable: refused",
		"318 calls wait for money: the budget sets aside $1.00 for a call of lab/a", "160 calls wait for money: the budget sets aside $1.00 for a call of lab/b",
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
