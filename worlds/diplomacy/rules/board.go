// Part board is the map of Diplomacy: 75 provinces and their coasts, which units can move
// where, distances, and the seas over which fleets can carry an army.
//
// A Board never changes, so any number of games can share one. Provinces and locations are
// small numbers, in the order of codes with the coasts last, and sets of them are two words,
// so that lookups are cheap.
//
// Positions and orders are in package rules.

package rules

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed board.txt
var standard string

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
	Inland     Terrain = iota // armies
	boardCoast                // armies and fleets
	Sea                       // fleets
)

// String returns the terrain in a word.
func (t Terrain) String() string {
	return [...]string{"inland", "coast", "sea"}[min(t, Sea)]
}

// Type is the type of a unit.
type Type uint8

// The types of units. boardAny is for orders that do not name one.
const (
	boardAny Type = iota
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

// Board is the map, with everything that can be computed from it in advance.
type Board struct {
	codes     [Locations]string
	provinces [Locations]Province
	names     [Provinces]string
	byName    [Provinces]uint8 // rank of the name in the alphabet
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
	hops [Provinces][Provinces]uint8

	seas     [Provinces]Seas
	crossing [Provinces][]Crossing
	lookup   map[string]Location

	spellings [Provinces][]string
}

// NewBoard returns the standard board.
func NewBoard() *Board {
	b := &Board{lookup: map[string]Location{}}
	b.read(standard)
	b.rank()
	b.measure()
	b.chart()
	b.index()
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

// NameBefore reports whether the name of p comes before that of q in the alphabet.
func (b *Board) NameBefore(p, q Province) bool { return b.byName[p] < b.byName[q] }

// Terrain returns the terrain of a province.
func (b *Board) Terrain(p Province) Terrain { return b.terrain[p] }

// FleetLocations are the places of a province where a fleet can stand: none inland,
// several where it has several coasts.
func (b *Board) FleetLocations(p Province) []Location { return b.coasts[p] }

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

// Stands reports whether a unit of type t can be at p.
func (b *Board) Stands(t Type, p Location) bool {
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

// rank sorts the names by the alphabet.
func (b *Board) rank() {
	for p := range b.names {
		for q := range b.names {
			if strings.Compare(b.names[q], b.names[p]) < 0 {
				b.byName[p]++
			}
		}
	}
}

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
		b.border(Province(i), strings.Fields(row[3]), strings.Fields(row[4]))
		b.settle(Province(i), strings.Fields(row[2]))
	}
}

// border adds the borders of p.
func (b *Board) border(p Province, army, fleet []string) {
	switch {
	case len(army) == 0:
		b.terrain[p] = Sea
	case len(fleet) > 0:
		b.terrain[p] = boardCoast
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

// settle reads whose home centre p is, and its first unit.
func (b *Board) settle(p Province, words []string) {
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
