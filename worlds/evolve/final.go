package evolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// entrant is a prompt in the final test.
type entrant struct {
	name string
	in   *individual
}

// finalCalls returns the maximum number of calls of validation and the final test.
func (p *plan) finalCalls() int {
	entrants := 1 + len(p.Baselines.Texts) + min(p.Baselines.Seeds, len(p.seeds()))
	return (p.Finalists*p.Problems.Validation + entrants*p.Problems.Test) * p.perProblem()
}

// finalists returns the fittest of the prompts that were tried on the largest number of problems.
func (p *plan) finalists() []*individual {
	tried := 0
	for _, x := range p.all {
		if !x.dropped && x.parts.Problems > 0 {
			tried = max(tried, len(x.train))
		}
	}
	var all []*individual
	for _, x := range p.all {
		if !x.dropped && x.parts.Problems > 0 && len(x.train) == tried {
			all = append(all, x)
		}
	}
	return elitesOf(all, p.Finalists)
}

// validate tries the finalists on problems they have not seen.
func (p *plan) validate() []world.Spec {
	p.phase = p.choose
	if len(p.set.Validation) == 0 {
		return nil
	}
	var specs []world.Spec
	for _, x := range p.finalists() {
		specs = append(specs, p.trialOf(x, Trial{Purpose: purposeValidation, Problems: p.set.Validation}, validationLabel, x.ID))
	}
	return specs
}

// choose picks the winner: the finalist that solved the most validation problems, or without validation the fittest.
func (p *plan) choose() []world.Spec {
	all := p.finalists()
	if len(all) == 0 {
		p.phase = p.conclude // no prompt could be tried, so there is nothing to test
		return nil
	}
	if len(p.set.Validation) > 0 {
		slices.SortStableFunc(all, func(a, b *individual) int {
			return cmp.Compare(p.Fitness.Parts(b.valid, b.Text).Accuracy, p.Fitness.Parts(a.valid, a.Text).Accuracy)
		})
	}
	p.winner = all[0]
	p.listEntrants()
	p.phase = p.test
	return nil
}

// listEntrants lists the entrants of the final test: the winner, the fittest seeds and the plain prompts. A prompt that is
// several of these is listed once.
func (p *plan) listEntrants() {
	p.entrants = []entrant{{winnerName, p.winner}}
	var seeds []*individual
	for _, x := range p.all {
		if x.Operator == "seed" {
			seeds = append(seeds, x)
		}
	}
	for _, x := range elitesOf(seeds, p.Baselines.Seeds) {
		p.addEntrant(fmt.Sprintf("seed %d", x.ID+1), x)
	}
	for _, text := range p.Baselines.Texts {
		g := genome.Parse(text)
		text = g.String()
		x := p.byText[text]
		if x == nil {
			x = p.add(g, text, "baseline", 0)
		}
		p.addEntrant(baselineName(text), x)
	}
}

func (p *plan) addEntrant(name string, x *individual) {
	for i := range p.entrants {
		if p.entrants[i].in == x {
			p.entrants[i].name += " = " + name
			return
		}
	}
	p.entrants = append(p.entrants, entrant{name, x})
}

// baselineName returns the name of a plain prompt.
func baselineName(text string) string {
	if text == "" {
		return "no prompt"
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 40 {
		text = string(runes[:39]) + "…"
	}
	return text
}

// test tries every entrant on every test problem. Each pair is a separate episode, so that scores can be compared problem
// by problem.
func (p *plan) test() []world.Spec {
	var specs []world.Spec
	for i := range p.set.Test {
		for _, e := range p.entrants {
			t := Trial{Purpose: purposeTest, Baseline: e.name, Problems: p.set.Test[i : i+1]}
			specs = append(specs, p.trialOf(e.in, t, testLabel(e.name), i))
		}
	}
	p.phase = p.conclude
	return specs
}

// conclude plays the verdict.
func (p *plan) conclude() []world.Spec {
	p.phase = nil
	v := p.verdict()
	return []world.Spec{p.spec(Episode{Verdict: &v}, verdictLabel, p.cell.Deal)}
}

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
		v.Test = append(v.Test, testResult(e))
	}
	p.compare(&v)
	return v
}

func testResult(e entrant) Tested {
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
