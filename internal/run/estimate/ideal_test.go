package estimate

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/run/planfile"
	"parley/worlds"
)

// TestBenchOfStages: in the ideal of a plan with stages, each stage waits for the one before. The
// outcomes are the same one by one, at free pace and in waves.
func TestBenchOfStages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it plays much, and others play the same")
	}
	plan, err := planfile.Parse("plan.yaml", []byte(evolving), worlds.Standard(), nil)
	if err != nil {
		t.Fatal(err)
	}
	latency, err := sim.ParseDelay("lognormal:1s,0.6")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		res, err := Bench{Plan: plan, Latency: latency, Calls: 50, OneByOne: 1000}.Run(t.Context())
		if err != nil || !res.Same {
			t.Fatalf("%+v, %v", res, err)
		}
		for _, way := range res.Ways {
			if way.Ratio < 0.9 || way.Ratio > 1.02 || way.Digest != res.Digest || way.Episodes != res.Episodes {
				t.Errorf("%s: %.3f of its ideal; %+v", way.Name, way.Ratio, way)
			}
		}
	})
}

// TestIdealOfStages: the second stage waits for the end of the first.
func TestIdealOfStages(t *testing.T) {
	t.Parallel()
	one := func(seconds ...int) []*step {
		s := &step{}
		for _, n := range seconds {
			s.waits = append(s.waits, time.Duration(n)*time.Second)
		}
		return link([]*step{s})
	}
	s := stages{{one(1, 3), one(1)}, {one(2)}, nil}
	for _, c := range []struct {
		calls int
		wave  bool
		want  int
	}{{1, false, 7}, {2, false, 5}, {9, false, 5}, {9, true, 5}} {
		if got, _ := s.ideal(c.calls, c.wave); got != time.Duration(c.want)*time.Second {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if got := s.serial(); got != 7*time.Second {
		t.Error(got)
	}
}
