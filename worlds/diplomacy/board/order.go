package board

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// reach is how far from a unit's middle lines begin and end.
const reach = 30

// String is the unit in the usual notation: F STP/SC.
func (u Unit) String() string {
	if u.Fleet {
		return "F " + u.At
	}
	return "A " + u.At
}

// String is the order in the usual notation, and its results.
func (o Order) String() string {
	text := o.Unit.String()
	switch o.Kind {
	case Hold:
		text += " H"
	case Move:
		text += " - " + o.To
	case Support:
		text += " S " + o.From
		if !o.holds() {
			text += " - " + o.To
		}
	case Convoy:
		text += " C " + o.From + " - " + o.To
	case Retreat:
		text += " R " + o.To
	case Build:
		text += " B"
	case Disband:
		text += " D"
	}
	if len(o.Results) > 0 {
		text += ": " + strings.Join(o.Results, ", ")
	}
	return text
}

// holds says whether a support is for a unit that stays where it is.
func (o Order) holds() bool { return o.To == "" || province(o.To) == province(o.From) }

// sketch is a scene's orders on their way to paper.
type sketch struct {
	atlas *atlas
	scene Scene
	moves map[[2]string]curve // by provinces, from and to
	lines []line
}

// line is an order as it is drawn.
type line struct {
	order Order
	class string
	path  string
	cross *point // where it failed
}

// newSketch finds the ways of all moves, which other orders point to.
func newSketch(a *atlas, s Scene) *sketch {
	k := &sketch{atlas: a, scene: s, moves: map[[2]string]curve{}}
	for _, o := range s.Orders {
		if o.Kind == Move || o.Kind == Retreat {
			k.moves[[2]string{province(o.Unit.At), province(o.To)}] = k.route(o)
		}
	}
	return k
}

// drawOrders draws lines and rings. One pale path under them all keeps them apart
// from the map.
func drawOrders(b *strings.Builder, a *atlas, s Scene) {
	k := newSketch(a, s)
	for _, o := range s.Orders {
		k.draw(o)
	}
	var all strings.Builder
	for _, l := range k.lines {
		all.WriteString(l.path)
	}
	if all.Len() > 0 {
		fmt.Fprintf(b, "<path class=\"pb-case\" d=\"%s\"/>\n", all.String())
	}
	for _, l := range k.lines {
		fmt.Fprintf(b, "<path class=\"pb-order pb-%s%s\" d=\"%s\"><title>%s</title></path>\n", look(l.order.Results), l.class, l.path, escape(l.order.String()))
		if l.cross != nil {
			fmt.Fprintf(b, "<use href=\"#pb-cross\" class=\"pb-order pb-failed\" x=\"%.0f\" y=\"%.0f\"/>\n", l.cross.x, l.cross.y)
		}
	}
}

func (k *sketch) draw(o Order) {
	switch o.Kind {
	case Move, Retreat:
		k.arrow(o)
	case Support:
		k.support(o)
	case Convoy:
		k.convoy(o)
	case Hold:
		k.lines = append(k.lines, line{order: o, path: ring(stand(k.atlas, o.Unit))})
	case Build, Disband: // badges, over the units
	}
}

// arrow draws a move or a retreat. What bounces ends at a bar.
func (k *sketch) arrow(o Order) {
	c := k.moves[[2]string{province(o.Unit.At), province(o.To)}]
	l := line{order: o}
	if o.Kind == Retreat {
		l.class = " pb-retreat"
	}
	d := c.path(moveTo(nil, c[0]))
	end := c[len(c)-1]
	ahead := end.minus(c[len(c)-2]).unit()
	side := ahead.left()
	d = append(d, fmt.Sprintf("M%sL%s %sz", at(end.plus(side.times(7))), at(end.plus(ahead.times(12))), at(end.minus(side.times(7))))...)
	switch look(o.Results) {
	case "bounce":
		bar := end.plus(ahead.times(20))
		d = append(d, fmt.Sprintf("M%sL%s", at(bar.plus(side.times(13))), at(bar.minus(side.times(13))))...)
	case "failed":
		m := c.middle()
		l.cross = &m
	}
	l.path = string(d)
	k.lines = append(k.lines, l)
}

// route is the way of a move: straight, past a move the other way, or over the
// fleets that convoy it.
func (k *sketch) route(o Order) curve {
	from := stand(k.atlas, o.Unit)
	target, _ := k.atlas.find(o.To)
	to := target.unit
	way := []point{from}
	fleets := k.fleets(o)
	switch {
	case len(fleets) > 0:
		way = append(way, fleets...)
	case k.opposed(o):
		way = append(way, from.to(to, 0.5).plus(to.minus(from).unit().left().times(26)))
	}
	way = append(way, to)
	room := 8.0
	if k.taken(o.To) {
		room = reach
	}
	n := len(way)
	way[0] = from.plus(way[1].minus(from).unit().times(min(reach, way[1].minus(from).length()/3)))
	way[n-1] = to.plus(way[n-2].minus(to).unit().times(room + 16))
	return smooth(way, false)
}

// fleets lists where the fleets stand that convoy a move, in the order of its way.
func (k *sketch) fleets(o Order) []point {
	var at []point
	for _, c := range k.scene.Orders {
		if o.Kind == Move && c.Kind == Convoy && province(c.From) == province(o.Unit.At) && province(c.To) == province(o.To) {
			at = append(at, stand(k.atlas, c.Unit))
		}
	}
	// From the start always to the nearest that is left: a chain of seas is short.
	here := stand(k.atlas, o.Unit)
	for i := range at {
		slices.SortFunc(at[i:], func(p, q point) int {
			return cmp.Or(cmp.Compare(p.minus(here).length(), q.minus(here).length()), cmp.Compare(p.x, q.x))
		})
		here = at[i]
	}
	return at
}

// opposed says whether another move goes the other way.
func (k *sketch) opposed(o Order) bool {
	return slices.ContainsFunc(k.scene.Orders, func(x Order) bool {
		return x.Kind == Move && province(x.Unit.At) == province(o.To) && province(x.To) == province(o.Unit.At)
	})
}

// taken says whether a unit is drawn in a province.
func (k *sketch) taken(at string) bool {
	return slices.ContainsFunc(k.scene.Units, func(u Unit) bool { return province(u.At) == province(at) })
}

// support draws a dashed line to the middle of the move, or to the unit that stays.
func (k *sketch) support(o Order) {
	from := stand(k.atlas, o.Unit)
	to := k.goal(o)
	if o.holds() {
		to = to.plus(from.minus(to).unit().times(reach))
	}
	k.aid(o, curve{from, from.to(to, 0.33), from.to(to, 0.67), to})
}

// convoy draws a dashed ring around a fleet that carries an army, and a dashed curve
// to the middle of the way of an army that has other plans.
func (k *sketch) convoy(o Order) {
	from := stand(k.atlas, o.Unit)
	if _, ok := k.moves[[2]string{province(o.From), province(o.To)}]; ok {
		l := line{order: o, class: " pb-aid", path: ring(from)}
		if look(o.Results) == "failed" {
			l.cross = &from
		}
		k.lines = append(k.lines, l)
		return
	}
	to := k.goal(o)
	bend := to.minus(from).left().times(0.2)
	k.aid(o, curve{from, from.to(to, 0.33).plus(bend), from.to(to, 0.67).plus(bend), to})
}

// aid adds a dashed curve that begins at the rim of a unit and ends in a dot.
func (k *sketch) aid(o Order, c curve) {
	c[0] = c[0].plus(c[1].minus(c[0]).unit().times(min(reach, c[3].minus(c[0]).length()/2)))
	for i := range c {
		c[i] = c[i].round()
	}
	l := line{order: o, class: " pb-aid", path: string(c.path(moveTo(nil, c[0]))) + "M" + at(c[3]) + "h.1"}
	if look(o.Results) == "failed" {
		m := c.middle()
		l.cross = &m
	}
	k.lines = append(k.lines, l)
}

// goal is what a support or a convoy points to: the middle of the move, or the unit.
func (k *sketch) goal(o Order) point {
	from, _ := k.atlas.find(o.From)
	if o.Kind == Support && o.holds() {
		return from.unit
	}
	if c, ok := k.moves[[2]string{province(o.From), province(o.To)}]; ok {
		return c.middle()
	}
	to, _ := k.atlas.find(o.To)
	return from.unit.to(to.unit, 0.5)
}

// ring is a circle around a unit.
func ring(p point) string {
	return fmt.Sprintf("M%sa%d %d 0 1 0 %d 0a%d %d 0 1 0-%d 0", at(p.minus(point{reach, 0})), reach, reach, 2*reach, reach, reach, 2*reach)
}

// at writes a point.
func at(p point) string { return string(pair(nil, p.round(), false)) }

// drawBadges marks what is built, disbanded or dislodged, over the units.
func drawBadges(b *strings.Builder, a *atlas, s Scene) {
	for _, o := range s.Orders {
		p := stand(a, o.Unit)
		badge := func(symbol, class string, q point) {
			fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-order pb-%s\" x=\"%.0f\" y=\"%.0f\"><title>%s</title></use>\n", symbol, class, q.x, q.y, escape(o.String()))
		}
		switch {
		case o.Kind == Build:
			drawUnit(b, a, o.Unit)
			badge("built", "success", p.plus(point{24, -22}))
		case o.Kind == Disband, slices.Contains(o.Results, "disband"):
			badge("struck", "dislodged", p)
		case slices.Contains(o.Results, "dislodged"):
			badge("beaten", "dislodged", p)
		}
	}
}
