package report

import (
	"html/template"
	"math"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
)

// group is rows of a table that belong together, with their own scale.
type group struct {
	Name  string // empty if there is only one
	Rows  [][]Cell
	scale chart.Scale
}

// groups returns the groups of a table.
func groups(t *Table) []*group {
	if !t.Grouped {
		return []*group{{Rows: t.Rows, scale: t.scale(t.Rows)}}
	}
	var out []*group
	for _, r := range t.Rows {
		if len(out) == 0 || out[len(out)-1].Name != r[0].Text {
			out = append(out, &group{Name: r[0].Text})
		}
		g := out[len(out)-1]
		g.Rows = append(g.Rows, r)
	}
	for _, g := range out {
		g.scale = t.scale(g.Rows)
	}
	return out
}

// Axis draws the scale of the group.
func (g *group) Axis() template.HTML { return chart.Axis(g.scale) }

// scale returns the scale of the tracked column. It is that of shares if all numbers are between 0 and 1.
func (t *Table) scale(rows [][]Cell) chart.Scale {
	if t.Share || t.Track < 0 {
		return chart.Unit()
	}
	var values []float64
	unit := true
	for _, r := range rows {
		q, ok := r[t.Track].Value.(statmath.Quantity)
		if !ok || !q.Known() {
			continue
		}
		values = append(values, q.Value)
		unit = unit && q.Value >= 0 && q.Value <= 1
		for _, end := range []float64{q.Low, q.High} {
			if !math.IsInf(end, 0) {
				values = append(values, end)
				unit = unit && end >= -0.1 && end <= 1.1
			}
		}
	}
	if unit {
		return chart.Unit()
	}
	if !t.Loose {
		values = append(values, 0)
	}
	return chart.NewScale(4, values...)
}
