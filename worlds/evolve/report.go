package evolve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/evolve/genome"
)

// report makes the exhibits of a report. Charts over generations come from the trials, so that they show something while a
// run goes on; the rest comes from the verdicts. It reads outcomes of any run file, and trusts none of them.
type report struct {
	all []*evolution
}

// evolution is one of the evolutions of a run.
type evolution struct {
	cell     string // of the plan file; may be empty
	number   int
	prompts  map[int]*triedPrompt
	last     int                  // generation
	spent    map[int]*spending    // by generation
	tests    map[string][]float64 // by entrant: the score of each problem
	entrants []string
	verdict  *Verdict
	measure  *Measured           // of the nested plan; nil: the share of problems that are solved
	course   []generationFitness // set when all episodes are added

	validating bool // the finalists are being tried
	kept       int  // the first generation whose prompts status keeps
}

// triedPrompt is a prompt with its results on the training problems.
type triedPrompt struct {
	Prompt
	results []Result
	fitness float64
	value   float64 // the fitness as readers see it: with minimize, the measure and not its opposite
}

// name returns the name of the evolution for readers.
func (e *evolution) name() string {
	if e.number == 0 {
		return cmp.Or(e.cell, "evolution")
	}
	return strings.TrimSpace(fmt.Sprintf("%s #%d", e.cell, e.number+1))
}

// Add adds an episode. It skips episodes that it cannot read.
func (x *report) Add(p world.Played) { x.add(p) }

// add adds an episode and returns its evolution, or nil if it is unknown.
func (x *report) add(p world.Played) *evolution {
	if v, ok := readData[Verdict](p.Outcome); ok && v.Stopped != "" {
		e := x.find(p.Spec.Cell, verdictLabel, v.Evolution)
		e.verdict = &v
		return e
	}
	cell, measure := p.Spec.Cell, (*Measured)(nil)
	rec, ok := readData[trialRecord](p.Outcome)
	if r, value, known, nested := nestedTrial(p); nested {
		rec = trialRecord{Prompt: r.Prompt, Purpose: r.Purpose, Round: r.Round, Baseline: r.Baseline, Calls: 1, Results: []Result{{Asked: 1}}}
		measure = &Measured{Score: world.Measure{Name: r.Measure}, Lower: r.Lower}
		if ok, cell = true, r.Cell; known {
			rec.Results[0].Value = &value
		}
	}
	if !ok {
		return nil
	}
	switch rec.Purpose {
	case purposeRace:
		e := x.find(cell, generationLabel(rec.Generation), rec.Evolution)
		e.measure = measure
		e.raced(rec, p)
		return e
	case purposeValidation:
		e := x.find(cell, validationLabel, rec.Evolution)
		e.validating = true
		return e
	case purposeTest:
		e := x.find(cell, testLabel(rec.Baseline), rec.Evolution)
		e.measure = measure
		e.tested(rec)
		return e
	}
	return nil
}

// measured returns the measure of the evolutions, if they have one: that of a verdict, which has its bounds, or the name that a trial has.
func (x *report) measured() *Measured {
	for _, e := range x.ended() {
		if e.verdict.Measure != nil {
			return e.verdict.Measure
		}
	}
	for _, e := range x.all {
		if e.measure != nil {
			return e.measure
		}
	}
	return nil
}

// find returns the evolution of an episode.
func (x *report) find(cell, label string, number int) *evolution {
	cell = strings.TrimSuffix(strings.TrimSuffix(cell, label), ": ")
	for _, e := range x.all {
		if e.cell == cell && e.number == number {
			return e
		}
	}
	e := &evolution{cell: cell, number: number, prompts: map[int]*triedPrompt{}, spent: map[int]*spending{}, tests: map[string][]float64{}}
	x.all = append(x.all, e)
	return e
}

// spending is what the trials of a generation used.
type spending struct {
	calls, tokens int
	cost          float64 // dollars
}

func (e *evolution) raced(rec trialRecord, p world.Played) {
	var how struct{ Fitness Fitness }
	if len(p.Spec.Remark) == 0 && json.Unmarshal(p.Spec.Params, &how) != nil {
		return
	}
	t := e.prompts[rec.ID]
	if t == nil {
		t = &triedPrompt{Prompt: rec.Prompt}
		e.prompts[rec.ID] = t
	}
	for _, r := range rec.Results {
		r.Got, r.Said = "", "" // long, and not needed
		t.results = append(t.results, r)
	}
	t.fitness = how.Fitness.Parts(t.results, t.Text).Fitness
	t.value = e.measure.value(t.fitness)
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

func (e *evolution) tested(rec trialRecord) {
	if _, known := e.tests[rec.Baseline]; !known {
		e.entrants = append(e.entrants, rec.Baseline)
		e.tests[rec.Baseline] = nil
	}
	for _, r := range rec.Results {
		if s, ok := r.Score(); ok {
			e.tests[rec.Baseline] = append(e.tests[rec.Baseline], e.measure.value(s))
		}
	}
}

// generationFitness has the fitness of the new prompts of a generation, as readers see it, and the best so far. A number that is not known
// is NaN.
type generationFitness struct{ best, mean, high, median, low, diversity float64 }

// generations summarizes the prompts by generation. The best so far is one of those with the most
// problems.
func (e *evolution) generations() []generationFitness {
	problems := 0
	for _, t := range e.prompts {
		problems = max(problems, len(t.results))
	}
	out := make([]generationFitness, e.last+1)
	best := &triedPrompt{fitness: math.Inf(-1), value: math.NaN()}
	for i := range out {
		var values []float64
		var texts []genome.Genome
		for _, t := range e.newPrompts(i) {
			values = append(values, t.value)
			texts = append(texts, genome.Parse(t.Text))
			if len(t.results) == problems && t.fitness > best.fitness {
				best = t
			}
		}
		g := generationFitness{best: best.value, mean: math.NaN(), high: math.NaN(), median: math.NaN(), low: math.NaN(), diversity: genome.Diversity(texts)}
		if n := len(values); n > 0 {
			slices.Sort(values)
			g.mean, g.low, g.high, g.median = mean(values), values[0], values[n-1], (values[(n-1)/2]+values[n/2])/2
		}
		out[i] = g
	}
	return out
}

// newPrompts returns the new prompts of a generation, in order.
func (e *evolution) newPrompts(generation int) []*triedPrompt {
	var all []*triedPrompt
	for _, t := range e.prompts {
		if t.Generation == generation {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *triedPrompt) int { return a.ID - b.ID })
	return all
}

// Exhibits shows the results so far, and then how they were obtained.
func (x *report) Exhibits() []exhibit.Exhibit {
	if len(x.all) == 0 {
		return nil
	}
	page := &exhibit.Page{Prefix: "evolve-"}
	x.verdicts(page)
	page.Add("transfer", "On other models", "The winner and the best baseline on the test problems, with other models. A winner was bred for the model of the first row.", transferTable(x.ended()))
	x.courses(page)
	x.origins(page)
	return page.All
}

// courses draws the changes from generation to generation.
func (x *report) courses(page *exhibit.Page) {
	for _, e := range x.all {
		e.course = e.generations()
	}
	fitness := "fitness"
	if m := x.measured(); m != nil {
		fitness = m.name()
	}
	page.Add("fitness", "Fitness by generation", "The best so far is of prompts that have seen all training problems; the mean is of those that were new in a generation. Several evolutions with the same params are one line with a band.",
		x.curves(fitness, series{"best so far", func(g generationFitness) float64 { return g.best }}, series{"mean of the new", func(g generationFitness) float64 { return g.mean }}))
	page.Add("spread", "Spread by generation", "The fitness of prompts that were new in a generation. Those that fell behind in their race count with the problems they had seen until then, so the lowest and the highest may be luck.",
		x.curves(fitness, series{"highest of the new", func(g generationFitness) float64 { return g.high }}, series{"median", func(g generationFitness) float64 { return g.median }}, series{"lowest of the new", func(g generationFitness) float64 { return g.low }}))
	page.Add("diversity", "Diversity by generation", "How different the new prompts of a generation are: the mean share of neighbouring words that two of them do not have in common.",
		x.curves("diversity", series{"diversity", func(g generationFitness) float64 { return g.diversity }}))
	page.Add("calls", "Trials by generation", "Calls of solvers, or episodes of the plan that is played.", x.bars("trials", func(s *spending) float64 { return float64(s.calls) }))
	if x.paid() {
		page.Add("cost", "Cost by generation", "What the trials cost, in dollars.", x.bars("dollars", func(s *spending) float64 { return s.cost }))
	}
}

// paid reports whether a cost was recorded.
func (x *report) paid() bool {
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
	of   func(generationFitness) float64
}

// curves draws each series for each cell, over the evolutions in it.
func (x *report) curves(y string, lines ...series) exhibit.Curves {
	c := exhibit.Curves{X: "generation", Y: y}
	for _, e := range x.all {
		for g, made := range e.course {
			for _, l := range lines {
				if y := l.of(made); !math.IsNaN(y) {
					c.At(strings.TrimSpace(e.cell+" "+l.name), float64(g), world.Bounds{}).Add(world.Unit{}, y)
				}
			}
		}
	}
	return c
}

// bars draws what generations used.
func (x *report) bars(y string, of func(*spending) float64) exhibit.Bars {
	b := exhibit.Bars{X: "generation", Y: y}
	last := 0
	for _, e := range x.all {
		last = max(last, e.last)
	}
	for g := range last + 1 {
		b.Labels = append(b.Labels, fmt.Sprint(g))
	}
	for _, e := range x.all[:min(len(x.all), maxShown)] {
		s := exhibit.BarSeries{Name: e.name()}
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
func (x *report) tests() exhibit.Estimates {
	t := exhibit.Estimates{By: []string{"evolution", "prompt"}, What: "share of test problems solved", Share: true}
	if m := x.measured(); m != nil {
		t.What, t.Share = m.Score.Name, false
	}
	at := map[[2]string]*world.Sample{}
	for _, e := range x.all {
		for _, name := range e.entrants {
			labels, many := [2]string{e.name(), name}, len(x.all) > maxShown
			if many {
				labels[0] = cmp.Or(e.cell, "all evolutions")
			}
			s := at[labels]
			if s == nil {
				s = &world.Sample{Bounds: x.measured().bounds()}
				at[labels] = s
				t.Rows = append(t.Rows, exhibit.Estimated{Labels: labels[:], Sample: s})
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
		slices.SortStableFunc(t.Rows, func(a, b exhibit.Estimated) int { return strings.Compare(a.Labels[0], b.Labels[0]) })
	}
	return t
}

// maxShown is the maximum number of evolutions that are shown in detail.
const maxShown = 4

// ended returns the evolutions that have a verdict.
func (x *report) ended() []*evolution {
	return slices.DeleteFunc(slices.Clone(x.all), func(e *evolution) bool { return e.verdict == nil })
}

// verdicts shows what was gained, and the best prompts.
func (x *report) verdicts(page *exhibit.Page) {
	ended := x.ended()
	if len(ended) > maxShown {
		page.Add("gain", "What evolution gained", "How much better the winner did in the final test than the best baseline: the mean over evolutions.", gains(ended, x.measured()))
	} else {
		var said []string
		for i, e := range ended {
			_, of := x.apart(ended, i)
			said = append(said, strings.TrimPrefix(of+": ", ": ")+e.verdict.sentence())
		}
		page.Add("gain", "What evolution gained", "", exhibit.Text{Body: strings.Join(said, "\n\n"), Finding: true})
	}
	page.Add("test", "The final test", "On problems that evolution never saw. Many evolutions with the same params are taken together.", x.tests())
	page.Add("verdict", "Results", "Winner and baseline are how they did in the final test: the share of problems that they solved, or the measure that evolved. The gain is how much better the winner did than the best baseline, problem by problem, with its 95% interval; p is how often chance alone makes such a difference.", verdictTable(ended))
	for i, e := range ended[:min(len(ended), maxShown)] {
		if e.verdict.Winner != nil {
			suffix, of := x.apart(ended, i)
			page.Add("winner"+suffix, "The best prompt"+of, "", exhibit.Text{Body: e.verdict.Winner.Text, Pre: true})
			if b := e.verdict.baseline(); b != nil {
				page.Add("baseline"+suffix, "The best baseline"+of+": "+b.Name, "", exhibit.Text{Body: cmp.Or(b.Text, "(no prompt)"), Pre: true})
			}
		}
	}
}

// gains returns the mean gain of evolutions, by cell.
func gains(ended []*evolution, m *Measured) exhibit.Estimates {
	all, cells := exhibit.Crossed{}, []string{}
	for _, e := range ended {
		if g := e.verdict.Gain; g != nil {
			cell := cmp.Or(e.cell, "all evolutions")
			exhibit.AddOnce(&cells, cell)
			all.At(cell, "", m.bounds().Difference()).Add(world.Unit{}, g.Value)
		}
	}
	out := exhibit.Estimates{By: []string{"evolution"}, What: "gain in " + m.name()}
	for _, cell := range cells {
		out.Rows = append(out.Rows, exhibit.Estimated{Labels: []string{cell}, Sample: all.At(cell, "", world.Bounds{})})
	}
	return out
}

// baseline returns the best baseline; nil: there is none, or it won.
func (v *Verdict) baseline() *Tested {
	for i := range v.Test {
		if t := &v.Test[i]; i > 0 && t.Name == v.Best {
			return t
		}
	}
	return nil
}

// sentence says what was gained.
func (v *Verdict) sentence() string {
	if v.Winner == nil || len(v.Test) == 0 {
		return "No prompt could be tried, so there is no result."
	}
	won, than := v.Test[0], v.baseline()
	text := fmt.Sprintf("In the final test the best prompt solves %s of %d problems that evolution never saw", won.Accuracy, won.Accuracy.N)
	if v.Measure != nil {
		text = fmt.Sprintf("In the final test, on %d problems that evolution never saw, the best prompt has %s %s", won.Accuracy.N, v.Measure.name(), won.Accuracy)
	}
	switch {
	case won.Accuracy.N == 0:
		return "The final test has no result: no problem of it has an answer."
	case strings.Contains(won.Name, " = "):
		return text + ". It was there from the start, so nothing is gained."
	case than == nil || than.Accuracy.N == 0 || v.Gain == nil:
		return text + ". No baseline can be compared with it."
	}
	text += fmt.Sprintf(", and the best baseline (%s) %s. Problem by problem, the gain is %s", v.Best, than.Accuracy, v.Gain)
	if v.P != nil {
		text += ", " + pText(*v.P)
		if v.Method != "" {
			text += " (" + v.Method + ")"
		}
	}
	switch {
	case v.Gain.Low > 0:
		return text + ": the best prompt is better."
	case v.Gain.High < 0:
		return text + ": the best prompt is worse."
	}
	return text + ": that may be chance."
}

// origins shows the ancestors of the best prompts, and what they cost.
func (x *report) origins(page *exhibit.Page) {
	ended := x.ended()
	if len(ended) == 0 {
		return
	}
	page.Add("savings", "Trials that were not needed", "Calls of solvers, or episodes of the plan that is played. Races: trials of prompts that were dropped. Elites: they keep their fitness. Bred again: prompts that existed already and were not tried again. All: the trials of every prompt of every generation on every problem.", savingsTable(ended))
	page.Add("operators", "Operators", "Finished: not dropped in a race. Better: fitter than every parent. A prompt that was crossed and changed counts for both.", operatorTable(ended))
	for i, e := range ended[:min(len(ended), maxShown)] {
		if e.verdict.Winner == nil {
			continue
		}
		suffix, of := x.apart(ended, i)
		page.Add("lineage"+suffix, "Lineage"+of, "Its ancestors, oldest first. Lines with + are new and lines with - are gone, compared with the first parent.", exhibit.Text{Body: lineageText(e.verdict), Pre: true})
		page.Add("generations"+suffix, "Generations"+of, "Saved: trials that races saved. Duplicates: prompts that were bred again and not tried again.", e.generationTable())
	}
}

// apart returns what distinguishes the exhibits of several evolutions.
func (x *report) apart(ended []*evolution, i int) (suffix, of string) {
	if len(ended) == 1 {
		return "", ""
	}
	return fmt.Sprintf("-%d", i+1), " of " + ended[i].name()
}

func verdictTable(ended []*evolution) exhibit.Grid {
	g := exhibit.Grid{Columns: []string{"evolution", "winner", "gain", "p", "best baseline", "baseline", "stopped by", "generations", "prompts", "trials"}}
	for _, e := range ended {
		v := e.verdict
		row := []any{e.name(), nil, nil, "–", v.Best, nil, strings.ReplaceAll(string(v.Stopped), "_", " "), max(0, len(v.Generations)-1), v.Prompts, v.Calls}
		for _, t := range v.Test {
			switch {
			case t.Accuracy.N == 0:
			case strings.HasPrefix(t.Name, winnerName):
				row[1] = quantity(t.Accuracy)
			case t.Name == v.Best:
				row[5] = quantity(t.Accuracy)
			}
		}
		if v.Gain != nil {
			row[2] = quantity(*v.Gain)
		}
		if v.P != nil {
			row[3] = strings.TrimPrefix(strings.TrimPrefix(pText(*v.P), "p "), "= ")
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// transferTable shows how winners did on other models.
func transferTable(ended []*evolution) exhibit.Grid {
	g := exhibit.Grid{Columns: []string{"evolution", "model", "winner", "best baseline", "gain"}}
	for _, e := range ended {
		v := e.verdict
		if len(v.Transfer) == 0 || len(v.Test) == 0 {
			continue
		}
		own := Transferred{Model: "its own", Winner: v.Test[0].Accuracy, Gain: v.Gain}
		for _, t := range v.Test {
			if t.Name == v.Best {
				own.Baseline = t.Accuracy
			}
		}
		for _, t := range append([]Transferred{own}, v.Transfer...) {
			row := []any{e.name(), t.Model, nil, nil, nil}
			if t.Winner.N > 0 {
				row[2] = quantity(t.Winner)
			}
			if t.Baseline.N > 0 {
				row[3] = quantity(t.Baseline)
			}
			if t.Gain != nil {
				row[4] = quantity(*t.Gain)
			}
			g.Rows = append(g.Rows, row)
		}
	}
	return g
}

// quantity returns an estimate as a number with an interval.
func quantity(e Estimate) any {
	q := (&world.Sample{Bounds: world.Share()}).Estimate(confidence)
	q.Value, q.Low, q.High, q.N = e.Value, e.Low, e.High, e.N
	return q
}

// savingsTable compares the calls with those of trying everything.
func savingsTable(ended []*evolution) exhibit.Grid {
	g := exhibit.Grid{Columns: []string{"evolution", "trials in generations", "saved by races", "by elites", "bred again", "all", "made of all, %"}}
	for _, e := range ended {
		made, elites, whole := 0, 0, e.wholeTrial()
		for _, one := range e.verdict.Generations {
			made += one.Calls
			elites += max(0, one.Prompts-one.New) * whole
		}
		all := made + e.verdict.Saved + elites
		g.Rows = append(g.Rows, []any{e.name(), made, e.verdict.Saved, elites, e.verdict.Duplicates, all, 100 * made / max(1, all)})
	}
	return g
}

// wholeTrial returns the number of calls for trying a prompt on all training problems.
func (e *evolution) wholeTrial() int {
	calls := 0
	for _, t := range e.prompts {
		n := 0
		for _, r := range t.results {
			n += max(0, r.Asked)
		}
		calls = max(calls, n)
	}
	return calls
}

// operatorTable adds up the operators of evolutions.
func operatorTable(ended []*evolution) exhibit.Grid {
	var all []Operator
	for _, e := range ended {
		for _, o := range e.verdict.Operators {
			i := slices.IndexFunc(all, func(a Operator) bool { return a.Name == o.Name })
			if i < 0 {
				i = len(all)
				all = append(all, Operator{Name: o.Name})
			}
			all[i].Made += o.Made
			all[i].Finished += o.Finished
			all[i].Better += o.Better
		}
	}
	g := exhibit.Grid{Columns: []string{"operator", "made", "finished", "better", "share better"}}
	for _, o := range all {
		g.Rows = append(g.Rows, []any{o.Name, o.Made, o.Finished, o.Better, threeDecimals(float64(o.Better) / float64(max(1, o.Made)))})
	}
	return g
}

// generationTable lists generations with their tokens and cost.
func (e *evolution) generationTable() exhibit.Grid {
	m := e.verdict.Measure
	g := exhibit.Grid{Columns: []string{"generation", "best", "mean", "worst", m.name() + " of the best", "diversity", "prompts", "new", "dropped", "duplicates", "trials", "saved", "breedings", "crossover rate", "mutation rate", "tokens", "cost"}}
	for _, x := range e.verdict.Generations {
		s := e.spent[x.Number]
		if s == nil {
			s = &spending{}
		}
		g.Rows = append(g.Rows, []any{
			x.Number, threeDecimals(m.value(x.Best)), threeDecimals(m.value(x.Mean)), threeDecimals(m.value(x.Worst)), threeDecimals(m.value(x.Accuracy)), threeDecimals(x.Diversity), x.Prompts, x.New, x.Dropped, x.Duplicates, x.Calls, x.Saved, x.Bred,
			threeDecimals(x.CrossoverRate), threeDecimals(x.MutationRate), s.tokens, s.cost,
		})
	}
	return g
}

// threeDecimals keeps three decimals: counts over a hundred problems have no more.
func threeDecimals(x float64) float64 { return math.Round(1000*x) / 1000 }

// lineageText returns a paragraph for each ancestor.
func lineageText(v *Verdict) string {
	var b strings.Builder
	for i, a := range v.Lineage {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(ancestorTitle(&a, v.Measure) + "\n" + ancestorText(&a))
	}
	return b.String()
}

// ancestorTitle describes an ancestor in one line.
func ancestorTitle(a *Ancestor, m *Measured) string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt %d, generation %d, by %s", a.ID, a.Generation, a.Operator)
	for k, parent := range a.Parents {
		fmt.Fprintf(&b, "%s%d", map[bool]string{true: " from ", false: " and "}[k == 0], parent)
	}
	b.WriteString(": " + a.reached(m))
	return b.String()
}

// reached says how good an ancestor was on the training problems.
func (a *Ancestor) reached(m *Measured) string {
	return fmt.Sprintf("fitness %.3f, %s %.3f", a.Fitness, m.name(), m.value(a.Accuracy))
}

// ancestorText returns the difference from the first parent, or the whole prompt.
func ancestorText(a *Ancestor) string {
	if a.Diff != "" {
		return a.Diff
	}
	return "  " + strings.ReplaceAll(a.Text, "\n", "\n  ") + "\n"
}

// trunkOf returns the first parents of the winner, oldest first.
func trunkOf(line []Ancestor) []*Ancestor {
	var trunk []*Ancestor
	for at := len(line) - 1; at >= 0 && len(trunk) <= len(line); {
		trunk = append(trunk, &line[at])
		if len(line[at].Parents) == 0 {
			break
		}
		first := line[at].Parents[0]
		at = slices.IndexFunc(line[:at], func(x Ancestor) bool { return x.ID == first }) // parents come before children
	}
	slices.Reverse(trunk)
	return trunk
}

// verdictFiles returns the files of an evolution from its verdict: the best prompt as text, the plan with the best texts if they are of
// another plan, both with data, and the lineage. Other episodes have no files. The report has the tables.
func verdictFiles(plan json.RawMessage, p world.Played) map[string]string {
	v, ok := readData[Verdict](p.Outcome)
	if !ok || v.Stopped == "" || v.Winner == nil {
		return nil
	}
	all := map[string]string{"lineage.md": lineageMarkdown(&v)}
	if len(v.Texts) < 2 {
		all["best.txt"] = v.Winner.Text + "\n"
	}
	if best := winningPlan(plan, v.Texts); best != "" {
		all["best.yaml"] = best
	}
	if b, err := json.MarshalIndent(bestPrompt{v.Winner.Text, &v}, "", "  "); err == nil {
		all["best.json"] = string(b) + "\n"
	}
	return all
}

// winningPlan returns the nested plan with other texts, as a plan file: JSON is YAML. It is empty if there is no such plan.
func winningPlan(plan json.RawMessage, texts map[string]string) string {
	var outer struct {
		Params struct{ Nested *world.NestedPlan }
	}
	if json.Unmarshal(plan, &outer) != nil || outer.Params.Nested == nil {
		return ""
	}
	var inner map[string]any
	in := json.NewDecoder(bytes.NewReader(outer.Params.Nested.Plan))
	in.UseNumber() // a seed may have more digits than a float
	if in.Decode(&inner) != nil {
		return ""
	}
	inner["loaded"] = true
	delete(inner, "out")
	agents, _ := inner["agents"].(map[string]any)
	for name, agent := range agents {
		if agent, ok := agent.(map[string]any); ok {
			if text, changed := texts[systemPath(name)]; changed {
				agent["system"] = text
			}
		}
	}
	inner["params"] = eachText(inner["params"], "params", "", func(t planText) (string, bool) {
		for path, text := range texts {
			if names(path, t.path) {
				return text, true
			}
		}
		return "", false
	})
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(inner); err != nil {
		return "" // not reached: it was JSON
	}
	return fmt.Sprintf("# %q with the texts that won. loaded: its params have what was in the files that they name, and no file is read.\n%s", outer.Params.Nested.File, escaped(b.String()))
}

// escaped escapes the characters in JSON that may not stand in YAML.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// bestPrompt is the best prompt with its verdict.
type bestPrompt struct {
	Prompt string `json:"prompt"`
	*Verdict
}

// lineageMarkdown writes the lineage of the best prompt.
func lineageMarkdown(v *Verdict) string {
	var b strings.Builder
	b.WriteString("# The lineage of the best prompt\n\nIts ancestors, oldest first. Lines with + are new and lines with - are gone, compared with the first parent.\n")
	for _, a := range v.Lineage {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", exhibit.Markdown(strings.Join(strings.Fields(ancestorTitle(&a, v.Measure)), " ")), indented(ancestorText(&a)))
	}
	return b.String()
}

// indented returns a code block that nothing within it can end, with hidden characters made visible.
func indented(text string) string {
	text = exhibit.Visible(strings.ReplaceAll(text, "\r\n", "\n"))
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
