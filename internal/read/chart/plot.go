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
	Now          bool   // it has a line that the script of a page moves along the x axis
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
	if p.Now {
		f.c.put("line", "", "class", "now", "data-at", fmt.Sprintf("%g %g %g %g", 100*left, 100*right, x.Min, x.Max), "y1", px(above), "y2", px(f.bottom()), "visibility", "hidden")
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

// Group is a series of bars, one for every label.
type Group struct {
	Name   string
	Look   Look
	Values []float64
}

// Bars draws bars over labels, those of several groups side by side. If
// there are many labels, it writes only some.
func (p Plot) Bars(labels []string, groups []Group) template.HTML {
	if len(labels) == 0 || len(groups) == 0 {
		return ""
	}
	var ys []float64
	for _, g := range groups {
		ys = append(ys, g.Values...)
	}
	f := p.frame(Scale{Min: 0, Max: 1}, p.yScale(ys, wholes(ys)))
	room := (right - left) / float64(len(labels))
	wide := min(room*0.8/float64(len(groups)), maxBar)
	step := every(len(labels), maxLabels)
	var names []label
	for i, words := range labels {
		middle := left + (float64(i)+0.5)*room
		from := middle - wide*float64(len(groups))/2
		for j, g := range groups {
			if i < len(g.Values) && finite(g.Values[i]) {
				f.bar(g, words, g.Values[i], from+float64(j)*wide, wide)
			}
		}
		if i%step == 0 {
			names = append(names, label{x: middle, y: f.bottom() + 18, words: words, class: "tick", spots: []spot{{0, 0, "middle"}, {0, 14, "middle"}}})
		}
	}
	f.c.labels(0, names, nil)
	return f.c.done()
}

const (
	maxBar    = 0.12 // maximum width of a bar
	maxLabels = 24
)

func (f *frame) bar(g Group, words string, v, from, wide float64) {
	top, foot := f.yAt(max(v, 0)), f.yAt(min(v, 0))
	tip := words + ": " + Tick(v)
	if g.Name != "" {
		tip = g.Name + ", " + tip
	}
	f.c.put("rect", tip, "x", pct(from), "y", px(top), "width", pct(wide*0.96), "height", px(foot-top), "class", "area "+g.Look.Class)
}

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
