package drawing

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
)

//go:embed europe.mesh
var europe string

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

// step is a border on the way around a region, possibly from its end to its start.
type step struct {
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
func (m *mesh) around(region string) (ring []step, closed bool) {
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
		s := step{rest[i], rest[i].from != at}
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
