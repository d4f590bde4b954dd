package rules

import (
	"cmp"
	_ "embed"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

//go:embed board.txt
var standardMap string

// Sizes of the board.
const (
	Provinces = 75 // provinces, seas included
	Locations = 81 // where a unit can be: the provinces, and six coasts of three of them
	Centres   = 34 // supply centres
	majority  = 18 // supply centres that win the game
)

// Province is a province: its number in the order of codes.
type Province uint8

// Location is where a unit is: a province, or one of its coasts if it has several. The first
// Provinces locations are the provinces themselves.
type Location uint8

// Nowhere is no location.
const Nowhere Location = 255

// Terrain is which units can be in a province.
type Terrain uint8

// The terrains.
const (
	Inland Terrain = iota // armies
	Coast                 // armies and fleets
	Sea                   // fleets
)

// String returns the terrain in a word.
func (t Terrain) String() string {
	return [...]string{"inland", "coast", "sea"}[min(t, Sea)]
}

// Type is the type of a unit.
type Type uint8

// The types of units. AnyType is for orders that do not name one.
const (
	AnyType Type = iota
	Army
	Fleet
)

// String returns the type's letter.
func (t Type) String() string {
	return [...]string{"", "A", "F"}[min(t, Fleet)]
}

// Unit is an army or a fleet of a power. The zero Unit is no unit.
type Unit struct {
	Power    Power
	Type     Type
	Location Location
}

// Board is the map of Diplomacy: 75 provinces and their coasts, which units can move where,
// distances, and the seas over which fleets can carry an army. It never changes, so any number of
// games can share one. Provinces and locations are small numbers and sets of them are two words, so
// that lookups are cheap.
type Board struct {
	codes     [Locations]string
	provinces [Locations]Province
	names     [Provinces]string
	terrain   [Provinces]Terrain
	coasts    [Provinces][]Location // where a fleet can be in it
	centres   Set[Province]
	homes     [Turkey + 1]Set[Province]
	start     []Unit

	army  [Provinces]Set[Province]
	fleet [Locations]Set[Location]
	reach [Locations]Set[Province] // fleet, without coasts
	near  [Provinces]Set[Province]

	walk [Provinces][Provinces]uint8
	sail [Locations][Locations]uint8
	hops [Provinces][Provinces]uint8 // over land and water, for the rule of forced removals

	seas   [Provinces]seaSet
	routes [Provinces][Provinces][]seaSet // fleets in all seas of one of these, and no fewer, can carry an army there
	lookup map[string]Location

	spellings [Provinces][]string
}

// NewBoard returns the standard board.
func NewBoard() *Board {
	b := &Board{lookup: map[string]Location{}}
	b.read(standardMap)
	b.measureDistances()
	b.findRoutes()
	b.indexNames()
	return b
}

// Code returns the code of a location: PAR, STP/SC.
func (b *Board) Code(p Location) string {
	if p >= Locations {
		return "?"
	}
	return b.codes[p]
}

// UnitText is a unit as it is written: A PAR.
func (b *Board) UnitText(u Unit) string { return u.Type.String() + " " + b.Code(u.Location) }

// ByCode finds a place by its code.
func (b *Board) ByCode(code string) (Location, bool) {
	i := slices.Index(b.codes[:], code)
	return Location(i), i >= 0
}

// Province is the province that a place belongs to.
func (b *Board) Province(p Location) Province { return b.provinces[p] }

// Name returns a province's name in English.
func (b *Board) Name(p Province) string { return b.names[p] }

// Terrain returns the terrain of a province.
func (b *Board) Terrain(p Province) Terrain { return b.terrain[p] }

// fleetLocations are the places of a province where a fleet can stand: none inland,
// several where it has several coasts.
func (b *Board) fleetLocations(p Province) []Location { return b.coasts[p] }

// SupplyCentres are the provinces with a supply centre.
func (b *Board) SupplyCentres() Set[Province] { return b.centres }

// Homes are the home centres of a power.
func (b *Board) Homes(w Power) Set[Province] {
	if w > Turkey {
		return Set[Province]{}
	}
	return b.homes[w]
}

// Start returns the units that the game begins with.
func (b *Board) Start() []Unit { return slices.Clone(b.start) }

// canStand reports whether a unit of type t can be at p.
func (b *Board) canStand(t Type, p Location) bool {
	if p >= Locations {
		return false
	}
	if t == Fleet {
		return slices.Contains(b.coasts[b.provinces[p]], p)
	}
	return t == Army && p < Provinces && b.terrain[p] != Sea
}

// Moves are the places a unit of type t at p can go to by itself. An army's are
// provinces.
func (b *Board) Moves(t Type, p Location) Set[Location] {
	if t == Fleet {
		return b.fleet[p]
	}
	return Set[Location](b.army[b.provinces[p]])
}

// Reach is Moves without coasts: the provinces a unit can go to, and so those it can
// support into.
func (b *Board) Reach(t Type, p Location) Set[Province] {
	if t == Fleet {
		return b.reach[p]
	}
	return b.army[b.provinces[p]]
}

// Near are the provinces that touch p, by land or by water.
func (b *Board) Near(p Province) Set[Province] { return b.near[p] }

// read fills the board from its text. First all locations get their numbers, then the
// borders are added.
func (b *Board) read(text string) {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool { return line[0] == '#' })
	rows := make([][]string, len(lines))
	coast := Location(Provinces)
	for i, line := range lines {
		rows[i] = strings.Split(line, "|")
		p := Province(i)
		b.codes[i], b.provinces[i] = strings.TrimSpace(rows[i][0]), p
		b.names[i] = strings.TrimSpace(rows[i][1])
		for word := range strings.FieldsSeq(rows[i][4]) {
			if strings.HasPrefix(word, "/") {
				b.codes[coast], b.provinces[coast] = b.codes[i]+word, p
				b.coasts[i] = append(b.coasts[i], coast)
				coast++
			}
		}
	}
	for i, row := range rows {
		b.readBorders(Province(i), strings.Fields(row[3]), strings.Fields(row[4]))
		b.readCentre(Province(i), strings.Fields(row[2]))
	}
}

// readBorders adds the borders of p.
func (b *Board) readBorders(p Province, army, fleet []string) {
	switch {
	case len(army) == 0:
		b.terrain[p] = Sea
	case len(fleet) > 0:
		b.terrain[p] = Coast
	}
	if len(fleet) > 0 && len(b.coasts[p]) == 0 {
		b.coasts[p] = []Location{Location(p)}
	}
	for _, word := range army {
		to, _ := b.ByCode(word)
		b.army[p].Add(b.provinces[to])
	}
	from := Location(p)
	for _, word := range fleet {
		if strings.HasPrefix(word, "/") {
			from, _ = b.ByCode(b.codes[p] + word)
			continue
		}
		to, _ := b.ByCode(word)
		b.fleet[from].Add(to)
		b.reach[from].Add(b.provinces[to])
	}
	b.near[p] = b.army[p]
	for _, at := range b.coasts[p] {
		b.near[p] = b.near[p].Or(b.reach[at])
	}
}

// readCentre reads whose home centre p is, and its first unit.
func (b *Board) readCentre(p Province, words []string) {
	if len(words) == 0 {
		return
	}
	b.centres.Add(p)
	w, ok := ParsePower(words[0])
	if !ok {
		return
	}
	b.homes[w].Add(p)
	u := Unit{Power: w, Type: Army, Location: Location(p)}
	if kind, coast, _ := strings.Cut(words[1], "/"); kind == "F" {
		u.Type = Fleet
		if coast != "" {
			u.Location, _ = b.ByCode(b.codes[p] + "/" + coast)
		}
	}
	b.start = append(b.start, u)
}

// otherNames are other names in use: a code and its names, separated by commas.
//
//go:embed names.txt
var otherNames string

// indexNames fills the lookup of names: codes, full names, and other names.
func (b *Board) indexNames() {
	for p, code := range b.codes[:Provinces] {
		b.addName(Province(p), code)
		b.addName(Province(p), b.names[p])
	}
	for line := range strings.Lines(otherNames) {
		code, names, _ := strings.Cut(strings.TrimSpace(line), " ")
		p, _ := b.ByCode(code)
		for name := range strings.SplitSeq(names, ",") {
			b.addName(Province(p), strings.TrimSpace(name))
		}
	}
}

// addName adds a name of p, unless it is taken.
func (b *Board) addName(p Province, name string) {
	key := fold(name)
	if _, taken := b.lookup[key]; !taken {
		b.lookup[key] = Location(p)
		b.spellings[p] = append(b.spellings[p], name)
	}
}

// Spellings lists the names that Find knows for a province: its code, its full name, and
// other names in use.
func (b *Board) Spellings(p Province) []string { return slices.Clone(b.spellings[p]) }

// fold removes from a name what people write differently. It keeps small letters, without
// accents, and digits.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		r = withoutAccent(unicode.ToLower(r))
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// withoutAccent returns a letter without its accent.
func withoutAccent(r rune) rune {
	if r < 128 {
		return r
	}
	from := []rune("àáâãäåāăąçćčďđèéêëēėęěğìíîïīįıłñńňòóôõöøōőřśşšťţùúûüūůűųýÿźżž")
	to := "aaaaaaaaacccddeeeeeeeegiiiiiiilnnnoooooooorssstttuuuuuuuuyyzzz"
	if i := slices.Index(from, r); i >= 0 && i < len(to) {
		return rune(to[i])
	}
	return r
}

// Find finds a province by its code or any of its names, in any spelling that fold makes equal.
func (b *Board) Find(name string) (Province, bool) {
	p, ok := b.lookup[fold(name)]
	return Province(p), ok
}

// Guess finds the provinces that a misspelled name may mean, in the order of codes: those with
// a name that begins with it, or else those with the nearest name.
func (b *Board) Guess(name string) []Province {
	word := fold(name)
	if len(word) < 4 || len(word) > 40 {
		return nil
	}
	var begins, near Set[Province]
	best := 1 // mistakes that are accepted
	if len(word) >= 10 {
		best = 2
	}
	for key, p := range b.lookup {
		if strings.HasPrefix(key, word) {
			begins.Add(Province(p))
		}
		if len(key) < 4 {
			continue // a code has three letters: any mistake may make another one
		}
		switch d := countMistakes(word, key, best); {
		case d < best:
			best, near = d, Set[Province]{}
			near.Add(Province(p))
		case d == best:
			near.Add(Province(p))
		}
	}
	if !begins.Empty() {
		near = begins
	}
	return slices.Collect(near.All())
}

// countMistakes counts the letters that are wrong, missing, extra or swapped between a and b. Above
// limit it returns limit+1.
func countMistakes(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit + 1
	}
	var rows [3][64]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := last[j-1]
			if a[i-1] != b[j-1] {
				wrong++
			}
			row[j] = min(wrong, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}

// unreachable is the distance to a province that cannot be reached.
const unreachable = 255

// measureDistances computes the distances between all pairs.
func (b *Board) measureDistances() {
	for p := range Province(Provinces) {
		fillDistances(b.walk[p][:], p, func(q Province) Set[Province] { return b.army[q] })
		fillDistances(b.hops[p][:], p, func(q Province) Set[Province] { return b.near[q] })
	}
	for p := range Location(Locations) {
		fillDistances(b.sail[p][:], p, func(q Location) Set[Location] { return b.fleet[q] })
	}
}

// fillDistances fills dist with the number of steps from start, breadth first.
func fillDistances[T ~uint8](dist []uint8, start T, next func(T) Set[T]) {
	for i := range dist {
		dist[i] = unreachable
	}
	dist[start] = 0
	queue := []T{start}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for q := range next(p).All() {
			if dist[q] == unreachable {
				dist[q] = dist[p] + 1
				queue = append(queue, q)
			}
		}
	}
}

// Distance is how many moves a unit of type t at from needs to any coast of to
// without a convoy, or unreachable.
func (b *Board) Distance(t Type, from Location, to Province) int {
	if t == Fleet {
		return int(b.sail[from][b.landing(from, to)])
	}
	return int(b.walk[b.provinces[from]][to])
}

// landing returns the location of to that a fleet at from reaches first.
func (b *Board) landing(from Location, to Province) Location {
	best := Location(to)
	for _, at := range b.coasts[to] {
		if best == Location(to) || b.sail[from][at] < b.sail[from][best] {
			best = at
		}
	}
	return best
}

// Path returns a shortest path for a unit of type t, both ends included, or nil. Of several it
// returns the one with the first locations.
func (b *Board) Path(t Type, from Location, to Province) []Location {
	end := Location(to)
	left := func(p Location) uint8 { return b.walk[b.provinces[p]][to] }
	if t == Fleet {
		end = b.landing(from, to)
		left = func(p Location) uint8 { return b.sail[p][end] }
	} else {
		from = Location(b.provinces[from])
	}
	if left(from) == unreachable {
		return nil
	}
	path := []Location{from}
	for at := from; at != end; path = append(path, at) {
		for next := range b.Moves(t, at).All() {
			if left(next) < left(at) {
				at = next
				break
			}
		}
	}
	return path
}

// Way is a shortest path over the board, both ends included.
type Way struct {
	Unit Unit // which would go
	To   Province
	Path []Location
}

// NearestCentres returns the ways of a unit to the nearest centres that its power does not own,
// at most n.
func (r *Rules) NearestCentres(p *Position, u Unit, n int) []Way {
	var ways []Way
	for c := range r.Board.SupplyCentres().All() {
		if p.Owners[c] != u.Power && c != r.Board.Province(u.Location) {
			ways = append(ways, Way{Unit: u, To: c})
		}
	}
	return r.nearest(ways, n)
}

// NearestThreats returns the ways of the nearest units of other powers to a unit, at most n.
func (r *Rules) NearestThreats(p *Position, u Unit, n int) []Way {
	var ways []Way
	for _, other := range p.Units {
		if other.Power != None && other.Power != u.Power {
			ways = append(ways, Way{Unit: other, To: r.Board.Province(u.Location)})
		}
	}
	return r.nearest(ways, n)
}

// nearest keeps the n shortest ways, the first of equal ones, and finds their paths.
func (r *Rules) nearest(ways []Way, n int) []Way {
	far := func(w Way) int { return r.Board.Distance(w.Unit.Type, w.Unit.Location, w.To) }
	ways = slices.DeleteFunc(ways, func(w Way) bool { return far(w) == unreachable })
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(far(a), far(b)) })
	ways = ways[:min(len(ways), max(n, 0))]
	for i, w := range ways {
		ways[i].Path = r.Board.Path(w.Unit.Type, w.Unit.Location, w.To)
	}
	return ways
}

// seaSet is a set of sea provinces.
type seaSet uint32

// seaOf returns the set of p alone, or the empty set if p is not a sea.
func (b *Board) seaOf(p Province) seaSet { return b.seas[p] }

// findRoutes finds the seas by which armies can be carried. It leaves out chains of seas with a shortcut, since some of
// their fleets are not needed: by the rules, such a fleet has no legal convoy order. So each
// sea of a chain touches the one before it and no earlier one.
func (b *Board) findRoutes() {
	bit := seaSet(1)
	for p := range Province(Provinces) {
		if b.terrain[p] == Sea {
			b.seas[p] = bit
			bit <<= 1
		}
	}
	for from := range Province(Provinces) {
		if b.terrain[from] == Coast {
			b.extendRoute(from, from, 0, b.near[from])
		}
	}
}

// extendRoute continues a chain from at, the last of seas. touched holds what the chain before at
// touches: a sea there would be a shortcut.
func (b *Board) extendRoute(from, at Province, seas seaSet, touched Set[Province]) {
	for next := range b.near[at].All() {
		if b.terrain[next] == Inland || next == from {
			continue
		}
		if b.terrain[next] == Coast {
			// A coast that an earlier sea touches is reached without this one.
			if seas != 0 && !b.touchesEarlierSea(next, at, seas) {
				b.routes[from][next] = append(b.routes[from][next], seas)
			}
			continue
		}
		if seas&b.seas[next] != 0 || at != from && touched.Has(next) {
			continue
		}
		more := touched
		if at != from {
			more = touched.Or(b.near[at])
		}
		b.extendRoute(from, next, seas|b.seas[next], more)
	}
}

// touchesEarlierSea reports whether p touches a sea of the chain other than at.
func (b *Board) touchesEarlierSea(p, at Province, seas seaSet) bool {
	for q := range b.near[p].All() {
		if q != at && b.seas[q]&seas != 0 {
			return true
		}
	}
	return false
}

// Set is a set of provinces, locations or powers. The zero Set is empty. Compare sets with ==.
type Set[T ~uint8] [2]uint64

// Has reports whether x is in the set. A set holds numbers below 128.
func (s Set[T]) Has(x T) bool { return x < 128 && s[x>>6&1]>>(x&63)&1 != 0 }

// Add adds x.
func (s *Set[T]) Add(x T) {
	if x < 128 {
		s[x>>6&1] |= 1 << (x & 63)
	}
}

// Remove removes x.
func (s *Set[T]) Remove(x T) {
	if x < 128 {
		s[x>>6&1] &^= 1 << (x & 63)
	}
}

// Len returns the number of members.
func (s Set[T]) Len() int { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// Empty reports whether the set has no member.
func (s Set[T]) Empty() bool { return s[0]|s[1] == 0 }

// Or returns the union.
func (s Set[T]) Or(o Set[T]) Set[T] { return Set[T]{s[0] | o[0], s[1] | o[1]} }

// And returns the intersection.
func (s Set[T]) And(o Set[T]) Set[T] { return Set[T]{s[0] & o[0], s[1] & o[1]} }

// Minus returns the members of s that are not in o.
func (s Set[T]) Minus(o Set[T]) Set[T] { return Set[T]{s[0] &^ o[0], s[1] &^ o[1]} }

// All iterates over the members, smallest first.
func (s Set[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(T(i<<6 | bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// Power is one of the seven powers.
type Power uint8

// The powers, in the order of all lists. None is no power.
const (
	None Power = iota
	Austria
	England
	France
	Germany
	Italy
	Russia
	Turkey
)

// Powers returns the seven powers.
func Powers() []Power {
	return []Power{Austria, England, France, Germany, Italy, Russia, Turkey}
}

// PowerNames returns the names of the powers as game files write them, which are also their
// seats.
func PowerNames() []string {
	return []string{"AUSTRIA", "ENGLAND", "FRANCE", "GERMANY", "ITALY", "RUSSIA", "TURKEY"}
}

// Name returns the power's name: France.
func (w Power) Name() string {
	return [...]string{"", "Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey", "?"}[min(w, Turkey+1)]
}

// String returns the power's name as game files write it: FRANCE.
func (w Power) String() string { return strings.ToUpper(w.Name()) }

// ParsePower reads the name of a power in any case, its adjective, or a common misspelling.
func ParsePower(name string) (Power, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, w := range Powers() {
		if strings.EqualFold(name, w.Name()) {
			return w, true
		}
	}
	switch name {
	case "austrian", "austria-hungary", "austro-hungarian":
		return Austria, true
	case "english", "british", "britain", "great britain", "uk", "brit":
		return England, true
	case "french":
		return France, true
	case "german", "egmany":
		return Germany, true
	case "italian":
		return Italy, true
	case "russian":
		return Russia, true
	case "turkish", "ottoman":
		return Turkey, true
	}
	return None, false
}
