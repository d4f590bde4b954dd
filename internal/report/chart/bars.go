package chart

import (
	"html/template"
)

// Group is the bars of one series, one for every label.
type Group struct {
	Name   string
	Class  string // see Class
	Values []float64
}

// Bars draws bars over labels; those of several groups stand beside each other. Where
// labels are many, only some are written.
func (p Plot) Bars(labels []string, groups []Group) template.HTML {
	if len(labels) == 0 || len(groups) == 0 {
		return ""
	}
	var ys []float64
	for _, g := range groups {
		ys = append(ys, g.Values...)
	}
	f := p.frame(Scale{Min: 0, Max: 1}, p.yScale(ys))
	room := (right - left) / float64(len(labels))
	wide := room * 0.8 / float64(len(groups))
	every := (len(labels) + 11) / 12
	for i, label := range labels {
		from := left + float64(i)*room
		for j, g := range groups {
			if i >= len(g.Values) || !finite(g.Values[i]) {
				continue
			}
			v := g.Values[i]
			top, foot := f.yAt(max(v, 0)), f.yAt(min(v, 0))
			tip := label + ": " + Tick(v)
			if g.Name != "" {
				tip = g.Name + ", " + tip
			}
			f.c.put("rect", tip, "x", pct(from+room*0.1+float64(j)*wide), "y", px(top), "width", pct(wide*0.96), "height", px(foot-top), "class", "area "+g.Class)
		}
		if i%every == 0 {
			class := "tick"
			if i/every%2 == 1 && len(labels) > 4 {
				class = "tick minor"
			}
			f.c.text(pct(from+room/2), px(f.bottom()+16), class, "middle", label)
		}
	}
	return f.c.done()
}
