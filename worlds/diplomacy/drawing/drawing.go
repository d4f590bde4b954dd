// Package drawing draws positions of Diplomacy as SVG: the standard map with its owners,
// units, orders and their results.
//
// The map is our own, a mesh in europe.mesh that holds every border once: two provinces
// share a border in the picture exactly if they are adjacent in the game. Pictures load
// nothing, run no script, follow the reader's light or dark scheme, and have a title on
// every province, unit and order. The same scene makes the same bytes. Text is escaped.
// A scene with a location or power that does not exist is an error, never half a picture.
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
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/worlds/diplomacy/rules"
)

//go:embed locations.txt
var locationsText string

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
	spots [rules.Locations]spot
}

// spot is where the things of a location are drawn.
type spot struct {
	unit, label point
	named       bool // there is room for the full name
}

// New returns a Drawer for the standard map.
func New(b *rules.Board) *Drawer {
	d := &Drawer{board: b}
	if err := d.read(locationsText); err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return d
}

// read reads the format that locations.txt explains at its top.
func (d *Drawer) read(text string) error {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := d.readSpot(strings.Fields(line)); err != nil {
			return fmt.Errorf("drawing: locations: line %d: %q: %w", i+1, line, err)
		}
	}
	return nil
}

func (d *Drawer) readSpot(f []string) (err error) {
	if len(f) != 4 {
		return fmt.Errorf("want LOCATION NAMED UNIT LABEL")
	}
	at, ok := d.board.ByCode(f[0])
	if !ok {
		return fmt.Errorf("unknown location %q", f[0])
	}
	s := &d.spots[at]
	s.named = f[1] == "+"
	if s.unit, err = readPoint(f[2]); err == nil && at < rules.Provinces {
		s.label, err = readPoint(f[3])
	}
	return err
}

// readPoint reads X,Y.
func readPoint(word string) (point, error) {
	left, right, _ := strings.Cut(word, ",")
	x, err := strconv.ParseFloat(left, 64)
	y, err2 := strconv.ParseFloat(right, 64)
	if err != nil || err2 != nil {
		return point{}, fmt.Errorf("%q: want two numbers and a comma", word)
	}
	return point{x, y}, nil
}

// Draw writes the scene as one complete SVG document.
func (d *Drawer) Draw(w io.Writer, s Scene) error {
	if err := d.check(s); err != nil {
		return err
	}
	var b strings.Builder
	d.open(&b, s, ` xmlns="http://www.w3.org/2000/svg"`)
	b.WriteString("<defs>\n" + d.definitions() + "</defs>\n")
	d.picture(&b, s)
	_, err := io.WriteString(w, b.String())
	return err
}

// Base returns what all pictures of a page share, as an SVG element that shows nothing by
// itself: shapes, symbols, style.
func (d *Drawer) Base() string {
	return `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>` + "\n" + d.definitions() + "</defs></svg>\n"
}

// Overlay returns the scene as an SVG element for a page that also holds Base.
func (d *Drawer) Overlay(s Scene) (string, error) {
	if err := d.check(s); err != nil {
		return "", err
	}
	var b strings.Builder
	d.open(&b, s, "")
	d.picture(&b, s)
	return b.String(), nil
}

// check reports the first part of a scene that cannot be drawn.
func (d *Drawer) check(s Scene) error {
	for p, w := range s.Owners {
		if err := checkPowerAndLocations(w, rules.Location(p)); err != nil || p >= rules.Provinces {
			return fmt.Errorf("drawing: owner of province %d: no such province or power", p)
		}
	}
	for i, u := range s.Units {
		if err := checkPowerAndLocations(u.Power, u.Location); err != nil {
			return fmt.Errorf("drawing: unit %d: %w", i+1, err)
		}
	}
	for _, p := range s.Spots {
		if p >= rules.Provinces {
			return fmt.Errorf("drawing: spot in province %d: no such province", p)
		}
	}
	for i, o := range s.Orders {
		if err := checkPowerAndLocations(o.Power, o.targets()...); err != nil {
			return fmt.Errorf("drawing: order %d: %s: %w", i+1, o.Kind, err)
		}
	}
	return nil
}

// targets lists the locations that an order of its kind needs.
func (o Order) targets() []rules.Location {
	switch {
	case o.Kind == rules.Waive:
		return nil
	case o.Kind == rules.Move, o.Kind == rules.Retreat:
		return []rules.Location{o.At, o.To}
	case o.Kind == rules.Convoy, o.Kind == rules.Support && o.To != rules.Nowhere:
		return []rules.Location{o.At, o.Of, o.To}
	case o.Kind == rules.Support:
		return []rules.Location{o.At, o.Of}
	}
	return []rules.Location{o.At}
}

func checkPowerAndLocations(w rules.Power, at ...rules.Location) error {
	if w == rules.None || w > rules.Turkey {
		return fmt.Errorf("no power %d: want %d to %d", w, rules.Austria, rules.Turkey)
	}
	for _, l := range at {
		if l >= rules.Locations {
			return fmt.Errorf("no location %d: want 0 to %d", l, rules.Locations-1)
		}
	}
	return nil
}

// The heights of the strips above and below the map.
const (
	headHeight = 84
	footHeight = 64
)

// How many columns of a title fit: at full size, in small letters, and in a tooltip.
const (
	largeTitle = 27
	smallTitle = 42
	wholeTitle = 200
)

// open begins the SVG element. It describes the scene in words for readers who cannot see it.
func (d *Drawer) open(b *strings.Builder, s Scene, namespace string) {
	fmt.Fprintf(b, "<svg%s class=\"pb\" role=\"graphics-document document\" viewBox=\"0 %d %d %d\">\n", namespace, -headHeight, width, headHeight+height+footHeight)
	fmt.Fprintf(b, "<title>%s</title>\n<desc>%s</desc>\n", escape(shorten(s.Title, wholeTitle)), escape(d.describe(s)))
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
		return d.spots[at].unit.plus(point{-30, 24})
	}
	return d.spots[at].unit
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
