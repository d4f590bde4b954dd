package health

import (
	"cmp"
	"testing"
	"time"
)

// TestLifecycle follows one server: it goes down after three failures in a row or when it cannot be
// reached, longer each time, and is on trial before it is up again.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	p := &Policy{Failures: 3, First: time.Second, Max: time.Minute}
	now := time.Unix(1000, 0)
	var h Health
	for i, r := range []Result{Failed, Failed, OK, Failed, Silent} {
		if h.Record(p, r, now) {
			t.Fatalf("down after result %d", i)
		}
	}
	if !h.Record(p, Failed, now) || !h.Until().Equal(now.Add(p.First)) {
		t.Fatalf("three failures in a row: %+v", h)
	}
	if h.Record(p, Absent, now) || h.StartProbe(now) || !h.StartProbe(now.Add(p.First)) || h.StartProbe(now.Add(p.First)) {
		t.Fatalf("during a pause: %+v", h)
	}
	now = now.Add(p.First)
	h.Probed(p, false, now)
	if !h.Until().Equal(now.Add(2 * p.First)) {
		t.Fatalf("after a probe without an answer: %+v", h)
	}
	h.Probed(p, true, now)
	if h.Down() || !h.Trial() || !h.Accepts(0) || h.Accepts(1) {
		t.Fatalf("after a probe with an answer: %+v", h)
	}
	if !h.Record(p, Failed, now) || !h.Until().Equal(now.Add(4*p.First)) {
		t.Fatalf("one failure on trial: %+v", h)
	}
	h.Probed(p, true, now)
	if h.Record(p, OK, now); h.Down() || h.Trial() || h.Pauses() != 0 {
		t.Fatalf("a success on trial: %+v", h)
	}
	if !h.Record(p, Absent, now) {
		t.Fatal("a server that cannot be reached stays up")
	}
	for range 20 {
		h.Probed(p, false, now)
	}
	if !h.Until().Equal(now.Add(p.Max)) {
		t.Errorf("down until %v", h.Until())
	}
	if h.Record(p, OK, now); h.Down() {
		t.Error("a success does not end the pause")
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	p := &Policy{Failures: 5, First: time.Second, Max: time.Minute, Window: 50, MinSamples: 20, FailedShare: 0.8, SilentShare: 0.5}
	every := func(n int, r Result) func(int) Result {
		return func(i int) Result { return []Result{OK, r}[min(1, i%n)] }
	}
	for _, c := range []struct {
		name   string
		result func(i int) Result
		down   bool
	}{
		{"five in a row", func(i int) Result { return []Result{OK, Failed}[min(1, i/95)] }, true},
		{"half fail", every(2, Failed), false},
		{"half are silent", every(2, Silent), true},
		{"four of five fail", every(5, Failed), true},
		{"all succeed", func(int) Result { return OK }, false},
	} {
		h, down := &Health{}, false
		for i := range 100 {
			down = h.Record(p, c.result(i), time.Unix(1000, 0)) || down
		}
		if down != c.down {
			t.Errorf("%s: down %v", c.name, down)
		}
	}
}

func TestLeast(t *testing.T) {
	t.Parallel()
	loads := []int{3, 1, 2}
	for _, c := range []struct {
		name   string
		usable func(int) bool
		want   int
	}{
		{"the least loaded", func(int) bool { return true }, 1},
		{"of the usable ones", func(n int) bool { return n != 1 }, 2},
		{"or of all", func(int) bool { return false }, 1},
	} {
		if got := Least(loads, c.usable, cmp.Compare[int]); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
