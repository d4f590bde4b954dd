package envhttp

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/worlds/rollout/rules"
)

// TestStrays checks which sessions were left behind, by who else plays the run.
func TestStrays(t *testing.T) {
	t.Parallel()
	all := []string{"run-1-0-0", "run_a-2-0-0", "run_b-2-0-0+", "run_b-2-1-0", "run_b-3-0-0", "run_b-spare1", "run_a-spare1", "runner-2-0-0", "run_b-x-0-0", "run_b-2", ""}
	for name, c := range map[string]struct {
		config  Config
		resumed map[int]int
		want    []string
	}{
		"alone":        {Config{Owner: "run"}, nil, []string{"run-1-0-0", "run_a-2-0-0", "run_b-2-0-0+", "run_b-2-1-0", "run_b-3-0-0", "run_b-spare1", "run_a-spare1", "run_b-x-0-0", "run_b-2"}},
		"with others":  {Config{Owner: "run_a", Run: "run"}, nil, []string{"run_a-2-0-0", "run_a-spare1"}},
		"after others": {Config{Owner: "run_a", Run: "run"}, map[int]int{2: 1, 1: 1}, []string{"run-1-0-0", "run_a-2-0-0", "run_b-2-0-0+", "run_a-spare1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool([]Host{newFake("a")}, c.config)
			for episode, attempt := range c.resumed {
				p.Resume(episode, attempt)
			}
			if got := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !p.stray(id) }); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestShare checks that a pool uses only its part of each host, until the part ends, and more when it gets more.
func TestShare(t *testing.T) {
	t.Parallel()
	a, b := newFake("a"), newFake("b")
	in(t, Config{PerHost: 10}, []*fake{a, b}, func(t *testing.T, p *envPool) {
		used := func() [2]int {
			synctest.Wait()
			rooms := p.Capacities()
			return [2]int{rooms[0].Used, rooms[1].Used}
		}
		p.ShareCapacity(map[string]float64{"a": 0.3, "b": 0}, time.Now().Add(3*time.Second))
		for i := range 20 {
			go func() { _, _ = p.Lease(t.Context(), i, fmt.Sprint(i), rules.Opening{Env: "e"}) }()
		}
		if got := used(); got != [2]int{3, 0} || p.Capacities()[0].Waiting != 17 {
			t.Errorf("%v %+v", got, p.Capacities())
		}
		p.ShareCapacity(map[string]float64{"b": 0.5}, time.Now().Add(3*time.Second))
		if got := used(); got != [2]int{3, 5} {
			t.Errorf("%v", got)
		}
		p.ShareCapacity(map[string]float64{"a": 0.1}, time.Now().Add(time.Second))
		time.Sleep(3 * time.Second)
		p.ShareCapacity(map[string]float64{"a": 1}, time.Now()) // it has ended
		if got := used(); got != [2]int{3, 5} {
			t.Errorf("%v", got)
		}
		p.ShareCapacity(map[string]float64{"a": 2, "b": 1}, time.Now().Add(time.Second))
		if got := used(); got != [2]int{10, 10} {
			t.Errorf("%v", got)
		}
	})
}
