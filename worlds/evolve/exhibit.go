package evolve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// exhibitor makes evolve's part of a report. What is drawn over generations is folded from
// the trials, so that there is something to see while a run is going on; the rest is from
// the verdicts.
type exhibitor struct {
	all []*evolution
}

// evolution is one of those that a run plays beside each other.
type evolution struct {
	cell     string // of the plan file; may be empty
	number   int
	prompts  map[int]*tried
	last     int                      // generation
	calls    map[int]int              // of solvers, by generation
	tests    map[string]*world.Sample // by entrant
	entrants []string
	verdict  *Verdict
}

// tried is a prompt and what it came to on the training problems.
type tried struct {
	Prompt
	results []Result
	fitness float64
}

// name is what a reader calls the evolution.
func (e *evolution) name() string {
	if e.number == 0 {
		return cmp.Or(e.cell, "evolution")
	}
	return strings.TrimSpace(fmt.Sprintf("%s #%d", e.cell, e.number+1))
}

// Add takes in an episode. What cannot be read is passed over.
func (x *exhibitor) Add(p world.Played) {
	if v, ok := read[Verdict](p.Outcome); ok && v.Stopped != "" {
		x.find(p.Spec.Cell, verdictLabel, v.Evolution).verdict = &v
		return
	}
	rec, ok := read[TrialRecord](p.Outcome)
	if !ok {
		return
	}
	switch rec.Purpose {
	case Racing:
		x.find(p.Spec.Cell, generationLabel(rec.Generation), rec.Evolution).raced(rec, p.Spec.Params)
	case Testing:
		x.find(p.Spec.Cell, testLabel(rec.Baseline), rec.Evolution).tested(rec)
	}
}

// find returns the evolution that an episode is of.
func (x *exhibitor) find(cell, label string, number int) *evolution {
	cell = strings.TrimSuffix(strings.TrimSuffix(cell, label), ": ")
	for _, e := range x.all {
		if e.cell == cell && e.number == number {
			return e
		}
	}
	e := &evolution{cell: cell, number: number, prompts: map[int]*tried{}, calls: map[int]int{}, tests: map[string]*world.Sample{}}
	x.all = append(x.all, e)
	return e
}

func (e *evolution) raced(rec TrialRecord, params json.RawMessage) {
	var how struct{ Fitness Fitness }
	if json.Unmarshal(params, &how) != nil {
		return
	}
	t := e.prompts[rec.ID]
	if t == nil {
		t = &tried{Prompt: rec.Prompt}
		e.prompts[rec.ID] = t
	}
	t.results = append(t.results, rec.Results...)
	t.fitness = how.Fitness.parts(t.results, t.Text).Fitness
	e.last = max(e.last, min(rec.Generation, 10_000))
	e.calls[rec.Generation] += rec.Calls
}

func (e *evolution) tested(rec TrialRecord) {
	if e.tests[rec.Baseline] == nil {
		e.tests[rec.Baseline] = &world.Sample{}
		e.entrants = append(e.entrants, rec.Baseline)
	}
	for _, r := range rec.Results {
		if s, ok := r.score(); ok {
			e.tests[rec.Baseline].Add(s)
		}
	}
}

// generation is what the prompts that were new in one came to, and the best so far.
type generation struct{ best, mean, diversity float64 }

// generations folds the prompts. The best so far is of those that have seen as many
// problems as any.
func (e *evolution) generations() []generation {
	most := 0
	for _, t := range e.prompts {
		most = max(most, len(t.results))
	}
	out := make([]generation, e.last+1)
	best := 0.0
	for g := range out {
		var fitness []float64
		var texts []genome.Genome
		for _, t := range e.born(g) {
			fitness = append(fitness, t.fitness)
			texts = append(texts, genome.Parse(t.Text))
			if len(t.results) == most {
				best = max(best, t.fitness)
			}
		}
		out[g] = generation{best, mean(fitness), genome.Diversity(texts)}
	}
	return out
}

// born lists the prompts that were new in a generation, in order.
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

// Exhibits draws curves over generations, then what the verdicts say.
func (x *exhibitor) Exhibits() []world.Exhibit {
	if len(x.all) == 0 {
		return nil
	}
	out := []world.Exhibit{
		{Name: "evolve-fitness", Title: "Fitness by generation", Caption: "The best so far is of prompts that have seen all training problems; the mean is of those that were new in a generation. Several evolutions with the same params are one line with a band.", Show: x.curves("fitness", line{"best so far", func(g generation) float64 { return g.best }}, line{"mean of the new", func(g generation) float64 { return g.mean }})},
		{Name: "evolve-diversity", Title: "Diversity by generation", Caption: "How different the new prompts of a generation are: the mean share of neighbouring words that two of them do not have in common.", Show: x.curves("diversity", line{"diversity", func(g generation) float64 { return g.diversity }})},
		{Name: "evolve-calls", Title: "Calls of solvers by generation", Show: x.callBars()},
	}
	if t := x.tests(); len(t.Rows) > 0 {
		out = append(out, world.Exhibit{Name: "evolve-test", Title: "The final test", Caption: "The share of test problems that were solved. Evolution never saw them.", Show: t})
	}
	return append(out, x.verdicts()...)
}

// line is something to draw over generations.
type line struct {
	name string
	of   func(generation) float64
}

// curves draws each line for each cell, over the evolutions in it.
func (x *exhibitor) curves(y string, lines ...line) world.Curves {
	c := world.Curves{X: "generation", Y: y}
	at := map[string]int{}
	for _, e := range x.all {
		for g, made := range e.generations() {
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
				drawn.Points[g].Sample.Add(l.of(made))
			}
		}
	}
	return c
}

func (x *exhibitor) callBars() world.Bars {
	b := world.Bars{X: "generation", Y: "calls"}
	last := 0
	for _, e := range x.all {
		last = max(last, e.last)
	}
	for g := range last + 1 {
		b.Labels = append(b.Labels, fmt.Sprint(g))
	}
	for _, e := range x.all[:min(len(x.all), mostShown)] {
		s := world.BarSeries{Name: e.name()}
		for g := range last + 1 {
			s.Values = append(s.Values, float64(e.calls[g]))
		}
		b.Series = append(b.Series, s)
	}
	return b
}

func (x *exhibitor) tests() world.Estimates {
	t := world.Estimates{By: []string{"evolution", "prompt"}, What: "share of test problems solved", Share: true}
	for _, e := range x.all {
		for _, name := range e.entrants {
			t.Rows = append(t.Rows, world.Estimated{Labels: []string{e.name(), name}, Sample: e.tests[name]})
		}
	}
	return t
}
