package chart

import (
	"html/template"

	"parley/internal/kit/statmath"
)

// Spot is a named point with an interval in both directions.
type Spot struct {
	Name string
	Look Look
	X, Y statmath.Quantity
}

// Scatter draws spots. With shares, both axes go from 0 to 1 and a dashed line marks equal
// shares. Names that do not fit are left out; the legend has them all.
func (p Plot) Scatter(spots []Spot, shares bool) template.HTML {
	var xs, ys []float64
	for _, s := range spots {
		xs, ys = append(xs, s.X.Value, s.X.Low, s.X.High), append(ys, s.Y.Value, s.Y.Low, s.Y.High)
	}
	x, y := NewScale(5, xs...), NewScale(4, ys...)
	if shares {
		x, y = Unit(), Unit()
	}
	f := p.frame(x, y)
	if shares {
		f.c.line(pct(f.x(0)), px(f.yAt(0)), pct(f.x(1)), px(f.yAt(1)), "even")
	}
	for _, s := range spots {
		f.whiskers(s)
	}
	var names []label
	var points []obstacle
	for _, s := range spots {
		if !finite(s.X.Value) || !finite(s.Y.Value) {
			continue
		}
		at, height := f.x(s.X.Value), f.yAt(s.Y.Value)
		f.c.marker(s.Look, pct(at), px(height), 5, s.Name+": "+p.X+" "+s.X.String()+"; "+p.Y+" "+s.Y.String())
		points = append(points, obstacle{at, height, 5})
		names = append(names, label{x: at, y: height, words: s.Name, class: "marked", spots: []spot{
			{9, -7, "start"}, {9, 15, "start"}, {-9, -7, "end"}, {-9, 15, "end"}, {0, -11, "middle"}, {0, 20, "middle"}, {12, 4, "start"}, {-12, 4, "end"},
		}})
	}
	f.c.labels(left, names, points)
	return f.c.done()
}

func (f *frame) whiskers(s Spot) {
	x, y := s.X.Value, s.Y.Value
	if !finite(x) || !finite(y) {
		return
	}
	if finite(s.X.Low) && finite(s.X.High) {
		f.c.line(pct(f.x(s.X.Low)), px(f.yAt(y)), pct(f.x(s.X.High)), px(f.yAt(y)), "whisker "+s.Look.Class)
	}
	if finite(s.Y.Low) && finite(s.Y.High) {
		f.c.line(pct(f.x(x)), px(f.yAt(s.Y.Low)), pct(f.x(x)), px(f.yAt(s.Y.High)), "whisker "+s.Look.Class)
	}
}
