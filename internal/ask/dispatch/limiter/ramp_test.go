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

// TestKnownLevel: a limit that an earlier run found is where the next begins.
func TestKnownLevel(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name   string
		chosen int
		known  Level
		want   int // calls allowed at once
	}{
		{"nothing", 0, Level{}, FirstConcurrency},
		{"few", 0, Level{InFlight: 3, Limited: true}, 3},
		{"many", 0, Level{InFlight: 500, Limited: true}, FirstConcurrency},
		{"not tried", 0, Level{InFlight: 500}, FirstConcurrency},
		{"chosen", 40, Level{InFlight: 3, Limited: true}, 40},
		{"absurd", 0, Level{InFlight: 1 << 62, Limited: true}, FirstConcurrency},
		{"negative", 0, Level{InFlight: -5, Limited: true}, FirstConcurrency},
	} {
		a := newAdapt(c.chosen, Start{Known: c.known})
		n := 0
		for a.allows(n, 0, now) {
			n++
		}
		if n != c.want {
			t.Errorf("%s: %d calls at once, want %d", c.name, n, c.want)
		}
	}
}

// TestKnownRamp: a thousand calls that a distant server accepted before are in flight after a second and a half, and
// after much longer if nothing is known.
func TestKnownRamp(t *testing.T) {
	t.Parallel()
	ramp := func(known Level) (took time.Duration) {
		a := newAdapt(0, Start{Known: known})
		now := time.Unix(1000, 0)
		for a.limit < 999 && took < time.Minute {
			a.allows(int(a.limit), 0, now.Add(took))
			took += a.settles / growths
		}
		return took
	}
	known, unknown := ramp(Level{InFlight: 1000, Limited: true}), ramp(Level{})
	if known > 1600*time.Millisecond || unknown < 2*known {
		t.Errorf("%v, and %v if nothing is known", known, unknown)
	}
}

// TestUnanswered: before the first answers, no more than a thousand calls are in flight, or as many as the server
// answered in an earlier run.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		known Level
		want  int
	}{
		{Level{}, 1024}, {Level{InFlight: 300}, 1024}, {Level{InFlight: 6000}, 6000},
		{Level{InFlight: 6000, Limited: true}, 6000}, {Level{InFlight: 300, Limited: true}, 300},
	} {
		a, now, n := newAdapt(0, Start{Known: c.known}), time.Unix(1000, 0), 0
		for range 10_000 {
			for a.allows(n, 0, now) {
				n++
			}
			now = now.Add(a.settles / growths)
		}
		if n != c.want {
			t.Errorf("%+v: %d calls without an answer, want %d", c.known, n, c.want)
		}
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
