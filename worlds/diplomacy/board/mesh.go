package board

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed europe.mesh
var europe string

// mesh is the map as a planar graph: every border is there once, so the two
// regions beside it cannot but share it.
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

// decor is painted over the regions and means nothing in the game.
type decor struct {
	kind  string // island, lake, strait
	name  string
	curve curve
}

// step is a border on the way around a region, perhaps walked backwards.
type step struct {
	border *border
	back   bool
}

// readMesh reads the format that europe.mesh explains at its top.
func readMesh(text string) (*mesh, error) {
	m := &mesh{nodes: map[string]point{}}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if err := m.readNode(line); err != nil {
			return nil, fmt.Errorf("board: mesh: line %d: %w", i+1, err)
		}
	}
	for i, line := range lines {
		if err := m.readLine(line); err != nil {
			return nil, fmt.Errorf("board: mesh: line %d: %w", i+1, err)
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
		return fmt.Errorf("node %s is there twice", f[1])
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
			return fmt.Errorf("%s %s: no node %q", h[0], h[1], n)
		}
	}
	points, err := m.line(t)
	m.borders = append(m.borders, border{[2]string{h[0], h[1]}, from, to, smooth(points, false)})
	return err
}

// line reads points, each a node's name or degrees.
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

// degrees reads LON,LAT and says where on the canvas that is.
func degrees(word string) (point, error) {
	lon, lat, _ := strings.Cut(word, ",")
	x, err := strconv.ParseFloat(lon, 64)
	if err != nil {
		return point{}, fmt.Errorf("%q: want LON,LAT", word)
	}
	y, err := strconv.ParseFloat(lat, 64)
	if err != nil {
		return point{}, fmt.Errorf("%q: want LON,LAT", word)
	}
	return project(x, y), nil
}

// around returns the borders of a region in the order in which one walks around
// it, and whether that is one closed way over all of them.
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
