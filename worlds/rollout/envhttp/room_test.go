package envhttp

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		chosen        int
		latency       func(limit int) time.Duration
		wanted, spare bool
		want          int // after 100 answers
	}{
		{"nobody wants more", 0, always(time.Second), false, true, 16},
		{"the host keeps up", 0, always(time.Second), true, false, 116},
		{"it slows down, and most sessions wait for it", 0, perSession, true, false, 48},
		{"it slows down, and few wait for it", 0, perSession, true, true, 116},
		{"the user has chosen", 20, always(time.Second), true, true, 20},
	} {
		r := newRoom(c.chosen, 16)
		for range 100 {
			r.answered(c.latency(r.limit), c.wanted, c.spare)
		}
		if r.limit != c.want {
			t.Errorf("%s: %d, want %d", c.name, r.limit, c.want)
		}
	}
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// perSession is the latency of a server that does one thing at a time.
func perSession(limit int) time.Duration { return time.Duration(limit) * time.Millisecond }

// TestRoomGrows checks that sessions beyond the first are made while those that there are get answers, that the room is
// back at the first ones after a host was down, and that a chosen number is kept.
func TestRoomGrows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config     Config
		want, room int
	}{
		"found":  {Config{First: 4}, 12, 12 + firstStartup},
		"chosen": {Config{PerHost: 4}, 4, 4},
	} {
		a := newFake("a")
		in(t, c.config, []*fake{a}, func(t *testing.T, p *envPool) {
			got, wg := make(chan *Lease, 12), sync.WaitGroup{}
			for i := range 12 {
				wg.Go(func() { got <- lease(t, p, i) })
			}
			synctest.Wait()
			for range min(4, len(got)) {
				l := <-got
				for range 3 {
					if _, err := l.Step(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
				got <- l
			}
			synctest.Wait()
			if a.count() != c.want || p.Capacity() != c.room {
				t.Errorf("%s: %d sessions, room for %d; want %d and %d", name, a.count(), p.Capacity(), c.want, c.room)
			}
			if waits := p.Waiting(); (waits == "environments: the servers have 4, and 8 episodes wait for one") != (c.want == 4) {
				t.Errorf("%s: waits for %q", name, waits)
			}
			p.hosts[0].room.restart()
			if n := p.hosts[0].room.limit; n != 4 {
				t.Errorf("%s: room for %d after it was down", name, n)
			}
			for range 12 {
				(<-got).Release(t.Context())
			}
			wg.Wait()
		})
	}
}

// TestFullHost checks that a host that is full is asked for few more sessions than it has, and that they are made once it
// has room.
func TestFullHost(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.space = 10
	in(t, Config{Patience: time.Hour}, []*fake{a}, func(t *testing.T, p *envPool) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				l := lease(t, p, i)
				for a.count() < 40 {
					time.Sleep(time.Second)
					if _, err := l.Step(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(2 * time.Minute)
		a.mu.Lock()
		if a.space = 40; len(a.sessions) != 10 || a.refused == 0 || a.refused > 500 {
			t.Errorf("%d sessions, %d refused in 2 minutes", len(a.sessions), a.refused)
		}
		a.mu.Unlock()
		wg.Wait()
	})
}

// TestStartupGrows checks that more sessions are made at once while a host makes them as quickly as before.
func TestStartupGrows(t *testing.T) {
	t.Parallel()
	a := newFake("a")
	a.slow = time.Second
	in(t, Config{}, []*fake{a}, func(t *testing.T, p *envPool) {
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 16 + 32 + 64 {
			wg.Go(func() { lease(t, p, i) })
		}
		wg.Wait()
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("%d sessions took %v, %d at once", a.count(), d, a.maxMaking)
		}
	})
}

var errFull = &llm.Error{Kind: llm.KindOverloaded, Message: "full"}
