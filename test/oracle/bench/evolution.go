package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
)

// evolution compares ways to schedule an evolution, in simulated time: generations whose rounds wait for their slowest trial, as parley plays
// them; children that are bred and tried as soon as a place is free; and the same with a fixed lag, which needs no clock and so has the same
// result at any concurrency. It also compares the speedup of proposals made at once with the formula of GEPA. Nothing is asked, and
// the same seeds give the same table.
func evolution(to io.Writer, args []string) error {
	if len(args) > 0 {
		return errors.New("evolution takes no arguments")
	}
	fmt.Fprintf(to, "k proposals at once, accepted with a = 0.2; a step takes 1, a validation 4: T(1)/T(k)\n\n| k | formula | constant latencies | lognormal, sigma 0.8 |\n|---|---|---|---|\n")
	for _, k := range []int{1, 2, 4, 8, 16} {
		q := 1 - math.Pow(1-accepted, float64(k))
		formula := float64(k) * (stepTime + accepted*validationTime) / (stepTime + q*validationTime)
		fmt.Fprintf(to, "| %d | %.2f | %.2f | %.2f |\n", k, formula, proposals(1, 0)/proposals(k, 0), proposals(1, spread)/proposals(k, spread))
	}
	fmt.Fprintf(to, "\n%d calls of a simulated solver, 12 prompts, %d evolutions of each; a call takes 1 on average (lognormal, sigma %.1f), a breeding 3\n\n", evolutionCalls, evolutions, spread)
	fmt.Fprint(to, "| calls in flight | generations | free | fixed lag | solved: generations | free | fixed lag | no waiting at all |\n|---|---|---|---|---|---|---|---|\n")
	for _, workers := range []int{16, 64, 256} {
		var took, solved [3]float64
		for seed := range uint64(evolutions) {
			for i, play := range []func(*landscape, *clock) float64{generational, free, lagged} {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				l, c := newLandscape(seed, r), &clock{free: make([]float64, workers)}
				solved[i] += play(l, c) / evolutions
				took[i] += c.now() / evolutions
			}
		}
		fmt.Fprintf(to, "| %d | %.0f | %.0f | %.0f | %.3f | %.3f | %.3f | %.0f |\n", workers, took[0], took[1], took[2], solved[0], solved[1], solved[2], float64(evolutionCalls)/float64(workers))
	}
	return nil
}

const (
	accepted, stepTime, validationTime = 0.2, 1.0, 4.0

	spread         = 0.8 // sigma of latencies
	evolutions     = 200
	evolutionCalls = 1400
	size           = 12
	elites         = 2
	breedTime      = 3.0
	examples       = 40
)

// latency draws a time with a mean.
func latency(r *rand.Rand, mean, sigma float64) float64 {
	return mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
}

// proposals returns the mean time of a proposal, if k are made at once and a validation follows when one is accepted.
func proposals(k int, sigma float64) float64 {
	r := rand.New(rand.NewPCG(7, uint64(k)))
	const rounds = 200_000
	total := 0.0
	for range rounds {
		slowest, good := 0.0, false
		for range k {
			slowest = max(slowest, latency(r, stepTime, sigma))
			good = r.Float64() < accepted || good
		}
		if total += slowest; good {
			total += latency(r, validationTime, sigma)
		}
	}
	return total / (rounds * float64(k))
}

// landscape is a problem for search: habits that help or harm, as of a simulated solver.
type landscape struct {
	r       *rand.Rand
	weights [12]float64
	known   map[uint]bool
	calls   int
}

func newLandscape(seed uint64, r *rand.Rand) *landscape {
	l := &landscape{r: r, known: map[uint]bool{0: true}, weights: [12]float64{1.1, 0.9, 0.8, 0.7, 0.5, 0, -0.4, -0.6, -0.7, -0.8, -0.9, -1}}
	rand.New(rand.NewPCG(seed, 9)).Shuffle(len(l.weights), func(i, j int) { l.weights[i], l.weights[j] = l.weights[j], l.weights[i] })
	return l
}

// prompt is a candidate: the habits that it asks for, and what it solved.
type prompt struct {
	habits     uint
	tried, sum int
	ready      float64 // when its last round ended, or it was bred
	ended      bool
	sees       []*prompt // that had ended when it was bred
}

func (p *prompt) fitness() float64 { return float64(p.sum) / float64(max(1, p.tried)) }

// rate is the share of all problems that a prompt solves.
func (l *landscape) rate(p *prompt) float64 {
	score := -1.2
	for i, w := range l.weights {
		if p.habits&(1<<i) != 0 {
			score += w
		}
	}
	return 1 / (1 + math.Exp(-score))
}

// child breeds: one habit more or less than a parent has. It is new, if ten tries find one that is.
func (l *landscape) child(all []*prompt) *prompt {
	habits := uint(0)
	for range 10 {
		best := all[l.r.IntN(len(all))]
		for range 2 {
			if other := all[l.r.IntN(len(all))]; other.fitness() > best.fitness() {
				best = other
			}
		}
		if habits = best.habits ^ 1<<l.r.IntN(len(l.weights)); !l.known[habits] {
			break
		}
	}
	l.known[habits] = true
	return &prompt{habits: habits}
}

// clock gives calls to the worker that is free first.
type clock struct{ free []float64 }

func (c *clock) call(l *landscape, from float64) (end float64) {
	i := 0
	for k, at := range c.free {
		if at < c.free[i] {
			i = k
		}
	}
	c.free[i] = max(c.free[i], from) + latency(l.r, 1, spread)
	return c.free[i]
}

func (c *clock) now() float64 { return slices.Max(c.free) }

// try asks a prompt n more problems, from a moment on, and returns when the last is answered.
func (c *clock) try(l *landscape, p *prompt, n int, from float64) (end float64) {
	for range n {
		end = max(end, c.call(l, from))
		if p.tried++; l.r.Float64() < l.rate(p) {
			p.sum++
		}
		l.calls++
	}
	return end
}

// behind reports whether a prompt is behind the best part of a population by more than chance explains.
func behind(p *prompt, all []*prompt, keep int) bool {
	ranked := ranking(all)
	mark := ranked[min(len(ranked), keep)-1].fitness()
	return p.fitness()+math.Sqrt(max(0.02, p.fitness()*(1-p.fitness()))/float64(p.tried)) < mark
}

func ranking(all []*prompt) []*prompt {
	return slices.SortedStableFunc(slices.Values(all), func(a, b *prompt) int { return cmp.Compare(b.fitness(), a.fitness()) })
}

// rounds returns how many problems the rounds of a race add.
func rounds() []int { return []int{10, 10, 20} }

// next returns how many problems a prompt is asked next; 0: it has seen all.
func (p *prompt) next() int {
	seen := 0
	for _, n := range rounds() {
		if p.tried == seen {
			return n
		}
		seen += n
	}
	return 0
}

// generational plays as parley does: all children of a generation are bred, then race, and each round waits for all of its calls.
func generational(l *landscape, c *clock) float64 {
	members, now := []*prompt{{}}, 0.0
	now = c.try(l, members[0], examples, now)
	ended := slices.Clone(members)
	for l.calls < evolutionCalls {
		kept := ranking(members)[:min(elites, len(members))]
		var running []*prompt
		for range size - len(kept) {
			running = append(running, l.child(members))
		}
		slowest := 0.0
		for range running {
			slowest = max(slowest, latency(l.r, breedTime, spread))
		}
		now += slowest
		members = kept
		for _, n := range rounds() {
			end := now
			for _, p := range running {
				if l.calls < evolutionCalls {
					end = max(end, c.try(l, p, n, now))
				}
			}
			now = end
			field := append(slices.Clone(running), members...)
			running = slices.DeleteFunc(running, func(p *prompt) bool { return behind(p, field, 3) })
		}
		running = slices.DeleteFunc(running, func(p *prompt) bool { return p.tried < examples }) // the calls were used up
		members = append(members, running...)
		ended = append(ended, running...)
	}
	return winner(l, ended)
}

// free breeds a child whenever one has ended its race, from all that have.
func free(l *landscape, c *clock) float64 { return continuous(l, c, false) }

// lagged breeds child n when child n-size and all before it have ended, from exactly these: no clock decides what it sees.
func lagged(l *landscape, c *clock) float64 { return continuous(l, c, true) }

// continuous plays events in the order of their times: a prompt is tried on more problems, or ends, and others are bred.
func continuous(l *landscape, c *clock, ordered bool) float64 {
	seed := &prompt{ended: true}
	seed.ready = c.try(l, seed, examples, 0)
	all, live, now := []*prompt{seed}, []*prompt{}, seed.ready
	// The population: the elites of all that ended, and those of the last that did.
	finished := func(of []*prompt) []*prompt {
		of = slices.DeleteFunc(slices.Clone(of), func(p *prompt) bool { return !p.ended || p.tried < examples })
		population := ranking(of)[:min(len(of), elites)]
		for _, p := range slices.Backward(of) {
			if len(population) < size/2 && !slices.Contains(population, p) {
				population = append(population, p)
			}
		}
		return population
	}
	for l.calls < evolutionCalls {
		for len(live) < size-elites {
			sees := all
			if ordered {
				sees = all[:max(1, len(all)-size+elites+1)]
				if slices.ContainsFunc(sees, func(p *prompt) bool { return !p.ended }) {
					break
				}
			}
			p := l.child(finished(sees))
			p.sees = sees
			p.ready = now + latency(l.r, breedTime, spread)
			all, live = append(all, p), append(live, p)
		}
		at := slices.MinFunc(live, func(a, b *prompt) int { return cmp.Compare(a.ready, b.ready) })
		now = max(now, at.ready)
		if at.tried > 0 && (at.next() == 0 || behind(at, finished(at.sees), 1)) {
			at.ended = true
			live = slices.DeleteFunc(live, func(p *prompt) bool { return p == at })
			continue
		}
		at.ready = c.try(l, at, at.next(), now)
	}
	return winner(l, slices.DeleteFunc(all, func(p *prompt) bool { return p.tried < examples }))
}

// winner returns the true share of the best of the finalists, by 40 more problems each.
func winner(l *landscape, all []*prompt) float64 {
	best, highest := 0.0, -1.0
	for _, p := range ranking(all)[:min(5, len(all))] {
		solved := 0
		for range examples {
			if l.r.Float64() < l.rate(p) {
				solved++
			}
		}
		if float64(solved) > highest {
			best, highest = l.rate(p), float64(solved)
		}
	}
	return best
}
