package drawing

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/worlds/diplomacy/rules"
)

//go:embed europe.mesh
var europeMesh string

// mesh is the map as a planar graph. It holds every border once, so the two regions beside
// it share it exactly.
type mesh struct {
	nodes   map[string]point
	borders []border
	decor   []decor
}

// border is a line between two regions that ends where a third begins.
type border struct {
	sides    [2]string // "-" is beyond the map
	from, to string    // nodes
	curve    curve
}

// decor is painted over the regions and has no meaning in the game.
type decor struct {
	kind  string // island, lake, strait
	name  string
	curve curve
}

// borderStep is a border on the way around a region, possibly from its end to its start.
type borderStep struct {
	border *border
	back   bool
}

// readMesh reads the format that europe.mesh explains at its top.
func readMesh(text string) (*mesh, error) {
	m := &mesh{nodes: map[string]point{}}
	for _, read := range []func(string) error{m.readNode, m.readLine} {
		for i, line := range strings.Split(text, "\n") {
			if err := read(line); err != nil {
				return nil, fmt.Errorf("drawing: mesh: line %d: %w", i+1, err)
			}
		}
	}
	return m, nil
}

func (m *mesh) readNode(line string) error {
	f := strings.Fields(line)
	if len(f) == 0 || f[0] != "node" {
		return nil
	}
	if len(f) != 3 {
		return fmt.Errorf("%q: want node NAME LON,LAT", line)
	}
	if _, twice := m.nodes[f[1]]; twice {
		return fmt.Errorf("node %s is defined twice", f[1])
	}
	p, err := degrees(f[2])
	m.nodes[f[1]] = p
	return err
}

func (m *mesh) readLine(line string) error {
	if line == "" || line[0] == '#' || strings.HasPrefix(line, "node ") {
		return nil
	}
	head, tail, _ := strings.Cut(line, ":")
	h, t := strings.Fields(head), strings.Fields(tail)
	if len(h) != 2 || len(t) < 2 {
		return fmt.Errorf("%q: want two names, a colon and a line", line)
	}
	if slices.Contains([]string{"island", "lake", "strait"}, h[0]) {
		line, err := m.line(t)
		m.decor = append(m.decor, decor{h[0], h[1], smooth(line, h[0] != "strait")})
		return err
	}
	from, to := t[0], t[len(t)-1]
	for _, n := range []string{from, to} {
		if _, ok := m.nodes[n]; !ok {
			return fmt.Errorf("%s %s: unknown node %q", h[0], h[1], n)
		}
	}
	points, err := m.line(t)
	m.borders = append(m.borders, border{[2]string{h[0], h[1]}, from, to, smooth(points, false)})
	return err
}

// line reads points, each a node's name or LON,LAT.
func (m *mesh) line(words []string) ([]point, error) {
	var points []point
	for _, w := range words {
		p, ok := m.nodes[w]
		if !ok {
			var err error
			if p, err = degrees(w); err != nil {
				return nil, err
			}
		}
		points = append(points, p)
	}
	return points, nil
}

// degrees reads LON,LAT as a point on the canvas.
func degrees(word string) (point, error) {
	p, err := readPoint(word)
	if err != nil {
		return p, fmt.Errorf("%w: LON,LAT", err)
	}
	return project(p.x, p.y), nil
}

// around returns the borders of a region in order around it, and whether they form one
// closed ring.
func (m *mesh) around(region string) (ring []borderStep, closed bool) {
	var rest []*border
	for i := range m.borders {
		if slices.Contains(m.borders[i].sides[:], region) {
			rest = append(rest, &m.borders[i])
		}
	}
	if len(rest) == 0 {
		return nil, false
	}
	start, at := rest[0].from, rest[0].from
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(b *border) bool { return b.from == at || b.to == at })
		if i < 0 {
			return ring, false
		}
		s := borderStep{rest[i], rest[i].from != at}
		at = s.border.to
		if s.back {
			at = s.border.from
		}
		ring = append(ring, s)
		rest = slices.Delete(rest, i, i+1)
	}
	return ring, at == start
}

// The canvas of the map, in the units of its viewBox.
const (
	width  = 2000
	height = 1720
)

// lens magnifies the map around a point, so that crowded regions have room for units and
// arrows. Far from it nothing moves.
type lens struct {
	lon, lat float64
	strength float64 // the scale at the centre is 1 + strength; from 2 on the map would fold
	radius   float64
}

func lenses() []lens {
	return []lens{
		{10, 48.5, 0.35, 420},  // the middle of Europe
		{-3.5, 55, 0.75, 150},  // Great Britain
		{5.5, 51, 0.35, 130},   // the Low Countries
		{11, 56.7, 0.6, 120},   // Denmark
		{21.5, 42, 0.45, 170},  // the Balkans
		{14.5, 41.5, 0.6, 140}, // Italy
		{31, 39.5, 0.45, 170},  // Turkey
		{-5, 40, 0.3, 170},     // Iberia
	}
}

// project converts degrees east and north to a point on the canvas.
func project(lon, lat float64) point {
	p := conic(lon, lat)
	at := p
	for _, l := range lenses() {
		away := p.minus(conic(l.lon, l.lat))
		r := away.length() / l.radius
		at = at.plus(away.times(l.strength * math.Exp(-r*r/2)))
	}
	return at
}

// conic is Lambert's conformal conic projection, true at 40 and 62 degrees north,
// with the middle of Europe in the middle of the canvas.
func conic(lon, lat float64) point {
	const (
		south, north = 40 * math.Pi / 180, 62 * math.Pi / 180
		scale        = 2180
		x, y         = 1000, 925 // where 14 degrees east, 50 north is drawn
	)
	t := func(phi float64) float64 { return math.Tan(math.Pi/4 + phi/2) }
	n := math.Log(math.Cos(south)/math.Cos(north)) / math.Log(t(north)/t(south))
	rho := func(phi float64) float64 { return scale * math.Cos(south) / n * math.Pow(t(south)/t(phi), n) }
	r, turn := rho(lat*math.Pi/180), n*(lon-14)*math.Pi/180
	return point{x + r*math.Sin(turn), y + r*math.Cos(turn) - rho(50*math.Pi/180)}
}

// definitions returns the parts of every picture that do not depend on the scene: the
// style, a shape for each region, what lies under the owners' tints and what lies over them.
func (d *Drawer) definitions() string {
	m, err := readMesh(europeMesh)
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

// point is a point on the canvas: x to the right, y down.
type point struct{ x, y float64 }

func (p point) plus(q point) point          { return point{p.x + q.x, p.y + q.y} }
func (p point) minus(q point) point         { return point{p.x - q.x, p.y - q.y} }
func (p point) times(f float64) point       { return point{p.x * f, p.y * f} }
func (p point) length() float64             { return math.Hypot(p.x, p.y) }
func (p point) to(q point, t float64) point { return p.plus(q.minus(p).times(t)) }
func (p point) left() point                 { return point{p.y, -p.x} }
func (p point) round() point                { return point{math.Round(p.x), math.Round(p.y)} }

// unit returns p with length one. The zero point becomes one to the right.
func (p point) unit() point {
	l := p.length()
	if l == 0 {
		return point{1, 0}
	}
	return p.times(1 / l)
}

// curve is a chain of cubic Béziers: a start, and three points for each piece. Its points
// are whole numbers, so that tests see what is drawn.
type curve []point

// handle is the length of a Bézier's handles as a fraction of the piece's length: small
// enough that a curve does not swing out between unevenly spaced points.
const handle = 0.33

// smooth draws a curve through points, back to the first if it is closed.
func smooth(points []point, closed bool) curve {
	if len(points) < 2 {
		return nil
	}
	n := len(points)
	pieces := n - 1
	at := func(i int) point { return points[min(max(i, 0), n-1)] }
	if closed {
		pieces = n
		at = func(i int) point { return points[(i+n)%n] }
	}
	c := curve{at(0).round()}
	for i := range pieces {
		p, q := at(i), at(i+1)
		reach := q.minus(p).length() * handle
		out := p.plus(q.minus(at(i - 1)).unit().times(reach))
		in := q.minus(at(i + 2).minus(p).unit().times(reach))
		c = append(c, out.round(), in.round(), q.round())
	}
	return c
}

// reversed is the same curve from its other end.
func (c curve) reversed() curve {
	r := slices.Clone(c)
	slices.Reverse(r)
	return r
}

// at returns the point at t of a piece, t from 0 to 1.
func (c curve) at(piece int, t float64) point {
	p := c[piece*3 : piece*3+4]
	a, b, d := p[0].to(p[1], t), p[1].to(p[2], t), p[2].to(p[3], t)
	return a.to(b, t).to(b.to(d, t), t)
}

// path appends the curve to an SVG path, from the path's current point.
func (c curve) path(d []byte) []byte {
	for i := 1; i+2 < len(c); i += 3 {
		d = append(d, 'c')
		for j := range 3 {
			d = appendPair(d, c[i+j].minus(c[i-1]), j > 0)
		}
	}
	return d
}

// moveTo begins a path at p.
func moveTo(d []byte, p point) []byte { return appendPair(append(d, 'M'), p.round(), false) }

// appendPair appends two whole numbers in SVG's shortest form: a minus sign is a separator.
func appendPair(d []byte, p point, after bool) []byte {
	if after && p.x >= 0 {
		d = append(d, ' ')
	}
	d = strconv.AppendInt(d, int64(p.x), 10)
	if p.y >= 0 {
		d = append(d, ' ')
	}
	return strconv.AppendInt(d, int64(p.y), 10)
}

// middle is the point in the middle of the middle piece.
func (c curve) middle() point { return c.at((len(c)-1)/6, 0.5) }

// String is the point as a path has it.
func (p point) String() string { return string(appendPair(nil, p.round(), false)) }
