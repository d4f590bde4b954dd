package evolve

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
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
	course   []generationFitness // set when all episodes are added

	validating bool // the finalists are being tried
	kept       int  // the first generation whose prompts status keeps
}

// triedPrompt is a prompt with its results on the training problems.
type triedPrompt struct {
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
func (x *report) Add(p world.Played) { x.add(p) }

// add adds an episode and returns its evolution, or nil if it is unknown.
func (x *report) add(p world.Played) *evolution {
	if v, ok := readData[Verdict](p.Outcome); ok && v.Stopped != "" {
		e := x.find(p.Spec.Cell, verdictLabel, v.Evolution)
		e.verdict = &v
		return e
	}
	rec, ok := readData[trialRecord](p.Outcome)
	if !ok {
		return nil
	}
	switch rec.Purpose {
	case purposeRace:
		e := x.find(p.Spec.Cell, generationLabel(rec.Generation), rec.Evolution)
		e.raced(rec, p)
		return e
	case purposeValidation:
		e := x.find(p.Spec.Cell, validationLabel, rec.Evolution)
		e.validating = true
		return e
	case purposeTest:
		e := x.find(p.Spec.Cell, testLabel(rec.Baseline), rec.Evolution)
		e.tested(rec)
		return e
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
	if json.Unmarshal(p.Spec.Params, &how) != nil {
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
			e.tests[rec.Baseline] = append(e.tests[rec.Baseline], s)
		}
	}
}

// generationFitness has the fitness of the new prompts of a generation, and the best so far.
type generationFitness struct{ best, mean, high, median, low, diversity float64 }

// generations summarizes the prompts by generation. The best so far is one of those with the most
// problems.
func (e *evolution) generations() []generationFitness {
	problems := 0
	for _, t := range e.prompts {
		problems = max(problems, len(t.results))
	}
	out := make([]generationFitness, e.last+1)
	best := 0.0
	for i := range out {
		var fitness []float64
		var texts []genome.Genome
		for _, t := range e.newPrompts(i) {
			fitness = append(fitness, t.fitness)
			texts = append(texts, genome.Parse(t.Text))
			if len(t.results) == problems {
				best = max(best, t.fitness)
			}
		}
		g := generationFitness{best: best, mean: mean(fitness), diversity: genome.Diversity(texts)}
		if n := len(fitness); n > 0 {
			slices.Sort(fitness)
			g.low, g.high, g.median = fitness[0], fitness[n-1], (fitness[(n-1)/2]+fitness[n/2])/2
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
func (x *report) Exhibits() []world.Exhibit {
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
func (x *report) courses() []world.Exhibit {
	for _, e := range x.all {
		e.course = e.generations()
	}
	out := []world.Exhibit{
		{Name: "evolve-fitness", Title: "Fitness by generation", Caption: "The best so far is of prompts that have seen all training problems; the mean is of those that were new in a generation. Several evolutions with the same params are one line with a band.", Show: x.curves("fitness", series{"best so far", func(g generationFitness) float64 { return g.best }}, series{"mean of the new", func(g generationFitness) float64 { return g.mean }})},
		{Name: "evolve-spread", Title: "Spread by generation", Caption: "The fitness of prompts that were new in a generation. Those that fell behind in their race count with the problems they had seen until then, so the lowest and the highest may be luck.", Show: x.curves("fitness", series{"highest of the new", func(g generationFitness) float64 { return g.high }}, series{"median", func(g generationFitness) float64 { return g.median }}, series{"lowest of the new", func(g generationFitness) float64 { return g.low }})},
		{Name: "evolve-diversity", Title: "Diversity by generation", Caption: "How different the new prompts of a generation are: the mean share of neighbouring words that two of them do not have in common.", Show: x.curves("diversity", series{"diversity", func(g generationFitness) float64 { return g.diversity }})},
		{Name: "evolve-calls", Title: "Calls of solvers by generation", Show: x.bars("calls", func(s *spending) float64 { return float64(s.calls) })},
	}
	if x.paid() {
		out = append(out, world.Exhibit{Name: "evolve-cost", Title: "Cost by generation", Caption: "What the solvers cost, in dollars.", Show: x.bars("dollars", func(s *spending) float64 { return s.cost })})
	}
	return out
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
func (x *report) curves(y string, lines ...series) world.Curves {
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
func (x *report) bars(y string, of func(*spending) float64) world.Bars {
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
func (x *report) tests() world.Estimates {
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

// maxShown is the maximum number of evolutions that are shown in detail.
const maxShown = 4

// ended returns the evolutions that have a verdict.
func (x *report) ended() []*evolution {
	return slices.DeleteFunc(slices.Clone(x.all), func(e *evolution) bool { return e.verdict == nil })
}

// verdicts shows the verdicts and the best prompts.
func (x *report) verdicts() []world.Exhibit {
	ended := x.ended()
	if len(ended) == 0 {
		return nil
	}
	out := []world.Exhibit{{
		Name: "evolve-verdict", Title: "Results", Show: verdictTable(ended),
		Caption: "Winner and baseline are the shares of test problems that they solved; the gain is how many more the winner solved than the best baseline, problem by problem, with its 95% interval; p is how often chance alone makes such a difference.",
	}}
	for i, e := range ended {
		if e.verdict.Winner == nil || i >= maxShown {
			continue
		}
		suffix, of := x.apart(ended, i)
		out = append(out, world.Exhibit{Name: "evolve-winner" + suffix, Title: "The best prompt" + of, Show: world.Text{Body: e.verdict.Winner.Text, Pre: true}})
	}
	return out
}

// origins shows the ancestors of the best prompts, and what they cost.
func (x *report) origins() []world.Exhibit {
	ended := x.ended()
	if len(ended) == 0 {
		return nil
	}
	out := []world.Exhibit{
		{Name: "evolve-savings", Title: "Calls that were not needed", Caption: "Races: calls for prompts that were dropped. Elites: they keep their fitness. Bred again: prompts that existed already and were not tried again. All: the calls for trying every prompt of every generation on every problem.", Show: savingsTable(ended)},
		{Name: "evolve-operators", Title: "Operators", Caption: "Finished: not dropped in a race. Better: fitter than every parent. A prompt that was crossed and changed counts for both.", Show: operatorTable(ended)},
	}
	for i, e := range ended {
		if e.verdict.Winner == nil || i >= maxShown {
			continue
		}
		suffix, of := x.apart(ended, i)
		out = append(out,
			world.Exhibit{Name: "evolve-tree" + suffix, Title: "Ancestors" + of, Caption: "The best prompt is at the bottom, its first parents are above it, and their other parents are beside them. The numbers are those of prompts, with their fitness.", Show: tree(e.verdict.Lineage)},
			world.Exhibit{Name: "evolve-lineage" + suffix, Title: "Lineage" + of, Caption: "Its ancestors, oldest first. Lines with + are new and lines with - are gone, compared with the first parent.", Show: world.Text{Body: lineageText(e.verdict.Lineage), Pre: true}},
			world.Exhibit{Name: "evolve-generations" + suffix, Title: "Generations" + of, Caption: "Saved: calls that races saved. Duplicates: prompts that were bred again and not tried again.", Show: e.generationTable()},
		)
	}
	return out
}

// apart returns what distinguishes the exhibits of several evolutions.
func (x *report) apart(ended []*evolution, i int) (suffix, of string) {
	if len(ended) == 1 {
		return "", ""
	}
	return fmt.Sprintf("-%d", i+1), " of " + ended[i].name()
}

func verdictTable(ended []*evolution) world.Grid {
	g := world.Grid{Columns: []string{"evolution", "winner", "gain", "p", "best baseline", "baseline", "stopped by", "generations", "prompts", "calls"}}
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

// quantity returns an estimate as a number with an interval.
func quantity(e Estimate) any {
	q := (&world.Sample{Bounds: world.Share()}).Estimate(confidence)
	q.Value, q.Low, q.High, q.N = e.Value, e.Low, e.High, e.N
	return q
}

// savingsTable compares the calls with those of trying everything.
func savingsTable(ended []*evolution) world.Grid {
	g := world.Grid{Columns: []string{"evolution", "calls in generations", "saved by races", "by elites", "bred again", "all", "made of all, %"}}
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
func operatorTable(ended []*evolution) world.Grid {
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
	return operatorGrid(all)
}

func operatorGrid(all []Operator) world.Grid {
	g := world.Grid{Columns: []string{"operator", "made", "finished", "better", "share better"}}
	for _, o := range all {
		g.Rows = append(g.Rows, []any{o.Name, o.Made, o.Finished, o.Better, threeDecimals(float64(o.Better) / float64(max(1, o.Made)))})
	}
	return g
}

// generationTable lists generations.
func generationTable(all []Generation) world.Grid {
	g := world.Grid{Columns: []string{"generation", "best", "mean", "worst", "accuracy of the best", "diversity", "prompts", "new", "dropped", "duplicates", "calls", "saved", "breedings", "crossover rate", "mutation rate"}}
	for _, x := range all {
		g.Rows = append(g.Rows, []any{
			x.Number, threeDecimals(x.Best), threeDecimals(x.Mean), threeDecimals(x.Worst), threeDecimals(x.Accuracy), threeDecimals(x.Diversity), x.Prompts, x.New, x.Dropped, x.Duplicates, x.Calls, x.Saved, x.Bred, threeDecimals(x.CrossoverRate), threeDecimals(x.MutationRate),
		})
	}
	return g
}

// generationTable lists generations with their tokens and cost.
func (e *evolution) generationTable() world.Grid {
	g := generationTable(e.verdict.Generations)
	g.Columns = append(g.Columns, "tokens", "cost")
	for i, x := range e.verdict.Generations {
		tokens, cost := 0, 0.0
		if s := e.spent[x.Number]; s != nil {
			tokens, cost = s.tokens, s.cost
		}
		g.Rows[i] = append(g.Rows[i], tokens, cost)
	}
	return g
}

// threeDecimals keeps three decimals: counts over a hundred problems have no more.
func threeDecimals(x float64) float64 { return math.Round(1000*x) / 1000 }

// lineageText returns a paragraph for each ancestor.
func lineageText(line []Ancestor) string {
	var b strings.Builder
	for i, a := range line {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(ancestorTitle(&a) + "\n" + ancestorText(&a))
	}
	return b.String()
}

// ancestorTitle describes an ancestor in one line.
func ancestorTitle(a *Ancestor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt %d, generation %d, by %s", a.ID, a.Generation, a.Operator)
	for k, parent := range a.Parents {
		fmt.Fprintf(&b, "%s%d", map[bool]string{true: " from ", false: " and "}[k == 0], parent)
	}
	fmt.Fprintf(&b, ": fitness %.3f, accuracy %.3f", a.Fitness, a.Accuracy)
	return b.String()
}

// ancestorText returns the difference from the first parent, or the whole prompt.
func ancestorText(a *Ancestor) string {
	if a.Diff != "" {
		return a.Diff
	}
	return "  " + strings.ReplaceAll(a.Text, "\n", "\n  ") + "\n"
}

// The sizes of the tree of a winner, in pixels. It is narrow enough for a phone.
const (
	treeWidth, treeRow             = 400, 46
	trunkAt, branchAt              = 16, 236
	maxTreeRows, treeDot, treeText = 40, 6, 13
)

// tree draws the ancestors of a winner: its first parents from top to bottom, and
// their other parents beside them.
func tree(line []Ancestor) world.Figure {
	trunk := trunkOf(line)
	if len(trunk) == 0 {
		return world.Figure{}
	}
	cut := max(0, len(trunk)-maxTreeRows)
	trunk = trunk[cut:]
	var b strings.Builder
	height := treeRow*len(trunk) + 8
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" font-size="%d" font-family="sans-serif" fill="currentColor">`, treeWidth, height, treeWidth, height, treeText)
	for i, a := range trunk {
		y := treeRow*i + treeRow/2
		if i > 0 {
			drawEdge(&b, trunkAt, y-treeRow, trunkAt, y)
			for _, id := range a.Parents[min(1, len(a.Parents)):] {
				k := slices.IndexFunc(line, func(x Ancestor) bool { return x.ID == id })
				if k < 0 || slices.ContainsFunc(trunk, func(x *Ancestor) bool { return x.ID == id }) {
					continue // in the trunk itself: the label says so
				}
				drawEdge(&b, branchAt, y-treeRow, trunkAt, y)
				drawNode(&b, branchAt, y-treeRow, &line[k], false)
			}
		}
		drawNode(&b, trunkAt, y, a, i == len(trunk)-1)
	}
	b.WriteString("</svg>")
	return world.Figure{SVG: b.String(), Alt: treeWords(trunk, cut)}
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

func drawEdge(b *strings.Builder, fromX, fromY, toX, toY int) {
	middle := (fromY + toY) / 2
	fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="currentColor" stroke-opacity="0.35" stroke-width="1.5"/>`, fromX, fromY, fromX, middle, toX, middle, toX, toY)
}

// drawNode draws a prompt: its number, its fitness, and how it was bred.
func drawNode(b *strings.Builder, x, y int, a *Ancestor, winner bool) {
	weight, fill := "normal", "0.5"
	if winner {
		weight, fill = "bold", "1"
	}
	fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="%d" fill-opacity="%s"/>`, x, y, treeDot, fill)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="%s">%d: %.3f, generation %d</text>`, x+2*treeDot, y, weight, a.ID, a.Fitness, a.Generation)
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="%d" fill-opacity="0.7">`, x+2*treeDot, y+treeText+1, treeText-2)
	_ = xml.EscapeText(b, []byte(a.Operator)) // a strings.Builder takes everything
	b.WriteString("</text>")
}

func treeWords(trunk []*Ancestor, cut int) string {
	var words []string
	for _, a := range trunk {
		words = append(words, fmt.Sprintf("prompt %d of generation %d by %s, fitness %.3f", a.ID, a.Generation, a.Operator, a.Fitness))
	}
	if cut > 0 {
		words = slices.Insert(words, 0, fmt.Sprintf("%d more", cut))
	}
	return "From top to bottom: " + strings.Join(words, "; ") + "."
}

// verdictFiles returns the files of an evolution from its verdict: the best prompt as text, the same with its data, its
// lineage, and tables. Other episodes have no files.
func verdictFiles(p world.Played) map[string]string {
	v, ok := readData[Verdict](p.Outcome)
	if !ok || v.Stopped == "" {
		return nil
	}
	all := map[string]string{
		"generations.csv": csvOf(generationTable(v.Generations)),
		"operators.csv":   csvOf(operatorGrid(v.Operators)),
	}
	if v.Winner == nil {
		return all
	}
	all["best.txt"] = v.Winner.Text + "\n"
	all["lineage.md"] = lineageMarkdown(&v)
	all["test.csv"] = csvOf(testGrid(v.Test))
	if b, err := json.MarshalIndent(newBestPrompt(&v), "", "  "); err == nil {
		all["best.json"] = string(b) + "\n"
	}
	return all
}

// bestPrompt has the data of the best prompt.
type bestPrompt struct {
	Prompt      string     `json:"prompt"`
	Stopped     Stop       `json:"stopped"`
	Generations int        `json:"generations"`
	Calls       int        `json:"calls"`
	Train       Parts      `json:"train"`
	Test        []Tested   `json:"test"`
	Baseline    string     `json:"best_baseline"`
	Gain        *Estimate  `json:"gain"`
	P           *float64   `json:"p"`
	Method      string     `json:"method,omitempty"`
	Lineage     []Ancestor `json:"lineage"`
}

func newBestPrompt(v *Verdict) bestPrompt {
	return bestPrompt{
		Prompt: v.Winner.Text, Stopped: v.Stopped, Generations: max(0, len(v.Generations)-1), Calls: v.Calls,
		Train: v.Parts, Test: v.Test, Baseline: v.Best, Gain: v.Gain, P: v.P, Method: v.Method, Lineage: v.Lineage,
	}
}

// testGrid returns the final test, with a row for each prompt.
func testGrid(all []Tested) world.Grid {
	g := world.Grid{Columns: []string{"prompt", "id", "solves", "from", "to", "problems", "failed"}}
	for _, t := range all {
		a := t.Accuracy
		g.Rows = append(g.Rows, []any{t.Name, t.Prompt, a.Value, a.Low, a.High, a.N, t.Failed})
	}
	return g
}

// csvOf writes a table as CSV. The export guards cells that a spreadsheet would read as formulas.
func csvOf(g world.Grid) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(g.Columns) // a strings.Builder takes everything
	for _, row := range g.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return b.String()
}

// lineageMarkdown writes the lineage of the best prompt.
func lineageMarkdown(v *Verdict) string {
	var b strings.Builder
	b.WriteString("# The lineage of the best prompt\n\nIts ancestors, oldest first. Lines with + are new and lines with - are gone, compared with the first parent.\n")
	for _, a := range v.Lineage {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", world.Markdown(strings.Join(strings.Fields(ancestorTitle(&a)), " ")), indented(ancestorText(&a)))
	}
	return b.String()
}

// indented returns a code block that nothing within it can end, with hidden characters made visible.
func indented(text string) string {
	text = world.Visible(strings.ReplaceAll(text, "\r\n", "\n"))
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
