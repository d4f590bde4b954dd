// Package drawing draws positions of Diplomacy as SVG: the standard map with its owners,
// units, orders and their results.
//
// The map is our own, map.svg: two provinces share a border in the picture exactly if they
// are adjacent in the game, as the tests check. Pictures load
// nothing, run no script, follow the reader's light or dark scheme, and have a title on
// every province, unit and order. The same scene makes the same bytes. Text is escaped.
// The powers and locations of a scene must exist, as those that package rules reads do.
//
// Draw writes a complete file. A page with many phases holds Base once and an Overlay for
// each phase. The page can set the variables of Base's style (--pb-sea and so on) on the
// class pb to use its own colours.
//
// The package knows no rules: the caller says which orders there are and what they did.
package drawing

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// mapParts is what all pictures share: a shape for each province, with the id of its code, what lies under the owners' tints (pb-under) and
// over them (pb-over: borders, islands, lakes, straits, labels and supply centres), and symbols: the units, the badges and the legend below
// the map. A unit takes its colour from the element that uses it.
//
//go:embed map.svg
var mapParts string

// styleSheet has every colour twice, first as itself, for programs that draw SVG but know no variables.
//
//go:embed style.css
var styleSheet string

// unitPoints says where a unit of each location is drawn: its code, X,Y.
//
//go:embed locations.txt
var unitPoints string

// Scene is what one picture shows.
type Scene struct {
	Title  string
	Owners map[rules.Province]rules.Power // tinted; the supply centres among them are counted
	Units  []Unit
	Orders []Order
	// Spots are provinces that a reader can choose. Each has a shape over everything else, with its code as data-at.
	Spots []rules.Province
}

// Unit is a unit on the board. A dislodged one is drawn beside the unit that beat it.
type Unit struct {
	rules.Unit
	Dislodged bool
}

// Order is an order, the unit that it is for, and its results.
type Order struct {
	rules.Order
	Power     rules.Power
	Dislodged bool
	Results   []string // as rules.Result.Codes writes them; nil: not adjudicated
}

// Drawer draws scenes. It never changes, so any number of callers can share one.
type Drawer struct {
	board *rules.Board
	units [rules.Locations]point
}

// New returns a Drawer for the standard map.
func New(b *rules.Board) *Drawer {
	d := &Drawer{board: b}
	for line := range strings.Lines(unitPoints) {
		var code string
		var at point
		_, err := fmt.Sscanf(line, "%s %f,%f", &code, &at.x, &at.y)
		location, ok := b.ByCode(code)
		if err != nil || !ok {
			panic("drawing: locations: " + line) // the file is part of the program, and tested
		}
		d.units[location] = at
	}
	return d
}

// Draw returns the scene as one complete SVG document.
func (d *Drawer) Draw(s Scene) string {
	return d.element(s, ` xmlns="http://www.w3.org/2000/svg"`, "<defs>\n"+definitions()+"</defs>\n")
}

// Base returns what all pictures of a page share, as an SVG element that shows nothing by
// itself: shapes, symbols, style.
func (d *Drawer) Base() string {
	return `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>` + "\n" + definitions() + "</defs></svg>\n"
}

// Overlay returns the scene as an SVG element for a page that also holds Base.
func (d *Drawer) Overlay(s Scene) string { return d.element(s, "", "") }

func definitions() string { return "<style>" + styleSheet + "</style>\n" + mapParts }

// The canvas of the map, in the units of its viewBox, and the heights of the strips above and below it.
const (
	width      = 2000
	height     = 1720
	headHeight = 84
	footHeight = 64
)

// How many columns of a title fit: at full size, in small letters, and in a tooltip.
const (
	largeTitle = 27
	smallTitle = 42
	wholeTitle = 200
)

// element returns the SVG element of a scene. It describes the scene in words for readers who cannot see it.
func (d *Drawer) element(s Scene, namespace, definitions string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg%s class=\"pb\" role=\"graphics-document document\" viewBox=\"0 %d %d %d\">\n", namespace, -headHeight, width, headHeight+height+footHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n", escape(shorten(s.Title, wholeTitle)), escape(d.describe(s)))
	b.WriteString(definitions)
	d.picture(&b, s)
	b.WriteString("</svg>\n")
	return b.String()
}

// picture draws the scene from the bottom up: map, owners, borders and labels, orders, units.
func (d *Drawer) picture(b *strings.Builder, s Scene) {
	b.WriteString("<use href=\"#pb-under\"/>\n")
	for _, p := range slices.Sorted(maps.Keys(s.Owners)) {
		if owner := s.Owners[p]; d.board.Terrain(p) != rules.Sea {
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
}

// Colours returns the colours of the powers in charts, light and dark, by name in
// capitals: those of their units, or darker ones where a light page would hide them.
func Colours() map[string][2]string {
	return map[string][2]string{
		"AUSTRIA": {"#c5322a", "#d8473d"}, "ENGLAND": {"#233f92", "#3f60c9"}, "FRANCE": {"#2590c9", "#35a3dd"}, "GERMANY": {"#4a4a4a", "#7b7b7b"},
		"ITALY": {"#2b8a4b", "#36a35b"}, "RUSSIA": {"#5a3d8a", "#efe8fb"}, "TURKEY": {"#967200", "#e6ba33"},
	}
}

// class is the name of a power in the style sheet.
func class(w rules.Power) string { return strings.ToLower(w.Name()) }

// drawUnit draws a unit at its location, or beside it if it is dislodged.
func (d *Drawer) drawUnit(b *strings.Builder, u Unit) {
	at := d.unitPoint(u.Location, u.Dislodged)
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

// unitPoint returns where a unit is drawn.
func (d *Drawer) unitPoint(at rules.Location, dislodged bool) point {
	if dislodged {
		return d.units[at].plus(point{-30, 24})
	}
	return d.units[at]
}

// drawHead writes the strips above and below: title, centres by power, legend.
func (d *Drawer) drawHead(b *strings.Builder, s Scene) {
	fmt.Fprintf(b, "<path class=\"pb-page\" d=\"M0 %dH%dV0H0zM0 %dH%dV%dH0z\"/>\n", -headHeight, width, height, width, height+footHeight)
	title, style := shorten(s.Title, smallTitle), "pb-title"
	if shorten(title, largeTitle) != title {
		style += " pb-small"
	}
	fmt.Fprintf(b, "<text class=\"%s\" x=\"24\" y=\"%d\">%s</text>\n", style, 14-headHeight/2, escape(title))
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
		fmt.Fprintf(b, "<g%s><circle class=\"pb-unit pb-%s\" cx=\"%d\" cy=\"%d\" r=\"13\"/><text class=\"pb-text\" x=\"%d\" y=\"%d\">%s %d</text></g>\n", gone, class(w), x, -headHeight/2, x+22, 9-headHeight/2, w.Name(), count[w])
		x += 88 + 15*len(w.Name())
	}
	b.WriteString("<use href=\"#pb-legend\"/>\n")
}

// describe lists the units of each power.
func (d *Drawer) describe(s Scene) string {
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
