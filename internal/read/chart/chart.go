// Package chart draws the charts of a report as SVG.
//
// A drawing contains only text and shapes, whatever the labels are. It is as wide as
// the space it gets; its text keeps its size and does not overlap. Colours are classes (s0 to s7
// for series, ink, grid and so on) that the page defines for light and dark mode. The same input
// gives the same bytes. Numbers that are not finite are left out.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// canvas is SVG being written. Every text and attribute is escaped.
type canvas struct{ b strings.Builder }

// open begins a picture that fills the width. A picture without a label repeats
// the text beside it.
func open(height int, label, class string) *canvas {
	c := &canvas{}
	c.b.WriteString(`<svg class="` + strings.TrimSpace("chart "+class) + `" width="100%" height="` + strconv.Itoa(height) + `"`)
	if label == "" {
		c.b.WriteString(` aria-hidden="true">`)
	} else {
		c.b.WriteString(` role="img" aria-label="` + template.HTMLEscapeString(label) + `">`)
	}
	return c
}

func (c *canvas) done() template.HTML {
	c.b.WriteString("</svg>")
	return template.HTML(c.b.String()) //nolint:gosec // put writes nothing that is not escaped
}

// put writes an element with attributes, name and value in turn, and a tooltip.
func (c *canvas) put(name, tip string, attributes ...string) {
	c.b.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		c.b.WriteString(" " + attributes[i] + `="` + template.HTMLEscapeString(attributes[i+1]) + `"`)
	}
	if tip == "" {
		c.b.WriteString("/>")
		return
	}
	c.b.WriteString(` data-tip="` + template.HTMLEscapeString(tip) + `"/>`)
}

// maxText is the maximum length of a label, in characters: text in a drawing does not wrap.
const maxText = 32

func shortened(words string) string {
	if r := []rune(words); len(r) > maxText {
		return string(r[:maxText-1]) + "…"
	}
	return words
}

// text writes words. The anchor is start, middle or end.
func (c *canvas) text(x, y, class, anchor, words string) { c.textAt(x, y, "0", class, anchor, words) }

// textAt writes words at dx from x, which may be a share of the width.
func (c *canvas) textAt(x, y, dx, class, anchor, words string) {
	c.b.WriteString(`<text x="` + x + `" y="` + y + `"`)
	if dx != "0" {
		c.b.WriteString(` dx="` + dx + `"`)
	}
	c.b.WriteString(` class="` + class + `" text-anchor="` + anchor + `">` + template.HTMLEscapeString(shortened(words)) + "</text>")
}

// line draws a line.
func (c *canvas) line(x1, y1, x2, y2, class string) {
	c.put("line", "", "x1", x1, "y1", y1, "x2", x2, "y2", y2, "class", class)
}

// pct writes a share of the width.
func pct(share float64) string { return trim(100*share, 2) + "%" }

// px writes a length.
func px(n float64) string { return trim(n, 1) }

func trim(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Look is how a series is drawn. Series differ in colour and in the shape of their
// markers, and if there are more series than colours also in the dashes of their lines,
// so that you can distinguish them without seeing colours.
type Look struct {
	Class  string // its colour and dashes, which the page defines
	Marker int    // the shape of its points: see marker
}

// The numbers of colours, dashes and shapes. The numbers of colours and shapes have no
// common divisor, so that series of one colour differ in shape.
const (
	colours = 7
	dashes  = 4
	shapes  = 6
)

// Series returns the look of the i-th series; -1 is grey, for what belongs to no series.
func Series(i int) Look {
	if i < 0 {
		return Look{Class: "s" + strconv.Itoa(colours)}
	}
	return Look{Class: fmt.Sprintf("s%d d%d", i%colours, i/colours%dashes), Marker: i % shapes}
}

// Own returns the look of the i-th series whose colour is the class of the page.
func Own(class string, i int) Look { return Look{Class: class, Marker: max(0, i) % shapes} }

// marker draws a point of a series. A circle can use shares of the width; other shapes need
// a nested picture for that.
func (c *canvas) marker(l Look, x, y string, r float64, tip string) {
	class := "dot " + l.Class
	if l.Marker == 0 {
		c.put("circle", tip, "cx", x, "cy", y, "r", px(r), "class", class)
		return
	}
	c.b.WriteString(`<svg x="` + x + `" y="` + y + `" overflow="visible" class="` + template.HTMLEscapeString(class) + `"`)
	if tip != "" {
		c.b.WriteString(` data-tip="` + template.HTMLEscapeString(tip) + `"`)
	}
	c.b.WriteString(`><path d="` + shape(l.Marker, r) + `"/></svg>`)
}

// shape returns the outline of a marker around 0, 0.
func shape(marker int, r float64) string {
	f := func(x float64) string { return px(x * r) }
	switch marker {
	case 1: // a square
		return "M" + f(-0.95) + " " + f(-0.95) + "h" + f(1.9) + "v" + f(1.9) + "h" + f(-1.9) + "z"
	case 2: // a triangle
		return "M0 " + f(-1.3) + "L" + f(1.25) + " " + f(0.95) + "H" + f(-1.25) + "z"
	case 3: // a diamond
		return "M0 " + f(-1.4) + "L" + f(1.4) + " 0L0 " + f(1.4) + "L" + f(-1.4) + " 0z"
	case 4: // a triangle upside down
		return "M0 " + f(1.3) + "L" + f(1.25) + " " + f(-0.95) + "H" + f(-1.25) + "z"
	default: // a cross
		return "M" + f(-0.5) + " " + f(-1.4) + "h" + f(1) + "v" + f(0.9) + "h" + f(0.9) + "v" + f(1) + "h" + f(-0.9) + "v" + f(0.9) +
			"h" + f(-1) + "v" + f(-0.9) + "h" + f(-0.9) + "v" + f(-1) + "h" + f(0.9) + "z"
	}
}

// Swatch returns a series for a legend: its line with a marker, or a piece of its bar.
func Swatch(l Look, bar bool) template.HTML {
	c := &canvas{}
	c.b.WriteString(`<svg class="swatch" width="28" height="12" aria-hidden="true">`)
	if bar {
		c.put("rect", "", "x", "6", "y", "1", "width", "16", "height", "10", "class", "area "+l.Class)
	} else {
		c.line("0", "6", "28", "6", "line "+l.Class)
		c.marker(l, "14", "6", 4, "")
	}
	return c.done()
}
