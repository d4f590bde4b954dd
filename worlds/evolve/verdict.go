package evolve

import (
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// verdict summarizes the evolution.
func (p *plan) verdict() Verdict {
	v := Verdict{Evolution: p.cell.Deal, Stopped: p.stopped, Generations: p.history, Prompts: len(p.all), Calls: p.calls, Bred: p.bred, Operators: p.operators()}
	for _, g := range p.history {
		v.Saved += g.Saved
		v.Duplicates += g.Duplicates
	}
	if p.winner == nil {
		return v
	}
	v.Winner, v.Parts, v.Lineage = &p.winner.Prompt, p.winner.parts, p.lineage()
	for _, e := range p.entrants {
		v.Test = append(v.Test, tested(e))
	}
	p.compare(&v)
	return v
}

func tested(e entrant) Tested {
	t := Tested{Name: e.name, Prompt: e.in.ID, Text: e.in.Text}
	sample := world.Sample{Bounds: world.Share()}
	for _, r := range e.in.test {
		if x, ok := r.Score(); ok {
			sample.Add(world.Unit{}, x)
		} else {
			t.Failed++
		}
	}
	if q := sample.Estimate(confidence); q.Known() {
		t.Accuracy = Estimate{Value: q.Value, Low: q.Low, High: q.High, N: q.N}
	}
	return t
}

// compare compares the winner with the best baseline. Choosing the baseline after the test makes the comparison harder
// for the winner, never easier. A winner that is itself a baseline has no gain.
func (p *plan) compare(v *Verdict) {
	best := -1
	for i, t := range v.Test {
		if i > 0 && t.Accuracy.N > 0 && (best < 0 || t.Accuracy.Value > v.Test[best].Accuracy.Value) {
			best = i
		}
	}
	if strings.Contains(v.Test[0].Name, " = ") || best < 0 {
		v.Best = v.Test[0].Name
		return
	}
	v.Best = v.Test[best].Name
	var a, b []float64
	for i := range p.set.Test {
		x, okX := p.winner.test[i].Score()
		y, okY := p.entrants[best].in.test[i].Score()
		if okX && okY {
			a, b = append(a, x), append(b, y)
		}
	}
	gain, test := world.Paired(a, b, confidence, uint64(p.cell.Deal))
	if gain.Known() {
		v.Gain = &Estimate{Value: gain.Value, Low: max(-1, gain.Low), High: min(1, gain.High), N: gain.N}
	}
	if test.Known() {
		v.P, v.Method = &test.P, test.Method
	}
}

// lineage returns the winner and its ancestors.
func (p *plan) lineage() []Ancestor {
	wanted := map[int]bool{p.winner.ID: true}
	for id := p.winner.ID; id >= 0; id-- { // parents have lower numbers
		if wanted[id] {
			for _, parent := range p.all[id].Parents {
				wanted[parent] = true
			}
		}
	}
	var line []Ancestor
	for id, x := range p.all {
		if !wanted[id] {
			continue
		}
		a := Ancestor{Prompt: x.Prompt, Fitness: x.parts.Fitness, Accuracy: x.parts.Accuracy}
		if len(x.Parents) > 0 {
			a.Diff = genome.Diff(p.all[x.Parents[0]].spans, x.spans)
		}
		line = append(line, a)
	}
	return line
}

// operators counts the results of each operator, sorted by name. A child of several operators counts for each.
func (p *plan) operators() []Operator {
	var all []Operator
	for _, x := range p.all {
		if len(x.Parents) == 0 {
			continue
		}
		for name := range strings.SplitSeq(x.Operator, "+") {
			i := slices.IndexFunc(all, func(o Operator) bool { return o.Name == name })
			if i < 0 {
				i = len(all)
				all = append(all, Operator{Name: name})
			}
			all[i].Made++
			if !x.dropped {
				all[i].Finished++
				if p.better(x) {
					all[i].Better++
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Operator) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// better reports whether a child is fitter than every parent.
func (p *plan) better(x *individual) bool {
	for _, parent := range x.Parents {
		if p.all[parent].parts.Fitness >= x.parts.Fitness {
			return false
		}
	}
	return true
}
