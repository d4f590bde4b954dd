// Part factorial estimates the effects of factors on scores: how much a level of a factor,
// such as a prompt, adds over another level (a main effect), and whether it adds more with one
// level of another factor than with the next (an interaction).
//
// An effect is a difference of means of cells, in which every cell has the
// same weight, however many episodes it has. An episode counts once in a cell. Episodes of one deal, and
// copies of one play, are one cluster, in whatever cells they are. P is adjusted for the number
// of effects. An effect that needs an empty cell is not estimated. The same runs give the same digits.

package report

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/world"
)

// Limits of what is estimated. What is beyond is left out, and Result says so.
const (
	maxCells   = 512
	maxEffects = 400 // of one score
)

// Effect is the effect of a factor, or the interaction of two.
type Effect struct {
	Score string
	Of    string // the seat of the score; empty if the factors determine it
	// Factor names one factor, or two for an interaction: prompt × model.
	Factor string
	// Levels names what is compared: terse − verbose, or for an interaction
	// (terse − verbose) with small − with large.
	Levels     string
	Difference statmath.Quantity
	Test       statmath.Test
	Adjusted   float64 // P, adjusted for all effects; NaN if unknown
	// Missing lists cells without episodes that the effect needs.
	Missing []string
}

// FactorialResult has all effects.
type FactorialResult struct {
	Factors []string
	Correct string
	Effects []Effect
	Notes   []string // what was left out, and why
}

// Analyze estimates the effects of factors on the named scores of runs, or on all scores if none is named.
func Analyze(runs []*results.Run, factors *results.Factors, scores []string, correct string) *FactorialResult {
	r := &FactorialResult{Factors: factors.Names, Correct: correct}
	for _, d := range collectFactorial(runs, factors, scores) {
		r.add(d)
	}
	ps := make([]float64, len(r.Effects))
	for i := range r.Effects {
		ps[i] = r.Effects[i].Test.P
	}
	adjusted := statmath.Adjust(correct, ps)
	for i := range r.Effects {
		r.Effects[i].Adjusted = adjusted[i]
	}
	return r
}

// add estimates the effects on one score: of each factor, then of each pair of factors.
func (r *FactorialResult) add(d *factorialDesign) {
	if d.cells() > maxCells {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s have %d combinations of levels; effects are estimated for at most %d", d.name(), strings.Join(r.Factors, ", "), d.cells(), maxCells))
		return
	}
	design, contrast := d.fold()
	n := 0
	for c := range d.contrasts() {
		if n++; n > maxEffects {
			break
		}
		e := Effect{Score: d.score, Of: d.of, Factor: c.factor, Levels: c.levels, Missing: d.missing(design, c.weights)}
		e.Difference, e.Test = contrast(c.weights)
		within := d.bounds.Difference()
		if c.interaction {
			within = within.Difference()
		}
		e.Difference = within.Quantity(e.Difference)
		r.Effects = append(r.Effects, e)
	}
	if all := d.effects(); all > maxEffects {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %d of %d effects are left out: name fewer factors, or factors with fewer levels", d.name(), all-maxEffects, all))
	}
}

// contrast is an effect as weights of cells.
type contrast struct {
	factor, levels string
	interaction    bool
	weights        []float64
}

// effects returns the number of contrasts.
func (d *factorialDesign) effects() (n int) {
	for f, levels := range d.levels {
		n += len(pairs(len(levels)))
		for _, others := range d.levels[f+1:] {
			n += len(pairs(len(levels))) * len(pairs(len(others)))
		}
	}
	return n
}

// contrasts yields the effects: of each pair of levels of a factor, and of each pair of levels of one factor with
// each pair of another. Cells that differ in other factors have the same weight.
func (d *factorialDesign) contrasts() iter.Seq[contrast] {
	return func(yield func(contrast) bool) {
		for f := range d.levels {
			for _, p := range pairs(len(d.levels[f])) {
				if !yield(contrast{factor: d.factors[f], levels: d.between(f, p), weights: d.weights(map[int][2]int{f: p})}) {
					return
				}
			}
		}
		for f := range d.levels {
			for g := f + 1; g < len(d.levels); g++ {
				for _, p := range pairs(len(d.levels[f])) {
					for _, q := range pairs(len(d.levels[g])) {
						if !yield(contrast{
							factor: d.factors[f] + " × " + d.factors[g], interaction: true,
							levels:  fmt.Sprintf("(%s) with %s − with %s", d.between(f, p), d.levels[g][q[0]], d.levels[g][q[1]]),
							weights: d.weights(map[int][2]int{f: p, g: q}),
						}) {
							return
						}
					}
				}
			}
		}
	}
}

func (d *factorialDesign) between(factor int, levels [2]int) string {
	return d.levels[factor][levels[0]] + " − " + d.levels[factor][levels[1]]
}

// pairs returns all pairs of 0 to n-1.
func pairs(n int) (out [][2]int) {
	for i := range n {
		for j := i + 1; j < n; j++ {
			out = append(out, [2]int{i, j})
		}
	}
	return out
}

// weights returns the weights of cells for the difference between two levels of each of the given factors, with equal
// weights for all levels of the others.
func (d *factorialDesign) weights(of map[int][2]int) []float64 {
	out := make([]float64, d.cells())
	others := 1
	for f := range d.levels {
		if _, varies := of[f]; !varies {
			others *= len(d.levels[f])
		}
	}
	for cell := range out {
		w := 1 / float64(others)
		rest := cell
		for f, levels := range slices.Backward(d.levels) {
			level := rest % len(levels)
			rest /= len(levels)
			switch p, varies := of[f]; {
			case !varies || level == p[0]:
			case level == p[1]:
				w = -w
			default:
				w = 0
			}
		}
		out[cell] = w
	}
	return out
}

// missing returns the names of empty cells that a contrast needs.
func (d *factorialDesign) missing(of *statmath.Design, weights []float64) (out []string) {
	for cell, w := range weights {
		if w == 0 || !of.Empty(cell) {
			continue
		}
		parts := make([]string, len(d.levels))
		rest := cell
		for f, levels := range slices.Backward(d.levels) {
			parts[f] = d.factors[f] + "=" + levels[rest%len(levels)]
			rest /= len(levels)
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}

// factorialDesign has the observations of one score.
type factorialDesign struct {
	score, of string
	bounds    world.Bounds
	factors   []string
	levels    [][]string // by factor
	seen      []seen
}

// seen is the scores of one episode in one cell.
type seen struct {
	levels  results.Levels
	episode int // numbered from 1 across runs
	unit    world.Unit
	sum, n  float64
}

func (d *factorialDesign) name() string {
	if d.of == "" {
		return d.score
	}
	return d.score + " of " + d.of
}

func (d *factorialDesign) cells() int {
	n := 1
	for _, l := range d.levels {
		if n *= len(l); n > maxCells {
			return n
		}
	}
	return n
}

// fold returns a design with deals as clusters, and a function that estimates contrasts of it. If some plays
// are copies of each other, plays are clusters too.
func (d *factorialDesign) fold() (*statmath.Design, func(weights []float64) (statmath.Quantity, statmath.Test)) {
	deals, plays, both := &statmath.Design{}, &statmath.Design{}, &statmath.Design{}
	numbers, copies := map[world.Unit]int{}, slices.ContainsFunc(d.seen, func(s seen) bool { return s.unit.Play != 0 })
	if copies {
		d.collapse()
	}
	for _, s := range d.seen {
		cell := 0
		for f, levels := range d.levels {
			cell = cell*len(levels) + slices.Index(levels, s.levels[f])
		}
		// An episode that shares nothing is its own cluster.
		u, mean := world.Unit{Deal: cmp.Or(s.unit.Deal, -s.episode), Play: cmp.Or(s.unit.Play, -s.episode)}, s.sum/s.n
		if numbers[u] == 0 {
			numbers[u] = len(numbers) + 1
		}
		deals.Add(cell, u.Deal, mean)
		plays.Add(cell, u.Play, mean)
		both.Add(cell, numbers[u], mean)
	}
	return deals, func(weights []float64) (statmath.Quantity, statmath.Test) {
		if !copies {
			return deals.Contrast(weights, results.Confidence)
		}
		return statmath.ContrastTwoWay(deals, plays, both, weights, results.Confidence)
	}
}

// collapse gives a deal that was played word for word like an earlier one the number of the earlier one.
func (d *factorialDesign) collapse() {
	plays, chance := map[int][]string{}, map[int]bool{}
	var order []int
	for _, s := range d.seen {
		deal := s.unit.Deal
		if plays[deal] == nil {
			order = append(order, deal)
		}
		plays[deal] = append(plays[deal], fmt.Sprint(s.levels, s.unit.Play))
		chance[deal] = chance[deal] || s.unit.Play == 0 || deal == 0
	}
	first, same := map[string]int{}, map[int]int{}
	for _, deal := range order {
		slices.Sort(plays[deal])
		key := fmt.Sprint(plays[deal])
		if earlier, ok := first[key]; ok && !chance[deal] {
			same[deal] = earlier
			continue
		}
		first[key] = deal
	}
	for i, s := range d.seen {
		d.seen[i].unit.Deal = cmp.Or(same[s.unit.Deal], s.unit.Deal)
	}
}

// collectFactorial gathers scores, in the order that worlds name them, with sorted levels.
func collectFactorial(runs []*results.Run, factors *results.Factors, scores []string) []*factorialDesign {
	apart := !factors.Any(results.OfAgent, results.OfSeat)
	at, order := map[[2]string]*factorialDesign{}, []*factorialDesign(nil)
	rank := map[string]int{}
	units := results.NewUnits()
	episode := 0
	for i, r := range runs {
		deals := r.Deals()
		r.Each(func(p world.Played) {
			episode++
			if p.Outcome.Failed != "" {
				return
			}
			unit := units.Of(r, deals, p)
			for _, s := range p.Outcome.Scores {
				levels, ok := factors.Of(i, p.Spec, s.Seat)
				if !ok || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || len(scores) > 0 && !slices.Contains(scores, s.Name) {
					continue
				}
				if _, ok := rank[s.Name]; !ok {
					rank[s.Name] = len(rank)
				}
				key := [2]string{s.Name}
				if apart {
					key[1] = s.Seat
				}
				d := at[key]
				if d == nil {
					d = &factorialDesign{score: key[0], of: key[1], bounds: r.Bounds[s.Name], factors: factors.Names}
					at[key], order = d, append(order, d)
				}
				d.bounds = d.bounds.Join(r.Bounds[s.Name])
				d.add(seen{levels: levels, episode: episode, unit: unit, sum: s.Value, n: 1})
			}
		})
	}
	for _, d := range order {
		d.sort()
	}
	slices.SortStableFunc(order, func(a, b *factorialDesign) int { return rank[a.score] - rank[b.score] })
	return order
}

// add adds a score. The mean of the scores of one episode in one cell is one observation.
func (d *factorialDesign) add(s seen) {
	for i := len(d.seen) - 1; i >= 0 && d.seen[i].episode == s.episode; i-- {
		if d.seen[i].levels == s.levels {
			d.seen[i].sum += s.sum
			d.seen[i].n++
			return
		}
	}
	d.seen = append(d.seen, s)
}

// sort lists the levels of each factor in order.
func (d *factorialDesign) sort() {
	d.levels = make([][]string, len(d.factors))
	for f := range d.factors {
		there := map[string]bool{}
		for _, s := range d.seen {
			there[s.levels[f]] = true
		}
		d.levels[f] = slices.SortedFunc(maps.Keys(there), compareLevels)
	}
}

// compareLevels orders levels of a factor: numbers first, by size, then other texts.
func compareLevels(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}
