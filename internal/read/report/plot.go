package report

import (
	"fmt"
	"math"
	"strings"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/world"
)

func curves(b *Block, e world.Exhibit, c world.Curves, colours *Palette) {
	b.Table = &Table{Track: -1, Quiet: true, Columns: []Column{Key("series"), Number(c.X), Number(c.Y), Number("episodes"), Number("independent")}}
	var lines []chart.Line
	for _, k := range c.Curves {
		line := chart.Line{Name: k.Name, Level: k.Level}
		if !k.Level { // a level is drawn with its name
			line.Look = colours.Look(k.Name)
			b.Legend = append(b.Legend, Series{Name: k.Name, Look: line.Look})
		}
		for _, p := range k.Points {
			q := pageSample(p.Sample, c.Share)
			y := Quantity(q)
			if p.Given && q.Known() {
				q.Interval = statmath.Interval{Low: q.Value, High: q.Value}
				y = Cell{Text: digits(q.Value), Value: q}
			}
			line.Points = append(line.Points, chart.Point{X: p.X, Y: q})
			b.Table.Rows = append(b.Table.Rows, []Cell{Word(k.Name), xCell(p.X), y, whole(p.Sample.Episodes()), whole(q.N)})
		}
		lines = append(lines, line)
	}
	if !chart.Banded(lines) {
		b.Caption = strings.TrimSpace(b.Caption + " There are too many lines to draw their intervals. The table has them.")
	}
	b.Drawing = plot(e.Title, c.X, c.Y, c.Share).Lines(lines)
}

// xCell is an x value, written as on the axis: 1901, not 1,901.
func xCell(x float64) Cell {
	c := Real(x)
	if x == math.Trunc(x) && math.Abs(x) < 10_000 {
		c.Text = chart.Tick(x)
	}
	return c
}

func scatter(b *Block, e world.Exhibit, s world.Scatter, colours *Palette) {
	b.Table = &Table{Track: -1, Quiet: true, Columns: []Column{Key("name"), Number(s.X), Number(s.Y), Number("episodes"), Number("independent")}}
	var spots []chart.Spot
	for _, p := range s.Points {
		x, y := pageSample(p.X, s.Share), pageSample(p.Y, s.Share)
		spots = append(spots, chart.Spot{Name: p.Name, Look: colours.Look(p.Name), X: x, Y: y})
		b.Legend = append(b.Legend, Series{Name: p.Name, Look: colours.Look(p.Name)})
		b.Table.Rows = append(b.Table.Rows, []Cell{Word(p.Name), Quantity(x), Quantity(y), whole(max(p.X.Episodes(), p.Y.Episodes())), whole(max(x.N, y.N))})
	}
	b.Drawing = plot(e.Title, s.X, s.Y, s.Share).Scatter(spots, s.Share)
}

func bars(b *Block, e world.Exhibit, s world.Bars, colours *Palette) {
	b.Table = &Table{Track: -1, Columns: []Column{Key(s.X)}}
	var groups []chart.Group
	for _, g := range s.Series {
		name, look := g.Name, colours.Look(g.Name)
		if name == "" {
			name, look = s.Y, chart.Series(0)
		} else {
			b.Legend = append(b.Legend, Series{Name: name, Look: look, Bar: true})
		}
		b.Table.Columns = append(b.Table.Columns, Number(name))
		groups = append(groups, chart.Group{Name: g.Name, Look: look, Values: g.Values})
	}
	for i, label := range s.Labels {
		row := []Cell{Word(label)}
		for _, g := range s.Series {
			if i < len(g.Values) {
				row = append(row, Real(g.Values[i]))
			} else {
				row = append(row, Cell{Text: "–"})
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
func grid(g world.Grid) *Table {
	t := &Table{Track: -1, Filter: len(g.Rows) > 30}
	for i, name := range g.Columns {
		c := pageWords(name)
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
		row := make([]Cell, len(g.Columns))
		for i := range row {
			if i < len(r) {
				row[i] = gridCell(r[i])
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func gridCell(v any) Cell {
	switch v := v.(type) {
	case string:
		return Word(v)
	case int:
		return whole(v)
	case float64:
		return Real(v)
	case world.Episodes:
		return episodeCell(v)
	case *world.Sample:
		return Quantity(pageSample(v, false))
	case statmath.Quantity:
		return Quantity(v)
	case nil:
		return Cell{Text: "–"}
	default:
		return Word(fmt.Sprint(v))
	}
}
