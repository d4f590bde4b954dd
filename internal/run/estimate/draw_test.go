package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"parley/world"
)

// planned returns the outlook of a plan, with the number of cells and of episodes for each cell,
// and a sample of about size episodes.
func planned(cells, episodes, size int, seed uint64) *outlook {
	o := &outlook{low: cells * episodes, high: cells * episodes}
	var specs []world.Spec
	for deal := range episodes {
		for c := range cells {
			specs = append(specs, world.Spec{Cell: strconv.Itoa(c), Deal: deal})
		}
	}
	o.specs = world.List(specs...)
	o.cells = cellsOf(o.specs)
	o.draw(size, rand.New(rand.NewPCG(seed, 1)))
	return o
}

// TestDraw: the sample has every cell, or random ones if there are too many. It has no episode
// twice, and the same seed draws the same sample.
func TestDraw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cells, episodes, size, want int }{
		{1, 1, 32, minSample}, {1, 20, 32, 20}, {1, 500, 32, 32}, {3, 100, 32, 33}, {20, 1, 32, 40}, {100, 1, 32, 64}, {1, 10, 2, 2}, {0, 0, 32, 0},
	} {
		o := planned(c.cells, c.episodes, c.size, 1)
		seen := map[string]bool{}
		for _, s := range o.sample {
			seen[fmt.Sprint(s.Cell, " ", s.Deal)] = true
		}
		if len(o.sample) != c.want || len(seen) != c.want || len(o.parts) != min(c.cells, c.size) {
			t.Errorf("%+v: %d episodes, %d of them different, %d cells", c, len(o.sample), len(seen), len(o.parts))
		}
		same := func(a, b world.Spec) bool { return a.Cell == b.Cell && a.Deal == b.Deal }
		if again := planned(c.cells, c.episodes, c.size, 1); !slices.EqualFunc(o.sample, again.sample, same) {
			t.Errorf("%+v: %v, then %v", c, o.sample, again.sample)
		}
		if other := planned(c.cells, c.episodes, c.size, 2); c.cells == 100 && slices.EqualFunc(o.sample, other.sample, same) {
			t.Errorf("%+v: another seed draws the same", c)
		}
	}
}

// TestDrawCovers: over many plans and samples, the interval contains the total of the plan
// as often as its confidence says, and its middle is right on average, even if the costs of cells
// differ greatly and in a pattern. If the sample has few of many cells with skewed costs, Student's
// interval contains the total a little less often than 95%. If the plan has exactly the episodes of
// the sample, it does so more often: the interval allows for different answers.
func TestDrawCovers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it computes: there is nothing for the race detector")
	}
	const runs = 1200
	for _, c := range []struct {
		name            string
		cells, episodes int
		fixed           bool
		low, high       float64
	}{
		{"one cell", 1, 200, false, 0.93, 0.97},
		{"few cells", 6, 40, false, 0.93, 0.97},
		{"two of each cell", 32, 20, false, 0.93, 0.97},
		{"more cells than are tried", 132, 8, false, 0.92, 0.97},
		{"one episode of each cell", 400, 1, false, 0.92, 0.97},
		{"the same episodes", 32, 20, true, 0.94, 0.99},
		{"the same episodes of more cells", 132, 8, true, 0.92, 0.98},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(c.cells)))
			cost := func(cell int) float64 { // each fourth cell costs ten times as much
				mean := 10 + float64(cell%12)
				if cell%4 == 0 {
					mean *= 10
				}
				return mean * (0.7 + 0.6*r.Float64())
			}
			truth := map[[2]int]float64{}
			held, sum, middle := 0.0, 0.0, 0.0
			for run := range runs {
				o := planned(c.cells, c.episodes, 32, uint64(run))
				total := 0.0
				for i, s := range o.specs.All() {
					key := [2]int{i % c.cells, s.Deal}
					if run == 0 || !c.fixed {
						truth[key] = cost(key[0])
					}
					total += truth[key]
				}
				got := make([]float64, len(o.sample))
				for i, s := range o.sample {
					cell, _ := strconv.Atoi(s.Cell)
					got[i] = cost(cell)
					if c.fixed {
						got[i] = truth[[2]int{cell, s.Deal}]
					}
				}
				a := o.amount(o.parts, got)
				if a.Total.Holds(total) {
					held++
				}
				sum += total
				middle += (a.Total.Low + a.Total.High) / 2
			}
			if share := held / runs; share < c.low || share > c.high {
				t.Errorf("%.3f of the intervals contain the total, want %v to %v", share, c.low, c.high)
			}
			if bias := middle/sum - 1; math.Abs(bias) > 0.015 {
				t.Errorf("the estimate is off by %.3f on average", bias)
			}
		})
	}
}
