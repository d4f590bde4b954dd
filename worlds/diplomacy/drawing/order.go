package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// unitRadius is how far from a unit's centre lines begin and end.
const unitRadius = 30

// orderText is the order in the usual notation, with its results.
func (d *Drawer) orderText(o Order) string {
	text := o.Text(d.board)
	if len(o.Results) > 0 {
		text += ": " + strings.Join(o.Results, ", ")
	}
	return text
}

// resultClass is the class of an order with these results: the worst result counts.
func resultClass(results []string) string {
	switch {
	case len(results) == 0:
		return "pending"
	case slices.Contains(results, "dislodged"), slices.Contains(results, "disband"):
		return "dislodged"
	case slices.Contains(results, "bounce"):
		return "bounce"
	case slices.Contains(results, "success"):
		return "success"
	}
	return "failed"
}

// route is a move from one province to another.
type route struct{ from, to rules.Province }

func (d *Drawer) route(from, to rules.Location) route {
	return route{d.board.Province(from), d.board.Province(to)}
}

// sketch is the lines of a scene's orders.
type sketch struct {
	*Drawer
	scene   Scene
	moves   map[route]curve
	strokes []stroke
}

// stroke is an order as it is drawn.
type stroke struct {
	order Order
	class string
	path  string
	cross *point // where it failed
}

// newSketch finds the lines of all moves, which other orders point to.
func (d *Drawer) newSketch(s Scene) *sketch {
	k := &sketch{Drawer: d, scene: s, moves: map[route]curve{}}
	for _, o := range s.Orders {
		if o.Kind == rules.Move || o.Kind == rules.Retreat {
			k.moves[d.route(o.At, o.To)] = k.moveCurve(o)
		}
	}
	return k
}

// drawOrders draws lines and rings. One pale path under them all separates them from the map.
func (d *Drawer) drawOrders(b *strings.Builder, s Scene) {
	k := d.newSketch(s)
	for _, o := range s.Orders {
		k.draw(o)
	}
	var all strings.Builder
	for _, l := range k.strokes {
		all.WriteString(l.path)
	}
	if all.Len() > 0 {
		fmt.Fprintf(b, "<path class=\"pb-case\" d=\"%s\"/>\n", all.String())
	}
	for _, l := range k.strokes {
		fmt.Fprintf(b, "<path class=\"pb-order pb-%s%s\" d=\"%s\"><title>%s</title></path>\n", resultClass(l.order.Results), l.class, l.path, escape(d.orderText(l.order)))
		if l.cross != nil {
			fmt.Fprintf(b, "<use href=\"#pb-cross\" class=\"pb-order pb-failed\" x=\"%.0f\" y=\"%.0f\"/>\n", l.cross.x, l.cross.y)
		}
	}
}

func (k *sketch) draw(o Order) {
	switch o.Kind {
	case rules.Move, rules.Retreat:
		k.arrow(o)
	case rules.Support:
		k.support(o)
	case rules.Convoy:
		k.convoy(o)
	case rules.Hold:
		k.add(stroke{order: o, path: ring(k.start(o))}, nil)
	case rules.Build, rules.Disband, rules.Waive: // badges, over the units
	}
}

// start returns where the unit of an order is drawn.
func (k *sketch) start(o Order) point { return k.unitPoint(o.At, o.Dislodged) }

// add adds a stroke, with a cross in the middle of c if the order failed.
func (k *sketch) add(l stroke, c curve) {
	if c != nil && resultClass(l.order.Results) == "failed" {
		m := c.middle()
		l.cross = &m
	}
	k.strokes = append(k.strokes, l)
}

// arrow draws a move or a retreat. A move that bounces ends at a bar.
func (k *sketch) arrow(o Order) {
	c := k.moves[k.route(o.At, o.To)]
	l := stroke{order: o}
	if o.Kind == rules.Retreat {
		l.class = " pb-retreat"
	}
	path := c.path(moveTo(nil, c[0]))
	end := c[len(c)-1]
	ahead := end.minus(c[len(c)-2]).unit()
	side := ahead.left()
	path = fmt.Appendf(path, "M%sL%s %sz", end.plus(side.times(7)), end.plus(ahead.times(12)), end.minus(side.times(7)))
	if resultClass(o.Results) == "bounce" {
		bar := end.plus(ahead.times(20))
		path = fmt.Appendf(path, "M%sL%s", bar.plus(side.times(13)), bar.minus(side.times(13)))
	}
	l.path = string(path)
	k.add(l, c)
}

// moveCurve is the line of a move: straight, beside a move in the opposite direction, or over the
// fleets that convoy it.
func (k *sketch) moveCurve(o Order) curve {
	from, to := k.start(o), k.units[o.To]
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
	if slices.ContainsFunc(k.scene.Units, func(u Unit) bool { return k.board.Province(u.Location) == k.board.Province(o.To) }) {
		room = unitRadius
	}
	n := len(way)
	way[0] = from.plus(way[1].minus(from).unit().times(min(unitRadius, way[1].minus(from).length()/3)))
	way[n-1] = to.plus(way[n-2].minus(to).unit().times(room + 16))
	return smooth(way)
}

// fleets lists where the fleets that convoy a move are drawn, in the order of its way: from
// the start always the nearest of those left, since a chain of seas is short.
func (k *sketch) fleets(o Order) []point {
	var at []point
	for _, c := range k.scene.Orders {
		if o.Kind == rules.Move && c.Kind == rules.Convoy && k.route(c.Of, c.To) == k.route(o.At, o.To) {
			at = append(at, k.start(c))
		}
	}
	here := k.start(o)
	for i := range at {
		slices.SortFunc(at[i:], func(p, q point) int {
			return cmp.Or(cmp.Compare(p.minus(here).length(), q.minus(here).length()), cmp.Compare(p.x, q.x))
		})
		here = at[i]
	}
	return at
}

// opposed reports whether another move goes in the opposite direction.
func (k *sketch) opposed(o Order) bool {
	return slices.ContainsFunc(k.scene.Orders, func(x Order) bool {
		return x.Kind == rules.Move && k.route(x.To, x.At) == k.route(o.At, o.To)
	})
}

// supportsHold reports whether a support is for a unit that stays where it is.
func (k *sketch) supportsHold(o Order) bool {
	return o.To == rules.Nowhere || k.board.Province(o.To) == k.board.Province(o.Of)
}

// support draws a dashed line to the middle of the move, or to the unit that stays.
func (k *sketch) support(o Order) {
	from, to := k.start(o), k.pointedAt(o)
	if k.supportsHold(o) {
		to = to.plus(from.minus(to).unit().times(unitRadius))
	}
	k.addDashed(o, curve{from, from.to(to, 0.33), from.to(to, 0.67), to})
}

// convoy draws a dashed ring around a fleet that carries an army, and a dashed curve to the
// middle of the way of an army that does not move that way.
func (k *sketch) convoy(o Order) {
	from := k.start(o)
	if _, ok := k.moves[k.route(o.Of, o.To)]; ok {
		k.add(stroke{order: o, class: " pb-aid", path: ring(from)}, curve{from, from, from, from})
		return
	}
	to := k.pointedAt(o)
	bend := to.minus(from).left().times(0.2)
	k.addDashed(o, curve{from, from.to(to, 0.33).plus(bend), from.to(to, 0.67).plus(bend), to})
}

// addDashed adds a dashed curve that begins at the rim of a unit and ends in a dot.
func (k *sketch) addDashed(o Order, c curve) {
	c[0] = c[0].plus(c[1].minus(c[0]).unit().times(min(unitRadius, c[3].minus(c[0]).length()/2)))
	for i := range c {
		c[i] = c[i].round()
	}
	k.add(stroke{order: o, class: " pb-aid", path: string(c.path(moveTo(nil, c[0]))) + "M" + c[3].String() + "h.1"}, c)
}

// pointedAt is what a support or a convoy points to: the middle of the move, or the unit.
func (k *sketch) pointedAt(o Order) point {
	from := k.units[o.Of]
	if o.Kind == rules.Support && k.supportsHold(o) {
		return from
	}
	if c, ok := k.moves[k.route(o.Of, o.To)]; ok {
		return c.middle()
	}
	return from.to(k.units[o.To], 0.5)
}

// ring is a circle around a unit.
func ring(p point) string {
	return fmt.Sprintf("M%sa%d %d 0 1 0 %d 0a%d %d 0 1 0-%d 0", p.minus(point{unitRadius, 0}), unitRadius, unitRadius, 2*unitRadius, unitRadius, unitRadius, 2*unitRadius)
}

// drawBadges marks what is built, disbanded or dislodged, over the units.
func (d *Drawer) drawBadges(b *strings.Builder, s Scene) {
	for _, o := range s.Orders {
		if o.Kind == rules.Waive {
			continue
		}
		p := d.unitPoint(o.At, o.Dislodged)
		badge := func(symbol, class string, q point) {
			fmt.Fprintf(b, "<use href=\"#pb-%s\" class=\"pb-order pb-%s\" x=\"%.0f\" y=\"%.0f\"><title>%s</title></use>\n", symbol, class, q.x, q.y, escape(d.orderText(o)))
		}
		switch {
		case o.Kind == rules.Build:
			d.drawUnit(b, Unit{Unit: rules.Unit{Power: o.Power, Type: o.Type, Location: o.At}})
			badge("built", "success", p.plus(point{24, -22}))
		case o.Kind == rules.Disband, slices.Contains(o.Results, "disband"):
			badge("struck", "dislodged", p)
		case slices.Contains(o.Results, "dislodged"):
			badge("beaten", "dislodged", p)
		}
	}
}
