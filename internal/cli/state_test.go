package cli

import (
	"bytes"
	"testing"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/dispatch/limiter"
	"parley/internal/cli/app"
	"parley/internal/cli/terminal"
	"parley/internal/run/engine"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestState checks rates, what the run burns and will cost, servers beside their limits, models and batches.
func TestState(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	seconds := 0.0
	v := &runView{
		Out:      terminal.NewStream(&bytes.Buffer{}, func(string) (string, bool) { return "", false }, func(any) int { return 0 }),
		episodes: 100, playing: map[int]*moment{}, failed: map[llm.Kind]int{}, resumed: map[int]bool{7: true}, budget: 5 * llm.Dollar, spent: llm.Dollar,
		Calls: func(time.Time) []dispatch.Wait {
			return []dispatch.Wait{{Money: &budget.Shortage{Calls: 1021, Model: "lab/large", Amount: llm.Dollars(0.006828), Exceeds: true}}}
		},
		batches: func() batch.Progress {
			return batch.Progress{Open: []batch.Standing{{Provider: "lab", Model: "small", Began: began, Lines: 10, Answered: 3, Failed: 1}}}
		},
	}
	v.Stats = func() dispatch.Snapshot { // 4 calls, 300 tokens, 1 failure and 1 cent a second
		m := dispatch.ModelStats{
			Attempts: int64(4 * seconds), Calls: int64(4 * seconds), Cost: llm.Dollars(seconds / 100), Usage: llm.Usage{Input: int(200 * seconds), Output: int(100 * seconds)},
			Errors: map[llm.Kind]int64{llm.KindServer: int64(seconds)}, Said: map[llm.Kind]string{llm.KindServer: "500"},
		}
		for i := range 100 {
			m.Latency.Add(time.Duration(i+1) * time.Millisecond)
		}
		return dispatch.Snapshot{InFlight: 3, ModelStats: m, Models: map[string]dispatch.ModelStats{"lab/small": m}}
	}
	v.limits = func() []dispatch.Limit {
		b := limiter.Bounds{InFlight: 2, Concurrency: 8, Requests: 600, Charged: limiter.Units{Requests: 4 * seconds, Output: 100 * seconds}}
		all := []dispatch.Limit{{Provider: "lab", Server: "http://one", Bounds: b}}
		if seconds > 86 { // a server that was opened 2 seconds ago
			all = append(all, dispatch.Limit{Provider: "lab", Server: "http://two", Bounds: b})
		}
		if seconds > 88 { // one that was just opened
			all = append(all, dispatch.Limit{Provider: "lab", Server: "http://three", Bounds: b})
		}
		return all
	}
	for n, cost := range map[int]llm.Money{0: llm.Dollar, 1: 3 * llm.Dollar, 7: 50 * llm.Dollar} { // 7 began in an earlier process
		v.See(engine.Event{Replied: &journal.Replied{Turn: journal.Turn{Episode: n}, Response: &llm.Response{Metadata: llm.Metadata{Cost: cost}}}})
		v.See(engine.Event{Ended: &journal.Ended{Episode: n, Outcome: world.Outcome{}}})
	}
	v.See(engine.Event{Replied: &journal.Replied{Turn: journal.Turn{Episode: 8}, Response: &llm.Response{Metadata: llm.Metadata{Cost: llm.Dollar / 2}}}})
	s := v.State(began)
	if s.CallsPerSecond != 0 || s.Burn != 0 || s.Servers[0].Requests.Now != 0 || !s.Servers[0].Requests.Unknown {
		t.Errorf("the first state has rates: %+v", s)
	}
	for range 89 {
		seconds++
		s = v.State(began.Add(time.Duration(seconds) * time.Second))
	}
	if s.CallsPerSecond != 4 || s.TokensPerSecond != 300 || s.ErrorsPerSecond != 1 || s.Burn != llm.Dollars(0.6) || len(v.past) > 62 {
		t.Errorf("%v calls, %v tokens, %v failures a second; %v a minute; %d samples", s.CallsPerSecond, s.TokensPerSecond, s.ErrorsPerSecond, s.Burn, len(v.past))
	}
	if want := s.Spent.Plus(2*97*llm.Dollar - llm.Dollar/2); s.Projected != want {
		t.Errorf("all episodes will cost %v, want %v", s.Projected, want)
	}
	one, two, three := s.Servers[0], s.Servers[1], s.Servers[2]
	if one.Requests.Now != 240 || one.Requests.Limit != 600 || one.Output.Now != 6000 || one.InFlight != 2 || one.Concurrency != 8 || two.Requests.Now != 240 || two.Requests.Unknown || !three.Requests.Unknown {
		t.Errorf("%+v", s.Servers)
	}
	if m := s.Models[0]; m.Name != "lab/small" || m.Input != 200*89 || m.Cost != llm.Dollars(0.89) || m.P95 < 90*time.Millisecond || m.P95 > 100*time.Millisecond || m.Errors[llm.KindServer].Example != "500" {
		t.Errorf("%+v", m)
	}
	if want := "1021 calls wait for money: the budget sets aside $0.006828 for a call of lab/large, whose server is not known to stop at max_tokens"; len(s.Waits) != 1 || s.Waits[0] != want {
		t.Errorf("%q, want %q", s.Waits, want)
	}
	if b := s.Batches[0]; b.Requests != 10 || b.Answered != 4 || b.Provider != "lab" {
		t.Errorf("%+v", b)
	}
}

// TestGreetAfterAKill checks that calls that may never have been sent are not called calls in flight.
func TestGreetAfterAKill(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &runView{Out: terminal.NewStream(&out, func(string) (string, bool) { return "", false }, func(any) int { return 0 })}
	v.Greet(app.Opened{File: "a.parley", Head: &journal.Head{Begun: &journal.Begun{}, Calls: 3, Cut: true, Lost: 7}})
	if want := "parley: resuming a.parley: 0 episodes ended before\nparley: it was cut off: 7 calls without a recorded reply, whether sent or not, will be asked\n"; out.String() != want {
		t.Error(out.String())
	}
}
