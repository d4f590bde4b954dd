package planner_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/run/planner"
	"parley/world"
)

// countdown is a plan of so many stages, each of as many episodes as stages are left. It
// checks that it is given what it asked for.
type countdown struct {
	t    interface{ Errorf(string, ...any) }
	name string
	left int
	want []world.Spec
}

func (c *countdown) Next(last []world.Played) world.Specs {
	if len(last) != len(c.want) {
		c.t.Errorf("%s is given %d episodes, and asked for %d", c.name, len(last), len(c.want))
	}
	for i, p := range last {
		if i < len(c.want) && p.Spec.Cell != c.want[i].Cell {
			c.t.Errorf("%s is given %s, and asked for %s", c.name, p.Spec.Cell, c.want[i].Cell)
		}
	}
	c.want = nil
	for i := range c.left {
		c.want = append(c.want, world.Spec{Cell: fmt.Sprint(c.name, " ", c.left, " ", i)})
	}
	c.left--
	return world.List(c.want...)
}

// TestBeside: each plan gets the outcomes of its own episodes, in order, and ends by itself.
func TestBeside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 5).Draw(rt, "lengths")
		longest, total := 0, 0
		stages := follow(rt, func() (world.Stages, error) {
			var plans []world.Stages
			for i, n := range lengths {
				plans = append(plans, &countdown{t: rt, name: fmt.Sprint("plan ", i), left: n})
				longest, total = max(longest, n), total+n*(n+1)/2
			}
			return planner.Beside(plans...), nil
		}, func(int, world.Spec) world.Outcome { return world.Outcome{} })
		played := 0
		for _, s := range stages {
			played += len(s)
		}
		if len(stages) != longest || played != total {
			rt.Fatalf("%v: %d stages of %d episodes, want %d of %d", lengths, len(stages), played, longest, total)
		}
	})
}

func TestPaired(t *testing.T) {
	t.Parallel()
	won := func(ones, n int) []float64 {
		xs := make([]float64, n)
		for i := range ones {
			xs[i] = 1
		}
		return xs
	}
	for _, c := range []struct {
		name      string
		a, b      []float64
		value     float64
		different bool
	}{
		{"shares apart", won(30, 40), won(10, 40), 0.5, true},
		{"the same shares", won(10, 40), won(10, 40), 0, false},
		{"parts apart", []float64{0.5, 1, 0.5, 1, 0.5, 1, 0.5, 1}, won(0, 8), 0.75, true},
		{"parts alike", []float64{0.5, 1, 0, 0.25}, []float64{1, 0.5, 0.25, 0}, 0, false},
	} {
		d, test := world.Paired(c.a, c.b, 0.95, 1)
		if math.Abs(d.Value-c.value) > 1e-12 || d.Holds(0) == c.different || (test.P < 0.05) != c.different {
			t.Errorf("%s: %v, %v", c.name, d, test)
		}
	}
	if d, test := world.Paired([]float64{1}, nil, 0.95, 1); d.Known() || test.Known() {
		t.Errorf("of different lengths: %v, %v", d, test)
	}
}
