package evolve

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/world"
)

// Forecast returns the parts of an evolution: the rounds of the first generation's race,
// those of all others, calls of the breeder, validation, the final test and the
// verdict. It assumes that all calls succeed.
func (definition) Forecast(params *Params, cell world.Spec, seed uint64) ([]world.Part, error) {
	return forecast(params, nil, cell, seed)
}

// ForecastNested is Forecast for an evolution of texts of another plan.
func (definition) ForecastNested(params *Params, nested world.Kind, cell world.Spec, seed uint64) ([]world.Part, error) {
	return forecast(params, &nested, cell, seed)
}

func forecast(params *Params, nested *world.Kind, cell world.Spec, seed uint64) ([]world.Part, error) {
	if params.Episode != nil {
		return []world.Part{{Name: "the episode", Like: []world.Spec{cell}, Low: 1, High: 1, Stages: 1}}, nil
	}
	p, err := newPlan(params, nested, cell, seed)
	if err != nil {
		return nil, err
	}
	p.begin()
	parts := p.raceParts()
	if p.breeds() && p.generations > 0 {
		calls := p.generations * p.maxChildren()
		if p.BreederCalls > 0 {
			calls = min(calls, p.BreederCalls)
		}
		parts = append(parts, world.Part{Name: breedingLabel, Like: p.exampleBreedings(), High: calls, Stages: p.generations})
	}
	return append(parts, p.finalParts()...), nil
}

// raceParts returns a part for every round of the race in the first generation, and for
// every round in the others. All new prompts are in the first round; some of the first
// generation stay to the end.
func (p *plan) raceParts() []world.Part {
	var parts, others []world.Part
	var takes []int // calls of an episode of each round
	first, later, label := len(p.runners), p.maxChildren(), laterGenerations(p.generations)
	for round := 0; ; round++ {
		from, to := p.roundRange(round)
		if from == to {
			break
		}
		low, lowLater := first, p.minGenerations()*later
		if round > 0 {
			low, lowLater = min(first, p.alwaysKept()*len(p.islands)), 0
		}
		t, each, calls := Trial{Purpose: purposeRace, Round: round}, p.episodesOf(to-from), (to-from)*p.perProblem()
		to, times := p.piece(from, to)
		parts = append(parts, world.Part{Name: generationLabel(0), Like: p.exampleTrials(t, from, to, generationLabel(0)), Times: times, Low: each * low, High: each * first, Stages: 1})
		others = append(others, world.Part{Name: label, Like: p.exampleTrials(t, from, to, label), Times: times, Low: each * lowLater, High: each * p.generations * later, Stages: p.generations})
		takes = append(takes, calls/each)
	}
	parts = append(parts, others...)
	if p.MaxCalls > 0 {
		fitCalls(parts, append(takes, takes...), p.MaxCalls-p.finalCalls())
	}
	return slices.DeleteFunc(parts, func(part world.Part) bool { return part.High == 0 })
}

// episodesOf returns how many episodes a trial on so many problems has.
func (p *plan) episodesOf(problems int) int {
	if p.nested == nil {
		return 1
	}
	return problems * p.perProblem()
}

func laterGenerations(n int) string {
	if n == 1 {
		return generationLabel(1)
	}
	return fmt.Sprintf("generations 1 to %d", n)
}

// fitCalls removes episodes from parts, the last first, until they fit into the number of calls.
func fitCalls(parts []world.Part, takes []int, calls int) {
	over := -calls
	for i, part := range parts {
		over += part.High * takes[i]
	}
	for i := len(parts) - 1; i >= 0 && over > 0; i-- {
		fewer := min(parts[i].High, (over+takes[i]-1)/takes[i])
		parts[i].High -= fewer
		parts[i].Low = min(parts[i].Low, parts[i].High)
		over -= fewer * takes[i]
	}
}

// alwaysKept returns how many prompts of an island are never dropped.
func (p *plan) alwaysKept() int {
	return max(2, int(math.Ceil(p.Race.Keep*float64(p.population)/float64(len(p.islands)))))
}

// maxChildren returns the maximum number of new prompts in a generation after the first.
func (p *plan) maxChildren() int {
	n := len(p.islands)
	return p.population - n*min(p.elite/n, p.alwaysKept())
}

// minGenerations returns the minimum number of generations after the first.
func (p *plan) minGenerations() int {
	if p.target > 0 || p.DiversityThreshold > 0 || p.MaxCalls > 0 {
		return 0
	}
	n := p.generations
	for _, patience := range []int{p.patience, p.PlateauGenerations} {
		if patience > 0 {
			n = min(n, patience)
		}
	}
	return n
}

// maxExamples is the maximum number of example episodes of a part.
const maxExamples = 32

// maxExampleCalls is about how many calls an example makes at most: examples are played.
const maxExampleCalls = 500

// piece returns the end of a piece of a trial that is small enough for an example, and how many times as much the trial takes; 0: it is whole.
func (p *plan) piece(from, to int) (end int, times float64) {
	n := max(1, maxExampleCalls/p.perProblem())
	if p.nested != nil || to-from <= n { // an episode of another plan has one problem
		return to, 0
	}
	return from + n, float64(to-from) / float64(n)
}

// exampleTrials returns trials of the first prompts as examples. Later prompts are unknown, and often longer.
func (p *plan) exampleTrials(t Trial, from, to int, label string) []world.Spec {
	var specs []world.Spec
	for _, x := range p.runners[:min(len(p.runners), maxExamples)] {
		specs = append(specs, p.exampleOf(x, t, from, to, label, x.ID))
	}
	return specs
}

// exampleOf returns one episode of a trial.
func (p *plan) exampleOf(x *individual, t Trial, from, to int, label string, deal int) world.Spec {
	specs := p.trialOf(x, t, from, to, label, deal)
	return specs.At(deal % specs.Len())
}

// exampleBreedings returns example calls of the breeder, for every operator that has a weight, with the maximum number of
// cases.
func (p *plan) exampleBreedings() []world.Spec {
	var specs []world.Spec
	add := func(d draft, k int) {
		p.describe(&d)
		if d.Operator == mutateReflect && p.nested != nil {
			for range p.FailedCases {
				d.Cases = append(d.Cases, Case{Value: "0", Response: strings.Repeat("| something\n", maxShownCase/40)})
			}
		} else if d.Operator == mutateReflect {
			for _, q := range p.set.Train[:min(len(p.set.Train), p.FailedCases)] {
				d.Cases = append(d.Cases, Case{Question: q.Question, Expected: q.Answer, Response: q.Question})
			}
		}
		specs = append(specs, p.spec(Episode{Breed: &d.Breed}, breedingLabel, k))
	}
	for k, a := range p.runners[:min(len(p.runners), maxExamples/4)] {
		if p.Crossover[crossByModel] > 0 {
			add(draft{parents: []*individual{a, p.runners[0]}, Breed: Breed{Operator: crossByModel}}, k)
		}
		for _, how := range modelMutations() {
			if p.Mutation[how] > 0 {
				add(p.mutationDraft(how, 0, a, p.runners), k)
			}
		}
	}
	return specs
}

// finalParts returns the parts after evolution.
func (p *plan) finalParts() []world.Part {
	var parts []world.Part
	if problems, _ := p.problems(purposeValidation); problems > 0 {
		n, each := min(p.Finalists, p.alwaysKept()*len(p.islands)), p.episodesOf(problems)
		to, times := p.piece(0, problems)
		parts = append(parts, world.Part{
			Name: validationLabel, Like: p.exampleTrials(Trial{Purpose: purposeValidation}, 0, to, validationLabel), Times: times,
			Low: each * n, High: each * p.Finalists, Stages: 1,
		})
	}
	p.winner = p.runners[len(p.runners)-1]
	p.listEntrants()
	n, _ := p.problems(purposeTest)
	each := n * p.episodesOf(1)
	test := world.Part{Name: "final test", Low: max(1, len(p.entrants)-1) * each, High: len(p.entrants) * each, Stages: 1}
	for i := range maxExamples {
		e, problem := p.entrants[i%len(p.entrants)], i%n
		t := Trial{Purpose: purposeTest, Baseline: e.name}
		test.Like = append(test.Like, p.exampleOf(e.in, t, problem, problem+1, testLabel(e.name), problem))
	}
	v := Verdict{Stopped: stopGenerations, Winner: &p.winner.Prompt}
	end := world.Part{Name: verdictLabel, Like: []world.Spec{p.spec(Episode{Verdict: &v}, verdictLabel, 0)}, Low: 1, High: 1}
	return append(parts, test, end)
}
