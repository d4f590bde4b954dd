package replica

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
)

// TestLooks checks that the set asks for the load from its first call until Close.
func TestLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &host{load: Load{Waiting: 3}}
		s := newSet(t, Config{Look: time.Second}, a)
		var steered []Load
		s.members[0].Steer = func(l Load) { steered = append(steered, l) }
		time.Sleep(time.Minute)
		if a.looks != 0 {
			t.Fatal("asked for the load before the first call")
		}
		must(t, ask(t, s, "x"))
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if len(steered) != 11 || steered[0].Waiting != 3 {
			t.Errorf("steered %d times", len(steered))
		}
		a.set(func(h *host) { h.dead = true })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(steered) != 11 || a.looks != 21 {
			t.Errorf("steered %d times without a load, in %d looks", len(steered), a.looks)
		}
		must(t, s.Close())
	})
}

// TestCrowd uses a set from many goroutines while servers fail and return.
func TestCrowd(t *testing.T) {
	t.Parallel()
	hosts := []*host{{}, {}, {}}
	s := newSet(t, Config{Ends: true}, hosts...)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := range 50 {
				session := fmt.Sprint(i, n/5)
				if n == 25 {
					hosts[i%2].set(func(h *host) { h.err = &llm.Error{Kind: llm.KindTransport} })
				}
				if err := ask(t, s, session); err != nil { // the third always answers
					t.Error(err)
				}
				if n%5 == 4 {
					s.Release(session, true)
				}
			}
		})
	}
	wg.Wait()
	for _, st := range s.States() {
		if st.Calls != 0 || st.Sessions != 0 {
			t.Errorf("left over: %+v", st)
		}
	}
}

// TestOthers checks that a rest says how many other servers take calls.
func TestOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &host{}, &host{}
		var others []int
		s := newSet(t, Config{Rests: func(r Rest) { others = append(others, r.Others) }}, a, b)
		for _, h := range []*host{a, b} {
			h.set(func(h *host) { h.err, h.dead = &llm.Error{Kind: llm.KindTransport}, true })
		}
		if err := ask(t, s, "x"); err == nil {
			t.Fatal("a call was answered without a server")
		}
		if fmt.Sprint(others) != "[1 0]" {
			t.Errorf("%v others, want 1 and 0", others)
		}
	})
}
