package report

import (
	"fmt"

	"parley/internal/report/chart"
	"parley/internal/report/page"
	"parley/internal/stats"
	"parley/world"
)

func curves(b *page.Block, e world.Exhibit, c world.Curves, colours *palette) {
	b.Table = &page.Table{Track: -1, Quiet: true, Columns: []page.Column{page.Key("series"), page.Number(c.X), page.Number(c.Y), page.Number("episodes"), page.Number("independent")}}
	var lines []chart.Line
	for _, k := range c.Curves {
		line := chart.Line{Name: k.Name, Level: k.Level}
		if !k.Level { // it is drawn with its name
			line.Class = colours.class(k.Name)
			b.Legend = append(b.Legend, page.Series{Name: k.Name, Class: line.Class})
		}
		for _, p := range k.Points {
			q := page.Sample(p.Sample, c.Share)
			line.Points = append(line.Points, chart.Point{X: p.X, Y: q})
			b.Table.Rows = append(b.Table.Rows, []page.Cell{page.Word(k.Name), page.Real(p.X), page.Quantity(q), page.Whole(p.Sample.Episodes()), page.Whole(q.N)})
		}
		lines = append(lines, line)
	}
	b.Drawing = plot(e.Title, c.X, c.Y, c.Share).Lines(lines)
}

func scatter(b *page.Block, e world.Exhibit, s world.Scatter, colours *palette) {
	b.Table = &page.Table{Track: -1, Quiet: true, Columns: []page.Column{page.Key("name"), page.Number(s.X), page.Number(s.Y), page.Number("episodes"), page.Number("independent")}}
	var spots []chart.Spot
	for _, p := range s.Points {
		x, y := page.Sample(p.X, s.Share), page.Sample(p.Y, s.Share)
		spots = append(spots, chart.Spot{Name: p.Name, Class: colours.class(p.Name), X: x, Y: y})
		b.Table.Rows = append(b.Table.Rows, []page.Cell{page.Word(p.Name), page.Quantity(x), page.Quantity(y), page.Whole(max(p.X.Episodes(), p.Y.Episodes())), page.Whole(max(x.N, y.N))})
	}
	b.Drawing = plot(e.Title, s.X, s.Y, s.Share).Scatter(spots, s.Share)
}

func bars(b *page.Block, e world.Exhibit, s world.Bars, colours *palette) {
	b.Table = &page.Table{Track: -1, Columns: []page.Column{page.Key(s.X)}}
	var groups []chart.Group
	for _, g := range s.Series {
		name, class := g.Name, colours.class(g.Name)
		if name == "" {
			name = s.Y
		} else {
			b.Legend = append(b.Legend, page.Series{Name: name, Class: class})
		}
		b.Table.Columns = append(b.Table.Columns, page.Number(name))
		groups = append(groups, chart.Group{Name: g.Name, Class: class, Values: g.Values})
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

// grid makes a table of a kind's own cells.
func grid(g world.Grid) *page.Table {
	t := &page.Table{Track: -1, Filter: len(g.Rows) > 30}
	for i, name := range g.Columns {
		c := page.Words(name)
		for _, r := range g.Rows {
			if i < len(r) {
				_, text := r[i].(string)
				c.Number = !text
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
	case *world.Sample:
		return page.Quantity(page.Sample(v, false))
	case stats.Quantity:
		return page.Quantity(v)
	case nil:
		return page.Cell{Text: "–"}
	default:
		return page.Word(fmt.Sprint(v))
	}
}
