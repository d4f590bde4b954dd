package evolve

import (
	"math"
	"slices"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// settle ends a generation. It summarizes it, adds the new prompts to the population, and continues or stops evolution.
func (p *plan) settle() []world.Spec {
	p.count()
	for _, x := range p.runners {
		if !x.dropped && x.parts.Problems > 0 {
			p.islands[x.Island].members = append(p.islands[x.Island].members, x)
		}
	}
	p.migrate()
	p.adapt()
	if p.stopped = p.stop(); p.stopped != "" {
		p.phase = p.validate
	} else {
		p.phase = p.breed
	}
	return nil
}

// count summarizes the generation.
func (p *plan) count() {
	var present []*individual
	for _, i := range p.islands {
		present = append(present, i.members...)
	}
	present = append(present, p.runners...)
	g := &p.now
	g.Prompts, g.Worst, g.BestID = len(present), math.Inf(1), -1
	var spans []genome.Genome
	tried := 0
	for _, x := range present {
		spans = append(spans, x.spans)
		if x.parts.Problems == 0 {
			continue
		}
		tried++
		f := x.parts.Fitness
		g.Mean += f
		g.Worst = min(g.Worst, f)
		if !x.dropped && (g.BestID < 0 || f > g.Best) {
			g.Best, g.Accuracy, g.BestID = f, x.parts.Accuracy, x.ID
		}
	}
	if g.Mean /= float64(max(1, tried)); tried == 0 {
		g.Worst = 0
	}
	g.Diversity = genome.Diversity(spans)
	p.history = append(p.history, *g)
}

// migrate adds the best of each island to the parents of the next one.
func (p *plan) migrate() {
	n := len(p.islands)
	if n == 1 || p.generation == 0 || p.generation%p.Islands.Interval != 0 {
		return
	}
	leaving := make([][]*individual, n)
	for i := range p.islands {
		leaving[i] = elitesOf(p.islands[i].members, p.Islands.Migrants)
	}
	for i, all := range leaving {
		next := &p.islands[(i+1)%n]
		for _, x := range all {
			if !slices.Contains(next.members, x) {
				next.members = append(next.members, x)
			}
		}
	}
}

// adapt changes the rates. Similar prompts get more mutation, and very different ones less. Without progress there is more
// mutation and less crossover.
func (p *plan) adapt() {
	if !p.Adaptive || p.generation < 5 || p.mutation == 0 {
		return
	}
	switch d := p.now.Diversity; {
	case d < 0.1:
		p.mutation = max(p.mutation, min(0.5, p.mutation*1.1))
	case d > 0.8:
		p.mutation = min(p.mutation, max(0.05, p.mutation*0.9))
	}
	if p.crossover == 0 {
		return
	}
	if p.gained(5) < 0.001 {
		p.crossover = min(p.crossover, max(0.5, p.crossover*0.95))
		p.mutation = max(p.mutation, min(0.4, p.mutation*1.05))
	} else {
		p.crossover = max(p.crossover, min(0.9, p.crossover*1.02))
	}
}

// gained returns the difference between the best fitness of the last n generations and that of all generations before.
func (p *plan) gained(n int) float64 {
	cut := len(p.history) - n
	if cut <= 0 {
		return math.Inf(1)
	}
	best := func(gs []Generation) float64 {
		b := math.Inf(-1)
		for _, g := range gs {
			b = max(b, g.Best)
		}
		return b
	}
	return best(p.history[cut:]) - best(p.history[:cut])
}

// stop returns the reason to stop, or "" to continue.
func (p *plan) stop() Stop {
	alive := false
	for _, i := range p.islands {
		alive = alive || len(i.members) > 0
	}
	children := p.population - p.elite
	switch {
	case !alive:
		return stopFailures
	case p.target > 0 && p.now.Best >= p.target:
		return stopTarget
	case p.generation >= p.generations:
		return stopGenerations
	case p.patience > 0 && p.gained(p.patience) <= p.Improvement:
		return stopStagnation
	case p.now.Diversity < p.DiversityThreshold:
		return stopDiversity
	case p.PlateauGenerations > 0 && math.Abs(p.gained(p.PlateauGenerations)) < p.PlateauThreshold:
		return stopPlateau
	case !p.affords(children * p.firstRound() * p.perProblem()):
		return stopCalls
	}
	return ""
}
