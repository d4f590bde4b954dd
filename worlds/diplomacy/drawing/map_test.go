package drawing

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/worlds/diplomacy/rules"
)

// piece is a Bézier curve of the picture.
type piece [4]point

// outlines reads the shapes from the picture, so that the tests check what is drawn.
func outlines(t *testing.T) map[string][]piece {
	t.Helper()
	all := map[string][]piece{}
	for _, m := range regexp.MustCompile(`<path id="pb-([A-Z]{3})" d="M([^"]+)z"/>`).FindAllStringSubmatch(drawer().Base(), -1) {
		segments := strings.Split(m[2], "c")
		at := numbers(t, segments[0])[0]
		start := at
		for _, s := range segments[1:] {
			n := numbers(t, s)
			p := piece{at, at.plus(n[0]), at.plus(n[1]), at.plus(n[2])}
			at = p[3]
			all[m[1]] = append(all[m[1]], p)
		}
		if at != start {
			t.Errorf("%s: the outline ends at %v, want its start %v", m[1], at, start)
		}
	}
	return all
}

func numbers(t *testing.T, text string) []point {
	t.Helper()
	var ps []point
	n := regexp.MustCompile(`-?\d+`).FindAllString(text, -1)
	for i := 0; i+1 < len(n); i += 2 {
		x, _ := strconv.Atoi(n[i])
		y, err := strconv.Atoi(n[i+1])
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, point{float64(x), float64(y)})
	}
	return ps
}

// undirected returns the piece in a direction that depends only on its ends.
func (p piece) undirected() piece {
	if p[3].x < p[0].x || p[3].x == p[0].x && p[3].y < p[0].y {
		return piece{p[3], p[2], p[1], p[0]}
	}
	return p
}

// flat returns the piece as short straight lines.
func (p piece) flat() []point {
	var ps []point
	c := curve(p[:])
	for i := range 9 {
		ps = append(ps, c.at(0, float64(i)/8))
	}
	return ps
}

// polygon returns an outline as short straight lines.
func polygon(outline []piece) []point {
	var ps []point
	for _, p := range outline {
		ps = append(ps, p.flat()[1:]...)
	}
	return ps
}

// TestBordersAreTheMap checks that two shapes share a border if and only if their provinces are
// adjacent in the game.
func TestBordersAreTheMap(t *testing.T) {
	t.Parallel()
	beside := map[piece][]string{}
	shapes := outlines(t)
	for region, pieces := range shapes {
		for _, p := range pieces {
			beside[p.undirected()] = append(beside[p.undirected()], region)
		}
	}
	drawn := map[string]bool{}
	for p, regions := range beside {
		if len(regions) > 2 {
			t.Errorf("%v share the line %v", regions, p)
		}
		for _, a := range regions {
			for _, b := range regions {
				drawn[a+" "+b] = true
			}
		}
	}
	game := map[string]bool{}
	for p := range rules.Province(rules.Provinces) {
		name := drawer().board.Code(rules.Location(p))
		game[name+" "+name] = true
		for q := range drawer().board.Near(p).All() {
			game[name+" "+drawer().board.Code(rules.Location(q))] = true
		}
	}
	for pair := range game {
		if !drawn[pair] {
			t.Errorf("%s are adjacent and share no border", pair)
		}
	}
	for pair := range drawn {
		if !game[pair] && !strings.Contains(pair, "SWI") && !strings.Contains(pair, "OUT") {
			t.Errorf("%s share a border and are not adjacent", pair)
		}
	}
	for _, n := range []string{"BUR", "MAR", "MUN", "PIE", "TYR"} {
		if !drawn["SWI "+n] {
			t.Errorf("Switzerland does not touch %s", n)
		}
	}
}

// TestShapesTile checks that shapes do not overlap: no two lines of the map cross or touch except at
// their ends, and the areas add up to the area of the map.
func TestShapesTile(t *testing.T) {
	t.Parallel()
	once := map[piece]int{}
	sum := 0.0
	shapes := outlines(t)
	for _, outline := range shapes {
		for _, p := range outline {
			once[p.undirected()]++
		}
		sum += math.Abs(area(polygon(outline)))
	}
	pieces := slices.Collect(maps.Keys(once))
	boxes := make([][2]point, len(pieces))
	for i, p := range pieces {
		boxes[i] = p.box()
		for j, q := range pieces[:i+1] {
			if !meet(boxes[i], boxes[j]) {
				continue
			}
			if a, b, crossed := cross(p, q); crossed {
				t.Errorf("lines cross near %.0f,%.0f and %.0f,%.0f", a.x, a.y, b.x, b.y)
			}
		}
	}
	// A piece of only one region is on the edge of the map.
	edge := map[point]piece{}
	for _, outline := range shapes {
		for _, p := range turned(outline) {
			if once[p.undirected()] == 1 {
				edge[p[0]] = p
			}
		}
	}
	if whole := around(edge); math.Abs(area(polygon(whole))-sum) > 1 || len(whole) != len(edge) {
		t.Errorf("the shapes' areas add up to %.0f, the map's is %.0f", sum, area(polygon(whole)))
	}
}

// turned returns the outline in the direction in which its area is positive.
func turned(outline []piece) []piece {
	if area(polygon(outline)) > 0 {
		return outline
	}
	back := slices.Clone(outline)
	slices.Reverse(back)
	for i, p := range back {
		back[i] = piece{p[3], p[2], p[1], p[0]}
	}
	return back
}

// around follows pieces from start to end until it reaches the first one again.
func around(edge map[point]piece) []piece {
	var ring []piece
	for start := range edge {
		for p := edge[start]; len(ring) < len(edge); p = edge[p[3]] {
			ring = append(ring, p)
			if p[3] == start {
				break
			}
		}
		break
	}
	return ring
}

func area(ps []point) float64 {
	sum := 0.0
	for i, p := range ps {
		q := ps[(i+1)%len(ps)]
		sum += p.x*q.y - q.x*p.y
	}
	return sum / 2
}

// cross finds two straight parts of p and q that meet, except at common ends.
func cross(p, q piece) (a, b point, found bool) {
	f, g := p.flat(), q.flat()
	for i := range len(f) - 1 {
		for j := range len(g) - 1 {
			if p == q && j <= i+1 {
				continue
			}
			a, b, c, d := f[i], f[i+1], g[j], g[j+1]
			if a == c || a == d || b == c || b == d || !meet(piece{a, a, b, b}.box(), piece{c, c, d, d}.box()) {
				continue
			}
			if turn(a, b, c)*turn(a, b, d) <= 0 && turn(c, d, a)*turn(c, d, b) <= 0 {
				return a, c, true
			}
		}
	}
	return a, b, false
}

// box returns the corners of the box around a piece.
func (p piece) box() [2]point {
	lo, hi := p[0], p[0]
	for _, x := range p[1:] {
		lo = point{min(lo.x, x.x), min(lo.y, x.y)}
		hi = point{max(hi.x, x.x), max(hi.y, x.y)}
	}
	return [2]point{lo, hi}
}

// meet reports whether two boxes have a point in common.
func meet(a, b [2]point) bool {
	return a[0].x <= b[1].x && b[0].x <= a[1].x && a[0].y <= b[1].y && b[0].y <= a[1].y
}

// turn returns a positive number if the path a, b, c bends in one direction, and a negative one if it
// bends in the other.
func turn(a, b, c point) float64 { return (b.x-a.x)*(c.y-a.y) - (b.y-a.y)*(c.x-a.x) }

func inside(p point, polygon []point) bool {
	in := false
	for i, a := range polygon {
		b := polygon[(i+1)%len(polygon)]
		if (a.y > p.y) != (b.y > p.y) && p.x < (b.x-a.x)*(p.y-a.y)/(b.y-a.y)+a.x {
			in = !in
		}
	}
	return in
}

// labels reads where the codes and the centres of provinces are written.
func labels(t *testing.T) (codes, centres map[string]point) {
	t.Helper()
	codes, centres = map[string]point{}, map[string]point{}
	var centre *point // of the code that follows
	for _, m := range regexp.MustCompile(`<(?:circle class="pb-centre" cx|text class="pb-label(?: pb-water)?" x)="(-?\d+)" c?y="(-?\d+)"(?:>([A-Z]{3})<)?`).FindAllStringSubmatch(drawer().Base(), -1) {
		at := numbers(t, m[1]+" "+m[2])[0]
		if m[3] == "" {
			centre = &at
			continue
		}
		codes[m[3]] = at.minus(point{0, 7})
		if centre != nil {
			centres[m[3]], centre = *centre, nil
		}
	}
	return codes, centres
}

// TestAnchors checks that units and labels are inside their shapes and visible, and that units of
// two provinces do not overlap.
func TestAnchors(t *testing.T) {
	t.Parallel()
	shapes := outlines(t)
	d, b := drawer(), drawer().board
	codes, centres := labels(t)
	if len(codes) != rules.Provinces || len(centres) != rules.Centres {
		t.Fatalf("%d labels and %d centres", len(codes), len(centres))
	}
	for l := range rules.Location(rules.Locations) {
		p, unit := b.Province(l), d.units[l]
		shape := polygon(shapes[b.Code(rules.Location(p))])
		anchors := map[string]point{"unit": unit}
		if l < rules.Provinces {
			label := codes[b.Code(l)]
			anchors["label"] = label
			anchors["label's left"] = label.minus(point{20, 0})
			anchors["label's right"] = label.plus(point{20, 0})
			if b.SupplyCentres().Has(p) {
				anchors["centre"] = centres[b.Code(l)]
			}
		}
		for what, at := range anchors {
			if !inside(at, shape) {
				t.Errorf("%s: the %s at %v is outside", b.Code(l), what, at)
			}
			if at.x < unitRadius || at.y < unitRadius || at.x > width-unitRadius || at.y > height-unitRadius {
				t.Errorf("%s: the %s at %v is not visible", b.Code(l), what, at)
			}
		}
		for m := range l {
			if b.Province(m) == p {
				continue
			}
			if far := unit.minus(d.units[m]).length(); far < 48 {
				t.Errorf("units of %s and %s are %.0f apart", b.Code(l), b.Code(m), far)
			}
			if far := unit.minus(codes[b.Code(m)]); m < rules.Provinces && math.Abs(far.x) < 40 && math.Abs(far.y) < 24 {
				t.Errorf("the unit of %s covers the label of %s", b.Code(l), b.Code(m))
			}
		}
	}
}

// TestCoasts checks that a fleet on a named coast is near the sea of that coast.
func TestCoasts(t *testing.T) {
	t.Parallel()
	shapes := outlines(t)
	seas := map[string][]string{
		"BUL/EC": {"BLA"}, "BUL/SC": {"AEG"}, "SPA/NC": {"MAO"}, "SPA/SC": {"LYO", "MAO", "WES"},
		"STP/NC": {"BAR"}, "STP/SC": {"BOT"},
	}
	for coast, want := range seas {
		sea, best := "", math.Inf(1)
		for code, outline := range shapes {
			p, ok := drawer().board.Find(code)
			if !ok || drawer().board.Terrain(p) != rules.Sea {
				continue
			}
			for _, q := range polygon(outline) {
				if far := q.minus(at(coast)).length(); far < best {
					sea, best = code, far
				}
			}
		}
		if !slices.Contains(want, sea) || best > 60 {
			t.Errorf("the fleet of %s is %.0f from %s; want it near one of %v", coast, best, sea, want)
		}
	}
	if at("SPA/NC").y >= at("SPA/SC").y {
		t.Error("the north coast of Spain is south of the south coast")
	}
}

// TestColours checks that each colour is there twice, first as itself, and that charts have the colours of units or darker ones.
func TestColours(t *testing.T) {
	t.Parallel()
	dayColours, nightColours := map[string]string{}, map[string]string{}
	day, night, _ := strings.Cut(styleSheet, "@media(prefers-color-scheme:dark)")
	night, rest, _ := strings.Cut(night, "}}")
	for text, to := range map[string]map[string]string{day: dayColours, night: nightColours} {
		for _, m := range regexp.MustCompile(`--pb-([a-z-]+):(#[0-9a-f]+);`).FindAllStringSubmatch(text, -1) {
			to[m[1]] = m[2]
		}
	}
	for name := range dayColours {
		if nightColours[name] == "" {
			t.Errorf("the colour %s is missing in the dark", name)
		}
	}
	uses := regexp.MustCompile(`([a-z]+):([^;{}]*);([a-z]+):var\(--pb-([a-z-]+)\)`).FindAllStringSubmatch(rest, -1)
	for _, m := range uses {
		if m[1] != m[3] || m[2] == "" || m[2] != dayColours[m[4]] {
			t.Errorf("%s: want the colour %s before the variable", m[0], dayColours[m[4]])
		}
	}
	if n := strings.Count(rest, "var(--pb-"); n != len(uses) || n == 0 {
		t.Errorf("%d variables, %d of them after a colour", n, len(uses))
	}
	for _, w := range rules.Powers() {
		if own := Colours()[w.String()]; own[1] != nightColours[class(w)] || own[0] != dayColours[class(w)] && w != rules.Russia && w != rules.Turkey {
			t.Errorf("%s has %v in charts", w, own)
		}
	}
}
