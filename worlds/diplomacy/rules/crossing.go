package rules

// Seas is a set of sea provinces.
type Seas uint32

// Crossing is a convoy route: fleets in all of Seas, and no fewer, can carry an army to To.
type Crossing struct {
	To   Province
	Seas Seas
}

// SeaOf returns the set of p alone, or the empty set if p is not a sea.
func (b *Board) SeaOf(p Province) Seas { return b.seas[p] }

// Crossings returns all convoy routes from p, by destination.
func (b *Board) Crossings(p Province) []Crossing { return b.crossing[p] }

// chart finds every crossing. It leaves out chains of seas with a shortcut, since some of
// their fleets are not needed: by the rules, such a fleet has no legal convoy order. So each
// sea of a chain touches the one before it and no earlier one.
func (b *Board) chart() {
	bit := Seas(1)
	for p := range Province(Provinces) {
		if b.terrain[p] == Sea {
			b.seas[p] = bit
			bit <<= 1
		}
	}
	for from := range Province(Provinces) {
		if b.terrain[from] == boardCoast {
			var found [Provinces][]Seas
			b.follow(from, from, 0, b.near[from], &found)
			for to, ways := range found {
				for _, seas := range ways {
					b.crossing[from] = append(b.crossing[from], Crossing{Province(to), seas})
				}
			}
		}
	}
}

// follow continues a chain from at, the last of seas. touched holds what the chain before at
// touches: a sea there would be a shortcut.
func (b *Board) follow(from, at Province, seas Seas, touched Set[Province], found *[Provinces][]Seas) {
	for next := range b.near[at].All() {
		if b.terrain[next] == Inland || next == from {
			continue
		}
		if b.terrain[next] == boardCoast {
			// A coast that an earlier sea touches is reached without this one.
			if seas != 0 && !b.early(next, at, seas) {
				found[next] = append(found[next], seas)
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
		b.follow(from, next, seas|b.seas[next], more, found)
	}
}

// early reports whether p touches a sea of the chain other than at.
func (b *Board) early(p, at Province, seas Seas) bool {
	for q := range b.near[p].All() {
		if q != at && b.seas[q]&seas != 0 {
			return true
		}
	}
	return false
}
