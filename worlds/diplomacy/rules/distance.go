package rules

// boardFar is the distance to a province that cannot be reached.
const boardFar = 255

// measure computes the distances between all pairs.
func (b *Board) measure() {
	for p := range Province(Provinces) {
		spread(b.walk[p][:], p, func(q Province) Set[Province] { return b.army[q] })
		spread(b.hops[p][:], p, func(q Province) Set[Province] { return b.near[q] })
	}
	for p := range Location(Locations) {
		spread(b.sail[p][:], p, func(q Location) Set[Location] { return b.fleet[q] })
	}
}

// spread fills dist with the number of steps from start, breadth first.
func spread[T ~uint8](dist []uint8, start T, next func(T) Set[T]) {
	for i := range dist {
		dist[i] = boardFar
	}
	dist[start] = 0
	queue := []T{start}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for q := range next(p).All() {
			if dist[q] == boardFar {
				dist[q] = dist[p] + 1
				queue = append(queue, q)
			}
		}
	}
}

// Distance is how many moves a unit of type t at from needs to any coast of to
// without a convoy: Far if it cannot.
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

// Hops is the distance between provinces over land and water, for the rule of forced removals.
func (b *Board) Hops(from, to Province) int { return int(b.hops[from][to]) }

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
	if left(from) == boardFar {
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
