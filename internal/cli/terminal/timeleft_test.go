package terminal

import (
	queues "container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// simulation is a run in which a number of episodes are played at once and each call takes some time.
type simulation struct {
	episodes, atOnce int
	calls            func(r *rand.Rand) int                             // number of calls of an episode
	takes            func(at time.Duration, r *rand.Rand) time.Duration // duration of a call that starts at a time
}

// reply is the time at which the next call of an episode is answered.
type reply struct {
	at            time.Duration
	episode, left int
}

type replies []reply

func (h replies) Len() int           { return len(h) }
func (h replies) Less(i, j int) bool { return h[i].at < h[j].at }
func (h replies) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *replies) Push(x any)        { *h = append(*h, x.(reply)) }
func (h *replies) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// shown is an interval and the time that was really left.
type shown struct {
	at, low, high, left time.Duration
}

// play returns the intervals shown during the run, and the number of moments at which one could be shown.
func (s simulation) play(seed uint64) (all []shown, moments int) {
	r := rand.New(rand.NewPCG(seed, 1))
	l, queue, begun, ended := &TimeLeft{}, &replies{}, 0, 0
	begin := func(at time.Duration) {
		if begun < s.episodes {
			queues.Push(queue, reply{at + s.takes(at, r), begun, s.calls(r)})
			begun++
		}
	}
	for range s.atOnce {
		begin(0)
	}
	const every = 7 * time.Second
	next, now := every, time.Duration(0)
	for queue.Len() > 0 {
		e := queues.Pop(queue).(reply)
		for ; next < e.at; next += every {
			moments++
			if low, high, ok := l.Interval(s.episodes-ended, next); ok {
				all = append(all, shown{at: next, low: low, high: high})
			}
		}
		now = e.at
		l.Replied(e.episode, now)
		if e.left--; e.left > 0 {
			e.at += s.takes(now, r)
			queues.Push(queue, e)
			continue
		}
		l.End(e.episode)
		ended++
		begin(now)
	}
	for i := range all {
		all[i].left = now - all[i].at
	}
	return all, moments
}

func fixed(n int) func(*rand.Rand) int { return func(*rand.Rand) int { return n } }

func around(d time.Duration) func(time.Duration, *rand.Rand) time.Duration {
	return func(_ time.Duration, r *rand.Rand) time.Duration {
		return time.Duration(float64(d) * math.Exp(0.5*r.NormFloat64()))
	}
}

// TestTimeLeftBySimulation plays runs whose end is known: the interval must usually contain the truth, must
// never be far off, and must be shown for ordinary runs.
func TestTimeLeftBySimulation(t *testing.T) {
	t.Parallel()
	second := around(time.Second)
	for _, c := range []struct {
		name  string
		sim   simulation
		shows bool          // shown in at least a third of all moments; otherwise optional
		from  time.Duration // earlier moments do not count: the time cannot be known yet
	}{
		{"even", simulation{400, 20, fixed(16), second}, true, 0},
		{"varied", simulation{600, 20, func(r *rand.Rand) int { return 1 + r.IntN(30) }, second}, true, 0},
		{"heavy tails", simulation{600, 20, func(r *rand.Rand) int { return 1 + int(4*math.Exp(1.3*r.NormFloat64())) }, second}, false, 0},
		{"rather heavy tails", simulation{600, 20, func(r *rand.Rand) int { return 1 + int(8*math.Exp(0.7*r.NormFloat64())) }, second}, true, 0},
		{"random ends", simulation{600, 20, func(r *rand.Rand) int { return 1 + int(8*r.ExpFloat64()) }, second}, true, 0},
		{"few and long", simulation{12, 12, func(r *rand.Rand) int { return 100 + r.IntN(100) }, second}, false, 0},
		{"slow start", simulation{600, 20, fixed(16), func(at time.Duration, r *rand.Rand) time.Duration {
			return time.Duration(float64(second(at, r)) * (1 + 40*math.Exp(-at.Seconds()/30)))
		}}, false, 0},
		{"a stall", simulation{600, 20, fixed(16), func(at time.Duration, r *rand.Rand) time.Duration {
			if at > 2*time.Minute && at < 4*time.Minute {
				return 4*time.Minute - at + second(at, r)
			}
			return second(at, r)
		}}, false, 2 * time.Minute},
		{"one at a time", simulation{200, 1, fixed(4), second}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			held, far, n, moments := 0, 0, 0, 0
			for seed := range uint64(20) {
				all, m := c.sim.play(seed)
				moments += m
				for _, s := range all {
					if s.at < c.from {
						continue
					}
					n++
					if s.low <= s.left && s.left <= s.high {
						held++
					}
					if s.left > 3*s.high || 3*s.left < s.low {
						far++
					}
					if s.high > widest*s.low+time.Second {
						t.Fatalf("shown as %v to %v", s.low, s.high)
					}
				}
			}
			t.Logf("%d of %d moments: %d held, %d far off", n, moments, held, far)
			if c.shows && 3*n < moments {
				t.Errorf("shown in %d of %d moments", n, moments)
			}
			// With a heavy tail, an interval may be shown before the tail is visible.
			if c.shows && 10*held < 8*n || 20*(n-held) > moments+n || far > 0 {
				t.Errorf("of %d, %d held the truth and %d were far off", n, held, far)
			}
		})
	}
}

// TestTimeLeftIsUnknown checks that no interval is shown before it can be known.
func TestTimeLeftIsUnknown(t *testing.T) {
	t.Parallel()
	var l TimeLeft
	if _, _, ok := l.Interval(10, time.Minute); ok {
		t.Error("before any call")
	}
	for i := range 40 {
		for range 4 {
			l.Replied(i, time.Duration(i)*time.Second)
		}
		l.End(i)
		l.End(i) // a second End has no effect
	}
	low, high, ok := l.Interval(40, 40*time.Second)
	if !ok || low > 40*time.Second || high < 40*time.Second {
		t.Errorf("%v to %v (%v), want around 40s", low, high, ok)
	}
	for _, c := range []struct {
		left int
		at   time.Duration
	}{{0, 40 * time.Second}, {-1, 40 * time.Second}, {1, 40 * time.Second}, {40, 3 * time.Minute}, {40, 1000 * time.Hour}, {math.MaxInt, 40 * time.Second}} {
		if low, high, ok := l.Interval(c.left, c.at); ok {
			t.Errorf("%d left after %v: %v to %v", c.left, c.at, low, high)
		}
	}
}

// TestTimeLeftKeepsItsCount checks that a few bins hold all calls of a run of any length.
func TestTimeLeftKeepsItsCount(t *testing.T) {
	t.Parallel()
	var l TimeLeft
	for i := range 1000 {
		l.Replied(0, time.Duration(i*i)*time.Second)
	}
	l.Replied(0, -time.Second) // the clock was set back
	sum := 0
	for _, n := range l.bins {
		sum += n
	}
	if sum != 1001 || len(l.bins) > maxBins || slices.Min(l.bins) < 0 {
		t.Errorf("%d calls in %d bins", sum, len(l.bins))
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
