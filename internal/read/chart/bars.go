package chart

import (
	"html/template"
)

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
