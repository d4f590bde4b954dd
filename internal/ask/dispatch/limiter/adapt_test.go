package limiter

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/internal/ask/dispatch/replica"
	"parley/internal/ask/provider"
	"parley/llm"
)

func TestOverloadShrinksNothing(t *testing.T) {
	t.Parallel()
	l := New(provider.Limits{Concurrency: 10}, provider.CountUsed, &Gauge{}, Start{})
	p, err := l.Acquire(t.Context(), &llm.Request{}, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Release(p, nil, &llm.Error{Kind: llm.KindOverloaded, Status: 529})
	if l.adapt.limit != 10 {
		t.Errorf("529 changed the limit to %v", l.adapt.limit)
	}
}

func TestSteer(t *testing.T) {
	t.Parallel()
	type look struct {
		load           replica.Load
		used, inFlight int
		answers        int           // since the look before
		after          time.Duration // the look before. Default: a second
		want           float64
	}
	busy := func(l replica.Load, want float64) look { return look{load: l, used: 1e6, answers: 1e6, want: want} }
	for _, c := range []struct {
		name   string
		chosen int
		looks  []look
	}{
		{"doubles while there is room", 0, []look{busy(replica.Load{}, 32), busy(replica.Load{Cache: 0.5}, 64)}},
		{"not beyond what was chosen", 40, []look{busy(replica.Load{}, 40)}},
		{"not while the limit is not used", 0, []look{{used: 3, answers: 1e6, want: 16}}},
		{"not without a round of answers", 0, []look{{used: 16, answers: 15, load: replica.Load{Cache: 0.4}, want: 16}, {used: 16, answers: 1, load: replica.Load{Cache: 0.4}, want: 32}}},
		{"or time, with the cache near empty", 0, []look{{used: 16, want: 32}, {used: 32, want: 32}, {used: 32, after: steerWait, want: 64}}},
		{"not when the cache fills", 0, []look{busy(replica.Load{Cache: 0.6}, 16)}},
		{"by a quarter once something waited", 0, []look{busy(replica.Load{Waiting: 1, Running: 16}, 16), busy(replica.Load{}, 20)}},
		{"a full cache", 0, []look{busy(replica.Load{Cache: 0.9}, 12.8)}},
		{"not twice before it worked", 0, []look{busy(replica.Load{Cache: 0.9}, 12.8), {load: replica.Load{Cache: 0.95}, inFlight: 16, want: 12.8}, {load: replica.Load{Cache: 0.95}, inFlight: 12, want: 10.24}}},
		{"a request that lost its place", 0, []look{busy(replica.Load{Preempted: 7, Cache: 0.7}, 16), busy(replica.Load{Preempted: 8, Cache: 0.7}, 12.8), busy(replica.Load{Preempted: 8, Cache: 0.7}, 12.8)}},
		{"a queue that is long once", 0, []look{busy(replica.Load{Waiting: 9, Running: 10}, 16), busy(replica.Load{Waiting: 1, Running: 10}, 16)}},
		{"a queue that stays long", 0, func() (looks []look) {
			for range steerQueue - 1 {
				looks = append(looks, busy(replica.Load{Waiting: 9, Running: 10}, 16))
			}
			return append(looks, busy(replica.Load{Waiting: 9, Running: 10}, 14.4), busy(replica.Load{Waiting: 9, Running: 10}, 14.4))
		}()},
		{"never below one", 1, []look{busy(replica.Load{Cache: 1}, 1), busy(replica.Load{Cache: 1}, 1)}},
	} {
		a, now := newAdapt(c.chosen, Start{Reports: true}), time.Unix(1000, 0)
		for i, l := range c.looks {
			now = now.Add(max(time.Second, l.after))
			a.answers += l.answers
			a.steer(l.load, l.used, l.inFlight, now)
			if d := a.limit - l.want; d > 0.001 || d < -0.001 {
				t.Errorf("%s: look %d: limit %v, want %v", c.name, i, a.limit, l.want)
			}
		}
	}
}

// TestSteeredLimitDoesNotGrowByItself: it grows again only when the server has reported nothing for
// a while.
func TestSteeredLimitDoesNotGrowByItself(t *testing.T) {
	t.Parallel()
	a, now := newAdapt(0, Start{Reports: true}), time.Unix(1000, 0)
	a.steer(replica.Load{Waiting: 1}, 16, 16, now)
	for range 100 {
		a.succeeded(&Permit{sent: now.Add(steerFor - 1 - time.Second)}, 1000, now.Add(steerFor-1))
	}
	if a.limit != FirstConcurrency || a.allows(20, 1000, now) {
		t.Errorf("it grew to %v", a.limit)
	}
	a.succeeded(&Permit{sent: now.Add(steerFor - time.Second)}, 1000, now.Add(steerFor))
	if a.limit <= FirstConcurrency {
		t.Error("it is stuck where a server that fell silent left it")
	}
}

// TestVolley: where a server refuses nearly all of the first calls, more are tried before thousands were answered two at a time:
// another run may have had its share.
func TestVolley(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, accepted := range []int{1, 2, 4} {
		a := newAdapt(0, Start{})
		p := &Permit{sent: now}
		for inFlight := FirstConcurrency; inFlight > accepted; inFlight-- {
			a.refuse(p, inFlight, now.Add(time.Second/10))
		}
		if int(a.limit) != accepted {
			t.Fatalf("%d accepted: limit %v", accepted, a.limit)
		}
		answers := 0
		for ; int(a.limit) == accepted; answers++ {
			p := &Permit{sent: now.Add(time.Second)}
			a.succeeded(p, accepted, now.Add(2*time.Second))
		}
		if limit := maxVolley*answersForRefusal*accepted + accepted; answers > limit {
			t.Errorf("%d accepted: more are tried after %d answers, want at most %d", accepted, answers, limit)
		}
	}
}

// TestRestart: a server goes away while it still answers calls that were in flight, in any order, fails single calls
// for a while and comes back. As many calls are allowed as before.
func TestRestart(t *testing.T) {
	t.Parallel()
	const calls = 50
	for seed := range uint64(200) {
		a, now, r := newAdapt(calls, Start{}), time.Unix(1000, 0), rand.New(rand.NewPCG(seed, 0))
		call := func(level int) *Permit { return &Permit{sent: now, level: level} }
		var open []*Permit
		for i := range calls {
			open = append(open, call(i+1))
		}
		for range 10 {
			now = now.Add(time.Second)
			for i := range open {
				a.succeeded(open[i], calls, now)
				open[i] = call(calls)
			}
		}
		now = now.Add(time.Second)
		for failed := 0; len(open) > 0; {
			i := r.IntN(len(open))
			switch p := open[i]; {
			case p.sent.Equal(now):
				a.failed(p, len(open), now)
				failed++
			default:
				a.succeeded(p, len(open), now)
				if failed < calls {
					open = append(open, call(len(open)))
				}
			}
			open = slices.Delete(open, i, i+1)
		}
		for range 60 {
			now = now.Add(5 * time.Second)
			a.failed(call(1), 1, now)
		}
		p := call(1)
		a.succeeded(p, 1, now.Add(time.Second))
		if a.limit != calls || a.owed != 0 {
			t.Errorf("seed %d: limit %v after the restart, %d answers owed", seed, a.limit, a.owed)
		}
	}
}
