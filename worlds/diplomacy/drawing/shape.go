package drawing

import (
	"fmt"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// definitions returns the parts of every picture that do not depend on the scene: the
// style, a shape for each region, what lies under the owners' tints and what lies over them.
func (d *Drawer) definitions() string {
	m, err := readMesh(europe)
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	var b strings.Builder
	b.WriteString(style())
	for _, r := range d.regions() {
		fmt.Fprintf(&b, "<path id=\"pb-%s\" d=\"%s\"/>\n", r.code, m.outline(r.code))
	}
	b.WriteString("<g id=\"pb-under\">\n")
	for _, r := range d.regions() {
		fmt.Fprintf(&b, "<use href=\"#pb-%s\" class=\"pb-%s\"><title>%s</title></use>\n", r.code, r.kind, r.title)
	}
	b.WriteString("</g>\n<g id=\"pb-over\" class=\"pb-over\">\n")
	d.writeLines(&b, m)
	writeDecor(&b, m)
	d.writeLabels(&b)
	b.WriteString("</g>\n" + symbols)
	return b.String()
}

// region is a shape of the map.
type region struct{ code, kind, title string }

// regions lists the provinces and the two areas that no unit can enter.
func (d *Drawer) regions() []region {
	var all []region
	for p := range rules.Province(rules.Provinces) {
		code := d.board.Code(rules.Location(p))
		all = append(all, region{code, d.kind(p), fmt.Sprintf("%s (%s)", d.board.Name(p), code)})
	}
	return append(all, region{"SWI", "none", "Switzerland, impassable"}, region{"OUT", "none", "beyond the map"})
}

// kind is the class of a province's shape.
func (d *Drawer) kind(p rules.Province) string {
	if d.board.Terrain(p) == rules.Sea {
		return "sea"
	}
	return "land"
}

// outline returns the path around a region.
func (m *mesh) outline(region string) string {
	var path []byte
	ring, _ := m.around(region)
	for i, s := range ring {
		c := s.border.curve
		if s.back {
			c = c.reversed()
		}
		if i == 0 {
			path = moveTo(path, c[0])
		}
		path = c.path(path)
	}
	return string(append(path, 'z'))
}

// writeLines strokes the borders, all of one kind in one path.
func (d *Drawer) writeLines(b *strings.Builder, m *mesh) {
	kind := map[string]string{}
	for _, r := range d.regions() {
		kind[r.code] = strings.Replace(r.kind, "none", "land", 1)
	}
	paths := map[string][]byte{}
	for _, x := range m.borders {
		class := "coast"
		if l, r := kind[x.sides[0]], kind[x.sides[1]]; r == "" {
			continue // the edge of the map is not visible
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

// centreWidth is the width of a supply centre's mark before a label.
const centreWidth = 18

// writeLabels writes codes, names where there is room, and supply centres.
func (d *Drawer) writeLabels(b *strings.Builder) {
	for p := range rules.Province(rules.Provinces) {
		s := d.spots[p]
		class, at := "pb-label", s.label
		if d.kind(p) == "sea" {
			class += " pb-water"
		}
		if d.board.SupplyCentres().Has(p) {
			fmt.Fprintf(b, "<circle class=\"pb-centre\" cx=\"%.0f\" cy=\"%.0f\" r=\"7\"/>\n", at.x-28, at.y)
			at.x += centreWidth / 2
		}
		fmt.Fprintf(b, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", class, at.x, at.y+7, d.board.Code(rules.Location(p)))
		if s.named {
			fmt.Fprintf(b, "<text class=\"%s pb-name\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", class, s.label.x, s.label.y+27, d.board.Name(p))
		}
	}
}
