package drawing

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// The heights of the strips above and below the map.
const (
	top  = 84
	foot = 64
)

// How many columns of a title fit: at full size, in small letters, and in a tooltip.
const (
	largeTitle = 27
	smallTitle = 42
	wholeTitle = 200
)

// open begins the SVG element. It describes the scene in words for readers who cannot see it.
func (d *Drawer) open(b *strings.Builder, s Scene, namespace string) {
	fmt.Fprintf(b, "<svg%s class=\"pb\" role=\"graphics-document document\" viewBox=\"0 %d %d %d\">\n", namespace, -top, width, top+height+foot)
	fmt.Fprintf(b, "<title>%s</title>\n<desc>%s</desc>\n", escape(shorten(s.Title, wholeTitle)), escape(d.words(s)))
}

// picture draws the scene from the bottom up: map, owners, borders and labels, orders, units.
// It ends the SVG element.
func (d *Drawer) picture(b *strings.Builder, s Scene) {
	b.WriteString("<use href=\"#pb-under\"/>\n")
	for _, p := range slices.Sorted(maps.Keys(s.Owners)) {
		if owner := s.Owners[p]; d.kind(p) == "land" {
			code := d.board.Code(rules.Location(p))
			fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-%s-tint\"><title>%s (%s), %s</title></use>\n", code, class(owner), d.board.Name(p), code, owner.Name())
		}
	}
	b.WriteString("<use href=\"#pb-over\"/>\n")
	d.drawOrders(b, s)
	for _, u := range s.Units {
		d.drawUnit(b, u)
	}
	d.drawBadges(b, s)
	for _, p := range s.Spots {
		code := d.board.Code(rules.Location(p))
		fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-spot\" data-at=\"%s\" fill=\"transparent\"><title>%s (%s)</title></use>\n", code, code, d.board.Name(p), code)
	}
	d.drawHead(b, s)
	b.WriteString("</svg>\n")
}

// drawUnit draws a unit at its location, or beside it if it is dislodged.
func (d *Drawer) drawUnit(b *strings.Builder, u Unit) {
	at := d.stand(u.Location, u.Dislodged)
	symbol := "army"
	if u.Type == rules.Fleet {
		symbol = "fleet"
	}
	text := d.board.UnitText(u.Unit) + ", " + u.Power.Name()
	if u.Dislodged {
		text += ", dislodged"
		fmt.Fprintf(b, "<use href=\"#pb-beaten\" class=\"pb-order pb-dislodged\" x=\"%.0f\" y=\"%.0f\"/>\n", at.x, at.y)
	}
	fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-unit pb-%s\" x=\"%.0f\" y=\"%.0f\"><title>%s</title></use>\n", symbol, class(u.Power), at.x, at.y, text)
}

// stand returns where a unit is drawn.
func (d *Drawer) stand(at rules.Location, dislodged bool) point {
	if dislodged {
		return d.spots[at].unit.plus(point{-30, 24})
	}
	return d.spots[at].unit
}

// drawHead writes the strips above and below: title, centres by power, legend.
func (d *Drawer) drawHead(b *strings.Builder, s Scene) {
	fmt.Fprintf(b, "<path class=\"pb-page\" d=\"M0 %dH%dV0H0zM0 %dH%dV%dH0z\"/>\n", -top, width, height, width, height+foot)
	title, style := shorten(s.Title, smallTitle), "pb-title"
	if shorten(title, largeTitle) != title {
		style += " pb-small"
	}
	fmt.Fprintf(b, "<text class=\"%s\" x=\"24\" y=\"%d\">%s</text>\n", style, 14-top/2, escape(title))
	var count [rules.Turkey + 1]int
	for p, owner := range s.Owners {
		if d.board.SupplyCentres().Has(p) {
			count[owner]++
		}
	}
	x := 700
	for _, w := range rules.Powers() {
		gone := ""
		if count[w] == 0 {
			gone = " class=\"pb-gone\""
		}
		fmt.Fprintf(b, "<g%s><circle class=\"pb-unit pb-%s\" cx=\"%d\" cy=\"%d\" r=\"13\"/><text class=\"pb-text\" x=\"%d\" y=\"%d\">%s %d</text></g>\n", gone, class(w), x, -top/2, x+22, 9-top/2, w.Name(), count[w])
		x += 88 + 15*len(w.Name())
	}
	b.WriteString("<use href=\"#pb-legend\"/>\n")
}

// words lists the units of each power.
func (d *Drawer) words(s Scene) string {
	var parts []string
	for _, w := range rules.Powers() {
		var units []string
		for _, u := range s.Units {
			if u.Power == w {
				units = append(units, d.board.UnitText(u.Unit))
			}
		}
		if units != nil {
			parts = append(parts, w.Name()+": "+strings.Join(units, ", "))
		}
	}
	return strings.Join(parts, ". ")
}

// shorten cuts a title to so many columns. A character outside ASCII may take two.
func shorten(title string, columns int) string {
	title = strings.Join(strings.Fields(title), " ")
	for i, r := range title {
		if columns--; r > 127 {
			columns--
		}
		if columns < 0 {
			return title[:i] + "…"
		}
	}
	return title
}

// escape makes any text safe in XML.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
