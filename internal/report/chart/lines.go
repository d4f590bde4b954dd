package chart

import (
	"fmt"
	"html/template"
	"strings"

	"parley/internal/stats"
)

// Line is a series of a line chart.
type Line struct {
	Name   string
	Class  string  // see Class
	Points []Point // from left to right
	// Level means that it is no series but a value to compare with: drawn through, with its
	// name.
	Level bool
}

// Point is a place on a line. Where its interval is bounded, it is drawn as a band.
type Point struct {
	X float64
	Y stats.Quantity
}

// Plot is a chart with two axes.
type Plot struct {
	Label        string // the chart in words, for those who do not see it
	X, Y         string // what the axes are
	Height       int
	YScale       *Scale // default: from what is drawn, 0 included
	XTick, YTick func(float64) string
}

// The room around a plot, and how much of the width is left of it for the ticks.
const (
	above, below = 22.0, 38.0
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
	f := p.frame(NewScale(6, xs...), p.yScale(ys))
	for _, l := range lines {
		f.band(l)
	}
	levels := 0
	for _, l := range lines {
		if l.Level {
			f.level(l, levels)
			levels++
			continue
		}
		f.path(l)
		f.dots(l)
	}
	return f.c.done()
}

// level draws a value to compare with. Names of two that are close stand at different ends.
func (f *frame) level(l Line, n int) {
	if len(l.Points) == 0 || !finite(l.Points[0].Y.Value) {
		return
	}
	y := f.yAt(l.Points[0].Y.Value)
	f.c.line(pct(left), px(y), pct(right), px(y), "mark")
	if n%2 == 0 {
		f.c.text(pct(right), px(y-4), "marked", "end", l.Name)
	} else {
		f.c.text(pct(left+0.01), px(y-4), "marked", "start", l.Name)
	}
}

// Area draws one series as a filled step over equal parts of the x axis, as a rate over
// time.
func (p Plot) Area(width float64, values []float64, class string, tip func(i int) string) template.HTML {
	if len(values) == 0 {
		return ""
	}
	f := p.frame(NewScale(6, 0, width*float64(len(values))), p.yScale(values))
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
	f := p.frame(NewLogScale(edges...), p.yScale(counts))
	for i, n := range counts {
		from, to := f.x(edges[i]), f.x(edges[i+1])
		tip := fmt.Sprintf("%s to %s: %s", p.xTick(edges[i]), p.xTick(edges[i+1]), Tick(n))
		f.c.put("rect", tip, "x", pct(from), "y", f.y(n), "width", pct(max(0.002, to-from-0.001)), "height", px(f.bottom()-f.yAt(n)), "class", "area s0")
	}
	for i, m := range marks {
		at := pct(f.x(m.X))
		f.c.line(at, px(above), at, px(f.bottom()), "mark")
		f.c.text(at, px(above+10+13*float64(i%2)), "marked", "middle", m.Name)
	}
	return f.c.done()
}

// Mark is a named place on the x axis.
type Mark struct {
	X    float64
	Name string
}

func (p Plot) yScale(values []float64) Scale {
	if p.YScale != nil {
		return *p.YScale
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
		height = 260
	}
	f := &frame{c: open(height, p.Label), xs: xs, ys: ys, height: float64(height) - above - below}
	tick := p.YTick
	if tick == nil {
		tick = Tick
	}
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
	for i, t := range xs.Ticks {
		side := "middle"
		if i == len(xs.Ticks)-1 {
			side = "end" // there is no room beyond
		}
		f.c.text(pct(f.x(t)), px(f.bottom()+16), "tick", side, p.xTick(t))
	}
	f.c.text(pct(right), px(f.bottom()+33), "axis", "end", p.X)
	return f
}

func (f *frame) x(v float64) float64   { return left + f.xs.At(v)*(right-left) }
func (f *frame) yAt(v float64) float64 { return above + (1-f.ys.At(v))*f.height }
func (f *frame) bottom() float64       { return above + f.height }

// y writes where a value is, or "" where there is none.
func (f *frame) y(v float64) string {
	if !finite(v) {
		return ""
	}
	return px(f.yAt(v))
}

// stretched draws a path in a picture of its own that is 1,000 wide however wide it is
// shown: a path has no shares of the width.
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
		f.stretched("M"+strings.Join(append(there, back...), "L")+"Z", "band "+l.Class)
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
		f.stretched("M"+strings.Join(at, "L"), "line "+l.Class)
	}
}

// mostDots is up to how many points of a line are drawn as dots too.
const mostDots = 60

func (f *frame) dots(l Line) {
	if len(l.Points) > mostDots {
		return
	}
	for _, q := range l.Points {
		if y := f.y(q.Y.Value); y != "" && finite(q.X) {
			f.c.put("circle", l.Name+" at "+Tick(q.X)+": "+q.Y.String(), "cx", pct(f.x(q.X)), "cy", y, "r", "3", "class", "dot "+l.Class)
		}
	}
}
