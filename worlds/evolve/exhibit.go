// Part show shows evolutions: the exhibits of a report, the line that reports progress, and files.
//
// It reads the outcomes of episodes, which may come from any run file, and trusts none of them.

package evolve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/evolve/genome"
)

// Exhibitor makes the exhibits of a report. Charts over generations come from
// the trials, so that they show something while a run goes on; the rest comes from
// the verdicts.
type Exhibitor struct {
	all []*evolution
}

// evolution is one of the evolutions of a run.
type evolution struct {
	cell     string // of the plan file; may be empty
	number   int
	prompts  map[int]*tried
	last     int                  // generation
	spent    map[int]*spending    // by generation
	tests    map[string][]float64 // by entrant: the score of each problem
	entrants []string
	verdict  *Verdict
	course   []generation // set when all episodes are added

	validating bool // the finalists are being tried
	kept       int  // the first generation whose prompts status keeps
}

// tried is a prompt with its results on the training problems.
type tried struct {
	Prompt
	results []Result
	fitness float64
}

// name returns the name of the evolution for readers.
func (e *evolution) name() string {
	if e.number == 0 {
		return cmp.Or(e.cell, "evolution")
	}
	return strings.TrimSpace(fmt.Sprintf("%s #%d", e.cell, e.number+1))
}

// Add adds an episode. It skips episodes that it cannot read.
func (x *Exhibitor) Add(p world.Played) { x.take(p) }

// take adds an episode and returns its evolution, or nil if it is unknown.
func (x *Exhibitor) take(p world.Played) *evolution {
	if v, ok := readRecord[Verdict](p.Outcome); ok && v.Stopped != "" {
		e := x.find(p.Spec.Cell, verdictLabel, v.Evolution)
		e.verdict = &v
		return e
	}
	rec, ok := readRecord[recordTrial](p.Outcome)
	if !ok {
		return nil
	}
	switch rec.Purpose {
	case recordRacing:
		e := x.find(p.Spec.Cell, generationLabel(rec.Generation), rec.Evolution)
		e.raced(rec, p)
		return e
	case recordValidating:
		e := x.find(p.Spec.Cell, validationLabel, rec.Evolution)
		e.validating = true
		return e
	case recordTesting:
		e := x.find(p.Spec.Cell, testLabel(rec.Baseline), rec.Evolution)
		e.tested(rec)
		return e
	}
	return nil
}

// find returns the evolution of an episode.
func (x *Exhibitor) find(cell, label string, number int) *evolution {
	cell = strings.TrimSuffix(strings.TrimSuffix(cell, label), ": ")
	for _, e := range x.all {
		if e.cell == cell && e.number == number {
			return e
		}
	}
	e := &evolution{cell: cell, number: number, prompts: map[int]*tried{}, spent: map[int]*spending{}, tests: map[string][]float64{}}
	x.all = append(x.all, e)
	return e
}

// spending is what the trials of a generation used.
type spending struct {
	calls, tokens int
	cost          float64 // dollars
}

func (e *evolution) raced(rec recordTrial, p world.Played) {
	var how struct{ Fitness Fitness }
	if json.Unmarshal(p.Spec.Params, &how) != nil {
		return
	}
	t := e.prompts[rec.ID]
	if t == nil {
		t = &tried{Prompt: rec.Prompt}
		e.prompts[rec.ID] = t
	}
	for _, r := range rec.Results {
		r.Got, r.Said = "", "" // long, and not needed
		t.results = append(t.results, r)
	}
	t.fitness = how.Fitness.Parts(t.results, t.Text).Fitness
	e.last = max(e.last, min(rec.Generation, 10_000))
	s := e.spent[rec.Generation]
	if s == nil {
		s = &spending{}
		e.spent[rec.Generation] = s
	}
	s.calls += rec.Calls
	s.tokens = llm.AddTokens(s.tokens, llm.AddTokens(p.Took.Input, p.Took.Output))
	s.cost += p.Took.Cost
}

func (e *evolution) tested(rec recordTrial) {
	if _, known := e.tests[rec.Baseline]; !known {
		e.entrants = append(e.entrants, rec.Baseline)
		e.tests[rec.Baseline] = nil
	}
	for _, r := range rec.Results {
		if s, ok := r.Score(); ok {
			e.tests[rec.Baseline] = append(e.tests[rec.Baseline], s)
		}
	}
}

// generation has the fitness of the new prompts of a generation, and the best so far.
type generation struct{ best, mean, high, median, low, diversity float64 }

// generations summarizes the prompts by generation. The best so far is one of those with the most
// problems.
func (e *evolution) generations() []generation {
	problems := 0
	for _, t := range e.prompts {
		problems = max(problems, len(t.results))
	}
	out := make([]generation, e.last+1)
	best := 0.0
	for i := range out {
		var fitness []float64
		var texts []genome.Genome
		for _, t := range e.born(i) {
			fitness = append(fitness, t.fitness)
			texts = append(texts, genome.Parse(t.Text))
			if len(t.results) == problems {
				best = max(best, t.fitness)
			}
		}
		g := generation{best: best, mean: recordMean(fitness), diversity: genome.Diversity(texts)}
		if n := len(fitness); n > 0 {
			slices.Sort(fitness)
			g.low, g.high, g.median = fitness[0], fitness[n-1], (fitness[(n-1)/2]+fitness[n/2])/2
		}
		out[i] = g
	}
	return out
}

// born returns the new prompts of a generation, in order.
func (e *evolution) born(generation int) []*tried {
	var all []*tried
	for _, t := range e.prompts {
		if t.Generation == generation {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *tried) int { return a.ID - b.ID })
	return all
}

// Exhibits shows the results so far, and then how they were obtained.
func (x *Exhibitor) Exhibits() []world.Exhibit {
	if len(x.all) == 0 {
		return nil
	}
	out := x.verdicts()
	if t := x.tests(); len(t.Rows) > 0 {
		out = append(out, world.Exhibit{Name: "evolve-test", Title: "The final test", Caption: "The share of test problems that were solved. Evolution never saw them. Many evolutions with the same params are taken together.", Show: t})
	}
	out = append(out, x.courses()...)
	return append(out, x.origins()...)
}

// courses draws the changes from generation to generation.
func (x *Exhibitor) courses() []world.Exhibit {
	for _, e := range x.all {
		e.course = e.generations()
	}
	out := []world.Exhibit{
		{Name: "evolve-fitness", Title: "Fitness by generation", Caption: "The best so far is of prompts that have seen all training problems; the mean is of those that were new in a generation. Several evolutions with the same params are one line with a band.", Show: x.curves("fitness", series{"best so far", func(g generation) float64 { return g.best }}, series{"mean of the new", func(g generation) float64 { return g.mean }})},
		{Name: "evolve-spread", Title: "Spread by generation", Caption: "The fitness of prompts that were new in a generation. Those that fell behind in their race count with the problems they had seen until then, so the lowest and the highest may be luck.", Show: x.curves("fitness", series{"highest of the new", func(g generation) float64 { return g.high }}, series{"median", func(g generation) float64 { return g.median }}, series{"lowest of the new", func(g generation) float64 { return g.low }})},
		{Name: "evolve-diversity", Title: "Diversity by generation", Caption: "How different the new prompts of a generation are: the mean share of neighbouring words that two of them do not have in common.", Show: x.curves("diversity", series{"diversity", func(g generation) float64 { return g.diversity }})},
		{Name: "evolve-calls", Title: "Calls of solvers by generation", Show: x.bars("calls", func(s *spending) float64 { return float64(s.calls) })},
	}
	if x.paid() {
		out = append(out, world.Exhibit{Name: "evolve-cost", Title: "Cost by generation", Caption: "What the solvers cost, in dollars.", Show: x.bars("dollars", func(s *spending) float64 { return s.cost })})
	}
	return out
}

// paid reports whether a cost was recorded.
func (x *Exhibitor) paid() bool {
	for _, e := range x.all {
		for _, s := range e.spent {
			if s.cost > 0 {
				return true
			}
		}
	}
	return false
}

// series is a number to draw over generations.
type series struct {
	name string
	of   func(generation) float64
}

// curves draws each series for each cell, over the evolutions in it.
func (x *Exhibitor) curves(y string, lines ...series) world.Curves {
	c := world.Curves{X: "generation", Y: y}
	at := map[string]int{}
	for _, e := range x.all {
		for g, made := range e.course {
			for _, l := range lines {
				name := strings.TrimSpace(e.cell + " " + l.name)
				i, known := at[name]
				if !known {
					i = len(c.Curves)
					at[name] = i
					c.Curves = append(c.Curves, world.Curve{Name: name})
				}
				drawn := &c.Curves[i]
				if g == len(drawn.Points) {
					drawn.Points = append(drawn.Points, world.CurvePoint{X: float64(g), Sample: &world.Sample{}})
				}
				drawn.Points[g].Sample.Add(world.Unit{}, l.of(made))
			}
		}
	}
	return c
}

// bars draws what generations used.
func (x *Exhibitor) bars(y string, of func(*spending) float64) world.Bars {
	b := world.Bars{X: "generation", Y: y}
	last := 0
	for _, e := range x.all {
		last = max(last, e.last)
	}
	for g := range last + 1 {
		b.Labels = append(b.Labels, fmt.Sprint(g))
	}
	for _, e := range x.all[:min(len(x.all), maxShown)] {
		s := world.BarSeries{Name: e.name()}
		for g := range last + 1 {
			took := e.spent[g]
			if took == nil {
				took = &spending{}
			}
			s.Values = append(s.Values, of(took))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// tests returns the shares of the final test by evolution or, if there are many, by cell, where
// each evolution counts as one.
func (x *Exhibitor) tests() world.Estimates {
	t := world.Estimates{By: []string{"evolution", "prompt"}, What: "share of test problems solved", Share: true}
	at := map[[2]string]*world.Sample{}
	for _, e := range x.all {
		for _, name := range e.entrants {
			labels, many := [2]string{e.name(), name}, len(x.all) > maxShown
			if many {
				labels[0] = cmp.Or(e.cell, "all evolutions")
			}
			s := at[labels]
			if s == nil {
				s = &world.Sample{}
				at[labels] = s
				t.Rows = append(t.Rows, world.Estimated{Labels: labels[:], Sample: s})
			}
			if many {
				s.Add(world.Unit{}, e.tests[name]...)
				continue
			}
			for _, solved := range e.tests[name] {
				s.Add(world.Unit{}, solved)
			}
		}
	}
	if len(x.all) > maxShown {
		slices.SortStableFunc(t.Rows, func(a, b world.Estimated) int { return strings.Compare(a.Labels[0], b.Labels[0]) })
	}
	return t
}
