package drawing

import (
	"math"
	"slices"
	"strings"
	"testing"

	"parley/worlds/diplomacy/rules"
)

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

// TestAnchors checks that units and labels are inside their shapes and visible, and that units of
// two provinces do not overlap.
func TestAnchors(t *testing.T) {
	t.Parallel()
	shapes := outlines(t)
	d, b := drawer(), drawer().board
	for l := range rules.Location(rules.Locations) {
		p, here := b.Province(l), d.spots[l]
		shape := polygon(shapes[b.Code(rules.Location(p))])
		anchors := map[string]point{"unit": here.unit}
		if l < rules.Provinces {
			anchors["label"] = here.label
			anchors["label's left"] = here.label.minus(point{20, 0})
			anchors["label's right"] = here.label.plus(point{20, 0})
			if b.SupplyCentres().Has(p) {
				anchors["centre"] = here.label.minus(point{28, 0})
			}
		}
		for what, at := range anchors {
			if !inside(at, shape) {
				t.Errorf("%s: the %s at %v is outside", b.Code(l), what, at)
			}
			if at.x < reach || at.y < reach || at.x > width-reach || at.y > height-reach {
				t.Errorf("%s: the %s at %v is not visible", b.Code(l), what, at)
			}
		}
		for m := range l {
			if b.Province(m) == p {
				continue
			}
			if far := here.unit.minus(d.spots[m].unit).length(); far < 48 {
				t.Errorf("units of %s and %s are %.0f apart", b.Code(l), b.Code(m), far)
			}
			if far := here.unit.minus(d.spots[m].label); m < rules.Provinces && math.Abs(far.x) < 40 && math.Abs(far.y) < 24 {
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
		for _, r := range drawer().regions() {
			for _, q := range polygon(shapes[r.code]) {
				if far := q.minus(at(coast)).length(); r.kind == "sea" && far < best {
					sea, best = r.code, far
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

// TestBrokenFiles checks that errors in the files of the map name the line.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	mesh := func(s string) error { _, err := readMesh(s); return err }
	locations := func(s string) error { return (&Drawer{board: drawer().board}).read(s) }
	for _, c := range []struct {
		read       func(string) error
		text, want string
	}{
		{mesh, "node a", "line 1: \"node a\": want node NAME"},
		{mesh, "\nnode a 1;2", "line 2: \"1;2\": want two numbers and a comma: LON,LAT"},
		{mesh, "node a 1,2\nnode a 1,2", "line 2: node a is defined twice"},
		{mesh, "node a 1,2\nA B: a b", "line 2: A B: unknown node \"b\""},
		{mesh, "node a 1,2\nA B: a x a", "line 2: \"x\": want two numbers"},
		{mesh, "A B", "line 1: \"A B\": want two names"},
		{mesh, "lake a: 1,2 1,y", "line 1: \"1,y\": want two numbers"},
		{locations, "BUR -", "line 1: \"BUR -\": want LOCATION NAMED UNIT LABEL"},
		{locations, "\nXXX - 1,2 1,2", "line 2: \"XXX - 1,2 1,2\": unknown location \"XXX\""},
		{locations, "BUR - 1,x 1,2", "\"1,x\": want two numbers and a comma"},
		{locations, "BUR - 1,2 x,2", "\"x,2\": want two numbers and a comma"},
	} {
		if err := c.read(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s", c.text, err, c.want)
		}
	}
}
