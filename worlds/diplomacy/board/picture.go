package board

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The strips above and below the map.
const (
	top  = 84
	foot = 64
)

// What there is room for in a title, in columns: at full size, in small, and in a
// tooltip.
const (
	largeTitle = 27
	smallTitle = 42
	wholeTitle = 200
)

// open begins the SVG element, with the scene in words for those who do not see it.
func open(b *strings.Builder, s Scene, namespace string) {
	fmt.Fprintf(b, "<svg%s class=\"pb\" role=\"graphics-document document\" viewBox=\"0 %d %d %d\">\n", namespace, -top, width, top+height+foot)
	fmt.Fprintf(b, "<title>%s</title>\n<desc>%s</desc>\n", escape(shorten(s.Title, wholeTitle)), escape(s.words()))
}

// picture draws the scene from the bottom up: map, owners, borders and labels,
// orders, units.
func picture(b *strings.Builder, a *atlas, s Scene) {
	b.WriteString("<use href=\"#pb-under\"/>\n")
	for _, at := range slices.Sorted(maps.Keys(s.Held)) {
		place, _ := a.find(at)
		if p, _ := findPower(s.Held[at]); place.kind == "land" {
			fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-%s-tint\"><title>%s (%s), %s</title></use>\n", place.abbr, p.class(), place.name, place.abbr, p.name)
		}
	}
	b.WriteString("<use href=\"#pb-over\"/>\n")
	drawOrders(b, a, s)
	for _, u := range s.Units {
		drawUnit(b, a, u)
	}
	drawBadges(b, a, s)
	drawHead(b, a, s)
}

// drawUnit draws a unit at its place; a dislodged one beside it.
func drawUnit(b *strings.Builder, a *atlas, u Unit) {
	at := stand(a, u)
	symbol := "army"
	if u.Fleet {
		symbol = "fleet"
	}
	p, _ := findPower(u.Power)
	text := u.String() + ", " + p.name
	if u.Dislodged {
		text += ", dislodged"
		fmt.Fprintf(b, "<use href=\"#pb-beaten\" class=\"pb-order pb-dislodged\" x=\"%.0f\" y=\"%.0f\"/>\n", at.x, at.y)
	}
	fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-unit pb-%s\" x=\"%.0f\" y=\"%.0f\"><title>%s</title></use>\n", symbol, p.class(), at.x, at.y, text)
}

// stand is where a unit is drawn.
func stand(a *atlas, u Unit) point {
	p, _ := a.find(u.At)
	if u.Dislodged {
		return p.unit.plus(point{-30, 24})
	}
	return p.unit
}

// drawHead writes the strips above and below: title, centres by power, legend.
func drawHead(b *strings.Builder, a *atlas, s Scene) {
	fmt.Fprintf(b, "<path class=\"pb-page\" d=\"M0 %dH%dV0H0zM0 %dH%dV%dH0z\"/>\n", -top, width, height, width, height+foot)
	title, class := shorten(s.Title, smallTitle), "pb-title"
	if shorten(title, largeTitle) != title {
		class += " pb-small"
	}
	fmt.Fprintf(b, "<text class=\"%s\" x=\"24\" y=\"%d\">%s</text>\n", class, 14-top/2, escape(title))
	count := s.centres(a)
	x := 700
	for _, p := range powers() {
		gone := ""
		if count[p.name] == 0 {
			gone = " class=\"pb-gone\""
		}
		fmt.Fprintf(b, "<g%s><circle class=\"pb-unit pb-%s\" cx=\"%d\" cy=\"%d\" r=\"13\"/><text class=\"pb-text\" x=\"%d\" y=\"%d\">%s %d</text></g>\n", gone, p.class(), x, -top/2, x+22, 9-top/2, p.name, count[p.name])
		x += 88 + 15*len(p.name)
	}
	b.WriteString("<use href=\"#pb-legend\"/>\n")
}

// centres counts the supply centres each power holds, by its name.
func (s Scene) centres(a *atlas) map[string]int {
	count := map[string]int{}
	for at, name := range s.Held {
		p, _ := findPower(name)
		if place, _ := a.find(at); place.centre {
			count[p.name]++
		}
	}
	return count
}

// words tells the position: the units of each power.
func (s Scene) words() string {
	var parts []string
	for _, p := range powers() {
		var units []string
		for _, u := range s.Units {
			if strings.EqualFold(u.Power, p.name) {
				units = append(units, u.String())
			}
		}
		if units != nil {
			parts = append(parts, p.name+": "+strings.Join(units, ", "))
		}
	}
	return strings.Join(parts, ". ")
}

// shorten cuts a title to so many columns. What is not ASCII may be two wide.
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

// escape makes text from outside safe in XML, whatever it holds.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
