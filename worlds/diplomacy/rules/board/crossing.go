package board

// Seas is a set of sea provinces.
type Seas uint32

// Crossing is a way over water: an army can be carried to To by fleets in all of
// Seas, and not by fewer of them.
type Crossing struct {
	To   Province
	Seas Seas
}

// SeaOf is the set of p alone, empty unless p is a sea.
func (b *Board) SeaOf(p Province) Seas { return b.seas[p] }

// Crossings are all the ways over water from p, by destination.
func (b *Board) Crossings(p Province) []Crossing { return b.crossing[p] }

// chart finds every crossing there is. A chain of seas that has a shortcut within
// itself is left out: its fleets can carry the army without the others, and by the
// rules a convoy order that no route needs is no order. So only chains are followed
// in which each sea touches the last one and none before it.
func (b *Board) chart() {
	bit := Seas(1)
	for p := range Province(Provinces) {
		if b.terrain[p] == Sea {
			b.seas[p] = bit
			bit <<= 1
		}
	}
	for from := range Province(Provinces) {
		if b.terrain[from] == Coast {
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

// follow goes on from at, the last of seas. Touched is what touches the chain before
// at: a sea there would be a shortcut.
func (b *Board) follow(from, at Province, seas Seas, touched Set[Province], found *[Provinces][]Seas) {
	for next := range b.near[at].All() {
		if b.terrain[next] == Inland || next == from {
			continue
		}
		if b.terrain[next] == Coast {
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

// early says whether p touches a sea of the chain other than at.
func (b *Board) early(p, at Province, seas Seas) bool {
	for q := range b.near[p].All() {
		if q != at && b.seas[q]&seas != 0 {
			return true
		}
	}
	return false
}
