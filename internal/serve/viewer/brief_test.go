package viewer

import (
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/internal/read/report"
)

// TestBrief checks that the statistics of a run of any size fit on a page, what matters first, and that the report keeps
// everything.
func TestBrief(t *testing.T) {
	t.Parallel()
	table := func(rows int) *report.Table {
		out := &report.Table{Name: "scores", Title: "scores", Columns: []report.Column{report.Key("agent"), report.Number("mean")}, Track: 1}
		for range rows {
			out.Rows = append(out.Rows, []report.Cell{report.Word("a"), report.Quantity(statmath.Quantity{Value: 1, Interval: statmath.Interval{Low: 0, High: 2}})})
		}
		return out
	}
	for _, c := range []struct {
		rows, blocks int
		short        bool
	}{{5, 2, false}, {40, 1, false}, {500, 1, true}, {500, 60, true}, {3, 600, true}} {
		d := &report.Document{Sections: []report.Section{{ID: "overview", Title: "Overview", Blocks: []report.Block{{Facts: []report.Fact{{Name: "state"}}}}}, {ID: "scores"}, {ID: "episodes", Blocks: []report.Block{{Table: table(9)}}}}}
		for range c.blocks {
			d.Sections[1].Blocks = append(d.Sections[1].Blocks, report.Block{Title: "folded", Table: table(c.rows), Folded: true}, report.Block{Title: "open", Table: table(c.rows)})
		}
		got, short, err := brief(d)
		if err != nil || short != c.short || len(got) != 2 || len(got[0].Blocks) != 0 || got[0].Title != "" {
			t.Fatalf("%+v: %v %v %d sections", c, short, err, len(got))
		}
		templates, err := report.Templates()
		if err != nil {
			t.Fatal(err)
		}
		elements, rows, folded := 0, 0, 0
		for _, b := range got[1].Blocks {
			n, err := report.Size(templates, b)
			if err != nil {
				t.Fatal(err)
			}
			elements += n
			if rows = max(rows, len(b.Table.Rows)); b.Folded {
				folded++
			}
			if cut := strings.Contains(b.Caption, "The first "); cut != (len(b.Table.Rows) < c.rows) || strings.Count(b.Caption, "first") > 1 {
				t.Errorf("%+v: %d rows, %q", c, len(b.Table.Rows), b.Caption)
			}
		}
		if elements > maxElements+maxElements/20 || rows > maxRows || elements == 0 || len(got[1].Blocks) < 2*c.blocks && folded > 0 {
			t.Errorf("%+v: %d elements, %d rows, %d folded of %d blocks", c, elements, rows, folded, len(got[1].Blocks))
		}
		if all := d.Sections[1].Blocks; len(all) != 2*c.blocks || len(all[0].Table.Rows) != c.rows || all[0].OffPage {
			t.Errorf("%+v: the report was cut", c)
		}
	}
}
