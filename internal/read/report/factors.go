package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/world"
)

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
	if note := leftOut(r, factors); note != "" {
		s.Blocks = append(s.Blocks, Block{Text: note})
	}
	table := factorTable(factors, all)
	s.Blocks = append(s.Blocks, Block{Title: table.Title, Table: table})
	effects := Effects(Analyze([]*results.Run{r}, factors, nil, "holm"))
	s.Blocks = append(append(s.Blocks, effects.Blocks...), factorCharts(factors, all, colours)...)
	return s
}

// leftOut names the scores and agents that lack a level of some factor.
func leftOut(r *results.Run, factors *results.Factors) string {
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
	t := &Table{Name: "scores-by-factor", Title: "Means by " + strings.Join(f.Names, ", "), Grouped: true, Filter: len(all) > 30, Columns: []Column{Key("score"), Key("of")}}
	for _, name := range f.Names {
		t.Columns = append(t.Columns, Key(name))
	}
	t.Track = len(t.Columns)
	t.Columns = append(t.Columns, Number("mean"), Number("episodes"), Number("independent"))
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

// Effects returns a section with main effects and interactions: a table that is also a chart, and how
// they were computed.
func Effects(r *FactorialResult) Section {
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
		Key("score"), Key("of"), Key("factor"), Key("levels"), Number("difference"),
		{Name: "p", Number: true, Detail: true}, Number("adjusted p"), Number("independent"), {Name: "missing", Detail: true},
	}}
	for _, e := range r.Effects {
		t.Rows = append(t.Rows, []Cell{
			Word(e.Score), Word(e.Of), Word(e.Factor), Word(e.Levels), Quantity(e.Difference),
			pageP(e.Test.P), pageP(e.Adjusted), pageSome(e.Difference.N), Word(strings.Join(e.Missing, "; ")),
		})
	}
	return t
}
