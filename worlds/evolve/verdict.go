package evolve

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/evolve/genome"
)

// Verdict is what an evolution came to.
type Verdict struct {
	Evolution   int          `json:"evolution,omitempty"`
	Stopped     Stop         `json:"stopped"`
	Generations []Generation `json:"generations"`
	Prompts     int          `json:"prompts"` // ever bred
	Calls       int          `json:"calls"`   // of solvers, the final test included
	Bred        int          `json:"bred"`    // calls of the breeder
	Saved       int          `json:"saved"`   // calls that races made needless
	Duplicates  int          `json:"duplicates"`

	Winner *Prompt `json:"winner,omitempty"` // nil: nothing could be tried
	Parts  Parts   `json:"parts"`            // of the winner, on the training problems
	// Lineage is the winner and those it descends from, parents before children.
	Lineage   []Ancestor `json:"lineage,omitempty"`
	Operators []Operator `json:"operators,omitempty"`
	Test      []Tested   `json:"test,omitempty"`
	// Best is the name of the baseline that did best, and Gain by how much more the winner
	// solved, problem by problem.
	Best string    `json:"best_baseline,omitempty"`
	Gain *Estimate `json:"gain,omitempty"`
	// P is how often chance alone makes such a difference, and Method how that was found.
	P      *float64 `json:"p,omitempty"`
	Method string   `json:"method,omitempty"`
}

// Ancestor is one in the line of the winner.
type Ancestor struct {
	Prompt
	Fitness  float64 `json:"fitness"`
	Accuracy float64 `json:"accuracy"`
	// Diff is how it differs from its first parent, sentence by sentence.
	Diff string `json:"diff,omitempty"`
}

// Operator is how well a way to breed did.
type Operator struct {
	Name     string `json:"name"`
	Made     int    `json:"made"`
	Finished int    `json:"finished"` // that were not dropped in their race
	Better   int    `json:"better"`   // that were fitter than every parent
}

// Tested is what one prompt came to in the final test.
type Tested struct {
	Name     string   `json:"name"`
	Prompt   int      `json:"prompt"`
	Text     string   `json:"text"`
	Accuracy Estimate `json:"accuracy"`
	Failed   int      `json:"failed,omitempty"` // problems that could not be asked
}

// Estimate is a number with its interval of 95%.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	N     int     `json:"n"`
}

// String writes it as 0.54 [0.42, 0.64].
func (e Estimate) String() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", e.Value, e.Low, e.High) }

// confidence of the intervals of a verdict.
const confidence = 0.95

// verdict sums everything up.
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
		if x, ok := r.score(); ok {
			sample.Add(world.Unit{}, x)
		} else {
			t.Failed++
		}
	}
	if q := sample.Estimate(confidence); q.Known() {
		t.Accuracy = Estimate{q.Value, q.Low, q.High, q.N}
	}
	return t
}

// compare holds the winner against the baseline that did best. Choosing that after the
// test makes the comparison harder for the winner, never easier. A winner that is itself a
// baseline has gained nothing.
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
		x, okX := p.winner.test[i].score()
		y, okY := p.entrants[best].in.test[i].score()
		if okX && okY {
			a, b = append(a, x), append(b, y)
		}
	}
	gain, test := world.Paired(a, b, confidence, uint64(p.cell.Deal))
	if gain.Known() {
		v.Gain = &Estimate{gain.Value, max(-1, gain.Low), min(1, gain.High), gain.N}
	}
	if test.Known() {
		v.P, v.Method = &test.P, test.Method
	}
}

// lineage is the winner and its ancestors.
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

// operators counts what each way to breed came to, in order of their names. A child of
// several ways counts for each.
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

// better says whether a child is fitter than every parent.
func (p *plan) better(x *individual) bool {
	for _, parent := range x.Parents {
		if p.all[parent].parts.Fitness >= x.parts.Fitness {
			return false
		}
	}
	return true
}

// verdict is the world that ends an evolution. It asks nothing: what it says is in its spec.
type verdict struct{ Verdict }

// Play says what came of it all.
func (v verdict) Play(t *world.Table) world.Outcome {
	o := world.Outcome{Data: v.Verdict}
	if v.Winner == nil {
		o.Failed = "no prompt could be tried: " + string(v.Stopped)
		return o
	}
	t.Note("winner", "", v.Winner.Text)
	score := func(name string, x float64) {
		o.Scores = append(o.Scores, world.Score{Name: name, Value: x})
	}
	score("generations", float64(max(0, len(v.Generations)-1)))
	for _, x := range v.Test {
		switch {
		case x.Accuracy.N == 0:
		case strings.HasPrefix(x.Name, winning):
			score("winner_accuracy", x.Accuracy.Value)
		case x.Name == v.Best:
			score("baseline_accuracy", x.Accuracy.Value)
		}
	}
	if v.Gain != nil {
		score("gain", v.Gain.Value)
	}
	return o
}

// Measures declares what outcomes score: those of trials by solver, those of the verdict
// for the whole evolution.
func (definition) Measures(p *Params) []world.Measure {
	share, solvers := world.Bounds{High: 1}, solverSeats(p.Solvers)
	return []world.Measure{
		{Name: trainAccuracy, Seats: solvers, Bounds: share},
		{Name: validationAccuracy, Seats: solvers, Bounds: share},
		{Name: testAccuracy, Seats: solvers, Bounds: share},
		{Name: baselineAccuracy, Seats: solvers, Bounds: share},
		{Name: "generations", Bounds: world.AtLeast0()},
		{Name: "winner_accuracy", Bounds: share},
		{Name: "baseline_accuracy", Bounds: share},
		{Name: "gain", Bounds: world.Share().Difference()},
	}
}
