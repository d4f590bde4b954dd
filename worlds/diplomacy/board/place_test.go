package board

import (
	"math"
	"slices"
	"strings"
	"testing"
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

// TestPlaces checks the list against the game: 75 provinces, 34 centres, six coasts.
func TestPlaces(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, p := range standard().places {
		count[p.kind]++
		if p.centre {
			count["centre"]++
		}
	}
	for kind, want := range map[string]int{"land": 56, "sea": 19, "coast": 6, "centre": 34} {
		if count[kind] != want {
			t.Errorf("%d of %s, the game has %d", count[kind], kind, want)
		}
	}
}

// TestAnchors proves that units and labels are inside the shapes they belong to, in
// sight, and that units of two provinces do not cover each other.
func TestAnchors(t *testing.T) {
	t.Parallel()
	shapes := outlines(t)
	all := standard().places
	for i, p := range all {
		shape := polygon(shapes[province(p.abbr)])
		spots := map[string]point{"unit": p.unit}
		if p.kind != "coast" {
			spots["label"] = p.label
			spots["label's left"] = p.label.minus(point{20, 0})
			spots["label's right"] = p.label.plus(point{20, 0})
		}
		if p.centre {
			spots["centre"] = p.label.minus(point{28, 0})
		}
		for what, at := range spots {
			if !inside(at, shape) {
				t.Errorf("%s: the %s at %v is outside", p.abbr, what, at)
			}
			if at.x < reach || at.y < reach || at.x > width-reach || at.y > height-reach {
				t.Errorf("%s: the %s at %v is out of sight", p.abbr, what, at)
			}
		}
		for _, q := range all[:i] {
			if d := p.unit.minus(q.unit).length(); d < 48 && province(p.abbr) != province(q.abbr) {
				t.Errorf("units of %s and %s are %.0f apart", p.abbr, q.abbr, d)
			}
			if d := p.unit.minus(q.label); q.kind != "coast" && math.Abs(d.x) < 40 && math.Abs(d.y) < 24 && province(p.abbr) != province(q.abbr) {
				t.Errorf("the unit of %s covers the label of %s", p.abbr, q.abbr)
			}
		}
	}
}

// TestCoasts proves that a fleet stands by the sea its coast is named for.
func TestCoasts(t *testing.T) {
	t.Parallel()
	shapes := outlines(t)
	seas := map[string][]string{
		"BUL/EC": {"BLA"}, "BUL/SC": {"AEG"}, "SPA/NC": {"MAO"}, "SPA/SC": {"LYO", "MAO", "WES"},
		"STP/NC": {"BAR"}, "STP/SC": {"BOT"},
	}
	for coast, want := range seas {
		p, err := standard().find(coast)
		if err != nil {
			t.Fatal(err)
		}
		sea, best := "", math.Inf(1)
		for _, s := range standard().places {
			for _, q := range polygon(shapes[s.abbr]) {
				if d := q.minus(p.unit).length(); s.kind == "sea" && d < best {
					sea, best = s.abbr, d
				}
			}
		}
		if !slices.Contains(want, sea) || best > 60 {
			t.Errorf("the fleet of %s stands %.0f from %s; want one of %v, near", coast, best, sea, want)
		}
	}
	north, _ := standard().find("SPA/NC")
	if south, _ := standard().find("SPA/SC"); north.unit.y >= south.unit.y {
		t.Error("the north coast of Spain is south of the south coast")
	}
}

// TestBrokenFiles checks that what is wrong in a map's files is said with its line.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	mesh := func(s string) error { _, err := readMesh(s); return err }
	places := func(s string) error { _, err := readPlaces(s); return err }
	for _, c := range []struct {
		read       func(string) error
		text, want string
	}{
		{mesh, "node a", "line 1: \"node a\": want node NAME"},
		{mesh, "\nnode a 1;2", "line 2: \"1;2\": want LON,LAT"},
		{mesh, "node a 1,2\nnode a 1,2", "line 2: node a is there twice"},
		{mesh, "node a 1,2\nA B: a b", "line 2: A B: no node \"b\""},
		{mesh, "node a 1,2\nA B: a x a", "line 2: \"x\": want LON,LAT"},
		{mesh, "A B", "line 1: \"A B\": want two names"},
		{mesh, "lake a: 1,2 1,y", "line 1: \"1,y\": want LON,LAT"},
		{places, "BUR land", "line 1: \"BUR land\": want PLACE"},
		{places, "BUR land - 1,x 1,2 Burgundy", "line 1: \"1,x\": want X,Y"},
		{places, "BUR land - 1,2 x,2 Burgundy", "line 1: \"x,2\": want X,Y"},
	} {
		if err := c.read(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s", c.text, err, c.want)
		}
	}
}
