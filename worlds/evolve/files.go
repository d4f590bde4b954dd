package evolve

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"

	"parley/world"
)

// Files makes what there is to take away of an evolution out of its verdict: the best
// prompt as it is to be used, the same with all that is known about it, how it came about,
// and tables. Other episodes have none.
func (definition) Files(p world.Played, _ []world.Note) map[string]string {
	v, ok := read[Verdict](p.Outcome)
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
	if b, err := json.MarshalIndent(bestOf(&v), "", "  "); err == nil {
		all["best.json"] = string(b) + "\n"
	}
	return all
}

// best is what is known about the best prompt.
type best struct {
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

func bestOf(v *Verdict) best {
	return best{
		Prompt: v.Winner.Text, Stopped: v.Stopped, Generations: max(0, len(v.Generations)-1), Calls: v.Calls,
		Train: v.Parts, Test: v.Test, Baseline: v.Best, Gain: v.Gain, P: v.P, Method: v.Method, Lineage: v.Lineage,
	}
}

// testGrid is the final test, a row for each prompt.
func testGrid(all []Tested) world.Grid {
	g := world.Grid{Columns: []string{"prompt", "id", "solves", "from", "to", "problems", "failed"}}
	for _, t := range all {
		a := t.Accuracy
		g.Rows = append(g.Rows, []any{t.Name, t.Prompt, a.Value, a.Low, a.High, a.N, t.Failed})
	}
	return g
}

// csvOf writes a table. What a spreadsheet would take for a formula is made a text.
func csvOf(g world.Grid) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(g.Columns) // a strings.Builder takes everything
	for _, row := range g.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
			if text, ok := cell.(string); ok && text != "" && strings.ContainsRune("=+-@'\t\r\n", rune(text[0])) {
				cells[i] = "'" + text
			}
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return b.String()
}

// lineageMarkdown tells how the best prompt came about.
func lineageMarkdown(v *Verdict) string {
	var b strings.Builder
	b.WriteString("# How the best prompt came about\n\nIts ancestors, oldest first. Lines with + came in and lines with - went out, beside the first parent.\n")
	for _, a := range v.Lineage {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", world.Markdown(strings.Join(strings.Fields(a.title()), " ")), indented(a.body()))
	}
	return b.String()
}

// indented makes a block of code that nothing within it can end, and in which nothing hides.
func indented(text string) string {
	text = world.Visible(strings.ReplaceAll(text, "\r\n", "\n"))
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
