package exhibit

import (
	"fmt"
	"math"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/report/chart"
	"parley/internal/report/page"
	"parley/world"
)

func curves(b *page.Block, e world.Exhibit, c world.Curves, colours *Palette) {
	b.Table = &page.Table{Track: -1, Quiet: true, Columns: []page.Column{page.Key("series"), page.Number(c.X), page.Number(c.Y), page.Number("episodes"), page.Number("independent")}}
	var lines []chart.Line
	for _, k := range c.Curves {
		line := chart.Line{Name: k.Name, Level: k.Level}
		if !k.Level { // a level is drawn with its name
			line.Look = colours.Look(k.Name)
			b.Legend = append(b.Legend, page.Series{Name: k.Name, Look: line.Look})
		}
		for _, p := range k.Points {
			q := page.Sample(p.Sample, c.Share)
			y := page.Quantity(q)
			if p.Given && q.Known() {
				q.Interval = statmath.Interval{Low: q.Value, High: q.Value}
				y = page.Cell{Text: page.Digits(q.Value), Value: q}
			}
			line.Points = append(line.Points, chart.Point{X: p.X, Y: q})
			b.Table.Rows = append(b.Table.Rows, []page.Cell{page.Word(k.Name), xCell(p.X), y, page.Whole(p.Sample.Episodes()), page.Whole(q.N)})
		}
		lines = append(lines, line)
	}
	if !chart.Banded(lines) {
		b.Caption = strings.TrimSpace(b.Caption + " There are too many lines to draw their intervals. The table has them.")
	}
	b.Drawing = plot(e.Title, c.X, c.Y, c.Share).Lines(lines)
}

// xCell is an x value, written as on the axis: 1901, not 1,901.
func xCell(x float64) page.Cell {
	c := page.Real(x)
	if x == math.Trunc(x) && math.Abs(x) < 10_000 {
		c.Text = chart.Tick(x)
	}
	return c
}

func scatter(b *page.Block, e world.Exhibit, s world.Scatter, colours *Palette) {
	b.Table = &page.Table{Track: -1, Quiet: true, Columns: []page.Column{page.Key("name"), page.Number(s.X), page.Number(s.Y), page.Number("episodes"), page.Number("independent")}}
	var spots []chart.Spot
	for _, p := range s.Points {
		x, y := page.Sample(p.X, s.Share), page.Sample(p.Y, s.Share)
		spots = append(spots, chart.Spot{Name: p.Name, Look: colours.Look(p.Name), X: x, Y: y})
		b.Legend = append(b.Legend, page.Series{Name: p.Name, Look: colours.Look(p.Name)})
		b.Table.Rows = append(b.Table.Rows, []page.Cell{page.Word(p.Name), page.Quantity(x), page.Quantity(y), page.Whole(max(p.X.Episodes(), p.Y.Episodes())), page.Whole(max(x.N, y.N))})
	}
	b.Drawing = plot(e.Title, s.X, s.Y, s.Share).Scatter(spots, s.Share)
}

func bars(b *page.Block, e world.Exhibit, s world.Bars, colours *Palette) {
	b.Table = &page.Table{Track: -1, Columns: []page.Column{page.Key(s.X)}}
	var groups []chart.Group
	for _, g := range s.Series {
		name, look := g.Name, colours.Look(g.Name)
		if name == "" {
			name, look = s.Y, chart.Series(0)
		} else {
			b.Legend = append(b.Legend, page.Series{Name: name, Look: look, Bar: true})
		}
		b.Table.Columns = append(b.Table.Columns, page.Number(name))
		groups = append(groups, chart.Group{Name: g.Name, Look: look, Values: g.Values})
	}
	for i, label := range s.Labels {
		row := []page.Cell{page.Word(label)}
		for _, g := range s.Series {
			if i < len(g.Values) {
				row = append(row, page.Real(g.Values[i]))
			} else {
				row = append(row, page.Cell{Text: "–"})
			}
		}
		b.Table.Rows = append(b.Table.Rows, row)
	}
	b.Drawing = chart.Plot{Label: e.Title, X: s.X, Y: s.Y}.Bars(s.Labels, groups)
}

func plot(title, x, y string, share bool) chart.Plot {
	p := chart.Plot{Label: title + ": " + y + " by " + x, X: x, Y: y}
	if share {
		unit := chart.Unit()
		p.YScale = &unit
	}
	return p
}

// grid returns a table of the kind's own cells.
func grid(g world.Grid) *page.Table {
	t := &page.Table{Track: -1, Filter: len(g.Rows) > 30}
	for i, name := range g.Columns {
		c := page.Words(name)
		for _, r := range g.Rows {
			if i < len(r) {
				switch v := r[i].(type) {
				case string:
					c.Number = false
				case world.Episodes:
					c.Number = len(v) == 1
				default:
					c.Number = true
				}
			}
		}
		c.Key = i == 0 && !c.Number // it names the row
		t.Columns = append(t.Columns, c)
	}
	for _, r := range g.Rows {
		row := make([]page.Cell, len(g.Columns))
		for i := range row {
			if i < len(r) {
				row[i] = gridCell(r[i])
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func gridCell(v any) page.Cell {
	switch v := v.(type) {
	case string:
		return page.Word(v)
	case int:
		return page.Whole(v)
	case float64:
		return page.Real(v)
	case world.Episodes:
		return page.EpisodeCell(v)
	case *world.Sample:
		return page.Quantity(page.Sample(v, false))
	case statmath.Quantity:
		return page.Quantity(v)
	case nil:
		return page.Cell{Text: "–"}
	default:
		return page.Word(fmt.Sprint(v))
	}
}
