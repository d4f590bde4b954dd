package rules

import (
	"slices"
	"strings"
	"testing"
)

// TestMap checks the numbers of provinces, centres and home centres.
func TestMap(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	var terrain [3]int
	for p := range Province(Provinces) {
		terrain[b.Terrain(p)]++
		if p > 0 && b.codes[p] <= b.codes[p-1] {
			t.Errorf("%s is after %s: want codes in order", b.codes[p], b.codes[p-1])
		}
	}
	if terrain != [3]int{14, 42, 19} {
		t.Errorf("provinces inland, on the coast and at sea: %v", terrain)
	}
	if b.SupplyCentres().Len() != Centres {
		t.Errorf("%d centres", b.SupplyCentres().Len())
	}
	for _, w := range Powers() {
		want := 3
		if w == Russia {
			want = 4
		}
		if b.Homes(w).Len() != want {
			t.Errorf("%s has %d homes", w, b.Homes(w).Len())
		}
	}
	for _, u := range b.Start() {
		if !b.canStand(u.Type, u.Location) || !b.Homes(u.Power).Has(b.Province(u.Location)) {
			t.Errorf("%s cannot start with %s %s", u.Power, u.Type, b.Code(u.Location))
		}
	}
}

// TestBordersAreMutual checks that every move is possible in both directions, between locations where
// such a unit can be.
func TestBordersAreMutual(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for p := range Location(Locations) {
		for _, kind := range []Type{Army, Fleet} {
			if !b.canStand(kind, p) {
				continue
			}
			if b.Moves(kind, p).Empty() {
				t.Errorf("%s %s cannot move", kind, b.Code(p))
			}
			for q := range b.Moves(kind, p).All() {
				if !b.canStand(kind, q) {
					t.Errorf("%s %s can move to %s, where it cannot be", kind, b.Code(p), b.Code(q))
				}
				if !b.Moves(kind, q).Has(p) {
					t.Errorf("%s %s can move to %s and not back", kind, b.Code(p), b.Code(q))
				}
			}
		}
	}
}

func locationOf(t *testing.T, b *Board, code string) Location {
	t.Helper()
	p, ok := b.ByCode(code)
	if !ok {
		t.Fatalf("unknown location %s", code)
	}
	return p
}

func TestDistances(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for _, c := range []struct {
		unit     Type
		from, to string
		path     string
	}{
		{Army, "PAR", "PAR", "PAR"},
		{Army, "PAR", "MUN", "PAR BUR MUN"},
		{Army, "SMY", "SPA", "SMY CON BUL SER TRI TYR PIE MAR SPA"},
		{Army, "LON", "PAR", ""},
		{Army, "SPA", "NTH", ""},
		{Fleet, "STP/SC", "BAR", "STP/SC BOT SWE NWY BAR"},
		{Fleet, "STP/SC", "SWE", "STP/SC BOT SWE"},
		{Fleet, "ROM", "VEN", "ROM NAP APU VEN"},
		{Fleet, "GAS", "SPA", "GAS SPA/NC"},
		{Fleet, "LYO", "SPA", "LYO SPA/SC"},
		{Fleet, "BLA", "MUN", ""},
	} {
		from, to := locationOf(t, b, c.from), b.Province(locationOf(t, b, c.to))
		var path string
		for i, p := range b.Path(c.unit, from, to) {
			if i > 0 {
				path += " "
			}
			path += b.Code(p)
		}
		got := b.Distance(c.unit, from, to)
		if path != c.path {
			t.Errorf("%s %s to %s: path %q, want %q", c.unit, c.from, c.to, path, c.path)
		}
		if steps := len(b.Path(c.unit, from, to)) - 1; got != unreachable && got != steps || got == unreachable && steps != -1 {
			t.Errorf("%s %s to %s: distance %d, path of %d", c.unit, c.from, c.to, got, steps)
		}
	}
}

// TestRoutes compares routes with a plain search: a set of fleets can convoy an army if and only
// if it contains a route.
func TestRoutes(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for from := range Province(Provinces) {
		for to, ways := range b.routes[from] {
			to := Province(to)
			for _, way := range ways {
				if !b.carried(from, to, way) {
					t.Errorf("%s to %s: %b is not a route", b.names[from], b.names[to], way)
				}
				for less := seaSet(1); less < 1<<19; less <<= 1 {
					if way&less != 0 && b.carried(from, to, way&^less) {
						t.Errorf("%s to %s: %b is a route without %b too", b.names[from], b.names[to], way, less)
					}
				}
			}
		}
	}
	seed := uint32(7)
	for range 20000 {
		seed = seed*1664525 + 1013904223
		fleets := seaSet(seed>>8) & (1<<19 - 1)
		seed = seed*1664525 + 1013904223
		from, to := Province(seed>>8%Provinces), Province(seed>>16%Provinces)
		if b.terrain[from] != Coast || b.terrain[to] != Coast || from == to {
			continue
		}
		listed := false
		for _, way := range b.routes[from][to] {
			listed = listed || way&^fleets == 0
		}
		if listed != b.carried(from, to, fleets) {
			t.Errorf("%s to %s by %b: routes says %v", b.names[from], b.names[to], fleets, listed)
		}
	}
}

// carried reports whether fleets can convoy an army, by a flood fill from its province.
func (b *Board) carried(from, to Province, fleets seaSet) bool {
	seen := b.near[from]
	for changed := true; changed; {
		changed = false
		for p := range seen.All() {
			if b.seas[p]&fleets != 0 {
				more := seen.Or(b.near[p])
				changed = changed || more != seen
				seen = more
			}
		}
	}
	for p := range b.near[to].All() {
		if b.seas[p]&fleets != 0 && seen.Has(p) {
			return true
		}
	}
	return false
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		NewBoard()
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for name, want := range map[string]string{
		"PAR": "PAR", "paris": "PAR", "St. Petersburg": "STP", "saint-petersburg": "STP", "MÜNCHEN": "MUN",
		"gulf of lyons": "LYO", "Mid Atlantic": "MAO", "E. Med": "EAS", "nor": "NWY",
	} {
		if p, ok := b.Find(name); !ok || b.Code(Location(p)) != want {
			t.Errorf("Find(%q) is %s, want %s", name, b.Code(Location(p)), want)
		}
	}
	if p, ok := b.Find("Atlantis"); ok {
		t.Errorf("Find(Atlantis) is %s", b.Name(p))
	}
	for name, want := range map[string][]string{
		"Burgandy": {"BUR"}, "Liver": {"LVP"}, "Norweg": {"NWG"}, "Nor": nil, "Tuni": {"TUN"}, "Tusc": {"TUS"},
		"Northumberland": nil, "western": {"WES"}, "north": {"NAF", "NAO", "NTH"}, "": nil,
	} {
		var got []string
		for _, p := range b.Guess(name) {
			got = append(got, b.Code(Location(p)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Guess(%q) is %v, want %v", name, got, want)
		}
	}
	for _, w := range Powers() {
		for _, name := range []string{w.Name(), w.String(), " " + w.Name() + " "} {
			if got, ok := ParsePower(name); !ok || got != w {
				t.Errorf("ParsePower(%q) is %s", name, got)
			}
		}
	}
	if w, ok := ParsePower(""); ok {
		t.Errorf("ParsePower of an empty text is %s", w)
	}
}

// TestNamesAreUnique checks that no name is listed for two provinces.
func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for line := range strings.Lines(strings.TrimSpace(otherNames)) {
		code, names, _ := strings.Cut(strings.TrimSpace(line), " ")
		for name := range strings.SplitSeq(names, ",") {
			if p, ok := b.Find(name); !ok || b.Code(Location(p)) != code {
				t.Errorf("%q is listed for %s and found for %s", name, code, b.Code(Location(p)))
			}
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	var s, o Set[Location]
	for _, p := range []Location{0, 63, 64, 127, Nowhere} {
		s.Add(p)
	}
	o.Add(63)
	o.Add(80)
	if s.Len() != 4 || s.Has(Nowhere) || !s.Has(127) || s.Empty() || !(Set[Location]{}).Empty() {
		t.Error(s)
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, []Location{0, 63, 64, 127}) {
		t.Error(got)
	}
	if s.Or(o).Len() != 5 || s.And(o).Len() != 1 || s.Minus(o).Len() != 3 {
		t.Error(s, o)
	}
	s.Remove(63)
	s.Remove(Nowhere)
	if s.Has(63) || s.Len() != 3 {
		t.Error(s)
	}
	for p := range s.All() {
		if p != 0 {
			t.Error("the loop did not end")
		}
		break
	}
}
