package evolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/stats"
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
	entrants := 1 + len(p.plainTexts()) + min(p.Baselines.Seeds, len(p.beginnings()))
	validation, _ := p.problems(purposeValidation)
	test, _ := p.problems(purposeTest)
	return (p.Finalists*validation + (entrants+2*len(p.Transfer))*test) * p.perProblem()
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
func (p *plan) validate() world.Specs {
	p.phase = p.choose
	n, _ := p.problems(purposeValidation)
	if n == 0 {
		return world.Specs{}
	}
	var specs []world.Specs
	for _, x := range p.finalists() {
		specs = append(specs, p.trialOf(x, Trial{Purpose: purposeValidation}, 0, n, validationLabel, x.ID))
	}
	return world.Join(specs...)
}

// choose picks the winner: the finalist that solved the most validation problems, or without validation the fittest.
func (p *plan) choose() world.Specs {
	all := p.finalists()
	if len(all) == 0 {
		p.phase = p.conclude // no prompt could be tried, so there is nothing to test
		return world.Specs{}
	}
	if n, _ := p.problems(purposeValidation); n > 0 {
		slices.SortStableFunc(all, func(a, b *individual) int {
			return cmp.Compare(p.Fitness.Parts(b.valid, b.Text).Accuracy, p.Fitness.Parts(a.valid, a.Text).Accuracy)
		})
	}
	p.winner = all[0]
	p.listEntrants()
	p.phase = p.test
	return world.Specs{}
}

// plainTexts lists the baselines that are texts, for problems. A nested plan has its own text as a baseline.
func (p *plan) plainTexts() []string {
	if p.nested != nil {
		return nil
	}
	return p.Baselines.Texts
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
		name := fmt.Sprintf("seed %d", x.ID+1)
		if p.nested != nil && x.ID == 0 {
			name = "unchanged"
		}
		p.addEntrant(name, x)
	}
	for _, text := range p.plainTexts() {
		texts := []genome.Genome{genome.Parse(text)}
		x := p.byText[p.textOf(texts)]
		if x == nil {
			x = p.add(texts, "baseline", 0)
		}
		p.addEntrant(baselineName(x.Text), x)
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
func (p *plan) test() world.Specs {
	var specs []world.Specs
	n, _ := p.problems(purposeTest)
	step := 1
	if p.nested != nil {
		step = n // each episode is of one problem anyway
	}
	for i := 0; i < n; i += step {
		for _, e := range p.entrants {
			specs = append(specs, p.trialOf(e.in, Trial{Purpose: purposeTest, Baseline: e.name}, i, i+step, testLabel(e.name), i))
		}
	}
	p.phase = p.transfer
	return world.Join(specs...)
}

// transfer is a trial of the winner or the best baseline with another model.
type transfer struct {
	model   string
	in      *individual
	results []Result
}

// transfer tries the winner and the best baseline with other models, on the test problems.
func (p *plan) transfer() world.Specs {
	p.phase = p.conclude
	n, _ := p.problems(purposeTest)
	var specs []world.Specs
	for _, model := range p.Transfer {
		for _, e := range p.pair() {
			p.transfers = append(p.transfers, transfer{model: model, in: e.in})
			name := testLabel(e.name)[len(testLabel("")):]
			specs = append(specs, p.trialOf(e.in, Trial{Purpose: purposeTransfer, Baseline: e.name, Model: model}, 0, n, "transfer to "+model+", "+name, 0))
		}
	}
	return world.Join(specs...)
}

// pair returns the winner and the best baseline; the winner alone if it is that.
func (p *plan) pair() []entrant {
	best := p.bestBaseline(p.measured())
	if best < 0 {
		return p.entrants[:1]
	}
	return []entrant{p.entrants[0], p.entrants[best]}
}

// transferred keeps the results of a trial with another model.
func (p *plan) transferred(a *askedTrial, results []Result) {
	for i := range p.transfers {
		if t := &p.transfers[i]; t.model == a.Model && t.in == a.in {
			t.results = results
		}
	}
}

// conclude plays the verdict.
func (p *plan) conclude() world.Specs {
	p.phase = nil
	v := p.verdict()
	return world.List(p.spec(Episode{Verdict: &v}, verdictLabel, p.cell.Deal))
}

// verdict summarizes the evolution.
func (p *plan) verdict() Verdict {
	v := Verdict{Measure: p.measured(), Evolution: p.cell.Deal, Stopped: p.stopped, Generations: p.history, Prompts: len(p.all), Calls: p.calls, Bred: p.bred, Operators: p.operators()}
	for _, g := range p.history {
		v.Saved += g.Saved
		v.Duplicates += g.Duplicates
	}
	if p.winner == nil {
		return v
	}
	v.Winner, v.Parts, v.Lineage = &p.winner.Prompt, p.winner.parts, p.lineage()
	for i, path := range p.Change {
		if v.Texts == nil {
			v.Texts = map[string]string{}
		}
		v.Texts[path] = p.winner.texts[i].String()
	}
	for _, e := range p.entrants {
		v.Test = append(v.Test, p.testResult(e))
	}
	p.compare(&v)
	return v
}

// measured returns the measure of the nested plan; nil: there is none.
func (p *plan) measured() *Measured {
	if p.nested == nil {
		return nil
	}
	m := p.measure()
	return &Measured{Score: world.Measure{Name: m.Name, Bounds: m.Bounds}, Lower: p.Minimize != ""}
}

func (p *plan) testResult(e entrant) Tested {
	t := Tested{Name: e.name, Prompt: e.in.ID, Text: e.in.Text, Accuracy: p.estimate(e.in.test)}
	for _, r := range e.in.test {
		if _, ok := r.Score(); !ok {
			t.Failed++
		}
	}
	return t
}

// estimate returns the mean of results with its interval.
func (p *plan) estimate(results []Result) Estimate {
	m := p.measured()
	sample := world.Sample{Bounds: m.bounds()}
	for _, r := range results {
		if x, ok := r.Score(); ok {
			sample.Add(world.Unit{}, m.value(x))
		}
	}
	q := sample.Estimate(confidence)
	if !q.Known() {
		return Estimate{}
	}
	return Estimate{Value: q.Value, Low: q.Low, High: q.High, N: q.N}
}

// compare compares the winner with the best baseline. Choosing the baseline after the test makes the comparison harder
// for the winner, never easier. A winner that is itself a baseline has no gain.
func (p *plan) compare(v *Verdict) {
	for i := 0; i+1 < len(p.transfers) && p.transfers[i].model == p.transfers[i+1].model; i += 2 {
		a, b := p.transfers[i], p.transfers[i+1]
		row := Transferred{Model: a.model, Winner: p.estimate(a.results), Baseline: p.estimate(b.results)}
		row.Gain, _ = p.gain(a.results, b.results)
		v.Transfer = append(v.Transfer, row)
	}
	best := p.bestBaseline(v.Measure)
	if best < 0 {
		v.Best = v.Test[0].Name
		for _, t := range p.transfers {
			v.Transfer = append(v.Transfer, Transferred{Model: t.model, Winner: p.estimate(t.results), Baseline: p.estimate(t.results)})
		}
		return
	}
	v.Best = p.entrants[best].name
	var test stats.Test
	if v.Gain, test = p.gain(p.winner.test, p.entrants[best].in.test); test.Known() {
		v.P, v.Method = &test.P, test.Method
	}
}

// bestBaseline returns the entrant that did best after the winner; -1 if the winner is a baseline itself, or there is none.
func (p *plan) bestBaseline(m *Measured) int {
	best, highest := -1, 0.0
	for i, e := range p.entrants[1:] {
		if t := p.estimate(e.in.test); t.N > 0 && (best < 0 || m.value(t.Value) > highest) {
			best, highest = i+1, m.value(t.Value)
		}
	}
	if strings.Contains(p.entrants[0].name, " = ") {
		return -1
	}
	return best
}

// gain compares results on the same problems, one by one. It is nil if there are too few.
func (p *plan) gain(of, than []Result) (*Estimate, stats.Test) {
	var a, b []float64
	for i := range min(len(of), len(than)) {
		x, okX := of[i].Score()
		y, okY := than[i].Score()
		if okX && okY {
			a, b = append(a, x), append(b, y)
		}
	}
	gain, test := world.Paired(a, b, confidence, uint64(p.cell.Deal))
	if !gain.Known() {
		return nil, test
	}
	i := p.measured().bounds().Difference().Hold(gain.Value, gain.Interval)
	return &Estimate{Value: gain.Value, Low: i.Low, High: i.High, N: gain.N}, test
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
			a.Diff = genome.Diff(p.all[x.Parents[0]].spans(), x.spans())
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
