package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/kit/statmath"
)

// Line is a series of a line chart.
type Line struct {
	Name   string
	Look   Look
	Points []Point // from left to right
	// Level makes it a reference value, drawn across the chart with its name.
	Level bool
	// Bare means that its points are not drawn as dots.
	Bare bool
}

// Point is a point of a line. A bounded interval is drawn as a band.
type Point struct {
	X float64
	Y statmath.Quantity
}

// Plot is a chart with two axes.
type Plot struct {
	Label        string // describes the chart for screen readers
	X, Y         string // names of the axes
	Height       int
	Ticks        int    // about how many the x axis of Lines has; default: 6
	YScale       *Scale // default: covers the values and 0
	XTick, YTick func(float64) string
}

// The margins of a plot: above and below in pixels, left and right as shares of the width.
const (
	above, below = 22.0, 48.0
	left, right  = 0.08, 0.985
)

// Lines draws lines with bands.
func (p Plot) Lines(lines []Line) template.HTML {
	var xs, ys []float64
	for _, l := range lines {
		for _, q := range l.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y.Value, q.Y.Low, q.Y.High)
		}
	}
	ticks := cmp.Or(p.Ticks, 6)
	x := NewScale(ticks, xs...)
	if wholes(xs) {
		x = newWholeScale(ticks, xs...)
	}
	f := p.frame(x, p.yScale(ys, false))
	if Banded(lines) {
		for _, l := range lines {
			f.band(l)
		}
	}
	var names []label
	for _, l := range lines {
		if l.Level {
			names = append(names, f.level(l)...)
			continue
		}
		f.path(l)
		f.dots(l)
	}
	f.c.labels(left, names, nil)
	return f.c.done()
}

// Banded reports whether intervals of lines are drawn. Many bands would hide each other.
func Banded(lines []Line) bool {
	const limit = 5
	n := 0
	for _, l := range lines {
		if !l.Level {
			n++
		}
	}
	return n <= limit
}

// level draws a reference value, and returns its label.
func (f *frame) level(l Line) []label {
	if len(l.Points) == 0 || !finite(l.Points[0].Y.Value) {
		return nil
	}
	y := f.yAt(l.Points[0].Y.Value)
	f.c.line(pct(left), px(y), pct(right), px(y), "mark")
	w := wordsWidth(l.Name)
	return []label{{x: right, y: y, words: l.Name, class: "marked", spots: []spot{{0, -4, "end"}, {0, 13, "end"}, {-w - 12, -4, "end"}, {-w - 12, 13, "end"}}}}
}

// Area draws one series as filled steps over equal parts of the x axis, for example a rate over
// time.
func (p Plot) Area(width float64, values []float64, class string, tip func(i int) string) template.HTML {
	if len(values) == 0 {
		return ""
	}
	f := p.frame(NewScale(6, 0, width*float64(len(values))), p.yScale(values, false))
	for i, v := range values {
		from, to := f.x(float64(i)*width), f.x(float64(i+1)*width)
		y := f.y(v)
		if y == "" {
			continue
		}
		f.c.put("rect", tip(i), "x", pct(from), "y", y, "width", pct(max(0, to-from)), "height", px(f.bottom()-f.yAt(v)), "class", "area "+class)
	}
	return f.c.done()
}

// Histogram draws bars over ranges of a logarithmic axis; edges has one more than counts.
func (p Plot) Histogram(edges, counts []float64, marks []Mark) template.HTML {
	f := p.frame(newLogScale(edges...), p.yScale(counts, true))
	for i, n := range counts {
		from, to := f.x(edges[i]), f.x(edges[i+1])
		tip := fmt.Sprintf("%s to %s: %s", p.xTick(edges[i]), p.xTick(edges[i+1]), Tick(n))
		f.c.put("rect", tip, "x", pct(from), "y", f.y(n), "width", pct(max(0.002, to-from-0.001)), "height", px(f.bottom()-f.yAt(n)), "class", "area s0")
	}
	var names []label
	for _, m := range marks {
		at := f.x(m.X)
		f.c.line(pct(at), px(above), pct(at), px(f.bottom()), "mark")
		names = append(names, label{x: at, y: above, words: m.Name, class: "marked", spots: []spot{{0, 10, "middle"}, {0, 24, "middle"}, {-4, 10, "end"}, {-4, 24, "end"}}})
	}
	f.c.labels(left, names, nil)
	return f.c.done()
}

// Mark is a named position on the x axis.
type Mark struct {
	X    float64
	Name string
}

func (p Plot) yScale(values []float64, whole bool) Scale {
	if p.YScale != nil {
		return *p.YScale
	}
	if whole {
		return newWholeScale(4, append(values, 0)...)
	}
	return NewScale(4, append(values, 0)...)
}

func (p Plot) xTick(x float64) string {
	if p.XTick != nil {
		return p.XTick(x)
	}
	return Tick(x)
}

// frame is a plot with its axes drawn.
type frame struct {
	c      *canvas
	xs, ys Scale
	height float64 // between above and below
}

func (p Plot) frame(xs, ys Scale) *frame {
	height := p.Height
	if height == 0 {
		height = 270
	}
	tick := p.YTick
	if tick == nil {
		tick = Tick
	}
	longest := 0
	for _, t := range ys.Ticks {
		longest = max(longest, utf8.RuneCountInString(tick(t)))
	}
	f := &frame{c: open(height, p.Label, "y"+strconv.Itoa(min(longest, 9))), xs: xs, ys: ys, height: float64(height) - above - below}
	f.c.text("0", "12", "axis", "start", p.Y)
	for _, t := range ys.Ticks {
		y := f.yAt(t)
		class := "grid"
		if t == 0 {
			class = "zero"
		}
		f.c.line(pct(left), px(y), pct(right), px(y), class)
		f.c.text(pct(left-0.008), px(y+4), "tick", "end", tick(t))
	}
	var ticks []label
	for i, t := range xs.Ticks {
		side := spot{0, 0, "middle"}
		if i == len(xs.Ticks)-1 {
			side.anchor = "end" // there is no space to the right
		}
		ticks = append(ticks, label{x: f.x(t), y: f.bottom() + 18, words: p.xTick(t), class: "tick", spots: []spot{side}})
	}
	f.c.labels(0, ticks, nil)
	f.c.text(pct(right), px(f.bottom()+below-4), "axis", "end", p.X)
	return f
}

func (f *frame) x(v float64) float64   { return left + f.xs.At(v)*(right-left) }
func (f *frame) yAt(v float64) float64 { return above + (1-f.ys.At(v))*f.height }
func (f *frame) bottom() float64       { return above + f.height }

// y returns the position of a value, or "" if it is not finite.
func (f *frame) y(v float64) string {
	if !finite(v) {
		return ""
	}
	return px(f.yAt(v))
}

// stretched draws a path in a nested picture that is 1,000 units wide at any
// width, because a path cannot use shares of the width.
func (f *frame) stretched(d, class string) {
	if d == "" {
		return
	}
	f.c.b.WriteString(fmt.Sprintf(`<svg x="0" y="0" width="100%%" height="%s" viewBox="0 0 1000 %s" preserveAspectRatio="none">`, px(f.height+above+below), px(f.height+above+below)))
	f.c.put("path", "", "d", d, "class", class)
	f.c.b.WriteString("</svg>")
}

func (f *frame) band(l Line) {
	var there, back []string
	for _, q := range l.Points {
		if finite(q.X) && finite(q.Y.Low) && finite(q.Y.High) {
			x := px(1000 * f.x(q.X))
			there = append(there, x+" "+px(f.yAt(q.Y.High)))
			back = append([]string{x + " " + px(f.yAt(q.Y.Low))}, back...)
		}
	}
	if len(there) > 1 {
		f.stretched("M"+strings.Join(append(there, back...), "L")+"Z", "band "+l.Look.Class)
	}
}

func (f *frame) path(l Line) {
	var at []string
	for _, q := range l.Points {
		if finite(q.X) && finite(q.Y.Value) {
			at = append(at, px(1000*f.x(q.X))+" "+px(f.yAt(q.Y.Value)))
		}
	}
	if len(at) > 1 {
		f.stretched("M"+strings.Join(at, "L"), "line "+l.Look.Class)
	}
}

// maxDots is the maximum number of points of a line that are drawn as dots.
const maxDots = 60

func (f *frame) dots(l Line) {
	if l.Bare || len(l.Points) > maxDots {
		return
	}
	for _, q := range l.Points {
		if y := f.y(q.Y.Value); y != "" && finite(q.X) {
			f.c.marker(l.Look, pct(f.x(q.X)), y, 3.2, l.Name+" at "+Tick(q.X)+": "+q.Y.String())
		}
	}
}
