package chart

import (
	"html/template"
	"math"
	"slices"
	"strconv"

	"parley/internal/kit/statmath"
)

// Scale maps numbers to positions from 0 to 1.
type Scale struct {
	Min, Max float64
	Ticks    []float64
	log      bool
}

// scaleEnd is the largest number on a scale. What is beyond is drawn there.
const scaleEnd = 1e300

// NewScale returns a scale that holds all finite values, with about n round ticks.
func NewScale(n int, values ...float64) Scale { return newScale(n, 0, values) }

// newWholeScale returns a scale whose ticks are whole numbers, for counts such as turns
// and years.
func newWholeScale(n int, values ...float64) Scale { return newScale(n, 1, values) }

// newScale returns a scale with steps of at least minStep.
func newScale(n int, minStep float64, values []float64) Scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			v = min(scaleEnd, max(-scaleEnd, v))
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 0, 1
	}
	switch {
	case low == 0 && high == 0:
		high = max(1, minStep)
	case low == high:
		low, high = low-max(0.5, minStep), high+max(0.5, minStep)
	}
	step := roundStep((high - low) / float64(max(n, 1)))
	if minStep > 0 {
		step = max(minStep, math.Ceil(step))
	}
	if !finite(step) || step <= 0 {
		return Scale{Min: low, Max: high}
	}
	s := Scale{Min: math.Floor(low/step+1e-9) * step, Max: math.Ceil(high/step-1e-9) * step}
	if s.Min == s.Max {
		s.Max += step
	}
	for i := 0; i <= 4*n+4; i++ {
		t := s.Min + float64(i)*step
		if t > s.Max+step/2 {
			break
		}
		s.Ticks = append(s.Ticks, t)
	}
	return s
}

// wholes reports whether all finite values are whole numbers of moderate size.
func wholes(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return finite(v) && (v != math.Trunc(v) || math.Abs(v) > 1e9) })
}

// Unit returns the scale of shares, from 0 to 1.
func Unit() Scale {
	return Scale{Min: 0, Max: 1, Ticks: []float64{0, 0.25, 0.5, 0.75, 1}}
}

// newLogScale returns a logarithmic scale whose ticks are powers of ten. It ignores values that are not above 0.
func newLogScale(values ...float64) Scale {
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if finite(v) && v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 {
		low, high = 1, 10
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if from == to {
		to++
	}
	s := Scale{Min: math.Pow(10, from), Max: math.Pow(10, to), log: true}
	for e := from; e <= to; e++ {
		s.Ticks = append(s.Ticks, math.Pow(10, e))
	}
	return s
}

// At returns the position of x, from 0 to 1. A number beyond the scale is at its end.
func (s Scale) At(x float64) float64 {
	low, high := s.Min, s.Max
	if s.log {
		x, low, high = math.Log10(x), math.Log10(low), math.Log10(high)
	}
	at := (x - low) / (high - low)
	if math.IsNaN(at) {
		return 0
	}
	return min(1, max(0, at))
}

// roundStep returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least x.
func roundStep(x float64) float64 {
	if x <= 0 || !finite(x) {
		return 0
	}
	ten := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*ten >= x*(1-1e-9) {
			return m * ten
		}
	}
	return 10 * ten
}

// Tick formats a number for an axis: 15k, 0.25, 20, and 1901, which may be a year.
func Tick(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 10_000 {
		return strconv.Itoa(int(x))
	}
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(x) >= unit.size {
			return strconv.FormatFloat(round(x/unit.size), 'g', -1, 64) + unit.name
		}
	}
	if math.Abs(x) >= 1e-7 { // small sums of money are easier to read without an exponent
		return strconv.FormatFloat(round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(round(x), 'g', -1, 64)
}

// round removes the rounding errors of sums of steps.
func round(x float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 10, 64), 64)
	if err != nil || math.Abs(r) < 1e-12 {
		return 0
	}
	return r
}

// Track draws one number with its interval on a scale, for a row of a table. An unknown end runs out of the picture.
func Track(q statmath.Quantity, s Scale, look Look, tip string) template.HTML {
	const height = 22
	c := tracks(height, s)
	c.mean(Mean{q, look, tip}, s, height/2, 4.5)
	return c.done()
}

// Mean is a number with its interval.
type Mean struct {
	statmath.Quantity
	Look Look
	Tip  string
}

// Means draws several numbers below each other on one scale, small enough for a line of a list.
func Means(all []Mean, s Scale) template.HTML {
	const lane = 10
	c := tracks(lane*len(all), s)
	for i, m := range all {
		c.mean(m, s, float64(lane*i+lane/2), 3.2)
	}
	return c.done()
}

// tracks begins a picture with the lines of a scale.
func tracks(height int, s Scale) *canvas {
	c, bottom := open(height, "", ""), strconv.Itoa(height)
	for _, t := range s.Ticks {
		c.line(pct(s.At(t)), "0", pct(s.At(t)), bottom, "grid")
	}
	if s.Min < 0 && s.Max > 0 {
		c.line(pct(s.At(0)), "0", pct(s.At(0)), bottom, "zero")
	}
	return c
}

// mean draws a number with its interval at a height.
func (c *canvas) mean(m Mean, s Scale, y, r float64) {
	if !finite(m.Value) {
		return
	}
	middle := px(y)
	low, high := s.At(m.Low), s.At(m.High)
	if math.IsInf(m.Low, -1) {
		low = 0
	}
	if math.IsInf(m.High, 1) {
		high = 1
	}
	if finite(m.Low) || finite(m.High) { // a line without ends would look like an interval
		c.line(pct(low), middle, pct(high), middle, "whisker "+m.Look.Class)
	}
	for _, end := range []struct{ at, value float64 }{{low, m.Low}, {high, m.High}} {
		if finite(end.value) {
			c.line(pct(end.at), px(y-0.9*r), pct(end.at), px(y+0.9*r), "whisker "+m.Look.Class)
		}
	}
	c.marker(m.Look, pct(s.At(m.Value)), middle, r, m.Tip)
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
