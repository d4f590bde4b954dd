package estimate

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/run/planfile"
	"parley/journal"
	"parley/worlds"
)

// TestBench plays in simulated time, in which the machine is infinitely fast. Any time beyond the
// ideal is then due to the engine. An ideal that orders equal calls differently may be a little
// longer.
func TestBench(t *testing.T) {
	t.Parallel()
	plan, err := planfile.Parse("plan.yaml", []byte("kind: secrets\nepisodes: 40\nagents: {a: sim/small}\nlineup: {first: a, second: a}\n"), worlds.Standard(), nil)
	if err != nil {
		t.Fatal(err)
	}
	latency, err := sim.ParseDelay("lognormal:1s,0.6")
	if err != nil {
		t.Fatal(err)
	}
	for _, calls := range []int{1, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			res, err := Bench{Plan: plan, Latency: latency, Calls: calls}.Run(t.Context())
			if err != nil || !res.Same || res.Episodes != 40 {
				t.Fatalf("%+v, %v", res, err)
			}
			for _, way := range res.Ways {
				if way.Ratio < 0.9 || way.Ratio > 1.02 {
					t.Errorf("%d calls at once, %s: %.3f of its ideal", calls, way.Name, way.Ratio)
				}
			}
		})
	}
}

func TestIdeal(t *testing.T) {
	t.Parallel()
	const second = time.Second
	at := func(strand string, turn int) journal.Turn { return journal.Turn{Strand: strand, Turn: turn} }
	forked := func() timetable {
		return timetable{link([]*step{
			{at: at("", 0), waits: []time.Duration{second}},
			{at: at("1.0/", 0), waits: []time.Duration{second}},
			{at: at("1.0/", 1), waits: []time.Duration{second}},
			{at: at("1.1/", 0), waits: []time.Duration{5 * second, second}},
			{at: at("", 2), waits: []time.Duration{second}},
		})}
	}
	for _, test := range []struct {
		calls int
		wave  bool
		want  time.Duration
		waves int
	}{
		{calls: 1, want: 10 * second},
		{calls: 2, want: 7 * second},
		{calls: 9, want: 7 * second},
		{calls: 9, wave: true, want: 8 * second, waves: 4},
	} {
		got, waves := forked().ideal(test.calls, test.wave)
		if got != test.want || waves != test.waves {
			t.Errorf("%d calls, wave %v: %v in %d waves, want %v in %d", test.calls, test.wave, got, waves, test.want, test.waves)
		}
	}
	if got := (stages{forked()}).serial(); got != 10*second {
		t.Errorf("one by one: %v", got)
	}
}

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
