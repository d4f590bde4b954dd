package chart

import (
	"html/template"
	"math"

	"parley/internal/kit/statmath"
)

// Track draws one number with its interval on a scale, for a row of a table. An unknown end runs out of the picture.
func Track(q statmath.Quantity, s Scale, look Look, tip string) template.HTML {
	const middle = "11"
	c := open(22, "", "")
	for _, t := range s.Ticks {
		c.line(pct(s.At(t)), "0", pct(s.At(t)), "22", "grid")
	}
	if s.Min < 0 && s.Max > 0 {
		c.line(pct(s.At(0)), "0", pct(s.At(0)), "22", "zero")
	}
	if !finite(q.Value) {
		return c.done()
	}
	low, high := s.At(q.Low), s.At(q.High)
	if math.IsInf(q.Low, -1) {
		low = 0
	}
	if math.IsInf(q.High, 1) {
		high = 1
	}
	if finite(q.Low) || finite(q.High) { // a line without ends would look like an interval
		c.line(pct(low), middle, pct(high), middle, "whisker "+look.Class)
	}
	for _, end := range []struct{ at, value float64 }{{low, q.Low}, {high, q.High}} {
		if finite(end.value) {
			c.line(pct(end.at), "7", pct(end.at), "15", "whisker "+look.Class)
		}
	}
	c.marker(look, pct(s.At(q.Value)), middle, 4.5, tip)
	return c.done()
}

// Axis draws the ticks of a scale, for the head of a column of tracks.
func Axis(s Scale) template.HTML {
	c := open(16, "", "")
	for i, t := range s.Ticks {
		class := "tick"
		if i > 0 && i < len(s.Ticks)-1 {
			class = "tick minor" // hidden on a narrow page
		}
		c.text(pct(s.At(t)), "12", class, anchor(i, len(s.Ticks)), Tick(t))
	}
	return c.done()
}

// anchor keeps the first and the last of n labels inside the picture.
func anchor(i, n int) string {
	switch i {
	case 0:
		return "start"
	case n - 1:
		return "end"
	default:
		return "middle"
	}
}
