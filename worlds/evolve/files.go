package evolve

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"

	"parley/world"
)

// showFiles returns the files of an evolution from its verdict: the best prompt as text, the same with its data, its
// lineage, and tables. Other episodes have no files.
func showFiles(p world.Played) map[string]string {
	v, ok := readRecord[Verdict](p.Outcome)
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

// best has the data of the best prompt.
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
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", world.Markdown(strings.Join(strings.Fields(title(&a)), " ")), indented(body(&a)))
	}
	return b.String()
}

// indented returns a code block that nothing within it can end, with hidden characters made visible.
func indented(text string) string {
	text = world.Visible(strings.ReplaceAll(text, "\r\n", "\n"))
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
