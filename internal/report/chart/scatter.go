package chart

import (
	"html/template"

	"parley/internal/stats"
)

// Spot is a named point with an interval in both directions.
type Spot struct {
	Name  string
	Class string // see Class
	X, Y  stats.Quantity
}

// Scatter draws spots. With shares, both axes go from 0 to 1 and equal shares are on a
// dashed line.
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
	for _, s := range spots {
		if !finite(s.X.Value) || !finite(s.Y.Value) {
			continue
		}
		at, height := f.x(s.X.Value), f.yAt(s.Y.Value)
		f.c.put("circle", s.Name+": "+p.X+" "+s.X.String()+"; "+p.Y+" "+s.Y.String(), "cx", pct(at), "cy", px(height), "r", "5", "class", "dot "+s.Class)
		side, shift := "start", 0.012
		if at > 0.75 {
			side, shift = "end", -0.012
		}
		f.c.text(pct(at+shift), px(height-8), "marked", side, s.Name)
	}
	return f.c.done()
}

func (f *frame) whiskers(s Spot) {
	x, y := s.X.Value, s.Y.Value
	if !finite(x) || !finite(y) {
		return
	}
	if finite(s.X.Low) && finite(s.X.High) {
		f.c.line(pct(f.x(s.X.Low)), px(f.yAt(y)), pct(f.x(s.X.High)), px(f.yAt(y)), "whisker "+s.Class)
	}
	if finite(s.Y.Low) && finite(s.Y.High) {
		f.c.line(pct(f.x(x)), px(f.yAt(s.Y.Low)), pct(f.x(x)), px(f.yAt(s.Y.High)), "whisker "+s.Class)
	}
}
