// Part exhibit turns the exhibits of a kind into blocks of a report, and chooses the colours of a report.
//
// An exhibit is plain data. Its intervals are computed here, and pictures that a kind drew are made harmless.

package report

import (
	"fmt"
	"html/template"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/world"
)

// ExhibitBlock turns an exhibit into a block. ok is false if a report does not know what the exhibit shows.
func ExhibitBlock(e world.Exhibit, colours *Palette) (b Block, ok bool) {
	b = Block{Title: e.Title, Caption: e.Caption}
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

func estimates(e world.Estimates, colours *Palette) *Table {
	t := &Table{Track: len(e.By), Share: e.Share, Grouped: len(e.By) > 1, Filter: len(e.Rows) > 30}
	for _, by := range e.By {
		t.Columns = append(t.Columns, Key(by))
	}
	t.Columns = append(t.Columns, Number(e.What), Number("episodes"), Number("independent"))
	for _, r := range e.Rows {
		q := pageSample(r.Sample, e.Share)
		var row []Cell
		for i := range e.By {
			var c Cell
			if i < len(r.Labels) {
				c = Word(r.Labels[i])
			}
			row = append(row, c)
		}
		c := Quantity(q)
		if len(row) > 0 {
			c.Look = colours.Look(row[len(row)-1].Text)
		}
		t.Rows = append(t.Rows, append(row, c, whole(r.Sample.Episodes()), whole(q.N)))
	}
	return t
}

// heat returns the map, and a table with the same numbers.
func heat(h world.HeatMap) (*Heat, *Table) {
	t := &Table{Track: -1, Columns: []Column{Key(h.Row)}}
	for _, c := range h.Columns {
		t.Columns = append(t.Columns, Number(c))
	}
	values := make([][]statmath.Quantity, len(h.Rows))
	for i := range h.Rows {
		values[i] = make([]statmath.Quantity, len(h.Columns))
		for j := range h.Columns {
			var s *world.Sample
			if i < len(h.Cells) && j < len(h.Cells[i]) {
				s = h.Cells[i][j]
			}
			values[i][j] = pageSample(s, h.Share)
		}
	}
	scale := newHeatScale(h, values)
	m := &Heat{Row: h.Row, Column: h.Column, Columns: h.Columns, Low: digits(scale.low), High: digits(scale.high), Ramp: scale.ramp()}
	for i, name := range h.Rows {
		row, cells := HeatRow{Name: name}, []Cell{Word(name)}
		for j, q := range values[i] {
			row.Cells = append(row.Cells, scale.cell(q, fmt.Sprintf("%s, %s: %s", name, h.Columns[j], Interval(q))))
			cells = append(cells, Quantity(q))
		}
		m.Rows = append(m.Rows, row)
		t.Rows = append(t.Rows, cells)
	}
	return m, t
}

func figure(b *Block, f world.Figure) {
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

func replay(r world.Replay) (*Replay, template.CSS) {
	base, style, _ := chart.Clean(r.Base) // an invalid picture is left out
	out := &Replay{Base: base}
	for _, f := range r.Frames {
		picture, more, _ := chart.Clean(f.SVG)
		style += more
		out.Frames = append(out.Frames, ReplayFrame{Title: f.Title, Picture: picture, Lines: f.Lines})
	}
	return out, style
}
