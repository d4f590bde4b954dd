// Package board is the map Diplomacy is played on: 75 provinces, their coasts, who
// can go where, how far that is, and which seas carry an army across.
//
// It promises that a Board never changes once it is made, so that any number of
// games may share one. Provinces and places are small numbers, in the order of codes
// with the coasts behind, and sets of them are two words, so that asking costs next
// to nothing.
//
// It is not for positions and orders: it knows the board, not what stands on it.
package board

import (
	"slices"
	"strings"
)

// Sizes of the board.
const (
	Provinces = 75 // provinces, seas included
	Locations = 81 // where a unit can stand: the provinces, and six coasts of three of them
	Centres   = 34 // supply centres
	Majority  = 18 // supply centres that win the game
)

// Province is a province, by its number in the order of codes.
type Province uint8

// Location is where a unit stands: a province, or one of several coasts of it. The
// first Provinces of them are the provinces themselves.
type Location uint8

// Nowhere is no place.
const Nowhere Location = 255

// Terrain says who can stand in a province.
type Terrain uint8

// The terrains.
const (
	Inland Terrain = iota // armies
	Coast                 // armies and fleets
	Sea                   // fleets
)

// String is the terrain as people say it.
func (t Terrain) String() string {
	return [...]string{"inland", "coast", "sea"}[min(t, Sea)]
}

// Type says what a unit is.
type Type uint8

// The types of units. Any is for orders that do not say.
const (
	Any Type = iota
	Army
	Fleet
)

// String is the type's letter.
func (t Type) String() string {
	return [...]string{"", "A", "F"}[min(t, Fleet)]
}

// Unit is an army or a fleet of a power. The zero Unit is none.
type Unit struct {
	Power    Power
	Type     Type
	Location Location
}

// Board is the map with everything that can be known of it beforehand.
type Board struct {
	codes     [Locations]string
	provinces [Locations]Province
	names     [Provinces]string
	byName    [Provinces]uint8 // rank of the name in the alphabet
	terrain   [Provinces]Terrain
	coasts    [Provinces][]Location // where a fleet stands in it
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

// New makes the standard board.
func New() *Board {
	b := &Board{lookup: map[string]Location{}}
	b.read(atlas)
	b.rank()
	b.measure()
	b.chart()
	b.index()
	return b
}

// Code is a place as it is written: PAR, STP/SC.
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

// Name is a province's name in English.
func (b *Board) Name(p Province) string { return b.names[p] }

// NameBefore says whether the name of p comes before that of q in the alphabet.
func (b *Board) NameBefore(p, q Province) bool { return b.byName[p] < b.byName[q] }

// Terrain says what a province is.
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

// Start are the units the game begins with.
func (b *Board) Start() []Unit { return slices.Clone(b.start) }

// Stands says whether a unit of type t can stand at p.
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

// rank puts the names in the order of the alphabet.
func (b *Board) rank() {
	for p := range b.names {
		for q := range b.names {
			if strings.Compare(b.names[q], b.names[p]) < 0 {
				b.byName[p]++
			}
		}
	}
}
