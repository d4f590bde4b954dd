package evolve

import (
	"cmp"
	"slices"

	"parley/world"
)

// firstRound returns the number of problems of the first round.
func (p *plan) firstRound() int {
	if p.Race.Minibatch == 0 {
		return p.train
	}
	return min(p.Race.Minibatch, p.train)
}

// span returns the range of training problems of a round: first a minibatch, then each time as many as in all rounds
// before.
func (p *plan) span(round int) (from, to int) {
	for to = p.firstRound(); round > 0; round-- {
		from, to = to, min(2*to, p.train)
	}
	return from, to
}

// race plays a round of the race. It drops the prompts that are behind, and tries the others on the next problems.
func (p *plan) race() []world.Spec {
	from, to := p.span(p.round)
	if p.round > 0 {
		p.drop(from)
	}
	in := slices.DeleteFunc(slices.Clone(p.runners), func(x *individual) bool { return x.dropped })
	if from == to || len(in) == 0 || !p.affords(len(in)*(to-from)*p.perProblem()) {
		p.phase = p.settle
		return nil
	}
	specs := make([]world.Spec, 0, len(in))
	for _, x := range in {
		t := Trial{Purpose: recordRacing, Round: p.round, Problems: p.set.Train[from:to]}
		specs = append(specs, p.trialOf(x, t, generationLabel(p.generation), x.ID))
	}
	p.round++
	return specs
}

// affords reports whether that many more calls leave enough calls for the final test.
func (p *plan) affords(calls int) bool {
	return p.MaxCalls == 0 || p.calls+calls+p.finalCalls() <= p.MaxCalls
}

// drop removes prompts from the race that are behind the last prompt that is always kept. The difference, on the problems
// that both have seen, must be larger than chance explains.
func (p *plan) drop(seen int) {
	for i := range p.islands {
		field := p.field(i, seen)
		keep := p.kept()
		if len(field) <= keep {
			continue
		}
		slices.SortStableFunc(field, func(a, b contender) int { return cmp.Compare(b.fitness, a.fitness) })
		for _, c := range field[keep:] {
			if c.running && p.behind(c, field[keep-1]) {
				c.in.dropped = true
				p.now.Dropped++
				p.now.Saved += (p.train - seen) * p.perProblem()
			}
		}
	}
	for _, x := range p.runners {
		if x.parts.Problems == 0 && !x.dropped { // no answers: more calls would show nothing
			x.dropped = true
			p.now.Dropped++
		}
	}
}

// contender is a prompt in a race, with its fitness on the problems that all contenders have seen.
type contender struct {
	in      *individual
	fitness float64
	running bool
}

// field lists the contenders of an island: its new prompts, and its members from earlier generations.
func (p *plan) field(isle, seen int) []contender {
	var all []contender
	enter := func(x *individual, running bool) {
		if x.Island == isle && !x.dropped && len(x.train) >= seen && x.parts.Problems > 0 {
			all = append(all, contender{x, p.Fitness.Parts(x.train[:seen], x.Text).Fitness, running})
		}
	}
	for _, x := range p.islands[isle].members {
		enter(x, false)
	}
	for _, x := range p.runners {
		enter(x, true)
	}
	return all
}

// behind reports whether c is behind mark even at the upper end of the interval. The interval is that of the difference in
// accuracy, problem by problem. The other parts of fitness count without an interval.
func (p *plan) behind(c, mark contender) bool {
	var a, b []float64
	for i := range min(len(c.in.train), len(mark.in.train)) {
		x, okX := c.in.train[i].Score()
		y, okY := mark.in.train[i].Score()
		if okX && okY {
			a, b = append(a, x), append(b, y)
		}
	}
	d, _ := world.Paired(a, b, 2*p.Race.Confidence-1, 0) // only one end of the interval counts
	if !d.Known() {
		return false
	}
	weight := 1.0
	if f := p.Fitness; f.By == "weighted" {
		weight = f.Accuracy / (f.Accuracy + f.Consistency + f.Efficiency + f.Diversity)
	}
	return c.fitness-mark.fitness+weight*(d.High-d.Value) < 0
}
