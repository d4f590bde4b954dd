// Package chart draws the charts of a report as SVG.
//
// A drawing contains only text and shapes, whatever the labels are. It is as wide as
// the space it gets; its text keeps its size and does not overlap. Colours are classes (s0 to s7
// for series, ink, grid and so on) that the page defines for light and dark mode. The same input
// gives the same bytes. Numbers that are not finite are left out.
package chart

import (
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
