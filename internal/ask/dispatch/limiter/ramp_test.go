package limiter

import (
	"testing"
	"time"

	"parley/llm"
)

// TestCoarseRefusal: a server that has nothing left has not rounded that up.
func TestCoarseRefusal(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	b := newBucket(0, false, now)
	b.learn(llm.Window{Known: true, Limit: 3000, Remaining: 0, Reset: time.Second}, 1, now, 0, now)
	if wait := b.wait(1); wait > 2*time.Second {
		t.Errorf("a refusal at 50 a second stops all calls for %v", wait)
	}
}

// TestTinyRate: a rate that allows no second call in any time that a clock can count is a limit too.
func TestTinyRate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, perMinute := range []float64{1e-8, 1e-9, 1e-300, 5e-324} {
		b := newBucket(perMinute, false, now)
		if wait := b.wait(1); wait != 0 {
			t.Errorf("%g a minute: the first call waits %v", perMinute, wait)
		}
		b.take(1)
		b.learn(llm.Window{Known: true, Limit: 3000, Remaining: 3000}, 1, now, b.sum, now)
		b.refill(now.Add(time.Hour))
		if wait := b.wait(1); wait < 24*time.Hour {
			t.Errorf("%g a minute: the second call waits %v", perMinute, wait)
		}
	}
}

// TestUnanswered: before the first answers, no more than a thousand calls are in flight.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	a, now, n := newAdapt(0, Start{}), time.Unix(1000, 0), 0
	for range 10_000 {
		for a.allows(n, 0, now) {
			n++
		}
		now = now.Add(a.settles / growths)
	}
	if n != 1024 {
		t.Errorf("%d calls without an answer", n)
	}
}

// TestRampTime: the estimate agrees with the ramp.
func TestRampTime(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 100, 1000, 5000} {
		a, now := newAdapt(0, Start{}), time.Unix(1000, 0)
		a.room = MaxConcurrency // as if answers had come
		start, inFlight := now, 0
		for ; inFlight < n; now = now.Add(a.settles / growths) {
			for inFlight < n && a.allows(inFlight, 0, now) {
				inFlight++
			}
		}
		took, want := now.Sub(start), RampTime(float64(n), time.Second)
		if took > want*3/2+farSettle || took < want/2-farSettle {
			t.Errorf("%d calls in flight after %v, estimated %v", n, took, want)
		}
	}
}
