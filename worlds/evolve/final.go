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
		specs = append(specs, p.trialOf(x, Trial{Purpose: recordValidating, Problems: p.set.Validation}, validationLabel, x.ID))
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
	p.enter()
	p.phase = p.test
	return nil
}

// enter lists the entrants of the final test: the winner, the fittest seeds and the plain prompts. A prompt that is
// several of these is listed once.
func (p *plan) enter() {
	p.entrants = []entrant{{recordWinner, p.winner}}
	var seeds []*individual
	for _, x := range p.all {
		if x.Operator == "seed" {
			seeds = append(seeds, x)
		}
	}
	for _, x := range elitesOf(seeds, p.Baselines.Seeds) {
		p.enterOne(fmt.Sprintf("seed %d", x.ID+1), x)
	}
	for _, text := range p.Baselines.Texts {
		g := genome.Parse(text)
		text = g.String()
		x := p.byText[text]
		if x == nil {
			x = p.add(g, text, "baseline", 0)
		}
		p.enterOne(baselineName(text), x)
	}
}

func (p *plan) enterOne(name string, x *individual) {
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
			t := Trial{Purpose: recordTesting, Baseline: e.name, Problems: p.set.Test[i : i+1]}
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
