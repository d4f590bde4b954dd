package evolve

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/world"
)

// maxShown is the maximum number of evolutions that are shown in detail.
const maxShown = 4

// ended returns the evolutions that have a verdict.
func (x *Exhibitor) ended() []*evolution {
	return slices.DeleteFunc(slices.Clone(x.all), func(e *evolution) bool { return e.verdict == nil })
}

// verdicts shows the verdicts and the best prompts.
func (x *Exhibitor) verdicts() []world.Exhibit {
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
func (x *Exhibitor) origins() []world.Exhibit {
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
func (x *Exhibitor) apart(ended []*evolution, i int) (suffix, of string) {
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
			case strings.HasPrefix(t.Name, recordWinner):
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
		g.Rows = append(g.Rows, []any{o.Name, o.Made, o.Finished, o.Better, round(float64(o.Better) / float64(max(1, o.Made)))})
	}
	return g
}

// generationTable lists generations.
func generationTable(all []Generation) world.Grid {
	g := world.Grid{Columns: []string{"generation", "best", "mean", "worst", "accuracy of the best", "diversity", "prompts", "new", "dropped", "duplicates", "calls", "saved", "breedings", "crossover rate", "mutation rate"}}
	for _, x := range all {
		g.Rows = append(g.Rows, []any{
			x.Number, round(x.Best), round(x.Mean), round(x.Worst), round(x.Accuracy), round(x.Diversity), x.Prompts, x.New, x.Dropped, x.Duplicates, x.Calls, x.Saved, x.Bred, round(x.CrossoverRate), round(x.MutationRate),
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

// round keeps three decimals: counts over a hundred problems have no more.
func round(x float64) float64 { return math.Round(1000*x) / 1000 }

// lineageText returns a paragraph for each ancestor.
func lineageText(line []Ancestor) string {
	var b strings.Builder
	for i, a := range line {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(title(&a) + "\n" + body(&a))
	}
	return b.String()
}

// title describes an ancestor in one line.
func title(a *Ancestor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt %d, generation %d, by %s", a.ID, a.Generation, a.Operator)
	for k, parent := range a.Parents {
		fmt.Fprintf(&b, "%s%d", map[bool]string{true: " from ", false: " and "}[k == 0], parent)
	}
	fmt.Fprintf(&b, ": fitness %.3f, accuracy %.3f", a.Fitness, a.Accuracy)
	return b.String()
}

// body returns the difference from the first parent, or the whole prompt.
func body(a *Ancestor) string {
	if a.Diff != "" {
		return a.Diff
	}
	return "  " + strings.ReplaceAll(a.Text, "\n", "\n  ") + "\n"
}
