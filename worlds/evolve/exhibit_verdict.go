package evolve

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
)

// mostShown is how many evolutions of a run are shown with all that there is about them.
const mostShown = 4

// verdicts shows what is known at the end.
func (x *exhibitor) verdicts() []world.Exhibit {
	var ended []*evolution
	for _, e := range x.all {
		if e.verdict != nil {
			ended = append(ended, e)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	out := []world.Exhibit{
		{Name: "evolve-verdict", Title: "What came of it", Caption: "The gain is how many more of the test problems the winner solved than the best baseline, problem by problem, with its interval of 95%; p is how often chance alone makes such a difference.", Show: verdictTable(ended)},
		{Name: "evolve-operators", Title: "Operators", Caption: "Finished: not dropped in a race. Better: fitter than every parent. A prompt that was crossed and changed counts for both.", Show: operatorTable(ended)},
	}
	for i, e := range ended[:min(len(ended), mostShown)] {
		if e.verdict.Winner == nil {
			continue
		}
		suffix, of := "", ""
		if len(ended) > 1 {
			suffix, of = fmt.Sprintf("-%d", i+1), " of "+e.name()
		}
		out = append(out,
			world.Exhibit{Name: "evolve-winner" + suffix, Title: "The best prompt" + of, Show: world.Text{Body: e.verdict.Winner.Text, Pre: true}},
			world.Exhibit{Name: "evolve-lineage" + suffix, Title: "How it came about" + of, Caption: "Its ancestors, oldest first. Lines with + came in, lines with - went out, beside the first parent.", Show: world.Text{Body: lineageText(e.verdict.Lineage), Pre: true}},
			world.Exhibit{Name: "evolve-generations" + suffix, Title: "Generations" + of, Caption: "Saved: calls that races made needless. Duplicates: prompts that were bred again and not tried again.", Show: generationTable(e.verdict.Generations)},
		)
	}
	return out
}

func verdictTable(ended []*evolution) world.Grid {
	g := world.Grid{Columns: []string{"evolution", "stopped by", "generations", "prompts", "calls", "saved", "winner", "best baseline", "solves", "gain", "from", "to", "p"}}
	for _, e := range ended {
		v := e.verdict
		row := []any{e.name(), string(v.Stopped), max(0, len(v.Generations)-1), v.Prompts, v.Calls, v.Saved, "–", v.Best, "–", "–", "–", "–", "–"}
		for _, t := range v.Test {
			switch {
			case t.Accuracy.N == 0:
			case strings.HasPrefix(t.Name, "winner"):
				row[6] = t.Accuracy.Value
			case t.Name == v.Best:
				row[8] = t.Accuracy.Value
			}
		}
		if v.Gain != nil {
			row[9], row[10], row[11] = v.Gain.Value, v.Gain.Low, v.Gain.High
		}
		if v.P != nil {
			row[12] = *v.P
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// operatorTable sums over evolutions.
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
	g := world.Grid{Columns: []string{"operator", "made", "finished", "better", "share better"}}
	for _, o := range all {
		g.Rows = append(g.Rows, []any{o.Name, o.Made, o.Finished, o.Better, float64(o.Better) / float64(max(1, o.Made))})
	}
	return g
}

func generationTable(all []Generation) world.Grid {
	g := world.Grid{Columns: []string{"generation", "best", "mean", "worst", "accuracy of the best", "diversity", "prompts", "new", "dropped", "duplicates", "calls", "saved", "breedings", "crossover rate", "mutation rate"}}
	for _, x := range all {
		g.Rows = append(g.Rows, []any{
			x.Number, x.Best, x.Mean, x.Worst, x.Accuracy, x.Diversity, x.Prompts, x.New, x.Dropped, x.Duplicates, x.Calls, x.Saved, x.Bred, x.CrossoverRate, x.MutationRate,
		})
	}
	return g
}

// lineageText is a paragraph for each ancestor.
func lineageText(line []Ancestor) string {
	var b strings.Builder
	for i, a := range line {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "prompt %d, generation %d, by %s", a.ID, a.Generation, a.Operator)
		for k, parent := range a.Parents {
			fmt.Fprintf(&b, "%s%d", map[bool]string{true: " from ", false: " and "}[k == 0], parent)
		}
		fmt.Fprintf(&b, ": fitness %.3f, accuracy %.3f\n", a.Fitness, a.Accuracy)
		text := a.Diff
		if text == "" {
			text = "  " + strings.ReplaceAll(a.Text, "\n", "\n  ") + "\n"
		}
		b.WriteString(text)
	}
	return b.String()
}
