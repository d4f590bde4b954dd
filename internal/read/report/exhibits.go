package report

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"strings"
	"sync"

	"parley/internal/kit/statmath"
	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
)

// ExhibitBlock turns an exhibit, which is plain data, into a block: it computes the intervals, and makes pictures that a kind drew harmless. ok is false if a report does not know what the exhibit shows.
func ExhibitBlock(e exhibit.Exhibit, colours *Palette) (b Block, ok bool) {
	b = Block{Title: e.Title, Caption: e.Caption}
	switch show := e.Show.(type) {
	case exhibit.Estimates:
		b.Table = estimates(show, colours)
	case exhibit.HeatMap:
		b.Heat, b.Table = heat(show)
	case exhibit.Curves:
		curves(&b, e, show, colours)
	case exhibit.Scatter:
		scatter(&b, e, show, colours)
	case exhibit.Bars:
		bars(&b, e, show, colours)
	case exhibit.Grid:
		b.Table = grid(show)
	case exhibit.Text:
		b.Text, b.Pre, b.Finding = show.Body, show.Pre, show.Finding
	case exhibit.Figure:
		figure(&b, show)
	case exhibit.Replay:
		b.Replay, b.Style = replay(show)
	default:
		return b, false
	}
	if b.Table != nil {
		b.Table.Name, b.Table.Title = e.Name, e.Title
	}
	return b, true
}

func estimates(e exhibit.Estimates, colours *Palette) *Table {
	t := &Table{Track: len(e.By), Share: e.Share, Grouped: len(e.By) > 1, Filter: len(e.Rows) > 30}
	for _, by := range e.By {
		t.Columns = append(t.Columns, KeyColumn(by))
	}
	t.Columns = append(append(t.Columns, NumberColumn(e.What)), countColumns()...)
	for _, r := range e.Rows {
		q := sampleEstimate(r.Sample, e.Share)
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
		t.Rows = append(t.Rows, append(append(row, c), countCells(r.Sample, q)...))
	}
	return t
}

// heat returns the map, and a table with the same numbers.
func heat(h exhibit.HeatMap) (*Heat, *Table) {
	t := &Table{Track: -1, Columns: []Column{KeyColumn(h.Row)}}
	for _, c := range h.Columns {
		t.Columns = append(t.Columns, NumberColumn(c))
	}
	values := make([][]statmath.Quantity, len(h.Rows))
	for i := range h.Rows {
		values[i] = make([]statmath.Quantity, len(h.Columns))
		for j := range h.Columns {
			var s *world.Sample
			if i < len(h.Cells) && j < len(h.Cells[i]) {
				s = h.Cells[i][j]
			}
			values[i][j] = sampleEstimate(s, h.Share)
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

func figure(b *Block, f exhibit.Figure) {
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

func replay(r exhibit.Replay) (*Replay, template.CSS) {
	base, style, _ := chart.Clean(r.Base) // an invalid picture is left out
	out := &Replay{Base: base}
	for _, f := range r.Frames {
		picture, more, _ := chart.Clean(f.SVG)
		style += more
		out.Frames = append(out.Frames, ReplayFrame{Title: f.Title, Turn: f.Turn, Picture: picture, Lines: f.Lines})
	}
	return out, style
}

func curves(b *Block, e exhibit.Exhibit, c exhibit.Curves, colours *Palette) {
	b.Table = &Table{Track: -1, Quiet: true, Columns: []Column{KeyColumn("series"), NumberColumn(c.X), NumberColumn(c.Y), NumberColumn("episodes"), NumberColumn("independent")}}
	var lines []chart.Line
	for _, k := range c.Curves {
		line := chart.Line{Name: k.Name, Level: k.Level}
		if !k.Level { // a level is drawn with its name
			line.Look = colours.Look(k.Name)
			b.Legend = append(b.Legend, Series{Name: k.Name, Look: line.Look})
		}
		for _, p := range k.Points {
			q := sampleEstimate(p.Sample, c.Share)
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

func scatter(b *Block, e exhibit.Exhibit, s exhibit.Scatter, colours *Palette) {
	b.Table = &Table{Track: -1, Quiet: true, Columns: []Column{KeyColumn("name"), NumberColumn(s.X), NumberColumn(s.Y), NumberColumn("episodes"), NumberColumn("independent")}}
	var spots []chart.Spot
	for _, p := range s.Points {
		x, y := sampleEstimate(p.X, s.Share), sampleEstimate(p.Y, s.Share)
		spots = append(spots, chart.Spot{Name: p.Name, Look: colours.Look(p.Name), X: x, Y: y})
		b.Legend = append(b.Legend, Series{Name: p.Name, Look: colours.Look(p.Name)})
		b.Table.Rows = append(b.Table.Rows, []Cell{Word(p.Name), Quantity(x), Quantity(y), whole(max(p.X.Episodes(), p.Y.Episodes())), whole(max(x.N, y.N))})
	}
	b.Drawing = plot(e.Title, s.X, s.Y, s.Share).Scatter(spots, s.Share)
}

func bars(b *Block, e exhibit.Exhibit, s exhibit.Bars, colours *Palette) {
	b.Table = &Table{Track: -1, Columns: []Column{KeyColumn(s.X)}}
	var groups []chart.Group
	for _, g := range s.Series {
		name, look := g.Name, colours.Look(g.Name)
		if name == "" {
			name, look = s.Y, chart.Series(0)
		} else {
			b.Legend = append(b.Legend, Series{Name: name, Look: look, Bar: true})
		}
		b.Table.Columns = append(b.Table.Columns, NumberColumn(name))
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
func grid(g exhibit.Grid) *Table {
	t := &Table{Track: -1, Filter: len(g.Rows) > 30}
	for i, name := range g.Columns {
		c := textColumn(name)
		for _, r := range g.Rows {
			if i < len(r) {
				switch v := r[i].(type) {
				case string:
					c.Number = false
				case exhibit.Episodes:
					c.Number = len(v) == 1
				case exhibit.Moment:
					c.Number = false
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
	case exhibit.Episodes:
		return episodeCell(v)
	case exhibit.Moment:
		c := Word(v.Frame)
		c.Episodes, c.Frame = []int{v.Episode}, v.Frame
		return c
	case *world.Sample:
		return Quantity(sampleEstimate(v, false))
	case statmath.Quantity:
		return Quantity(v)
	case nil:
		return Cell{Text: "–"}
	default:
		return Word(fmt.Sprint(v))
	}
}

// heatScale maps numbers to colours. A scale with both signs has a colour for each.
type heatScale struct{ low, high float64 }

// newHeatScale returns a scale over the bounds of the numbers. Where there is no bound, it ends at the
// largest number seen.
func newHeatScale(h exhibit.HeatMap, values [][]statmath.Quantity) heatScale {
	if h.Share {
		return heatScale{0, 1}
	}
	var seen []float64
	for _, row := range values {
		for _, q := range row {
			if q.Known() {
				seen = append(seen, q.Value)
			}
		}
	}
	round := chart.NewScale(4, seen...)
	s := heatScale{round.Min, round.Max}
	within, known := world.Bounds{}, false
	for _, row := range h.Cells {
		for _, c := range row {
			if c == nil {
				continue
			}
			if !known {
				within, known = c.Bounds, true
			}
			within = within.Join(c.Bounds)
		}
	}
	if within.Any() {
		return s
	}
	if !math.IsInf(within.Low, 0) {
		s.low = within.Low
	}
	if !math.IsInf(within.High, 0) {
		s.high = within.High
	}
	return s
}

// cell is a number and its colour.
func (s heatScale) cell(q statmath.Quantity, tip string) HeatCell {
	if !q.Known() {
		return HeatCell{Text: "–", Tip: tip, Level: -1}
	}
	c := s.colour(q.Value)
	c.Text, c.Tip = digits(math.Round(q.Value*100)/100), fmt.Sprintf("%s (n = %d)", tip, q.N)
	return c
}

func (s heatScale) colour(v float64) HeatCell {
	at := heatLevels / 2.0
	switch {
	case s.low < 0 && s.high > 0:
		at = math.Abs(v) / max(-s.low, s.high) * heatLevels
	case s.high > s.low:
		at = (v - s.low) / (s.high - s.low) * heatLevels
	}
	return HeatCell{Level: int(math.Round(min(heatLevels, max(0, at)))), Below: s.low < 0 && s.high > 0 && v < 0}
}

// ramp returns the colours from the lowest number to the highest.
func (s heatScale) ramp() (out []HeatCell) {
	for i := range heatLevels + 1 {
		out = append(out, s.colour(s.low+(s.high-s.low)*float64(i)/heatLevels))
	}
	return out
}

// KindSection is the ID of the section with the exhibits of the kind.
const KindSection = "kind"

// exhibitsSection returns the section with the exhibits of the kind.
func exhibitsSection(s Source, made exhibitsWaiter, colours *Palette) (out Section, err error) {
	all, failed, err := made()
	s.problems.note(failed)
	out = Section{ID: KindSection, Title: strings.ToUpper(s.Kind.Name[:1]) + s.Kind.Name[1:]}
	for _, e := range all {
		if b, ok := ExhibitBlock(e, colours); ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out, err
}

// makeExhibits returns the exhibits that the kind makes of a run in j, and those of the other kind whose episodes it plays. failed is what the
// code of a kind did wrong, and err why the run could not be read.
func makeExhibits(ctx context.Context, kind world.Kind, run *results.Run, j journal.Journal) (all []exhibit.Exhibit, failed, err error) {
	for i, k := range kind.All() {
		made, wrong, err := exhibitsOf(ctx, k, run, j, func(p world.Played) bool { return i == 0 || p.Spec.Kind == k.Name })
		if err != nil {
			return nil, nil, err
		}
		all, failed = append(all, made...), errors.Join(failed, wrong)
	}
	return all, failed, nil
}

// exhibitsOf returns the exhibits that a kind makes of some episodes of a run.
func exhibitsOf(ctx context.Context, kind world.Kind, run *results.Run, j journal.Journal, wanted func(world.Played) bool) (all []exhibit.Exhibit, failed, err error) {
	reporter, ok := world.As[part.Reporter](kind)
	if !ok {
		return nil, nil, nil
	}
	var x exhibit.Exhibitor
	for _, part := range []struct {
		name string
		call func() error
	}{
		{"Exhibitor", func() error {
			if x = reporter.Exhibitor(); x == nil {
				return errors.New("returned nil")
			}
			return nil
		}},
		{"Add", func() error {
			err = run.EachWithData(ctx, j, func(p world.Played) error {
				if wanted(p) {
					x.Add(p)
				}
				return nil
			})
			return nil
		}},
		{"Exhibits", func() error { all = x.Exhibits(); return nil }},
	} {
		if failed := results.CallKind(kind, part.name, part.call); failed != nil || err != nil {
			return nil, failed, err
		}
	}
	return all, nil, nil
}

// exhibitsWaiter waits for the exhibits of a kind, and returns what Made does.
type exhibitsWaiter func() (all []exhibit.Exhibit, failed, err error)

// startExhibits is Made while its caller continues. The caller must wait.
func startExhibits(ctx context.Context, kind world.Kind, run *results.Run, j journal.Journal) exhibitsWaiter {
	var all []exhibit.Exhibit
	var failed, err error
	var wg sync.WaitGroup
	wg.Go(func() { all, failed, err = makeExhibits(ctx, kind, run, j) })
	return func() ([]exhibit.Exhibit, error, error) {
		wg.Wait()
		return all, failed, err
	}
}
