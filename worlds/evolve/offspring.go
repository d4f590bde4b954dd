package evolve

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// draft is a child that the breeder will write.
type draft struct {
	Breed
	at      int // which of the texts
	isle    int
	parents []*individual
}

// maxTries is the maximum number of attempts to breed a child that is new.
const maxTries = 10

// breed creates the next generation. On each island the elites stay, and the rest are children. It returns the breedings
// of children that the breeder writes, and the first round of the race of the others: they need not wait for the breeder.
func (p *plan) breed() world.Specs {
	p.generation++
	p.now, p.round = Generation{}, 0
	p.runners, p.drafts = nil, nil
	for i := range p.islands {
		p.breedIsland(i)
	}
	specs := make([]world.Spec, 0, len(p.drafts))
	for _, d := range p.drafts {
		specs = append(specs, p.spec(Episode{Breed: &d.Breed}, breedingLabel, p.generation))
	}
	p.now.Bred = len(specs)
	p.phase = p.addBred
	stage := []world.Specs{world.List(specs...)}
	if n := p.firstRound(); len(specs) > 0 && p.affords((len(specs)+len(p.runners))*n*p.perProblem()) {
		p.breedings = len(specs)
		stage = append(stage, p.trials(p.runners, 0, n)...)
	}
	return world.Join(stage...)
}

func (p *plan) breedIsland(i int) {
	parents := p.islands[i].members
	if len(parents) == 0 { // no prompt there could be tried: use parents of all islands
		for _, other := range p.islands {
			parents = append(parents, other.members...)
		}
	}
	size := p.population / len(p.islands)
	if i < p.population%len(p.islands) {
		size++
	}
	elites := elitesOf(parents, p.elite/len(p.islands))
	p.islands[i].members = elites
	children := size - len(elites)
	if p.blind {
		for range children {
			p.addVariant(i, p.MaxSpans)
		}
		return
	}
	all := make([]genome.Candidate, len(parents))
	for k, x := range parents {
		all[k] = candidate(x)
	}
	o := genome.SelectionOptions{Size: p.tournament, Pressure: p.Pressure}
	picked := genome.Select(p.Selection, all, 2*children, o, p.rand)
	for k := 0; k+1 < len(picked); k += 2 {
		p.child(i, parents[picked[k]], parents[picked[k+1]], parents)
	}
}

// elitesOf returns the n fittest members.
func elitesOf(members []*individual, n int) []*individual {
	best := slices.Clone(members)
	slices.SortStableFunc(best, func(a, b *individual) int { return cmp.Compare(b.parts.Fitness, a.parts.Fitness) })
	return best[:min(n, len(best))]
}

func candidate(x *individual) genome.Candidate {
	c := genome.Candidate{Fitness: x.parts.Fitness}
	for _, r := range x.train {
		s, _ := r.Score()
		c.ByProblem = append(c.ByProblem, s)
	}
	return c
}

// child breeds one child of two parents, or drafts it. If the child is not new, it is bred again in another way.
func (p *plan) child(isle int, a, b *individual, others []*individual) {
	for range maxTries {
		texts, operator, parents := slices.Clone(a.texts), "", []*individual{a}
		if p.rand.Float64() < p.crossover {
			operator, parents = p.pick(p.Crossover), []*individual{a, b}
			if operator == crossByModel {
				p.addDraft(draft{isle: isle, parents: parents, Breed: Breed{Operator: crossByModel}})
				return
			}
			for i := range texts {
				texts[i], _ = genome.Cross(operator, a.texts[i], b.texts[i], p.rand)
			}
		}
		if p.rand.Float64() < p.mutation {
			how := p.pick(p.Mutation)
			if slices.Contains(modelMutations(), how) {
				p.addDraft(p.mutationDraft(how, isle, a, others))
				return
			}
			k := p.oneOf(texts)
			texts[k] = p.mutate(texts[k], how)
			operator = joinOperators(operator, how)
		}
		if p.addChild(texts, operator, isle, parents) {
			return
		}
		b = others[p.rand.IntN(len(others))]
	}
	if p.mutation > 0 { // all attempts were duplicates: change a until it is new
		p.variant(isle, a)
	}
}

func joinOperators(crossed, changed string) string {
	if crossed == "" {
		return changed
	}
	return crossed + "+" + changed
}

// variant changes a parent until the result is new.
func (p *plan) variant(isle int, a *individual) {
	texts := slices.Clone(a.texts)
	k := p.oneOf(texts)
	for range maxTries {
		how := p.spanMutation()
		if texts[k] = p.mutate(texts[k], how); p.addChild(slices.Clone(texts), how, isle, []*individual{a}) {
			return
		}
	}
}

// addChild adds a child, unless a text is empty, or it is not new, or the kind does not accept it.
func (p *plan) addChild(texts []genome.Genome, operator string, isle int, parents []*individual) bool {
	empty := slices.ContainsFunc(texts, func(g genome.Genome) bool { return g.String() == "" })
	if empty || operator == "" || p.byText[p.textOf(texts)] != nil || !p.fits(texts) {
		p.now.Duplicates++
		return false
	}
	p.runners = append(p.runners, p.add(texts, operator, isle, parents...))
	return true
}

// addDraft asks the breeder for a child, if breeder_calls allows another call.
func (p *plan) addDraft(d draft) {
	if p.BreederCalls > 0 && p.bred >= p.BreederCalls {
		p.variant(d.isle, d.parents[0])
		return
	}
	p.bred++
	p.describe(&d)
	p.drafts = append(p.drafts, &d)
}

// describe says what the breeder is to write: one of the texts of the parents, and what it is for.
func (p *plan) describe(d *draft) {
	d.MaxLength = p.MaxLength
	d.at = p.oneOf(d.parents[0].texts)
	for _, x := range d.parents {
		shown := x.Prompt
		shown.Text = x.texts[d.at].String()
		d.Parents = append(d.Parents, shown)
	}
	if p.nested != nil {
		goal := "as high as possible"
		if p.Minimize != "" {
			goal = "as low as possible"
		}
		d.Game = &Game{Doc: p.nested.kind.Doc, Path: p.Change[d.at], Goal: p.measure().Name + " " + goal, Seats: p.nested.cells[0].seats}
	}
}

// mutationDraft returns the draft of a mutation by the breeder, with what the breeder is shown.
func (p *plan) mutationDraft(how string, isle int, a *individual, others []*individual) draft {
	d := draft{isle: isle, parents: []*individual{a}, Breed: Breed{Operator: how}}
	switch how {
	case mutateReflect:
		d.Cases = p.failedCases(a)
	case mutateDifference:
		for range 2 {
			d.parents = append(d.parents, others[p.rand.IntN(len(others))])
		}
		d.parents = append(d.parents, elitesOf(others, 1)...)
	}
	return d
}

// failedCases draws some of the problems that a prompt did not solve.
func (p *plan) failedCases(a *individual) []Case {
	if p.nested != nil {
		return p.nestedCases(a)
	}
	var all []Case
	for i, r := range a.train {
		if r.Said != "" && i < len(p.set.Train) {
			all = append(all, Case{Question: p.set.Train[i].Question, Expected: p.set.Train[i].Answer, Response: r.Said})
		}
	}
	p.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), p.FailedCases)]
}

// addBred adds the prompts that the breeder wrote. If one is empty or not new, a sentence of the parent is changed instead.
func (p *plan) addBred() world.Specs {
	for i, d := range p.drafts {
		text := ""
		if i < len(p.last) {
			rec, _ := readData[breedingRecord](p.last[i].Outcome)
			text = rec.Text
		}
		texts := slices.Clone(d.parents[0].texts)
		texts[d.at] = genome.Parse(text)
		if !p.addChild(texts, d.Operator, d.isle, d.parents) {
			p.variant(d.isle, d.parents[0])
		}
	}
	p.drafts = nil
	p.openGeneration()
	p.phase = p.race
	return world.Specs{}
}

// mutate changes a prompt without a model.
func (p *plan) mutate(g genome.Genome, how string) genome.Genome {
	return genome.Mutate(how, g, p.pool, genome.Limits{Min: p.MinSpans, Max: p.MaxSpans, Insertions: p.MaxInsertions}, p.rand)
}

// pick draws an operator by weight.
func (p *plan) pick(weights map[string]float64) string { return pickWeighted(weights, p.rand) }

// spanMutation draws a mutation that needs no model.
func (p *plan) spanMutation() string {
	spans := map[string]float64{}
	sum := 0.0
	for _, how := range genome.Mutations() {
		spans[how] = p.Mutation[how]
		sum += spans[how]
	}
	if sum == 0 {
		spans = map[string]float64{"edit": 1, "insert": 1}
	}
	return pickWeighted(spans, p.rand)
}

func pickWeighted(weights map[string]float64, r *rand.Rand) string {
	names := slices.Sorted(maps.Keys(weights))
	sum := 0.0
	for _, n := range names {
		sum += weights[n]
	}
	x := r.Float64() * sum
	last := ""
	for _, n := range names {
		if weights[n] <= 0 {
			continue
		}
		if last = n; x < weights[n] {
			return n
		}
		x -= weights[n]
	}
	return last
}
