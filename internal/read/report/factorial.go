package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/world"
)

// Limits of what is estimated. What is beyond is left out, and FactorialResult says so.
const (
	maxCells   = 512
	maxEffects = 400 // of one score
)

// Effect is the effect of a factor, or the interaction of two.
type Effect struct {
	Score string
	Of    string // the seat of the score; empty if the factors determine it
	// Factor names one factor, or two for an interaction: prompt × model.
	Factor string
	// Levels names what is compared: terse − verbose, or for an interaction
	// (terse − verbose) with small − with large.
	Levels     string
	Difference statmath.Quantity
	Test       statmath.Test
	Adjusted   float64 // P, adjusted for all effects; NaN if unknown
	// Missing lists cells without episodes that the effect needs.
	Missing []string
}

// FactorialResult has all effects.
type FactorialResult struct {
	Factors []string
	Correct string
	Effects []Effect
	Notes   []string // what was left out, and why
}

// AnalyzeFactors estimates the effects of factors on the named scores of runs, or on all scores if none is named: how much a level of a
// factor, such as a prompt, adds over another level (a main effect), and whether it adds more with one level of another factor than with
// the next (an interaction).
//
// An effect is a difference of means of cells, in which every cell has the same weight, however many episodes it has. An episode counts
// once in a cell. Episodes of one deal, and copies of one play, are one cluster, in whatever cells they are. P is adjusted for the number
// of effects. An effect that needs an empty cell is not estimated. The same runs give the same digits.
func AnalyzeFactors(runs []*results.Run, factors *results.Factors, scores []string, correct string) *FactorialResult {
	r := &FactorialResult{Factors: factors.Names, Correct: correct}
	for _, d := range factorialDesigns(runs, factors, scores) {
		r.add(d)
	}
	ps := make([]float64, len(r.Effects))
	for i := range r.Effects {
		ps[i] = r.Effects[i].Test.P
	}
	adjusted := statmath.Adjust(correct, ps)
	for i := range r.Effects {
		r.Effects[i].Adjusted = adjusted[i]
	}
	return r
}

// add estimates the effects on one score: of each factor, then of each pair of factors.
func (r *FactorialResult) add(d *factorialDesign) {
	if d.cells() > maxCells {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s have %d combinations of levels; effects are estimated for at most %d", d.name(), strings.Join(r.Factors, ", "), d.cells(), maxCells))
		return
	}
	design, contrast := d.fold()
	n := 0
	d.contrasts(func(factor, levels string, of map[int][2]int) {
		if n++; n > maxEffects {
			return
		}
		weights := d.weights(of)
		e := Effect{Score: d.score, Of: d.of, Factor: factor, Levels: levels, Missing: d.missing(design, weights)}
		e.Difference, e.Test = contrast(weights)
		within := d.bounds.Difference()
		if len(of) > 1 {
			within = within.Difference()
		}
		e.Difference = within.Quantity(e.Difference)
		r.Effects = append(r.Effects, e)
	})
	if n > maxEffects {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %d of %d effects are left out: name fewer factors, or factors with fewer levels", d.name(), n-maxEffects, n))
	}
}

// contrasts calls do with the effects: of each pair of levels of a factor, and of each pair of levels of one factor with
// each pair of another. of has the pairs by factor.
func (d *factorialDesign) contrasts(do func(factor, levels string, of map[int][2]int)) {
	for f := range d.levels {
		for _, p := range pairs(len(d.levels[f])) {
			do(d.factors[f], d.between(f, p), map[int][2]int{f: p})
		}
	}
	for f := range d.levels {
		for g := f + 1; g < len(d.levels); g++ {
			for _, p := range pairs(len(d.levels[f])) {
				for _, q := range pairs(len(d.levels[g])) {
					levels := fmt.Sprintf("(%s) with %s − with %s", d.between(f, p), d.levels[g][q[0]], d.levels[g][q[1]])
					do(d.factors[f]+" × "+d.factors[g], levels, map[int][2]int{f: p, g: q})
				}
			}
		}
	}
}

func (d *factorialDesign) between(factor int, levels [2]int) string {
	return d.levels[factor][levels[0]] + " − " + d.levels[factor][levels[1]]
}

// pairs returns all pairs of 0 to n-1.
func pairs(n int) (out [][2]int) {
	for i := range n {
		for j := i + 1; j < n; j++ {
			out = append(out, [2]int{i, j})
		}
	}
	return out
}

// weights returns the weights of cells for the difference between two levels of each of the given factors, with equal
// weights for all levels of the others.
func (d *factorialDesign) weights(of map[int][2]int) []float64 {
	out := make([]float64, d.cells())
	others := 1
	for f := range d.levels {
		if _, varies := of[f]; !varies {
			others *= len(d.levels[f])
		}
	}
	for cell := range out {
		w := 1 / float64(others)
		rest := cell
		for f, levels := range slices.Backward(d.levels) {
			level := rest % len(levels)
			rest /= len(levels)
			switch p, varies := of[f]; {
			case !varies || level == p[0]:
			case level == p[1]:
				w = -w
			default:
				w = 0
			}
		}
		out[cell] = w
	}
	return out
}

// missing returns the names of empty cells that a contrast needs.
func (d *factorialDesign) missing(of *statmath.Design, weights []float64) (out []string) {
	for cell, w := range weights {
		if w == 0 || !of.Empty(cell) {
			continue
		}
		parts := make([]string, len(d.levels))
		rest := cell
		for f, levels := range slices.Backward(d.levels) {
			parts[f] = d.factors[f] + "=" + levels[rest%len(levels)]
			rest /= len(levels)
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}

// factorialDesign has the observations of one score.
type factorialDesign struct {
	score, of string
	bounds    world.Bounds
	factors   []string
	levels    [][]string // by factor
	scores    []cellScore
}

// cellScore is the scores of one episode in one cell.
type cellScore struct {
	levels  results.Levels
	episode int // numbered from 1 across runs
	unit    world.Unit
	sum, n  float64
}

func (d *factorialDesign) name() string {
	if d.of == "" {
		return d.score
	}
	return d.score + " of " + d.of
}

func (d *factorialDesign) cells() int {
	n := 1
	for _, l := range d.levels {
		if n *= len(l); n > maxCells {
			return n
		}
	}
	return n
}

// fold returns a design with deals as clusters, and a function that estimates contrasts of it. If some plays
// are copies of each other, plays are clusters too.
func (d *factorialDesign) fold() (*statmath.Design, func(weights []float64) (statmath.Quantity, statmath.Test)) {
	deals, plays, both := &statmath.Design{}, &statmath.Design{}, &statmath.Design{}
	numbers, copies := map[world.Unit]int{}, slices.ContainsFunc(d.scores, func(s cellScore) bool { return s.unit.Play != 0 })
	if copies {
		d.collapse()
	}
	for _, s := range d.scores {
		cell := 0
		for f, levels := range d.levels {
			cell = cell*len(levels) + slices.Index(levels, s.levels[f])
		}
		// An episode that shares nothing is its own cluster.
		u, mean := world.Unit{Deal: cmp.Or(s.unit.Deal, -s.episode), Play: cmp.Or(s.unit.Play, -s.episode)}, s.sum/s.n
		if numbers[u] == 0 {
			numbers[u] = len(numbers) + 1
		}
		deals.Add(cell, u.Deal, mean)
		plays.Add(cell, u.Play, mean)
		both.Add(cell, numbers[u], mean)
	}
	return deals, func(weights []float64) (statmath.Quantity, statmath.Test) {
		if !copies {
			return deals.Contrast(weights, results.Confidence)
		}
		return statmath.ContrastTwoWay(deals, plays, both, weights, results.Confidence)
	}
}

// collapse gives a deal that was played word for word like an earlier one the number of the earlier one.
func (d *factorialDesign) collapse() {
	plays, chance := map[int][]string{}, map[int]bool{}
	var order []int
	for _, s := range d.scores {
		deal := s.unit.Deal
		if plays[deal] == nil {
			order = append(order, deal)
		}
		plays[deal] = append(plays[deal], fmt.Sprint(s.levels, s.unit.Play))
		chance[deal] = chance[deal] || s.unit.Play == 0 || deal == 0
	}
	first, same := map[string]int{}, map[int]int{}
	for _, deal := range order {
		slices.Sort(plays[deal])
		key := fmt.Sprint(plays[deal])
		if earlier, ok := first[key]; ok && !chance[deal] {
			same[deal] = earlier
			continue
		}
		first[key] = deal
	}
	for i, s := range d.scores {
		d.scores[i].unit.Deal = cmp.Or(same[s.unit.Deal], s.unit.Deal)
	}
}

// factorialDesigns gathers scores, in the order that worlds name them, with sorted levels.
func factorialDesigns(runs []*results.Run, factors *results.Factors, scores []string) []*factorialDesign {
	apart := !factors.Any(results.OfAgent, results.OfSeat)
	at, order := map[[2]string]*factorialDesign{}, []*factorialDesign(nil)
	rank := map[string]int{}
	units, same := results.NewUnits(), sameScores(runs, scores)
	episode := 0
	for i, r := range runs {
		deals := r.Deals()
		r.Each(func(p world.Played) {
			episode++
			if p.Outcome.Failed != "" {
				return
			}
			unit := units.Of(r, deals, p)
			for _, s := range p.Outcome.Scores {
				levels, ok := factors.Of(i, p.Spec, s.Seat)
				if !ok || same[s.Name] != "" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || len(scores) > 0 && !slices.Contains(scores, s.Name) {
					continue
				}
				if _, ok := rank[s.Name]; !ok {
					rank[s.Name] = len(rank)
				}
				key := [2]string{s.Name}
				if apart {
					key[1] = s.Seat
				}
				d := at[key]
				if d == nil {
					d = &factorialDesign{score: key[0], of: key[1], bounds: r.Bounds[s.Name], factors: factors.Names}
					at[key], order = d, append(order, d)
				}
				d.bounds = d.bounds.Join(r.Bounds[s.Name])
				d.add(cellScore{levels: levels, episode: episode, unit: unit, sum: s.Value, n: 1})
			}
		})
	}
	for _, d := range order {
		d.sort()
	}
	slices.SortStableFunc(order, func(a, b *factorialDesign) int { return rank[a.score] - rank[b.score] })
	return order
}

// add adds a score. The mean of the scores of one episode in one cell is one observation.
func (d *factorialDesign) add(s cellScore) {
	for i := len(d.scores) - 1; i >= 0 && d.scores[i].episode == s.episode; i-- {
		if d.scores[i].levels == s.levels {
			d.scores[i].sum += s.sum
			d.scores[i].n++
			return
		}
	}
	d.scores = append(d.scores, s)
}

// sort lists the levels of each factor in order.
func (d *factorialDesign) sort() {
	d.levels = make([][]string, len(d.factors))
	for f := range d.factors {
		there := map[string]bool{}
		for _, s := range d.scores {
			there[s.levels[f]] = true
		}
		d.levels[f] = slices.SortedFunc(maps.Keys(there), compareLevels)
	}
}

// compareLevels orders levels of a factor: numbers first, by size, then other texts.
func compareLevels(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}

// maxCharts is the maximum number of charts by factors.
const maxCharts = 8

// byFactors returns the section on factors: means, effects, and charts of the means if there are two
// factors or more.
func byFactors(r *results.Run, factors *results.Factors, colours *Palette) Section {
	s := Section{ID: "factors", Title: "By " + strings.Join(factors.Names, ", "), Text: "No score has a level of every factor."}
	all := r.ScoresBy(factors)
	if len(all) == 0 {
		return s
	}
	s.Text = "The mean of each combination of levels, and the effect of each level."
	if note := withoutLevels(r, factors); note != "" {
		s.Blocks = append(s.Blocks, Block{Text: note})
	}
	table := factorTable(factors, all)
	s.Blocks = append(s.Blocks, Block{Title: table.Title, Table: table})
	effects := EffectsSection(AnalyzeFactors([]*results.Run{r}, factors, nil, "holm"))
	s.Blocks = append(append(s.Blocks, effects.Blocks...), factorCharts(factors, all, colours)...)
	return s
}

// withoutLevels names the scores and agents that lack a level of some factor.
func withoutLevels(r *results.Run, factors *results.Factors) string {
	var scores, agents []string
	r.Each(func(p world.Played) {
		for _, s := range p.Outcome.Scores {
			if _, ok := factors.Of(0, p.Spec, s.Seat); ok || p.Outcome.Failed != "" {
				continue
			}
			list, name := &scores, s.Name
			if s.Seat != "" {
				list, name = &agents, p.Spec.Lineup[s.Seat]
			}
			if !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	})
	var parts []string
	if len(scores) > 0 {
		parts = append(parts, "scores of whole episodes ("+strings.Join(scores, ", ")+")")
	}
	if len(agents) > 0 {
		parts = append(parts, "scores of "+strings.Join(agents, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left out because they do not have a level of every factor: " + strings.Join(parts, "; ") + "."
}

// factorTable returns the mean of every combination of levels.
func factorTable(f *results.Factors, all []results.Score) *Table {
	t := &Table{Name: "scores-by-factor", Title: "Means by " + strings.Join(f.Names, ", "), Grouped: true, Filter: len(all) > 30, Columns: []Column{KeyColumn("score"), KeyColumn("of")}}
	for _, name := range f.Names {
		t.Columns = append(t.Columns, KeyColumn(name))
	}
	t.Track = len(t.Columns)
	t.Columns = append(t.Columns, NumberColumn("mean"), NumberColumn("episodes"), NumberColumn("independent"))
	for _, s := range all {
		q := s.Estimate()
		row := []Cell{Word(s.Score), Word(s.Seat)}
		for i := range f.Names {
			row = append(row, Word(s.Levels[i]))
		}
		t.Rows = append(t.Rows, append(row, Quantity(q), whole(s.Sample.Episodes()), whole(q.N)))
	}
	slices.SortStableFunc(t.Rows, func(a, b []Cell) int {
		if a[0].Text != b[0].Text {
			return 0 // keep the order of scores
		}
		for i := range t.Track {
			if c := compareLevels(a[i].Text, b[i].Text); c != 0 {
				return c
			}
		}
		return 0
	})
	return t
}

// factorCharts draws the means of each score: the levels of the first factor from left to right,
// and a line for each combination of the others. Lines that are not parallel show an interaction.
func factorCharts(f *results.Factors, all []results.Score, colours *Palette) (out []Block) {
	if len(f.Names) < 2 {
		return nil
	}
	type key struct{ score, seat string }
	var order []key
	of := map[key][]results.Score{}
	for _, s := range all {
		k := key{s.Score, s.Seat}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], s)
	}
	for _, k := range order[:min(len(order), maxCharts)] {
		b := Block{Title: strings.TrimSuffix(k.score+" of "+k.seat, " of ")}
		var levels []string
		for _, s := range of[k] {
			if !slices.Contains(levels, s.Levels[0]) {
				levels = append(levels, s.Levels[0])
			}
		}
		slices.SortFunc(levels, compareLevels)
		var lines []chart.Line
		for _, s := range of[k] {
			name := strings.Join(s.Levels[1:len(f.Names)], ", ")
			i := slices.IndexFunc(lines, func(l chart.Line) bool { return l.Name == name })
			if i < 0 {
				i = len(lines)
				lines = append(lines, chart.Line{Name: name, Look: colours.Look(name)})
				b.Legend = append(b.Legend, Series{Name: name, Look: lines[i].Look})
			}
			lines[i].Points = append(lines[i].Points, chart.Point{X: float64(slices.Index(levels, s.Levels[0])), Y: s.Estimate()})
		}
		for i := range lines {
			slices.SortFunc(lines[i].Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
		}
		b.Drawing = chart.Plot{Label: b.Title + " by " + strings.Join(f.Names, ", "), X: f.Names[0], Y: k.score, XTick: func(x float64) string {
			if i := int(x); float64(i) == x && i >= 0 && i < len(levels) {
				return levels[i]
			}
			return ""
		}}.Lines(lines)
		out = append(out, b)
	}
	return out
}

// EffectsSection returns a section with main effects and interactions: a table that is also a chart, and how
// they were computed.
func EffectsSection(r *FactorialResult) Section {
	s := Section{ID: "effects", Title: "Effects", Text: "There are no effects: every factor has a single level."}
	if len(r.Effects) > 0 {
		s.Text = ""
		s.Blocks = append(s.Blocks, Block{Title: "Effects of " + strings.Join(r.Factors, ", "), Table: effectTable(r)})
	}
	list := slices.Clone(r.Notes)
	for _, e := range r.Effects {
		if len(e.Missing) > 0 && len(list) < len(r.Notes)+maxCharts {
			list = append(list, fmt.Sprintf("%s, %s, %s cannot be estimated: no episodes with %s", e.Score, e.Factor, e.Levels, strings.Join(e.Missing, "; ")))
		}
	}
	if len(list) > 0 {
		s.Blocks = append(s.Blocks, Block{Title: "Left out", List: list})
	}
	if len(r.Effects) > 0 {
		s.Blocks = append(s.Blocks, Block{Title: "How effects were computed", List: []string{
			"A main effect is the difference between the means of two levels. All levels of the other factors have the same weight, however many episodes they have. An interaction is the difference between two such differences.",
			"Episodes of one deal are one cluster, and so are copies of one play. Intervals are 95%, from a linear model with a mean for each combination of levels, the cluster-robust variance CR2, and Satterthwaite's degrees of freedom.",
			fmt.Sprintf("P is %s, over %d effects.", map[string]string{"holm": "adjusted by Holm's method", "bh": "adjusted by Benjamini and Hochberg's method"}[r.Correct], len(r.Effects)),
		}})
	}
	return s
}

func effectTable(r *FactorialResult) *Table {
	t := &Table{Name: "effects", Title: "Effects", Grouped: true, Track: 4, Sketch: true, Filter: len(r.Effects) > 30, Columns: []Column{
		KeyColumn("score"), KeyColumn("of"), KeyColumn("factor"), KeyColumn("levels"), NumberColumn("difference"),
		{Name: "p", Number: true, Detail: true}, NumberColumn("adjusted p"), NumberColumn("independent"), {Name: "missing", Detail: true},
	}}
	for _, e := range r.Effects {
		t.Rows = append(t.Rows, []Cell{
			Word(e.Score), Word(e.Of), Word(e.Factor), Word(e.Levels), Quantity(e.Difference),
			pValue(e.Test.P), pValue(e.Adjusted), countOrDash(e.Difference.N), Word(strings.Join(e.Missing, "; ")),
		})
	}
	return t
}
