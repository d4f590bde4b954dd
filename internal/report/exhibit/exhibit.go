// Package exhibit turns the exhibits of a kind into blocks of a report, and chooses the colours of a report.
//
// An exhibit is plain data. Its intervals are computed here, and pictures that a kind drew are made harmless.
package exhibit

import (
	"fmt"
	"html/template"

	"parley/internal/kit/statmath"
	"parley/internal/report/chart"
	"parley/internal/report/page"
	"parley/world"
)

// Block turns an exhibit into a block. ok is false if a report does not know what the exhibit shows.
func Block(e world.Exhibit, colours *Palette) (b page.Block, ok bool) {
	b = page.Block{Title: e.Title, Caption: e.Caption}
	switch show := e.Show.(type) {
	case world.Estimates:
		b.Table = estimates(show, colours)
	case world.HeatMap:
		b.Heat, b.Table = heat(show)
	case world.Curves:
		curves(&b, e, show, colours)
	case world.Scatter:
		scatter(&b, e, show, colours)
	case world.Bars:
		bars(&b, e, show, colours)
	case world.Grid:
		b.Table = grid(show)
	case world.Text:
		b.Text, b.Pre = show.Body, show.Pre
	case world.Figure:
		figure(&b, show)
	case world.Replay:
		b.Replay, b.Style = replay(show)
	default:
		return b, false
	}
	if b.Table != nil {
		b.Table.Name, b.Table.Title = e.Name, e.Title
	}
	return b, true
}

func estimates(e world.Estimates, colours *Palette) *page.Table {
	t := &page.Table{Track: len(e.By), Share: e.Share, Grouped: len(e.By) > 1, Filter: len(e.Rows) > 30}
	for _, by := range e.By {
		t.Columns = append(t.Columns, page.Key(by))
	}
	t.Columns = append(t.Columns, page.Number(e.What), page.Number("episodes"), page.Number("independent"))
	for _, r := range e.Rows {
		q := page.Sample(r.Sample, e.Share)
		var row []page.Cell
		for i := range e.By {
			var c page.Cell
			if i < len(r.Labels) {
				c = page.Word(r.Labels[i])
			}
			row = append(row, c)
		}
		c := page.Quantity(q)
		if len(row) > 0 {
			c.Look = colours.Look(row[len(row)-1].Text)
		}
		t.Rows = append(t.Rows, append(row, c, page.Whole(r.Sample.Episodes()), page.Whole(q.N)))
	}
	return t
}

// heat returns the map, and a table with the same numbers.
func heat(h world.HeatMap) (*page.Heat, *page.Table) {
	t := &page.Table{Track: -1, Columns: []page.Column{page.Key(h.Row)}}
	for _, c := range h.Columns {
		t.Columns = append(t.Columns, page.Number(c))
	}
	values := make([][]statmath.Quantity, len(h.Rows))
	for i := range h.Rows {
		values[i] = make([]statmath.Quantity, len(h.Columns))
		for j := range h.Columns {
			var s *world.Sample
			if i < len(h.Cells) && j < len(h.Cells[i]) {
				s = h.Cells[i][j]
			}
			values[i][j] = page.Sample(s, h.Share)
		}
	}
	scale := newHeatScale(h, values)
	m := &page.Heat{Row: h.Row, Column: h.Column, Columns: h.Columns, Low: page.Digits(scale.low), High: page.Digits(scale.high), Ramp: scale.ramp()}
	for i, name := range h.Rows {
		row, cells := page.HeatRow{Name: name}, []page.Cell{page.Word(name)}
		for j, q := range values[i] {
			row.Cells = append(row.Cells, scale.cell(q, fmt.Sprintf("%s, %s: %s", name, h.Columns[j], page.Interval(q))))
			cells = append(cells, page.Quantity(q))
		}
		m.Rows = append(m.Rows, row)
		t.Rows = append(t.Rows, cells)
	}
	return m, t
}

func figure(b *page.Block, f world.Figure) {
	picture, style, err := chart.Clean(f.SVG)
	if err != nil {
		b.Text = f.Alt
		return
	}
	b.Drawing, b.Style = picture, style
	if b.Caption == "" {
		b.Caption = f.Alt
	}
}

func replay(r world.Replay) (*page.Replay, template.CSS) {
	base, style, _ := chart.Clean(r.Base) // an invalid picture is left out
	out := &page.Replay{Base: base}
	for _, f := range r.Frames {
		picture, more, _ := chart.Clean(f.SVG)
		style += more
		out.Frames = append(out.Frames, page.ReplayFrame{Title: f.Title, Picture: picture, Lines: f.Lines})
	}
	return out, style
}
