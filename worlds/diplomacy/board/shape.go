package board

import (
	"fmt"
	"strings"
)

// definitions are the parts of every picture that no scene changes: the style, a
// shape for each region, what lies under the owners' tints and what lies over them.
func definitions(a *atlas) string {
	m := standardMesh()
	var b strings.Builder
	b.WriteString(style())
	for _, r := range regions(a) {
		fmt.Fprintf(&b, "<path id=\"pb-%s\" d=\"%s\"/>\n", r.abbr, m.outline(r.abbr))
	}
	b.WriteString("<g id=\"pb-under\">\n")
	for _, r := range regions(a) {
		title := r.name
		if r.kind != "none" {
			title += " (" + r.abbr + ")"
		}
		fmt.Fprintf(&b, "<use href=\"#pb-%s\" class=\"pb-%s\"><title>%s</title></use>\n", r.abbr, r.kind, title)
	}
	b.WriteString("</g>\n<g id=\"pb-over\" class=\"pb-over\">\n")
	writeLines(&b, a, m)
	writeDecor(&b, m)
	writeLabels(&b, a)
	b.WriteString("</g>\n" + symbols())
	return b.String()
}

// regions lists the provinces and the two lands that nobody may enter.
func regions(a *atlas) []place {
	var all []place
	for _, p := range a.places {
		if p.kind != "coast" {
			all = append(all, p)
		}
	}
	return append(all, place{abbr: "SWI", name: "Switzerland, impassable", kind: "none"}, place{abbr: "OUT", name: "beyond the map", kind: "none"})
}

// outline is the path around a region.
func (m *mesh) outline(region string) string {
	var d []byte
	ring, _ := m.around(region)
	for i, s := range ring {
		c := s.curve()
		if i == 0 {
			d = moveTo(d, c[0])
		}
		d = c.path(d)
	}
	return string(append(d, 'z'))
}

// curve is the border's curve in the direction of the step.
func (s step) curve() curve {
	if s.back {
		return s.border.curve.reversed()
	}
	return s.border.curve
}

// writeLines strokes the borders, all of one kind in one path.
func writeLines(b *strings.Builder, a *atlas, m *mesh) {
	kind := map[string]string{"SWI": "land", "OUT": "land"}
	for _, p := range a.places {
		kind[p.abbr] = p.kind
	}
	paths := map[string][]byte{}
	for _, x := range m.borders {
		class := "coast"
		if l, r := kind[x.sides[0]], kind[x.sides[1]]; r == "" {
			continue // the edge is out of sight
		} else if l == r {
			class = l + "-line"
		}
		paths[class] = x.curve.path(moveTo(paths[class], x.curve[0]))
	}
	for _, class := range []string{"sea-line", "land-line", "coast"} {
		fmt.Fprintf(b, "<path class=\"pb-%s\" d=\"%s\"/>\n", class, paths[class])
	}
}

// writeDecor paints islands, lakes and straits.
func writeDecor(b *strings.Builder, m *mesh) {
	paths := map[string][]byte{}
	for _, d := range m.decor {
		paths[d.kind] = d.curve.path(moveTo(paths[d.kind], d.curve[0]))
	}
	for _, c := range [][2]string{{"isle", "island"}, {"bank", "strait"}, {"lake", "lake"}, {"strait", "strait"}} {
		fmt.Fprintf(b, "<path class=\"pb-%s\" d=\"%s\"/>\n", c[0], paths[c[1]])
	}
}

// markRoom is the width of a supply centre's mark before a label.
const markRoom = 18

// writeLabels writes abbreviations, names where there is room, and supply centres.
func writeLabels(b *strings.Builder, a *atlas) {
	for _, p := range a.places {
		if p.kind == "coast" {
			continue
		}
		class, at := "pb-label", p.label
		if p.kind == "sea" {
			class += " pb-water"
		}
		if p.centre {
			fmt.Fprintf(b, "<circle class=\"pb-centre\" cx=\"%.0f\" cy=\"%.0f\" r=\"7\"/>\n", at.x-28, at.y)
			at.x += markRoom / 2
		}
		fmt.Fprintf(b, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", class, at.x, at.y+7, p.abbr)
		if p.named {
			fmt.Fprintf(b, "<text class=\"%s pb-name\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", class, p.label.x, p.label.y+27, p.name)
		}
	}
}
