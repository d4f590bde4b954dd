package terminal

import (
	"math"
	"testing"
	"time"
)

// TestTimeLeft plays 40 episodes of 4 calls in 40 seconds.
func TestTimeLeft(t *testing.T) {
	t.Parallel()
	var l TimeLeft
	if _, ok := l.About(10, time.Minute); ok {
		t.Error("before any call")
	}
	for i := range 40 {
		for range 4 {
			l.Replied(i, time.Duration(i)*time.Second)
		}
		l.End(i)
		l.End(i) // a second End has no effect
	}
	for range 3 {
		l.Replied(40, 39*time.Second)
	}
	for _, c := range []struct {
		left     int
		at       time.Duration
		from, to time.Duration // 0: not known
	}{
		{40, 40 * time.Second, 36 * time.Second, 44 * time.Second}, {20, 40 * time.Second, 17 * time.Second, 23 * time.Second},
		{0, 40 * time.Second, 0, 0}, {-1, 40 * time.Second, 0, 0}, {1, 40 * time.Second, 0, 0}, {math.MaxInt, 40 * time.Second, 0, 0}, {40, 0, 0, 0},
	} {
		if about, ok := l.About(c.left, c.at); ok != (c.to > 0) || about < c.from || about > c.to {
			t.Errorf("%d left after %v: %v, %v", c.left, c.at, about, ok)
		}
	}
	for i := range 100_000 {
		l.Replied(0, time.Duration(i)*time.Minute)
	}
	l.Replied(0, -time.Second) // the clock was set back
	if len(l.marks) > 2*maxMarks {
		t.Errorf("%d marks", len(l.marks))
	}
}

func TestRoughly(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		7*time.Second + 400*time.Millisecond: "7s", 49 * time.Second: "49s", 52 * time.Second: "50s", 99 * time.Second: "1m40s", 7*time.Minute + 8*time.Second: "7m",
		8*time.Minute + 40*time.Second: "8m30s", 10 * time.Minute: "10m", 63 * time.Minute: "1h5m", 6*time.Hour + 10*time.Minute: "6h", 100 * time.Hour: "102h",
	} {
		if got := Roughly(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
