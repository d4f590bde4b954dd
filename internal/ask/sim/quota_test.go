package sim

import (
	"math"
	"testing"
	"time"

	"parley/llm"
)

func afterSeconds(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

func TestOpenAIChargesOnArrival(t *testing.T) {
	t.Parallel()
	q := NewQuota(Limits{RPM: 60, TPM: 6000}, OpenAI, afterSeconds(0))
	// max_tokens counts if it is larger than the prompt, and is not refunded.
	if r := q.Admit(afterSeconds(0), Cost{Input: 100, Max: 4000}); r != nil {
		t.Fatalf("%+v", r)
	}
	q.Settle(afterSeconds(0), Cost{Input: 100, Max: 4000}, llm.Usage{Input: 100, Output: 5})
	r := q.Admit(afterSeconds(0), Cost{Input: 3000, Max: 10})
	if r == nil || r.What != "tokens" || r.Limit != 6000 || r.Asked != 3000 || r.TooLarge {
		t.Fatalf("%+v", r)
	}
	if want := 10 * time.Second; r.After != want { // 1,000 short at 100 a second
		t.Errorf("after %v, want %v", r.After, want)
	}
	if r := q.Admit(afterSeconds(10), Cost{Input: 3000}); r != nil {
		t.Errorf("after the wait: %+v", r)
	}
	rate := q.Rate(afterSeconds(10))
	if w := rate.Tokens; !w.Known || w.Limit != 6000 || w.Remaining != 0 || w.Reset != time.Minute {
		t.Errorf("%+v", w)
	}
	if w := rate.Requests; w.Remaining != 59 || w.Reset != time.Second {
		t.Errorf("%+v", w)
	}
}

func TestRefusedRequestsAreNotCharged(t *testing.T) {
	t.Parallel()
	q := NewQuota(Limits{RPM: 2, TPM: 1000}, OpenAI, afterSeconds(0))
	for range 10 {
		if r := q.Admit(afterSeconds(0), Cost{Input: 2000}); r == nil || !r.TooLarge || r.After != 0 {
			t.Fatalf("%+v", r)
		}
	}
	for i := range 3 {
		r := q.Admit(afterSeconds(0), Cost{Input: 10})
		if (r != nil) != (i == 2) {
			t.Errorf("request %d: %+v", i, r)
		}
		if r != nil && (r.What != "requests" || r.After != 30*time.Second) {
			t.Errorf("%+v", r)
		}
	}
}

func TestAnthropicChargesWhatWasUsed(t *testing.T) {
	t.Parallel()
	q := NewQuota(Limits{RPM: 1000, ITPM: 6000, OTPM: 600}, Anthropic, afterSeconds(0))
	cost := Cost{Input: 5000, Max: 1 << 20} // max_tokens does not matter
	if r := q.Admit(afterSeconds(0), cost); r != nil {
		t.Fatalf("%+v", r)
	}
	if r := q.Admit(afterSeconds(0), cost); r == nil || r.What != "input tokens" {
		t.Fatalf("before the correction: %+v", r)
	}
	// Cache reads are free, so most of the estimate is refunded.
	q.Settle(afterSeconds(0), cost, llm.Usage{Input: 5000, Cached: 4900, Output: 1800})
	if got := q.Rate(afterSeconds(0)); got.Input.Remaining != 5900 || got.Output.Remaining != 0 {
		t.Errorf("%+v", got)
	}
	// 1,200 output tokens of debt at 10 a second: refused until it is above zero.
	r := q.Admit(afterSeconds(0), Cost{Input: 10})
	if r == nil || r.What != "output tokens" || math.Abs(r.After.Seconds()-120.1) > 0.001 {
		t.Fatalf("%+v", r)
	}
	if r := q.Admit(afterSeconds(121), Cost{Input: 10}); r != nil {
		t.Errorf("%+v", r)
	}
}

func TestShortBurst(t *testing.T) {
	t.Parallel()
	q := NewQuota(Limits{RPM: 600, TPM: 60_000, Burst: time.Second}, OpenAI, afterSeconds(0))
	passed := 0
	for range 100 {
		if q.Admit(afterSeconds(0), Cost{Input: 1}) == nil {
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d passed at once, want 10", passed)
	}
	// A full bucket admits more than it holds, and leaves a debt.
	if r := q.Admit(afterSeconds(5), Cost{Input: 3000}); r != nil {
		t.Fatalf("%+v", r)
	}
	if r := q.Admit(afterSeconds(5), Cost{Input: 1}); r == nil || r.After < 2*time.Second {
		t.Errorf("%+v", r)
	}
}

func TestNoLimits(t *testing.T) {
	t.Parallel()
	q := NewQuota(Limits{}, "", afterSeconds(0))
	if r := q.Admit(afterSeconds(0), Cost{Input: math.MaxInt32}); r != nil || q.Rate(afterSeconds(0)) != nil {
		t.Errorf("%+v", r)
	}
	var g *Gate
	if r := g.Enter(); r != nil {
		t.Error(r)
	}
	g.Leave()
}

func TestGate(t *testing.T) {
	t.Parallel()
	g := NewGate(Limits{Concurrency: 1})
	for range 2 {
		if r := g.Enter(); r != nil {
			t.Fatal(r)
		}
		if r := g.Enter(); r == nil || r.What != "concurrency" {
			t.Fatal(r)
		}
		g.Leave()
	}
}
